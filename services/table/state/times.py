"""How long a seat waits for its player, and how long a player may keep it waiting."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SeatTimes:
    """The house's times around seats, in milliseconds; a table's clock is its rulebook's."""

    offer_ms: int = 30_000
    """A seat is kept for who is next in line."""
    move_ms: int = 60_000
    """A seat is kept for who has left another table for it."""
    hand_elsewhere_ms: int = 600_000
    """A seat is kept at most so long for who still plays a hand at the table that he leaves."""
    ante_ms: int = 6_000
    """A player who confirms his antes has so long to say that he is in."""
    away_ms: int = 900_000
    """Who sits out keeps his seat."""
    broke_ms: int = 180_000
    """Who has no chips keeps his seat."""
    missed_max: int = 0
    """Hands in a row that he may miss; 0 for any number."""
    rejoin_ms: int = 1_800_000
    """Who left with more than the least buy-in has to bring it back."""


STANDARD: Final = SeatTimes()
