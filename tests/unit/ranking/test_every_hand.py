"""Exactness over every hand of the deck: known counts, and a slow ranker's classes."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from services.game.ranking import Category, batch, category_of
from services.game.ranking.classes import high_classes
from tests.unit.ranking import slow_ranker

SIX_CARD_HANDS = 20_358_520
SEVEN_CARD_HANDS = 133_784_560
SEVEN_CARD_CATEGORIES = {
    Category.STRAIGHT_FLUSH: 41_584,
    Category.FOUR_OF_A_KIND: 224_848,
    Category.FULL_HOUSE: 3_473_184,
    Category.FLUSH: 4_047_644,
    Category.STRAIGHT: 6_180_020,
    Category.THREE_OF_A_KIND: 6_461_620,
    Category.TWO_PAIR: 31_433_400,
    Category.PAIR: 58_627_800,
    Category.HIGH_CARD: 23_294_460,
}
FIVE_CARD_CATEGORIES = {
    Category.STRAIGHT_FLUSH: 40,
    Category.FOUR_OF_A_KIND: 624,
    Category.FULL_HOUSE: 3_744,
    Category.FLUSH: 5_108,
    Category.STRAIGHT: 10_200,
    Category.THREE_OF_A_KIND: 54_912,
    Category.TWO_PAIR: 123_552,
    Category.PAIR: 1_098_240,
    Category.HIGH_CARD: 1_302_540,
}
EIGHT_OR_BETTER_HANDS = 24_530_944


def five_card_hands() -> batch.Hands:
    """All 2,598,960, in lexicographic order."""
    drawn = chain.from_iterable(combinations(range(52), 5))
    return np.fromiter(drawn, np.uint8).reshape(-1, 5)


def six_card_hands() -> Iterator[batch.Hands]:
    """All of them, in runs that share their lowest card."""
    fives = five_card_hands()
    for lowest in range(47):
        above = fives[np.searchsorted(fives[:, 0], lowest, side="right") :]
        yield np.hstack([np.full((len(above), 1), lowest, np.uint8), above])


def seven_card_hands() -> Iterator[batch.Hands]:
    """All of them, in runs that share their two lowest cards."""
    fives = five_card_hands()
    for second in range(1, 47):
        above = fives[np.searchsorted(fives[:, 0], second, side="right") :]
        for first in range(second):
            lowest = np.broadcast_to(np.array([first, second], np.uint8), (len(above), 2))
            yield np.hstack([lowest, above])


def by_category(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[Category, int]:
    found: Counter[Category] = Counter()
    for number in np.flatnonzero(counts).tolist():
        found[category_of(number)] += int(counts[number])
    return dict(found)


def test_five_card_hands_have_the_known_categories_and_classes() -> None:
    counts = np.bincount(batch.high(five_card_hands()))
    assert by_category(counts) == FIVE_CARD_CATEGORIES
    assert np.count_nonzero(counts) == 7_462


@pytest.mark.deep
def test_seven_card_hands_have_the_known_categories_and_lows() -> None:
    counts = np.zeros(len(high_classes()) + 1, np.int64)
    hands = lows = 0
    for rows in seven_card_hands():
        counts += np.bincount(batch.high(rows), minlength=len(counts))
        lows += int(np.count_nonzero(batch.low8(rows)))
        hands += len(rows)
    assert hands == SEVEN_CARD_HANDS
    assert by_category(counts) == SEVEN_CARD_CATEGORIES
    assert lows == EIGHT_OR_BETTER_HANDS


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_a_slow_ranker_finds_the_same_classes_in_every_five_card_hand() -> None:
    hands = five_card_hands()
    high_pairs, razz_pairs, low8_pairs = set(), set(), set()
    for row, number, low, low8 in zip(
        hands.tolist(),
        batch.high(hands).tolist(),
        batch.ace_to_five(hands).tolist(),
        batch.low8(hands).tolist(),
        strict=True,
    ):
        low8_pairs.add((low8, slow_ranker.eight_or_better_of_five(row) or ()))
        high_pairs.add((number, slow_ranker.high_of_five(row)))
        sizes, ranks = slow_ranker.razz_of_five(row)
        razz_pairs.add((low, (tuple(sizes), tuple(ranks))))
    assert len(high_pairs) == 7_462
    assert not list(slow_ranker.agree_on_order(list(high_pairs)))
    assert len(razz_pairs) == 6_175
    assert not list(slow_ranker.agree_on_order(list(razz_pairs)))
    assert len(low8_pairs) == 1 + 56
    assert not list(slow_ranker.agree_on_order(list(low8_pairs)))


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("deuces", [1, 2, 3, 4])
def test_a_slow_ranker_finds_the_same_classes_in_every_five_cards_with_wild_deuces(
    deuces: int,
) -> None:
    naturals = {alike(cards) for cards in combinations(range(4, 52), 5 - deuces)}
    hands = np.array([(*range(deuces), *cards) for cards in sorted(naturals)], np.uint8)
    pairs = {
        (number, slow_ranker.wild_of_five(row))
        for row, number in zip(hands.tolist(), batch.deuces_wild(hands).tolist(), strict=True)
    }
    assert not list(slow_ranker.agree_on_order(list(pairs)))


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rank", [batch.high, batch.low8, batch.ace_to_five, batch.deuces_wild])
def test_every_seven_cards_are_worth_their_best_six_and_every_six_their_best_five(
    rank: Callable[[batch.Hands], Any],
) -> None:
    counted = 0
    for rows in chain(six_card_hands(), seven_card_hands()):
        best = rank(rows)
        without_one = (rank(np.delete(rows, place, axis=1)) for place in range(rows.shape[1]))
        assert np.array_equal(best, reduce(np.maximum, without_one))
        counted += len(rows)
    assert counted == SIX_CARD_HANDS + SEVEN_CARD_HANDS


def alike(cards: tuple[int, ...]) -> tuple[int, ...]:
    """The same cards with their suits in the order in which they first occur: no matter which."""
    suits: dict[int, int] = {}
    for card in cards:
        suits.setdefault(card % 4, len(suits))
    return tuple(sorted(card - card % 4 + suits[card % 4] for card in cards))
