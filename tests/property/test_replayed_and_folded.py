"""The same inputs give the same events, and who has folded changes nobody's share."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from services.game.events import Event, EventKind
from services.game.hand import Act, Deal, Hand, HandSetup
from tests.property.test_hand import setups, step
from tests.unit.game.play import choices, deal_any, finish, unseen_cards


def played(hand: Hand, rng: random.Random, rare: float) -> Hand:
    hand.start()
    while not hand.over:
        step(hand, rng, rare)
    return hand


def events_of(setup: HandSetup, inputs: list[tuple[object, ...]]) -> list[list[Event]]:
    hand = Hand(setup)
    return [hand.feed(item) for item in inputs]


@settings(max_examples=80, deadline=None)
@given(setups(), st.integers(0, 2**32), st.sampled_from([0.0, 0.05]))
def test_the_same_inputs_give_the_same_events(setup: HandSetup, seed: int, rare: float) -> None:
    hand = played(Hand(setup), random.Random(seed), rare)
    told = events_of(setup, hand.inputs)
    assert told == events_of(setup, hand.inputs)
    listed = [[list(x) if isinstance(x, tuple) else x for x in item] for item in hand.inputs]
    assert told == events_of(setup, [tuple(item) for item in listed])
    assert told[-1][-1][0] in (EventKind.ENDED, EventKind.VOIDED)


@settings(max_examples=120, deadline=None)
@given(setups(), st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_other_cards_under_a_folded_hand_change_nobodys_share(
    setup: HandSetup, seed: int, shuffler: random.Random
) -> None:
    """His down cards are exchanged for cards that nobody was dealt."""
    rng = random.Random(seed)
    hand = Hand(setup)
    hand.start()
    while not hand.over:
        want = hand.want
        if isinstance(want, Deal):
            deal_any(hand, rng)
        elif isinstance(want, Act):
            hand.act(want.seat, *rng.choice(choices(want.legal)))
        else:
            finish(hand)
    swaps: dict[int, int] = {}
    spare = [card for card in unseen_cards(hand) if card != hand.community]
    shuffler.shuffle(spare)
    for seat in hand.folded:
        for card in hand.cards(seat)[:2]:
            if spare:
                swaps[card] = spare.pop()
    other = Hand(setup)
    for kind, *rest in hand.inputs:
        if kind == 1:
            rest = [tuple(swaps.get(card, card) for card in rest[0])]
        other.feed((kind, *rest))
    assert hand.result is not None
    assert other.result is not None
    assert other.result.awards == hand.result.awards
    assert other.result.net == hand.result.net
    assert other.stacks == hand.stacks
