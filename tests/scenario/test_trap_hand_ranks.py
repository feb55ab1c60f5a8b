"""Faults that other rankers were reported for: wheels, lows ranked as highs, the best five."""

import pytest

from services.game.cards import parse_cards
from services.game.names import high_name, low_name
from services.game.ranking import ace_to_five, high


def cards(text: str) -> tuple[int, ...]:
    return parse_cards(text.replace(" ", ""))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        # the wheel is a straight, below all others
        ("Ah 2c 3d 4s 5h Kc Kd", "Kh Ks Qd 9c 7s 4d 2h"),
        ("2c 3d 4s 5h 6h Kc Qd", "Ah 2c 3d 4s 5h Kc Qd"),
        # a steel wheel is a straight flush
        ("Ah 2h 3h 4h 5h Kc Kd", "2c 3d 4s 5h 6h Kc Qd"),
        # two trips make a full house
        ("8c 8d 8h 5s 5c 5d Kh", "Ah Kh Qh Jh 9h 2c 3d"),
        # two flushes compare from the top card down
        ("Ah 7h 5h 4h 2h Kc Qd", "Kh Qh Jh Th 8h Ac 2d"),
        # of three pairs the best two, and the best kicker
        ("8c 8d 7h 7s 4c 4d Ah", "8h 8s 7c 7d 4h 4s Kh"),
    ],
)
def test_the_better_high_wins(better: str, worse: str) -> None:
    assert high(cards(better)) > high(cards(worse))


def test_around_the_corner_is_no_straight() -> None:
    assert high_name(cards("Kc Ad 2h 3s 4c 9d 8h")).startswith("ace high")


@pytest.mark.parametrize(
    ("hand", "name"),
    [
        ("8c 8d 8h 5s 5c 5d Kh", "a full house, eights over fives"),
        ("8c 8d 7h 7s 4c 4d Ah", "two pair, eights and sevens, ace"),
        ("Ah 2c 3d 4s 5h Kc Kd", "a straight, five high"),
    ],
)
def test_the_best_five_of_seven_are_named(hand: str, name: str) -> None:
    assert high_name(cards(hand)) == name


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        # straights and flushes do not count in razz
        ("Ac 2c 3c 4c 5c Kd Kh", "Ad 2d 3h 4s 6c Kc Ks"),
        # any unpaired five beats any paired one
        ("2h 2d 3c 3s 4d 5h Ks", "9c Kc Qd Jh Ts 9d 9h"),
        ("Kc Jd Th 9s 2c Kd Js", "7c 7d 5h 5s 3h 3s 5c"),
        ("Kc Qd Jh Ts 9c Kh Qs", "Ac Ad 2h 2s 3c 3d 4h"),
    ],
)
def test_the_better_razz_hand_wins(better: str, worse: str) -> None:
    assert ace_to_five(cards(better)) > ace_to_five(cards(worse))


def test_two_pairs_do_not_hide_an_unpaired_five() -> None:
    assert low_name(cards("2h 2d 3c 3s 4d 5h Ks")) == "a king-five-four-three-two low"
