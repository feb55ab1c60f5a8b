"""Each ranking orders random hands as an independent slow ranker does (docs/rules.md, 2)."""

import random
from collections.abc import Callable, Sequence
from itertools import combinations

import pytest

from services.game.ranking import ace_to_five, deuces_wild, high, low8
from tests.unit.ranking import slow_ranker

SEED = 20240613


def hands(count: int, how_many: int) -> list[list[int]]:
    random_hands = random.Random(f"{SEED} {count}")
    return [random_hands.sample(range(52), count) for _ in range(how_many)]


@pytest.mark.parametrize("count", [5, 6, 7])
@pytest.mark.parametrize(
    ("rank", "of_five"),
    [(high, slow_ranker.high_of_five), (ace_to_five, slow_ranker.razz_of_five)],
)
def test_order_is_that_of_the_slow_ranker(
    rank: Callable[[Sequence[int]], int],
    of_five: Callable[[Sequence[int]], slow_ranker.Strength],
    count: int,
) -> None:
    pairs = [(rank(hand), slow_ranker.best(hand, of_five)) for hand in hands(count, 2_500)]
    assert not list(slow_ranker.agree_on_order(pairs))


@pytest.mark.parametrize("count", [5, 6, 7])
def test_eight_or_better_is_that_of_the_slow_ranker(count: int) -> None:
    pairs = []
    for hand in hands(count, 3_000):
        number, strength = low8(hand), slow_ranker.best(hand, slow_ranker.eight_or_better_of_five)
        assert (number is None) == (strength is None), hand
        if number is not None:
            pairs.append((number, strength))
    assert len(pairs) > 5
    assert not list(slow_ranker.agree_on_order(pairs))


def test_numbers_do_not_depend_on_how_many_cards_the_hand_was_chosen_from() -> None:
    for hand in hands(7, 500):
        for rank in (high, ace_to_five, deuces_wild):
            assert rank(hand) == max(rank(six) for six in combinations(hand, 6))
            assert rank(hand) == max(rank(five) for five in combinations(hand, 5))
        assert (low8(hand) or 0) == max(low8(five) or 0 for five in combinations(hand, 5))


def test_flushes_are_ordered_like_the_slow_ranker_orders_them() -> None:
    draw = random.Random(SEED)
    suited = [
        draw.sample(range(suit, 52, 4), 5) + draw.sample(range(52), 2)
        for suit in range(4)
        for _ in range(300)
    ]
    distinct = [hand for hand in suited if len(set(hand)) == 7]
    pairs = [(high(hand), slow_ranker.best(hand, slow_ranker.high_of_five)) for hand in distinct]
    assert not list(slow_ranker.agree_on_order(pairs))


@pytest.mark.parametrize(("deuces", "how_many", "cards"), [(1, 60, 7), (2, 8, 7), (3, 3, 5)])
def test_wild_deuces_are_worth_the_best_card_they_can_be(
    deuces: int, how_many: int, cards: int
) -> None:
    draw = random.Random(SEED + deuces)
    pairs = []
    for number in range(how_many):
        # Every other hand is mostly of one suit, where flushes and straight flushes are.
        naturals = range(4 + number % 4, 52, 4) if number % 2 else range(4, 52)
        hand = draw.sample(range(4), deuces) + draw.sample(naturals, cards - deuces)
        pairs.append((deuces_wild(hand), slow_ranker.best(hand, slow_ranker.wild_of_five)))
    assert not list(slow_ranker.agree_on_order(pairs))


def test_a_hand_without_deuces_ranks_the_same_with_deuces_wild() -> None:
    draw = random.Random(SEED)
    for _ in range(300):
        hand = draw.sample(range(4, 52), 7)
        assert deuces_wild(hand) == high(hand)
