"""The order of hands, case by case (docs/rules.md, 2)."""

import re
import subprocess
import sys
from itertools import combinations, pairwise, product

import pytest

from services.game.cards import card_names, parse_cards
from services.game.ranking import (
    Category,
    ace_to_five,
    best_high,
    best_low,
    category_of,
    deuces_wild,
    high,
    low8,
)
from services.game.ranking.classes import high_classes, low8_masks, low_fives
from services.game.ranking.keys import (
    FACE_MASK,
    FACES,
    KEYS,
    SUIT_WEIGHTS,
    WEIGHT_MASK,
    flush_suits,
)
from services.game.ranking.tables import rank_sums


def cards(text: str) -> tuple[int, ...]:
    return parse_cards(text.replace(" ", ""))


def test_there_are_7462_classes_and_thirteen_of_five_equal_cards() -> None:
    assert len(high_classes()) == 7462 + 13
    assert len(set(high_classes())) == 7462 + 13
    assert len(set(low_fives().values())) == 6175
    assert len(set(low8_masks())) == 1 + 56


def test_no_two_choices_of_ranks_have_the_same_sum_of_faces() -> None:
    for count, choices in ((5, 6_175), (6, 18_395), (7, 49_205)):
        sums, _ = rank_sums("high", count)
        assert len(set(sums.tolist())) == len(sums) == choices
        assert sums.max() <= FACE_MASK
    assert list(FACES) == sorted(FACES)


def test_sums_of_seven_keys_are_single_digits_of_python() -> None:
    assert min(KEYS) >= 0
    assert sum(sorted(KEYS)[-7:]) < 2**30
    assert 7 * max(SUIT_WEIGHTS) <= WEIGHT_MASK


def test_every_flush_is_among_those_that_its_sum_of_weights_allows() -> None:
    for count in (5, 6, 7):
        for held in product(range(count + 1), repeat=4):
            if sum(held) == count and max(held) >= 5:
                total = sum(
                    number * weight for number, weight in zip(held, SUIT_WEIGHTS, strict=True)
                )
                assert held.index(max(held)) in flush_suits(count)[total]


@pytest.mark.parametrize(
    "better_to_worse",
    [
        [
            "AsKsQsJsTs 2c3d",
            "KsQsJsTs9s 2c3d",
            "5s4s3s2sAs KcKd",
            "AcAdAhAs2c 3d4h",
            "KcKdKh9s9d 9c2d",
            "As9s7s3s2s KcKd",
            "KsQsJsTs8s AcAd",
            "AcKdQhJsTc AdAh",
            "5c4d3h2sAc KdKh",
            "AcAdAhKs2c 4d7h",
            "AcAdKhKs2c 4d7h",
            "AcAdKhQs2c 4d7h",
            "AcKdQhJs9c 4d2h",
        ],
        ["8c8d8h5c5d5hKs", "5c5d5hKsKd8s8h"],
        ["8c8d7h7s4c4dAh", "8c8d7h7s4c4dKh"],
        ["Ac2c7c6c4c KdQd", "KcQcJc9c8c 2d3d"],
        ["6c5d4h3s2c KdKh", "5c4d3h2sAc KdKh"],
        ["KcKdAhQs9c 7d5h", "KcKd4h3s2c AdJh"],
    ],
)
def test_better_high_hands_have_higher_numbers(better_to_worse: list[str]) -> None:
    numbers = [high(cards(hand)) for hand in better_to_worse]
    assert all(better > worse for better, worse in pairwise(numbers))


def test_king_ace_two_is_no_straight() -> None:
    assert category_of(high(cards("KcAd2h3s4c 9d8h"))) is Category.HIGH_CARD


def test_suits_do_not_matter() -> None:
    assert high(cards("AcKdQhJs9c 4d2h")) == high(cards("AsKhQdJc9s 4h2c"))


@pytest.mark.parametrize(
    "better_to_worse",
    [
        [
            "Ah2h3h4h5h KdKc",
            "Ah2h3h4h6h KdKc",
            "2h3d4c5s7h KdKc",
            "2h2d3c3s4d 5hKs",
            "KcQdJhTs9c 9d9h",
            "AcAd2h3s4c 4dAh",
            "2c2dAh3s4c 4d2h",
            "7c7dKhKs2c 2d7h",
        ],
        ["AcAd2h2s3c", "2c2d3h3sAc", "AcAdAh2s3c", "AcAdAh2s2c", "2c2d2hAsAc", "AcAdAhAs2c"],
    ],
)
def test_better_razz_hands_have_higher_numbers(better_to_worse: list[str]) -> None:
    numbers = [ace_to_five(cards(hand)) for hand in better_to_worse]
    assert all(better > worse for better, worse in pairwise(numbers))


