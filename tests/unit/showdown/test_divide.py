"""Dividing pots at the showdown (docs/rules.md, 2, 4 and 6)."""

import pytest

from services.game.events import HIGH, LOW, WHOLE
from services.game.rulebook import OddChipHigh
from services.game.showdown import divide
from tests.unit.showdown.showdowns import HI_LO, RAZZ, A, B, C, D, Split, payout, showdown, won

HIGH_ONLY = Split()


def test_a_short_all_in_wins_the_main_pot_and_the_side_pot_goes_to_the_next_best() -> None:
    hands = {A: "AsAd 2cAc7d8c 9d", B: "9h8h KdKh5d4s 3c", C: "QdJs Qh7c6d2s Th"}
    result = divide(showdown(hands, [(42, (A, B, C)), (54, (B, C))]), HIGH_ONLY)
    assert result.awards == (
        (0, A, 42, WHOLE, "three of a kind, aces, nine eight"),
        (1, B, 54, WHOLE, "a pair of kings, nine eight five"),
    )


def test_each_side_pot_judges_its_high_and_low_among_its_own_players() -> None:
    # A has the best high and the best low but is only in the main pot.
    hands = {
        A: "Ah2h 3h4h5hKd Kc",
        B: "As2d 3s4c6dQd Qc",
        C: "KsKh QsQh9c9d 9s",
        D: "8d7d 6s4s2sJh Jc",
    }
    pots = [(40, (A, B, C, D)), (60, (B, C, D)), (80, (C, D))]
    assert payout(hands, pots, HI_LO) == {A: 40, B: 30, C: 30 + 40, D: 40}


def test_no_qualifying_low_leaves_the_whole_pot_to_the_high() -> None:
    hands = {A: "8c8d7h 5s4cJd Js", B: "9c7d6s 5h4sQd Qh"}
    result = divide(showdown(hands, 77), HI_LO)
    assert [award[:4] for award in result.awards] == [(0, A, 77, WHOLE)]


def test_an_eight_is_the_highest_low_card_and_a_pair_never_qualifies() -> None:
    assert payout({A: "8c7d6h 4s3c KdKs", B: "AcAd2h3s4d QdQs"}, 20, HI_LO) == {A: 10, B: 10}
    assert payout({A: "9c7d6h 4s3c KdKs", B: "AcAd2h3s4d QdQs"}, 20, HI_LO) == {B: 20}


def test_one_player_may_win_high_and_low_with_different_cards() -> None:
    hands = {A: "Ah2c 3d4s5hKc Kd", B: "KhKs Qd9c7s4d 2h"}
    result = divide(showdown(hands, 21), HI_LO)
    assert result.awards == (
        (0, A, 11, HIGH, "a straight, five high"),
        (0, A, 10, LOW, "a five-four-three-two-ace low"),
    )


def test_the_wheel_is_a_straight_and_beats_a_pair_of_kings() -> None:
    hands = {A: "Ah2c 3d4s5hKc Kd", B: "KhKs Qd9c7s4d 2h"}
    assert payout(hands, 10, HIGH_ONLY) == {A: 10}


def test_the_wheel_beats_a_seven_low() -> None:
    hands = {A: "2h4d5s6c7h KdKs", B: "Ah2c3d4s5h QdQs"}
    assert payout(hands, 10, RAZZ) == {B: 10}


def test_razz_ignores_straights_and_flushes_and_prefers_any_unpaired_five() -> None:
    assert payout({A: "2h2d3c3s4d5hKs", B: "9cKcQdJhTs9d9h"}, 10, RAZZ) == {A: 10}
    assert payout({A: "Ah2h3h4h5hKdKc", B: "Ad2c3s4d6cQdQc"}, 10, RAZZ) == {A: 10}
    assert payout({A: "7c7dKhKs2c2d7h", B: "KcJdTh9s2hKd2s"}, 10, RAZZ) == {B: 10}


def test_suits_never_decide_a_pot() -> None:
    hands = {A: "AsKsQdJcTc3d2h", B: "AhKhQsJdTd3s2c"}
    assert payout(hands, 10, Split(odd_chip_high=OddChipHigh.SUIT_HIGH)) == {A: 5, B: 5}


