"""Who gets which cards of a street: one at a time clockwise (docs/rules.md, 1).

Seats are given clockwise; there are 1,024 such rows of at most eight, so each is worked out once.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from services.game.cards import CARDS
from services.game.events import COMMUNITY, Event, EventKind
from services.game.setup import SEATS_MAX

Slots = tuple[tuple[int, bool], ...]
"""(seat, up) of each card, in the order of dealing."""

ROWS: Final = SEATS_MAX << SEATS_MAX - 1
"""Rows of seats, clockwise from any of them."""


class Round(NamedTuple):
    """The cards of a street."""

    slots: Slots
    events: tuple[tuple[Event, ...], ...]
    """By slot and card: the event that the card is dealt there."""


NO_CARDS: Final = Round((), ())


@lru_cache(maxsize=ROWS)
def third_street(seats: tuple[int, ...]) -> Round:
    """Two down cards and a door card each."""
    return in_order(down_cards(seats).slots * 2 + up_cards(seats).slots)


@lru_cache(maxsize=ROWS)
def up_cards(seats: tuple[int, ...]) -> Round:
    """A card each, up."""
    return in_order(tuple([(seat, True) for seat in seats]))


@lru_cache(maxsize=ROWS)
def down_cards(seats: tuple[int, ...]) -> Round:
    """A card each, down."""
    return in_order(tuple([(seat, False) for seat in seats]))


def in_order(slots: Slots) -> Round:
    """Whatever cards in their order."""
    return Round(slots, tuple([_EVENTS[slot] for slot in slots]))


@lru_cache(maxsize=ROWS)
def places(seats: tuple[int, ...]) -> dict[int, int]:
    """The place of each seat in its row; shared, so not to be changed."""
    return {seat: place for place, seat in enumerate(seats)}


_EVENTS: Final[dict[tuple[int, bool], tuple[Event, ...]]] = {
    (seat, up): tuple((EventKind.DEALT, seat, card, up) for card in range(CARDS))
    for seat in (COMMUNITY, *range(SEATS_MAX))
    for up in (False, True)
}