def test_better_eight_or_better_lows_have_higher_numbers_and_nines_and_pairs_none() -> None:
    hands = [
        "5c4d3h2sAc 6d7h",
        "6c4d3h2sAc KdKh",
        "7c6d5h4s3c KdKh",
        "8c4d3h2sAc KdKh",
        "8c7d6h5s4c KdKh",
    ]
    numbers = [low8(cards(hand)) or 0 for hand in hands]
    assert numbers[0] == 56
    assert numbers[-1] == 1
    assert all(better > worse for better, worse in pairwise(numbers))
    assert low8(cards("9c4d3h2sAc KdKh")) is None
    assert low8(cards("AcAd3h3s4c 4d2h")) is None


def test_lows_order_hands_as_razz_does() -> None:
    lows = [five for five in combinations(range(0, 52, 4), 5) if low8(five)]
    assert len(lows) == 56
    assert sorted(lows, key=lambda five: low8(five) or 0) == sorted(lows, key=ace_to_five)


@pytest.mark.parametrize(
    ("hand", "category"),
    [
        ("2c2d2h2s3c 4d5h", Category.FIVE_OF_A_KIND),
        ("2cAdAhAsAc 4d5h", Category.FIVE_OF_A_KIND),
        ("2c2dAsKsQs 7d8h", Category.STRAIGHT_FLUSH),
        ("2cAdAhKsKc 7d9h", Category.FULL_HOUSE),
        ("2c9s7s5s3s KdQd", Category.FLUSH),
        ("2cAd3h4s5c KdJh", Category.STRAIGHT),
        ("2cKdQh9s7c 5d3h", Category.PAIR),
    ],
)
def test_a_deuce_stands_for_any_card(hand: str, category: Category) -> None:
    assert category_of(deuces_wild(cards(hand))) is category


def test_a_wild_flush_holds_no_doubled_rank() -> None:
    # With a wild card the ace-high flush is A-K, not A-A; so A-K-Q-J-9 beats A with K missing.
    ace_and_deuce = deuces_wild(cards("As2c9s7s5s 3d4d"))
    assert ace_and_deuce == high(cards("AsKs9s7s5s"))
    assert deuces_wild(cards("2cAs2dTs8s 9h3d")) == high(cards("AsKsQsTs8s"))


@pytest.mark.parametrize(
    ("hand", "category", "five"),
    [
        ("8c8d8h5c5d5hKs", Category.FULL_HOUSE, "8h8d8c5h5d"),
        ("5s4s3s2sAs KcKd", Category.STRAIGHT_FLUSH, "As5s4s3s2s"),
        ("KsQsJsTs8s Ac2s", Category.FLUSH, "KsQsJsTs8s"),
    ],
)
def test_the_best_five_are_shown_highest_first(hand: str, category: Category, five: str) -> None:
    assert best_high(cards(hand)) == (category, parse_cards(five))


def test_the_best_low_is_shown_from_the_top_with_the_ace_last() -> None:
    low = best_low(cards("Ah2d4c5s7hKdKs"))
    assert low is not None
    assert card_names(low) == "7h5s4c2dAh"
    assert best_low(cards("9h2d4c5s9cKdKs")) is None
    razz = best_low(cards("9h2d4c5s9cKdKs"), eight_or_better=False)
    assert razz is not None
    assert card_names(razz) == "Ks9h5s4c2d"


@pytest.mark.parametrize(
    ("hand", "why"),
    [
        ((), "0 cards: a hand is ranked from five, six or seven"),
        (tuple(range(4)), "4 cards: a hand is ranked from five, six or seven"),
        (tuple(range(8)), "8 cards: a hand is ranked from five, six or seven"),
        ((0, 1, 2, 3, 4, 5, 52), "a card is not one of 0..51"),
        ((-1, 0, 1, 2, 3), "a card is not one of 0..51"),
    ],
)
def test_what_is_no_hand_is_refused(hand: tuple[int, ...], why: str) -> None:
    for rank in (high, low8, ace_to_five, deuces_wild):
        with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
            rank(hand)


@pytest.mark.parametrize("number", [0, -1, 7476])
def test_a_number_that_is_no_class_has_no_category(number: int) -> None:
    with pytest.raises(ValueError, match="not the number"):
        category_of(number)


def test_importing_the_game_ranks_nothing_and_does_not_load_numpy() -> None:
    code = (
        "import sys, services.game.showdown, services.game.names, services.game.ranking as r;"
        "sys.exit('numpy' in sys.modules or bool(r.scalar._high))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("order", ["high", "low8", "ace_to_five", "deuces_wild"])
def test_the_tables_are_not_made_ready_for_cards_that_are_not_distinct(order: str) -> None:
    code = f"from services.game.ranking import {order} as rank; rank((0, 0, 1, 2, 3, 4, 5))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)
    assert done.stderr.endswith("ValueError: the cards are not distinct\n")
