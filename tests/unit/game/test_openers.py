"""Whose visible hand opens (docs/rules.md, 3)."""

import pytest

from services.game.boards import RANK_UNIT, high_key, razz_key
from services.game.cards import parse_cards
from services.game.hand import Hand
from tests.unit.game.play import act, legal, run_out, third_street, to_act, up


def packed(text: str) -> int:
    return sum(RANK_UNIT[card >> 2] for card in parse_cards(text))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("AsKs", "KdQd"),
        ("2c2d", "AsKs"),
        ("Kd9c", "Kh8s"),
        ("2c2d3h", "AsKsQs"),
        ("AsKsQd", "AdKdJs"),
        ("3c3d2h", "2c2dAh"),
        ("2c2d2h", "AsAdKc"),
        ("2c2d3h3c", "AsAdKcQh"),
        ("2c2d2h3c", "AsAdKcKh"),
        ("2c2d2h2s", "AsAdAcKh"),
        ("Tc9d3c2d", "9h8h7h6h"),
        ("2c2d2h3c3d", "AsAdAcKhQd"),
        ("2c2d2h2s3d", "AsAdAcKhKd"),
        ("7c7d3h4s5c", "AhKhQhJhTh"),
    ],
)
def test_high_boards_compare_groups_and_high_cards_only(better: str, worse: str) -> None:
    assert high_key(packed(better)) > high_key(packed(worse))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("3c2d", "4cAd"),
        ("KcQd", "AcAd"),
        ("AcAdKh", "2c2d3h"),
        ("AcAdKh", "2c2dAh"),
        ("7c5d4h", "7d6c2h"),
        ("KcQdJhTs", "AcAd2h3s"),
        ("KcKdQhJs", "AcAd2h2s"),
        ("KcKdQhQs", "AcAdAh2s"),
        ("AcAdAhAs", "2c2d2h2s"),
        ("KcKdKhQsJc", "AcAdAh2s2c"),
        ("KcKdKhQsQc", "AcAdAhAs2c"),
        ("8c6d4h2sAc", "8d6c4s3h2d"),
    ],
)
def test_razz_boards_compare_pattern_then_groups_then_from_the_top_down(
    better: str, worse: str
) -> None:
    assert razz_key(packed(better)) > razz_key(packed(worse))


def fourth_street(doors: str, cards: str, *actions: str, **settings: object) -> Hand:
    hand = third_street([200] * len(doors.split()), doors, keep=cards, **settings)
    act(hand, *actions)
    up(hand, cards)
    return hand


@pytest.mark.parametrize(("tie", "opens"), [("position", 1), ("suit", 2)])
def test_equal_boards_are_told_apart_by_position_or_by_suit(tie: str, opens: int) -> None:
    hand = fourth_street("Kh Ks 2c", "9s 9h 3d", "p3 pb", "p1 cc", "p2 cc", first_to_act_tie=tie)
    assert to_act(hand) == opens


def test_in_razz_too_the_higher_suit_of_the_top_card_opens() -> None:
    settings: dict[str, object] = {"game": "razz", "first_to_act_tie": "suit"}
    hand = fourth_street("Ac As Kd", "6h 6s Qd", "p3 pb", "p1 cc", "p2 cc", **settings)
    assert to_act(hand) == 2
    hand = fourth_street("3d 3h Ks", "Qd Qc Jd", "p3 pb", "p1 cc", "p2 cc", **settings)
    assert to_act(hand) == 1


def test_for_visible_hands_a_wild_deuce_is_a_two() -> None:
    hand = fourth_street("9c 7h Ac", "2c 8h 3d", "p2 pb", "p3 cc", "p1 cc", wild_deuces=True)
    assert to_act(hand) == 3


def test_in_hi_lo_the_best_high_board_opens() -> None:
    hand = fourth_street("Ac Kh 2d", "3c Kd 4d", "p3 pb", "p1 cc", "p2 cc", game="hi_lo")
    assert to_act(hand) == 2


def test_if_the_best_board_is_all_in_the_next_clockwise_opens_and_not_the_second_best() -> None:
    hand = third_street([200, 4, 200, 200], "2c As 7d Kd", keep="3c Ad 8h Kh")
    act(hand, "p1 pb", "p2 cc", "p3 cc", "p4 cc")
    assert hand.all_in == {1}
    up(hand, "3c Ad 8h Kh")
    assert to_act(hand) == 3


def test_boards_are_worked_out_afresh_on_every_street_among_those_still_in() -> None:
    hand = third_street([200] * 3, "2c As Kd", keep="3c Ad Kh 3d 5h Ks 3h Qd")
    act(hand, "p1 pb", "p2 cc", "p3 cc")
    up(hand, "3c Ad Kh")
    act(hand, "p2 f", "p3 cc", "p1 cc")
    up(hand, "3d Ks")
    assert to_act(hand) == 3
    act(hand, "p3 cc", "p1 cc")
    up(hand, "3h Qd")
    assert to_act(hand) == 3


def test_folding_is_legal_when_a_check_is_free() -> None:
    hand = fourth_street("Kh Ks 2c", "9s 9h 3d", "p3 pb", "p1 cc", "p2 cc")
    assert legal(hand).check
    act(hand, "p1 f")
    assert to_act(hand) == 2


def test_the_round_goes_on_to_everybody_after_a_check() -> None:
    hand = fourth_street("Kh Ks 2c", "9s 9h 3d", "p3 pb", "p1 cc", "p2 cc")
    act(hand, "p1 cc", "p2 cc", "p3 cbr 10")
    assert to_act(hand) == 1
    run_out(hand)
    assert hand.over
