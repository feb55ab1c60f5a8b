"""Amounts and currencies: what may be moved at all."""

from typing import Final

from services.runtime.errors import InvalidArgument

AMOUNT_MAX: Final = 2**53 - 1
"""Minor units, of an amount and of a balance: every client language holds it exactly."""

PLAY_MONEY: Final = "XTS"

_ISO_4217: Final = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD
CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD
GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD
KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO
NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE
SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND
VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
"""

CURRENCIES: Final = frozenset(_ISO_4217.split()) | {PLAY_MONEY}
"""ISO 4217 codes of money in use, and play money."""


def check_amount(amount: int, field: str = "amount") -> int:
    """`amount` itself, or InvalidArgument naming `field`."""
    if not 1 <= amount <= AMOUNT_MAX:
        raise InvalidArgument.of_field(field, f"must be 1 to {AMOUNT_MAX}", "BAD_AMOUNT")
    return amount


def check_change(amount: int, field: str = "amount") -> int:
    """`amount` itself, a signed one that is not 0, or InvalidArgument naming `field`."""
    if not 1 <= abs(amount) <= AMOUNT_MAX:
        raise InvalidArgument.of_field(
            field, f"must be 1 to {AMOUNT_MAX}, or as much below zero", "BAD_AMOUNT"
        )
    return amount


def check_currency(currency: str, field: str = "currency") -> str:
    """`currency` itself, or InvalidArgument naming `field`."""
    if currency not in CURRENCIES:
        raise InvalidArgument.of_field(
            field, "must be an ISO 4217 code in use, or XTS", "UNKNOWN_CURRENCY"
        )
    return currency
