"""The fee of the house (docs/rules.md, 7)."""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.game.pots import Pot, layers, uncalled
from services.wallet.money import AMOUNT_MAX
from services.wallet.rake import (
    Cap,
    Rounding,
    Schedule,
    Step,
    assess,
    hand_faults,
    schedule_faults,
)

FIVE_PERCENT = Schedule("five", 1, basis_points=500)
CAPPED = Schedule("capped", 1, basis_points=500, caps=(Cap(2, 100), Cap(3, 200), Cap(5, 300)))
STEPS = Schedule("steps", 1, per_full=20, units=1)


def rake_of(schedule: Schedule, *amounts: int, dealt_in: int = 6, street: int = 7) -> list[int]:
    pots = [Pot(amount, (0, 1)) for amount in amounts]
    assert schedule_faults(schedule) == hand_faults(pots, dealt_in, street) == []
    return list(assess(schedule, pots, dealt_in, street))


def test_caps_go_by_the_players_dealt_in_not_by_the_seats_taken() -> None:
    assert rake_of(CAPPED, 4000, dealt_in=2) == [100]
    assert [sum(rake_of(CAPPED, 40_000, dealt_in=n)) for n in range(2, 9)] == [
        100, 200, 200, 300, 300, 300, 300,
    ]  # fmt: skip
    assert rake_of(CAPPED, 1000, dealt_in=8) == [50]


def test_an_uncalled_bet_is_never_raked() -> None:
    put_in = {0: 50, 1: 30}  # 60 in the pot, then a bet of 20 that everyone folds to
    back = uncalled(put_in)
    assert back is not None
    put_in[back.seat] -= back.amount
    assert sum(assess(FIVE_PERCENT, layers(put_in, folded={1}), 2, 5)) == 3


def test_no_rake_on_third_street_where_the_schedule_says_so() -> None:
    modern = Schedule("modern", 1, basis_points=500, no_rake_on_third=True)
    assert rake_of(modern, 120, street=3) == [0]
    assert rake_of(modern, 120, street=4) == [6]
    assert rake_of(FIVE_PERCENT, 120, street=3) == [6]


def test_the_share_of_a_pot_is_rounded_down_and_left_over_units_go_to_the_main_pot_first() -> None:
    steps = Schedule("steps", 1, per_full=32, units=1)
    assert rake_of(steps, 42, 54) == [2, 1]


def test_steps_count_full_amounts_only() -> None:
    assert [sum(rake_of(STEPS, total)) for total in (1, 19, 20, 39, 40, 119)] == [0, 0, 1, 1, 2, 5]


def test_a_staircase_takes_what_its_last_step_says() -> None:
    stairs = Schedule("stairs", 1, staircase=(Step(20, 1), Step(30, 3), Step(100, 4)))
    assert [sum(rake_of(stairs, total)) for total in (19, 20, 29, 30, 99, 100, 5000)] == [
        0, 1, 1, 3, 3, 4, 4,
    ]  # fmt: skip


def test_no_rake_below_the_minimum_pot() -> None:
    schedule = Schedule("minimum", 1, basis_points=500, minimum_pot=100)
    assert rake_of(schedule, 60, 39) == [0, 0]
    assert sum(rake_of(schedule, 60, 40)) == 5


@pytest.mark.parametrize(
    ("total", "down", "half_even"),
    [(10, 0, 0), (30, 1, 2), (50, 2, 2), (70, 3, 4), (11, 0, 1), (9, 0, 0), (29, 1, 1)],
)
def test_rounding_down_and_half_even(total: int, down: int, half_even: int) -> None:
    even = Schedule("even", 1, basis_points=500, rounding=Rounding.HALF_EVEN)
    assert rake_of(FIVE_PERCENT, total) == [down]
    assert rake_of(even, total) == [half_even]


