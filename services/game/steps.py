"""The usual course of a betting round: nobody is short of what it may come to.

As long as every player has more than can be asked of him, all wagers are whole, and what a player
may do depends on the step that the round has reached and on what he has in: it is worked out once
and looked up ever after. Where somebody is short, `Betting` works every decision out.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from services.game.wants import Legal

STEPS_MAX: Final = 16
"""Wagers of a round that are looked up; where raises have no cap there may be more."""


class Terms(NamedTuple):
    """What decides such a round: those of equal terms share their steps."""

    small: int
    big: int
    bring_in: int
    may_open_full: bool
    cap: int


class Step:
    """How far a round has gone."""

    __slots__ = ("most", "next", "offered")

    def __init__(self, most: int) -> None:
        self.most: Final = most
        """The most that anybody can have in after the next action, in this round."""
        self.offered: Final[dict[int, Legal]] = {}
        """What a player may do, by what he has in; filled as it is asked for."""
        self.next: Final[dict[int, Step]] = {}
        """Where a wager leads, by its total; 0 is the bring-in. Filled likewise."""


class Rounds(NamedTuple):
    """Rounds in which nobody has done anything yet."""

    streets: tuple[Step, ...]
    """By street, 3 to 7; fifth, sixth and seventh are alike."""
    two_sizes: Step
    """Fourth street with an open pair, where the house allows it."""


@lru_cache(maxsize=256)
def rounds_of(terms: Terms) -> tuple[Rounds, Rounds]:
    """Rounds under the cap, and rounds where it is lifted."""
    return _rounds(terms), _rounds(terms)


def _rounds(terms: Terms) -> Rounds:
    third, fourth, later = Step(terms.small), Step(terms.small), Step(terms.big)
    return Rounds((later, later, later, third, fourth, later, later, later), Step(terms.big))
