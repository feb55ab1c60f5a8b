"""What happens in a hand, in order.

An event is a tuple whose first item is an `EventKind`; the comments beside the kinds name the
others. What leaves a service is made of them by the service (`doorcard.game.v1.HandEvent`).
"""

from enum import IntEnum
from typing import Any, Final

Event = tuple[Any, ...]


class EventKind(IntEnum):
    """First item of every event."""

    ANTE = 1  # seat, amount
    STREET = 2  # street 3..7
    DEALT = 3  # seat or -1 for a community card, card, up
    BURNED = 4  # count
    RESHUFFLED = 5  # count
    BROUGHT_IN = 6  # seat, amount
    COMPLETED = 7  # seat, to
    BET = 8  # seat, to
    RAISED = 9  # seat, to
    CALLED = 10  # seat, amount added
    CHECKED = 11  # seat
    FOLDED = 12  # seat
    ALL_IN = 13  # seat
    TIMED_OUT = 14  # seat
    PROTECTED = 15  # seat
    LEFT = 16  # seat
    UNCALLED = 17  # seat, amount
    POTS = 18  # ((amount, (seat, ...)), ...)
    RAKED = 19  # (share of each pot, ...)
    SHOWN = 20  # seat, (card, ...), name of the hand
    MUCKED = 21  # seat
    AWARDED = 22  # pot index, seat, amount, part, name of the hand
    ENDED = 23  # ((seat, stack), ...)
    VOIDED = 24


WHOLE: Final = 0
"""Part of an award: the whole pot."""
HIGH: Final = 1
"""Part of an award: the high half."""
LOW: Final = 2
"""Part of an award: the low half."""

COMMUNITY: Final = -1
"""Stands for a seat where a card is everybody's."""
