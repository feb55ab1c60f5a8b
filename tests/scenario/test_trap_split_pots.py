"""Faults that other software was reported for: quartered pots, odd chips, lows above eight."""

import pytest

from services.game.cards import parse_cards
from services.game.hand import Showdown
from services.game.pots import Pot
from services.game.rulebook import shipped
from services.game.showdown import divide


def shares(amount: int, a: str, b: str, **house: str) -> tuple[int, int]:
    """What A (nearest to the left of the button) and B get of one hi-lo pot."""
    rules = shipped("modern").with_house(game="hi_lo", **house)
    hands = {0: parse_cards(a.replace(" ", "")), 1: parse_cards(b.replace(" ", ""))}
    showdown = Showdown((Pot(amount, (0, 1)),), hands, (), (0, 1), 1, False)
    awards = divide(showdown, rules).awards
    first, second = (sum(each[2] for each in awards if each[1] == seat) for seat in (0, 1))
    return first, second


KINGS_AND_LOW = "Ah 2d 4c 5s 7h Kd Ks"
SAME_LOW = "As 2c 4d 5h 7s Qd Jh"


@pytest.mark.parametrize(
    ("amount", "odd_chip_low", "expected"),
    [
        (100, "suit_high", (75, 25)),
        (101, "suit_high", (76, 25)),
        # The odd unit of the low half goes by the suit of the seven, which is its top card.
        (103, "suit_high", (77, 26)),
        (103, "suit_low", (78, 25)),
        (103, "position", (78, 25)),
    ],
)
def test_high_and_half_of_the_low_is_three_quarters(
    amount: int, odd_chip_low: str, expected: tuple[int, int]
) -> None:
    assert shares(amount, KINGS_AND_LOW, SAME_LOW, odd_chip_low=odd_chip_low) == expected


@pytest.mark.parametrize(
    ("low", "expected"),
    [
        ("8c 8d 7h 6s 5c Kh Qd", (77, 0)),  # an eight is paired: only four different low ranks
        ("9c 2d 3h 4s 5c Kh Qd", (77, 0)),  # nine high
        ("8c 2d 3h 4s 5c Kh Qd", (39, 38)),  # eight high is the highest that qualifies
        ("2c 2d 3h 4s 5c Kh Qd", (77, 0)),  # a pair never qualifies
    ],
)
def test_without_a_low_of_eight_or_better_high_takes_all(
    low: str, expected: tuple[int, int]
) -> None:
    assert shares(77, "As Ad Ks Kd 9h 9s Th", low) == expected


def test_a_wheel_may_win_both_ways() -> None:
    assert shares(100, "Ah 2c 3d 4s 5h Kc Kd", "Kh Ks Qd 9c 7s 6d 2h") == (100, 0)
