"""The inputs of a hand as the blob keeps them: an action, of which a long hand has dozens, is one
whole number; everything else is as `Hand.inputs` has it.

    ((amount * 16) + kind) * 16 + seat

Blobs up to schema 2 have actions as lists, which are read as well.
"""

from collections.abc import Sequence
from typing import Any, Final

from services.game.hand import ACTED

_VALUES: Final = 16
"""Seats and kinds of action, both from 0."""
_AMOUNT_END: Final = 1 << 55
"""With larger amounts the number has no room in msgpack."""


def pack_input(item: Sequence[Any]) -> Any:
    """An item of `Hand.inputs`, for the blob."""
    if item[0] != ACTED:
        return item
    _, seat, kind, amount = item
    if not (0 <= seat < _VALUES and 0 <= kind < _VALUES and 0 <= amount < _AMOUNT_END):
        return item
    return (amount * _VALUES + kind) * _VALUES + seat


def unpack_input(packed: Any) -> Sequence[Any]:
    """The item, for `Hand.feed`."""
    if not isinstance(packed, int):
        return packed  # type: ignore[no-any-return]
    rest, seat = divmod(packed, _VALUES)
    amount, kind = divmod(rest, _VALUES)
    return ACTED, seat, kind, amount
