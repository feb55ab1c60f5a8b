"""Hands in words."""

import pytest

from services.game.cards import parse_cards
from services.game.names import high_name, low8_name, low_name, name_of_high, name_of_low


@pytest.mark.parametrize(
    ("hand", "name"),
    [
        ("AsKsQsJsTs2c3d", "a royal flush"),
        ("Ts9s8s7s6s2c3d", "a straight flush, ten high"),
        ("5s4s3s2sAsKcKd", "a straight flush, five high"),
        ("7c7d7h7sAcKdKh", "four of a kind, sevens, ace"),
        ("KcKdKh9s9d9c2d", "a full house, kings over nines"),
        ("As9s7s3s2sKcKd", "a flush, ace nine seven three two"),
        ("AcKdQhJsTcAdAh", "a straight, ace high"),
        ("Ac2d3h4s5cKdKh", "a straight, five high"),
        ("6c6d6hKs2c4d9h", "three of a kind, sixes, king nine"),
        ("KcKd9h9s2c4dAh", "two pair, kings and nines, ace"),
        ("7c7dAhKs9c4d2h", "a pair of sevens, ace king nine"),
        ("AcKdTh8s2c4d6h", "ace high, king ten eight six"),
        ("5h4h3d2cKs", "king high, five four three two"),
    ],
)
def test_high_hands(hand: str, name: str) -> None:
    assert high_name(parse_cards(hand)) == name


@pytest.mark.parametrize(
    ("hand", "name"),
    [
        ("8c6d4h3sAcKdKh", "an eight-six-four-three-ace low"),
        ("5c4d3h2sAcKdKh", "a five-four-three-two-ace low"),
        ("KcJdTh9s2c", "a king-jack-ten-nine-two low"),
        ("7c7dKhJs2c", "a pair of sevens, king jack two"),
        ("AcAd3h2s3c", "two pair, threes and aces, two"),
        ("AcAdAh2s3c", "three of a kind, aces, three two"),
        ("AcAdAh6s6c", "a full house, aces over sixes"),
        ("AcAdAhAs6c", "four of a kind, aces, six"),
    ],
)
def test_low_hands(hand: str, name: str) -> None:
    assert low_name(parse_cards(hand)) == name


def test_five_of_a_kind() -> None:
    assert high_name(parse_cards("2c2dAsAhAd9c8d"), wild_deuces=True) == "five of a kind, aces"


def test_an_eight_or_better_low_has_a_name_only_when_it_qualifies() -> None:
    assert low8_name(parse_cards("8c6d4h3sAcKdKh")) == "an eight-six-four-three-ace low"
    assert low8_name(parse_cards("9c6d4h3sAcKdKh")) is None


def test_every_class_has_a_name_of_its_own() -> None:
    assert len({name_of_high(number) for number in range(1, 7476)}) == 7475
    assert len({name_of_low(number) for number in range(1, 6176)}) == 6175
