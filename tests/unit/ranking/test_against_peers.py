"""eval7 and phevaluator, each with tables of its own, order hands as the room does."""

import random
from itertools import pairwise

import pytest

from services.game.cards import card_name
from services.game.ranking import high

SEED = 20240619


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pyparsing, by what eval7 imports
def test_high_hands_are_ordered_as_by_eval7_and_phevaluator() -> None:
    import eval7
    import phevaluator

    draw = random.Random(SEED)
    hands = [draw.sample(range(52), 7) for _ in range(20_000)]
    ranked = sorted(
        (high(hand), eval7.evaluate([eval7.Card(card_name(card)) for card in hand]), hand)
        for hand in hands
    )
    for (number, theirs, hand), (next_number, next_theirs, _) in pairwise(ranked):
        assert (number == next_number) == (theirs == next_theirs), hand
        assert theirs <= next_theirs, hand
    assert all(phevaluator.evaluate_cards(*hand) == 7463 - number for number, _, hand in ranked)
