"""The fee of the house, in whole minor units, as a pure function (docs/rules.md, 7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from services.game.pots import Pot, rake_shares
from services.wallet.money import AMOUNT_MAX

WHOLE_BASIS_POINTS = 10_000
PLAYERS_MIN, PLAYERS_MAX = 2, 8
THIRD_STREET, SEVENTH_STREET = 3, 7
POTS_MAX = 8
STEPS_MAX = 32

Fault = tuple[str, str]
"""Field and what is wrong with it."""


class Rounding(StrEnum):
    """What becomes of a fraction of a unit."""

    DOWN = "down"
    HALF_EVEN = "half_even"


class Cap(NamedTuple):
    """The most that is taken, from a number of players dealt in on."""

    players_from: int
    cap: int
    """Minor units."""


class Step(NamedTuple):
    """A step of a staircase: from this pot on, this much is taken in all."""

    pot_from: int
    """Minor units."""
    rake: int
    """Minor units."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How much is taken from a pot: a percentage, even steps or a staircase, one of them."""

    schedule_id: str
    version: int
    """From 1; a version never changes."""
    basis_points: int = 0
    """Percentage in hundredths of a percent."""
    per_full: int = 0
    """With steps: for every full amount of this many minor units ..."""
    units: int = 0
    """... this many are taken."""
    caps: tuple[Cap, ...] = ()
    """Ascending by players, the first for everyone; none for no cap."""
    minimum_pot: int = 0
    """No rake below this total, minor units."""
    no_rake_on_third: bool = False
    """No rake when the hand ended on third street."""
    rounding: Rounding = Rounding.DOWN
    """Of a percentage."""
    staircase: tuple[Step, ...] = ()
    """Uneven steps, ascending by pot."""


def assess(schedule: Schedule, pots: Sequence[Pot], dealt_in: int, street: int) -> tuple[int, ...]:
    """What is taken from each pot: minor units, together never more than the pots hold.

    pots: after uncalled wagers went back, main pot first. dealt_in: players dealt in, which is what
    caps go by (not the seats taken). street: the last one dealt, 3 to 7. The schedule and the
    arguments have been checked (`schedule_faults`, `hand_faults`).
    """
    total = sum(pot.amount for pot in pots)
    if total < schedule.minimum_pot or (schedule.no_rake_on_third and street == THIRD_STREET):
        return (0,) * len(pots)
    rake = min(_uncapped(schedule, total), total)
    reached = [cap.cap for cap in schedule.caps if cap.players_from <= dealt_in]
    if reached:
        rake = min(rake, reached[-1])
    return rake_shares(rake, pots)


def _uncapped(schedule: Schedule, total: int) -> int:
    if schedule.staircase:
        return max((step.rake for step in schedule.staircase if step.pot_from <= total), default=0)
    if schedule.per_full:
        return total // schedule.per_full * schedule.units
    whole, part = divmod(total * schedule.basis_points, WHOLE_BASIS_POINTS)
    half = WHOLE_BASIS_POINTS // 2
    up = part > half or (part == half and whole % 2 == 1)
    return whole + 1 if up and schedule.rounding is Rounding.HALF_EVEN else whole


def schedule_faults(schedule: Schedule) -> list[Fault]:
    """Everything that is wrong with a schedule's numbers; empty if it can be used."""
    faults: list[Fault] = []

    def check(holds: bool, field: str, rule: str) -> None:
        if not holds:
            faults.append((field, rule))

    steps = schedule.per_full or schedule.units
    check(schedule.version >= 1, "version", "must be 1 or more")
    check(
        0 <= schedule.basis_points <= WHOLE_BASIS_POINTS,
        "basis_points",
        f"must be 0 to {WHOLE_BASIS_POINTS}",
    )
    check(not (steps and schedule.basis_points), "basis_points", "must be 0 with steps")
    if schedule.staircase:
        check(not (steps or schedule.basis_points), "staircase", "must be the only way of counting")
        faults += _staircase_faults(schedule.staircase)
    if steps:
        check(1 <= schedule.per_full <= AMOUNT_MAX, "per_full", f"must be 1 to {AMOUNT_MAX}")
        check(0 <= schedule.units <= schedule.per_full, "units", "must be 0 to per_full")
    check(0 <= schedule.minimum_pot <= AMOUNT_MAX, "minimum_pot", f"must be 0 to {AMOUNT_MAX}")
    players = [cap.players_from for cap in schedule.caps]
    check(players == sorted(set(players)), "caps", "must ascend by players")
    check(
        not players or 0 <= players[0] <= PLAYERS_MIN,
        "caps",
        f"the first must hold from {PLAYERS_MIN} players, so that no hand is without one",
    )
    check(
        all(0 <= cap.cap <= AMOUNT_MAX for cap in schedule.caps),
        "caps",
        f"a cap must be 0 to {AMOUNT_MAX}",
    )
    return faults


def _staircase_faults(staircase: tuple[Step, ...]) -> list[Fault]:
    pots = [step.pot_from for step in staircase]
    taken = [step.rake for step in staircase]
    faults: list[Fault] = []
    if len(staircase) > STEPS_MAX:
        faults.append(("staircase", f"at most {STEPS_MAX} steps"))
    if pots != sorted(set(pots)) or taken != sorted(taken):
        faults.append(("staircase", "must ascend by pot, and never take less from more"))
    if any(not 0 <= step.rake <= step.pot_from <= AMOUNT_MAX for step in staircase):
        faults.append(("staircase", "a step must not take more than the pot it begins with"))
    return faults


def hand_faults(pots: Sequence[Pot], dealt_in: int, street: int) -> list[Fault]:
    """Everything that is wrong with what is said of a hand; empty if it can be raked."""
    faults: list[Fault] = []
    if len(pots) > POTS_MAX:
        faults.append(("pots", f"at most {POTS_MAX}"))
    if any(pot.amount < 1 for pot in pots) or sum(pot.amount for pot in pots) > AMOUNT_MAX:
        faults.append(("pots", f"amounts must be 1 or more, together at most {AMOUNT_MAX}"))
    if not PLAYERS_MIN <= dealt_in <= PLAYERS_MAX:
        faults.append(("dealt_in", f"must be {PLAYERS_MIN} to {PLAYERS_MAX}"))
    if not THIRD_STREET <= street <= SEVENTH_STREET:
        faults.append(("street", f"must be {THIRD_STREET} to {SEVENTH_STREET}"))
    return faults
