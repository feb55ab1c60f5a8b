"""How a hand begins, and what came of it."""

from dataclasses import dataclass
from typing import Final

from services.game.pots import Pot
from services.game.rulebook import UNITS_MAX, BringInRule, Rulebook, Stake

_FORCED: Final = BringInRule.FORCED

SEATS_MAX: Final = 8
"""Seats of a table (docs/rules.md, 1)."""


@dataclass(frozen=True, slots=True)
class HandSetup:
    """Who plays a hand, for what, under which rules. Raises ValueError if it cannot be played."""

    rulebook: Rulebook
    """The house's rules."""
    stake: Stake
    """The amounts, minor units."""
    seats: tuple[int, ...]
    """Table seats 0..7 dealt in, clockwise, ascending."""
    stacks: tuple[int, ...]
    """What each of them has on the table, minor units, before the ante."""
    button: int
    """Seat of the nominal dealer, one of `seats`."""

    def __post_init__(self) -> None:
        seats = self.seats
        if not 2 <= len(seats) <= SEATS_MAX or len(seats) != len(self.stacks):
            raise ValueError("two to eight seats and as many stacks")
        if seats[0] < 0 or seats[-1] >= SEATS_MAX or list(seats) != sorted(set(seats)):
            raise ValueError("seats are 0 to 7, ascending, each once")
        if self.button not in seats:
            raise ValueError("the button is not among the seats")
        if min(self.stacks) < 1:
            raise ValueError("nobody is dealt in without chips")
        if max(self.stacks) > UNITS_MAX:
            raise ValueError("a stack is above the largest amount of money")
        stake = self.stake
        bring_in = 1 if self.rulebook.bring_in_rule is _FORCED else 0
        if not (stake.ante >= 1 and bring_in <= stake.bring_in <= stake.small_bet < stake.big_bet):
            raise ValueError("the stake does not fit the rulebook")


RESULT_FIELDS: Final = (
    "_after",
    "awards",
    "mucked",
    "pots",
    "rake",
    "shown",
    "uncalled",
    "voided",
)


class HandResult:
    """How a hand ended."""

    __slots__ = (*RESULT_FIELDS, "_setup")

    def __init__(self, setup: HandSetup) -> None:
        self._setup = setup
        self._after: list[int] = []
        self.uncalled: tuple[tuple[int, int], ...] = ()
        """(seat, amount) that went back."""
        self.pots: tuple[Pot, ...] = ()
        """The pots before rake, main pot first."""
        self.rake: tuple[int, ...] = ()
        """What the house took from each."""
        self.awards: tuple[tuple[int, int, int, int, str], ...] = ()
        """(pot index, seat, amount, part, name of the hand)."""
        self.shown: tuple[int, ...] = ()
        """Seats that showed at the showdown, in order."""
        self.mucked: tuple[int, ...] = ()
        """Seats that stayed to the showdown and did not show."""
        self.voided: bool = False
        """Every stake went back."""

    @property
    def net(self) -> dict[int, int]:
        """Won or lost by each seat; the sum is the rake, negative. Empty before the end."""
        if not self._after:
            return {}
        stacks = zip(self._setup.seats, self._after, self._setup.stacks, strict=True)
        return {seat: now - then for seat, now, then in stacks}

    def end(self, after: list[int]) -> None:
        """The hand has ended with these stacks, by seat as in the setup."""
        self._after = after