def test_a_community_card_is_the_seventh_card_of_everyone() -> None:
    hands = {A: "QsQd7c7h3s2c", B: "KsKd9c8h4s2d"}
    assert payout(hands, 10, HIGH_ONLY, community="9h") == {B: 10}
    assert payout(hands, 10, HIGH_ONLY, community="Qh") == {A: 10}


def test_wild_deuces_make_five_of_a_kind_which_beats_a_straight_flush() -> None:
    wild = Split(wild_deuces=True)
    hands = {A: "2c2dAsAhAd 9c8d", B: "9s8s7s6s5sKdKh"}
    result = divide(showdown(hands, 10), wild)
    assert result.awards == ((0, A, 10, WHOLE, "five of a kind, aces"),)
    assert payout(hands, 10, HIGH_ONLY) == {B: 10}


def test_a_pot_of_one_player_is_his_whatever_he_holds() -> None:
    hands = {A: "AsAdAcKsKdQc9h", B: "7c5d4h3s2cJdTh"}
    result = divide(showdown(hands, [(10, (A, B)), (6, (B,))]), HIGH_ONLY)
    assert won(result) == {A: 10, B: 6}
    assert (1, B, 6, WHOLE, "") in result.awards


def test_a_hand_mucked_unseen_loses() -> None:
    assert payout({A: "", B: "7c5d4h3s2cJdTh"}, 10, HIGH_ONLY) == {B: 10}
    assert payout({A: "", B: "7c5d4h3s2cJdTh"}, 11, HI_LO) == {B: 11}


def test_a_pot_that_rake_took_whole_awards_nothing() -> None:
    hands = {A: "AsAdAcKsKdQc9h", B: "7c5d4h3s2cJdTh"}
    assert payout(hands, [(0, (A, B))], HI_LO) == {}


@pytest.mark.parametrize(
    ("hands", "community", "message"),
    [
        ({A: "AsAdAcKsKdQc9h", B: "As5d4h3s2cJdTh"}, "", "^a card occurs twice$"),
        ({A: "AsAdAcKsKdQc9h", B: "7c5d4h3s2cJd"}, "", "has 6 cards"),
        ({A: "AsAdAcKsKdQc", B: "7c5d4h3s2cJdTh"}, "9h", "has 7 cards"),
        ({A: "", B: ""}, "", "^every hand that could win a pot was mucked unseen$"),
    ],
)
def test_what_is_no_showdown_is_refused(
    hands: dict[int, str], community: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        payout(hands, 10, HIGH_ONLY, community=community)


def test_a_pot_with_a_stranger_or_a_wrong_showing_order_is_refused() -> None:
    hands = {A: "AsAdAcKsKdQc9h", B: "7c5d4h3s2cJdTh"}
    with pytest.raises(ValueError, match=r"^a pot names a seat without a hand$"):
        payout(hands, [(10, (A, C))], HIGH_ONLY)
    for order in ((A,), (A, A), (A, B, B), (A, C)):
        with pytest.raises(ValueError, match=r"^the showing order does not name each hand once$"):
            divide(showdown(hands, 10, order=order), HIGH_ONLY)


def test_pots_that_one_player_can_win_may_stand_anywhere() -> None:
    hands = {A: "AsAdAcKsKdQc9h", B: "7c5d4h3s2cJdTh"}
    result = divide(showdown(hands, [(4, (B,)), (10, (A, B)), (3, (B,))]), HIGH_ONLY)
    assert [award[:4] for award in result.awards] == [(0, B, 4, 0), (1, A, 10, 0), (2, B, 3, 0)]


def test_a_pot_of_one_player_is_his_though_his_hand_was_mucked_unseen() -> None:
    hands = {A: "AsAdAcKsKdQc9h", B: ""}
    assert payout(hands, [(10, (A, B)), (4, (B,))], HIGH_ONLY) == {A: 10, B: 4}


def test_suits_cannot_decide_odd_chips_among_wild_cards() -> None:
    hands = {A: "AsAdAcKsKdQc9h", B: "7c5d4h3s2cJdTh"}
    message = "^deuces are wild in high games with odd chips by position only$"
    with pytest.raises(ValueError, match=message):
        payout(hands, 10, Split(wild_deuces=True, odd_chip_high=OddChipHigh.SUIT_HIGH))
