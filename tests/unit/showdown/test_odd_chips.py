"""Split pots and odd chips under every house rule (docs/rules.md, 6)."""

import pytest

from services.game.events import HIGH, LOW
from services.game.rulebook import OddChipHigh, OddChipLow, OddChipRemainder
from services.game.showdown import divide
from tests.unit.showdown.showdowns import (
    EIGHT_OR_BETTER,
    HI_LO,
    RAZZ,
    A,
    B,
    C,
    Split,
    payout,
    showdown,
)

QUARTERING = {A: "Ah2d 4c5s7hKd Ks", B: "As2c 4d5h7sQd Jh"}
"""Equal lows 7-5-4-2-A, a seven of hearts against a seven of spades; A has the high."""

BROADWAYS = {A: "AsKsQdJcTc3d2h", B: "AhKhQsJdTd3s2c", C: "AcKdQhJsTh3h2s"}
"""Three equal straights; by suit of the ace A before B before C."""


@pytest.mark.parametrize(
    ("pot", "odd_chip_low", "expected"),
    [
        (100, OddChipLow.SUIT_HIGH, {A: 75, B: 25}),
        (101, OddChipLow.SUIT_HIGH, {A: 76, B: 25}),
        (103, OddChipLow.SUIT_HIGH, {A: 77, B: 26}),
        (103, OddChipLow.SUIT_LOW, {A: 78, B: 25}),
        (103, OddChipLow.POSITION, {A: 78, B: 25}),
    ],
)
def test_quartering(pot: int, odd_chip_low: OddChipLow, expected: dict[int, int]) -> None:
    assert payout(QUARTERING, pot, EIGHT_OR_BETTER._replace(odd_chip_low=odd_chip_low)) == expected


def test_the_halves_of_a_quartered_pot_are_awarded_part_by_part() -> None:
    awards = divide(showdown(QUARTERING, 103), EIGHT_OR_BETTER).awards
    low = "a seven-five-four-two-ace low"
    assert awards == (
        (0, A, 52, HIGH, "a pair of kings, ace seven five"),
        (0, A, 26, LOW, low),
        (0, B, 25, LOW, low),
    )


def test_position_counts_from_the_left_of_the_button() -> None:
    lows_by_button = {
        button: payout(QUARTERING, 103, HI_LO, button=button)[B] for button in (A, B, C)
    }
    assert lows_by_button == {A: 26, B: 25, C: 25}


@pytest.mark.parametrize(
    ("remainder", "expected"),
    [
        (OddChipRemainder.ALL_TO_FIRST, {A: 35, B: 33, C: 33}),
        (OddChipRemainder.ONE_EACH, {A: 34, B: 34, C: 33}),
    ],
)
def test_a_remainder_of_two_in_three_ways(
    remainder: OddChipRemainder, expected: dict[int, int]
) -> None:
    assert payout(BROADWAYS, 101, Split(odd_chip_remainder=remainder)) == expected


def test_a_remainder_by_position_begins_left_of_the_button() -> None:
    all_to_first = Split(odd_chip_remainder=OddChipRemainder.ALL_TO_FIRST)
    assert payout(BROADWAYS, 101, all_to_first, button=A) == {A: 33, B: 35, C: 33}
    assert payout(BROADWAYS, 101, Split(), button=A) == {A: 33, B: 34, C: 34}


def test_odd_chips_of_a_high_go_by_the_suit_of_its_highest_card() -> None:
    by_suit = Split(odd_chip_high=OddChipHigh.SUIT_HIGH)
    assert payout(BROADWAYS, 101, by_suit, button=A) == {A: 34, B: 34, C: 33}
    all_to_first = by_suit._replace(odd_chip_remainder=OddChipRemainder.ALL_TO_FIRST)
    assert payout(BROADWAYS, 101, all_to_first, button=A) == {A: 35, B: 33, C: 33}


def test_a_shared_top_card_leaves_the_odd_chip_to_the_next_card() -> None:
    hands = {A: "KhQdJsTc 3d2d", B: "KsQhJdTd 4d2h"}
    by_suit = Split(odd_chip_high=OddChipHigh.SUIT_HIGH)
    assert payout(hands, 11, by_suit, community="Ac") == {A: 5, B: 6}


def test_of_equal_choices_of_five_the_best_for_the_player_counts() -> None:
    # Both make ace high straights; B holds two aces, and the better one is the ace of spades.
    hands = {A: "AhKsQdJcTc3d2h", B: "AcAsKhQsJdTd3s"}
    assert payout(hands, 11, Split(odd_chip_high=OddChipHigh.SUIT_HIGH)) == {A: 5, B: 6}
    # Low sevens: A plays the seven of clubs where the lower suit wins, that of spades elsewhere.
    lows = {A: "7c7s5d4d2h Ad Kc", B: "7d5h4h2s Ac Qd Qh"}
    low_odd = HI_LO._replace(odd_chip_low=OddChipLow.SUIT_LOW)
    assert payout(lows, 2 * 11, low_odd)[B] == 11 + 5
    assert payout(lows, 2 * 11, low_odd._replace(odd_chip_low=OddChipLow.SUIT_HIGH))[B] == 11 + 5


def test_the_ace_is_the_last_card_of_a_low() -> None:
    # The wheels: 5 on top decides, not the ace.
    hands = {A: "As2c3d4h5c KdQd", B: "Ac2d3h4s5s KhQh"}
    assert payout(hands, 11, RAZZ._replace(odd_chip_low=OddChipLow.SUIT_LOW)) == {A: 6, B: 5}
    assert payout(hands, 11, RAZZ._replace(odd_chip_low=OddChipLow.SUIT_HIGH)) == {A: 5, B: 6}


def test_odd_chips_of_razz_go_by_the_rule_for_lows() -> None:
    hands = {A: "As2c3d4h6c KdQd", B: "Ac2d3h4s6s KhQh"}
    split = RAZZ._replace(odd_chip_low=OddChipLow.SUIT_HIGH, odd_chip_high=OddChipHigh.POSITION)
    assert payout(hands, 11, split) == {A: 5, B: 6}


def test_a_single_odd_unit_pays_nobody_else() -> None:
    assert payout(QUARTERING, 1, EIGHT_OR_BETTER) == {A: 1}
    assert payout(BROADWAYS, 2, Split()) == {A: 1, B: 1}
