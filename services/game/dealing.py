"""Who gets which cards of a street: one at a time clockwise (RULES.md, 1).

Seats are given clockwise; there are 1,024 such rows of at most eight, so each is worked out once.
"""

from functools import lru_cache
from typing import Final

from services.game.setup import SEATS_MAX

Slots = tuple[tuple[int, bool], ...]
"""(seat, up) of each card, in the order of dealing."""

ROWS: Final = SEATS_MAX << SEATS_MAX - 1
"""Rows of seats, clockwise from any of them."""


@lru_cache(maxsize=ROWS)
def third_street(seats: tuple[int, ...]) -> Slots:
    """Two down cards and a door card each."""
    return down_cards(seats) * 2 + up_cards(seats)


@lru_cache(maxsize=ROWS)
def up_cards(seats: tuple[int, ...]) -> Slots:
    """A card each, up."""
    return tuple([(seat, True) for seat in seats])


@lru_cache(maxsize=ROWS)
def down_cards(seats: tuple[int, ...]) -> Slots:
    """A card each, down."""
    return tuple([(seat, False) for seat in seats])


@lru_cache(maxsize=ROWS)
def places(seats: tuple[int, ...]) -> dict[int, int]:
    """The place of each seat in its row; shared, so not to be changed."""
    return {seat: place for place, seat in enumerate(seats)}
