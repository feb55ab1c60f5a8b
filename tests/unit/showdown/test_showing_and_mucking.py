"""Who shows first, who may muck (docs/rules.md, 6)."""

from services.game.rulebook import Game, ShowdownRule
from services.game.showdown import divide
from tests.unit.showdown.showdowns import A, B, C, Split, showdown

MAY_MUCK = Split(showdown=ShowdownRule.BEATEN_MAY_MUCK)

ACES, KINGS, QUEENS = "AsAd9c8h6s4c3d", "KsKd9d8c6d4d3h", "QsQd9h8d6h4s3c"


def shown(
    hands: dict[int, str],
    rules: Split = MAY_MUCK,
    pots: int | list[tuple[int, tuple[int, ...]]] = 10,
    order: tuple[int, ...] | None = None,
    tabled: bool = False,
) -> list[int]:
    """The seats that showed, in order."""
    result = divide(showdown(hands, pots, order=order, tabled=tabled), rules)
    assert [seat for seat, _, _ in result.reveals] == list(order or hands)
    assert all(name == "" for _, face_up, name in result.reveals if not face_up)
    return [seat for seat, face_up, _ in result.reveals if face_up]


def test_a_beaten_hand_is_mucked_and_a_better_one_shown() -> None:
    assert shown({A: KINGS, B: QUEENS, C: ACES}) == [A, C]


def test_the_first_to_show_shows_though_he_is_beaten() -> None:
    assert shown({A: QUEENS, B: KINGS, C: ACES}) == [A, B, C]


def test_the_showing_order_is_the_one_that_was_given() -> None:
    assert shown({A: QUEENS, B: KINGS, C: ACES}, order=(C, A, B)) == [C]


def test_a_tied_hand_is_shown() -> None:
    assert shown({A: "KsKd9d8c6d4d3h", B: "KhKc9s8s6c4h3s"}) == [A, B]


def test_everyone_shows_where_the_house_says_so_or_the_hands_lie_open_already() -> None:
    hands = {A: ACES, B: KINGS, C: QUEENS}
    assert shown(hands, Split(showdown=ShowdownRule.ALL_SHOW)) == [A, B, C]
    assert shown(hands, tabled=True) == [A, B, C]


def test_a_hand_that_can_still_win_a_side_pot_is_shown() -> None:
    hands = {A: ACES, B: KINGS, C: QUEENS}
    pots = [(30, (A, B, C)), (10, (B, C))]
    assert shown(hands, pots=pots) == [A, B]
    assert shown(hands, pots=pots, order=(A, C, B)) == [A, C, B]


def test_a_hand_that_can_win_the_low_is_shown_and_a_beaten_low_is_not() -> None:
    hi_lo = MAY_MUCK._replace(game=Game.HI_LO)
    hands = {A: "AsAdKcQh9s9cJd", B: "8s7d6c4hAhQdJc", C: "8c7h6d5sAcQsJh"}
    assert shown(hands, hi_lo) == [A, B]
    assert shown({A: hands[A], B: hands[C], C: hands[B]}, hi_lo) == [A, B, C]


def test_in_razz_the_lower_hand_is_shown() -> None:
    razz = MAY_MUCK._replace(game=Game.RAZZ)
    assert shown({A: "8s7d6c4hAhQdJc", B: "8c7h6d5sAcQsJh", C: "7s6h4c3d2sKcKh"}, razz) == [A, C]


def test_who_wants_it_shows_his_beaten_hand_and_changes_nothing_for_others() -> None:
    asked = showdown({A: KINGS, B: QUEENS, C: ACES, 5: "JsJdTs8s6c5s2h"}, 10)
    without = divide(asked, MAY_MUCK)
    result = divide(asked, MAY_MUCK, {B})
    assert [face_up for _, face_up, _ in without.reveals] == [True, False, True, False]
    assert [face_up for _, face_up, _ in result.reveals] == [True, True, True, False]
    assert result.reveals[1][2] == "a pair of queens, nine eight six"
    assert result.awards == without.awards


def test_a_hand_mucked_unseen_cannot_be_shown_by_wish_either() -> None:
    result = divide(showdown({A: KINGS, B: "", C: ACES}, 10), MAY_MUCK, {B})
    assert [face_up for _, face_up, _ in result.reveals] == [True, False, True]


def test_a_hand_mucked_unseen_does_not_show_even_where_all_show() -> None:
    assert shown({A: "", B: KINGS, C: ACES}, Split()) == [B, C]


def test_the_name_of_a_shown_hi_lo_hand_says_both_ways() -> None:
    hands = {A: "8s7d6c4hAhQdQc", B: "KsKd9d8c6d4d3h"}
    reveals = divide(showdown(hands, 10), Split(game=Game.HI_LO)).reveals
    assert reveals == (
        (A, True, "a pair of queens, ace eight seven, and an eight-seven-six-four-ace low"),
        (B, True, "a pair of kings, nine eight six"),
    )


def test_a_pot_that_nobody_else_can_win_is_no_reason_to_show_a_beaten_hand() -> None:
    hands = {A: ACES, B: KINGS}
    assert shown(hands, pots=[(20, (A, B)), (6, (B,))]) == [A]


def test_the_first_shows_also_where_no_pot_of_his_is_contested() -> None:
    hands = {C: QUEENS, A: ACES, B: KINGS}
    assert shown(hands, pots=[(20, (A, B)), (6, (C,))]) == [C, A]
