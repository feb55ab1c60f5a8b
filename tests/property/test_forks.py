"""A fork of a hand goes on by itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from services.game.hand import Hand, HandSetup
from tests.property.test_hand import setups, state, step, under_way


@settings(max_examples=60, deadline=None)
@given(setups(), st.integers(0, 2**32), st.integers(0, 80))
def test_a_fork_is_in_the_same_state_and_leaves_the_hand_as_it_is(
    setup: HandSetup, seed: int, steps: int
) -> None:
    hand, rng = under_way(setup, seed, steps, 0.03)
    before = state(hand)
    fork = hand.fork()
    assert state(fork) == before
    while not fork.over:
        step(fork, rng, 0.03)
    assert state(hand) == before
    again = Hand.replay(setup, fork.inputs)
    assert state(again) == state(fork)
