"""Amounts in words of a currency."""

from collections.abc import Mapping
from typing import Final

PLAY_MONEY: Final = "XTS"

_EXPONENTS: Final[Mapping[str, int]] = {
    # ISO 4217 minor units where they are not 2. Play money has none.
    "BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0,
    "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0, PLAY_MONEY: 0,
    "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
    "CLF": 4, "UYW": 4,
}  # fmt: skip


def amount_text(minor_units: int, currency: str) -> str:
    """ "12.50" for 1250 in EUR, "1250" in play money; thousands are set apart by commas."""
    exponent = _EXPONENTS.get(currency, 2)
    whole, fraction = divmod(abs(minor_units), 10**exponent)
    sign = "-" if minor_units < 0 else ""
    return f"{sign}{whole:,}" + (f".{fraction:0{exponent}}" if exponent else "")


def currency_text(currency: str) -> str:
    """The code, or "play money"."""
    return "play money" if currency == PLAY_MONEY else currency
