"""What is looked up while nobody is short is what would have been worked out."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.game.hand import Act, ActionKind, Deal, Hand, HandSetup, Legal
from services.game.rulebook import UNITS_MAX, shipped
from services.game.steps import STEPS_MAX
from tests.property.test_hand import setups
from tests.unit.game.play import act, choices, deal_any, finish, legal, stake, third_street


def offered(decision: Legal) -> tuple[object, ...]:
    names = ("fold", "check", "call", "bring_in", "wager_kind", "wagers", "closed")
    return tuple(getattr(decision, name) for name in names)


def worked_out(hand: Hand) -> Legal:
    """The decision in turn, by a hand that came here and looks nothing up."""
    other = hand.fork()
    assert isinstance(other.want, Act)
    other._b.step = other._b.duty_step = None
    return other._b.legal(other._place[other.want.seat])


@settings(max_examples=120, deadline=None)
@given(setups(), st.integers(0, 2**32), st.sampled_from([1, 7, 40]))
def test_every_decision_is_the_one_that_would_be_worked_out(
    setup: HandSetup, seed: int, deeper: int
) -> None:
    rng = random.Random(seed)
    stacks = tuple(stack * deeper for stack in setup.stacks)
    hand = Hand(HandSetup(setup.rulebook, setup.stake, setup.seats, stacks, setup.button))
    hand.start()
    while not hand.over:
        want = hand.want
        if isinstance(want, Act):
            assert offered(want.legal) == offered(worked_out(hand))
            wagers = [c for c in choices(want.legal) if c[1]]
            others = [c for c in choices(want.legal) if not c[1]]
            hand.act(want.seat, *rng.choice(wagers if wagers and rng.random() < 0.5 else others))
        elif isinstance(want, Deal):
            deal_any(hand, rng)
        else:
            finish(hand)


def test_raises_without_a_cap_go_on_beyond_what_is_looked_up() -> None:
    hand = third_street([1000, 1000], "2c Kh", cap_lifted="two_in_hand")
    act(hand, "p1 pb")
    for number in range(1, 2 * STEPS_MAX):
        assert legal(hand).wagers == (10 * number,)
        act(hand, f"p{2 - (number + 1) % 2} cbr {10 * number}")
    assert legal(hand).wager_kind == ActionKind.RAISE


def test_no_stack_is_above_the_largest_amount_of_money() -> None:
    def setup(stack: int) -> HandSetup:
        return HandSetup(shipped("modern"), stake(), (0, 1), (stack, 5), 0)

    assert Hand(setup(UNITS_MAX)).start()
    with pytest.raises(ValueError, match="largest amount"):
        setup(UNITS_MAX + 1)