def test_a_hand_without_pots_pays_nothing() -> None:
    assert rake_of(FIVE_PERCENT) == []


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    more = draw(st.lists(st.integers(3, 8), unique=True).map(sorted))
    capped = draw(st.sampled_from([(), (2, *more)]))
    caps = st.integers(0, 10_000)
    shared: dict[str, Any] = {
        "caps": tuple(Cap(at_least, draw(caps)) for at_least in capped),
        "minimum_pot": draw(st.integers(0, 500)),
        "no_rake_on_third": draw(st.booleans()),
        "rounding": draw(st.sampled_from(Rounding)),
    }
    if draw(st.booleans()):
        pots = sorted(draw(st.sets(st.integers(1, 10_000), max_size=5)))
        taken = sorted(draw(st.integers(0, pots[0])) for _ in pots)
        return Schedule("s", 1, staircase=tuple(map(Step, pots, taken)), **shared)
    if draw(st.booleans()):
        full = draw(st.integers(1, 1000))
        units = draw(st.integers(0, full))
        return Schedule("s", 1, per_full=full, units=units, **shared)
    return Schedule("s", 1, basis_points=draw(st.integers(0, 10_000)), **shared)


@given(
    schedules(),
    st.lists(st.integers(1, AMOUNT_MAX // 8), max_size=8),
    st.integers(2, 8),
    st.integers(3, 7),
)
def test_no_pot_pays_more_than_it_holds_and_no_cap_is_passed(
    schedule: Schedule, amounts: list[int], dealt_in: int, street: int
) -> None:
    shares = rake_of(schedule, *amounts, dealt_in=dealt_in, street=street)
    assert all(0 <= share <= amount for share, amount in zip(shares, amounts, strict=True))
    reached = [cap.cap for cap in schedule.caps if cap.players_from <= dealt_in]
    assert sum(shares) <= (reached[-1] if reached else sum(amounts))


@given(st.integers(0, 10_000), st.integers(1, AMOUNT_MAX))
def test_half_even_is_what_decimal_arithmetic_gives(basis_points: int, total: int) -> None:
    schedule = Schedule("s", 1, basis_points=basis_points, rounding=Rounding.HALF_EVEN)
    exact = Decimal(total) * basis_points / 10_000
    assert rake_of(schedule, total) == [int(exact.to_integral_value(ROUND_HALF_EVEN))]


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (Schedule("s", 0), "version"),
        (Schedule("s", 1, basis_points=-1), "basis_points"),
        (Schedule("s", 1, basis_points=10_001), "basis_points"),
        (Schedule("s", 1, basis_points=1, per_full=20, units=1), "basis_points"),
        (Schedule("s", 1, per_full=0, units=1), "per_full"),
        (Schedule("s", 1, per_full=20, units=21), "units"),
        (Schedule("s", 1, minimum_pot=-1), "minimum_pot"),
        (Schedule("s", 1, basis_points=1, staircase=(Step(10, 1),)), "staircase"),
        (Schedule("s", 1, per_full=20, units=1, staircase=(Step(10, 1),)), "staircase"),
        (Schedule("s", 1, staircase=(Step(10, 1), Step(10, 2))), "staircase"),
        (Schedule("s", 1, staircase=(Step(20, 2), Step(10, 1))), "staircase"),
        (Schedule("s", 1, staircase=(Step(10, 2), Step(20, 1))), "staircase"),
        (Schedule("s", 1, staircase=(Step(1, 2),)), "staircase"),
        (Schedule("s", 1, staircase=(Step(1, -1),)), "staircase"),
        (Schedule("s", 1, staircase=tuple(Step(n + 9, n) for n in range(33))), "staircase"),
        (Schedule("s", 1, caps=(Cap(2, 1), Cap(2, 2))), "caps"),
        (Schedule("s", 1, caps=(Cap(3, 1),)), "caps"),
        (Schedule("s", 1, caps=(Cap(2, -1),)), "caps"),
    ],
)
def test_a_schedule_that_cannot_be_meant_is_refused(schedule: Schedule, field: str) -> None:
    assert field in {each for each, _ in schedule_faults(schedule)}
