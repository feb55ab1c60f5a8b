"""Uncalled money, layers of side pots and the rake of each pot (docs/rules.md, 4 and 7)."""

import pytest

from services.game.pots import Pot, Uncalled, layers, rake_shares, uncalled

A, B, C, D = range(4)


def test_the_uncalled_part_is_measured_against_a_folded_player_too() -> None:
    put_in = {A: 50, B: 100, C: 80}
    assert uncalled(put_in) == Uncalled(B, 20)
    put_in[B] -= 20
    assert layers(put_in, folded={C}) == (Pot(150, (A, B)), Pot(60, (B,)))


def test_a_longer_ante_comes_back() -> None:
    assert uncalled({A: 7, B: 6}) == Uncalled(A, 1)
    assert layers({A: 6, B: 6}) == (Pot(12, (A, B)),)


def test_nothing_comes_back_when_the_highest_total_was_matched() -> None:
    assert uncalled({A: 10, B: 10, C: 3}) is None
    assert uncalled({A: 0, B: 0}) is None
    assert uncalled({}) is None


def test_an_all_in_player_keeps_the_claim_on_the_pot_he_paid_into() -> None:
    assert layers({A: 14, B: 41, C: 41}) == (Pot(42, (A, B, C)), Pot(54, (B, C)))


def test_an_ante_that_was_not_whole_makes_a_main_pot_of_its_own() -> None:
    assert layers({A: 3, B: 5, C: 5}) == (Pot(9, (A, B, C)), Pot(4, (B, C)))


def test_folded_money_above_the_highest_layer_goes_to_the_last_pot() -> None:
    assert layers({A: 5, B: 9, C: 12, D: 12}, folded={C, D}) == (Pot(20, (A, B)), Pot(18, (B,)))


def test_three_side_pots() -> None:
    put_in = {A: 10, B: 20, C: 40, D: 40, 4: 15}
    assert layers(put_in, folded={4}) == (
        Pot(50, (A, B, C, D)),
        Pot(35, (B, C, D)),
        Pot(40, (C, D)),
    )


def test_no_money_makes_no_pot() -> None:
    assert layers({A: 0, B: 0}) == ()


def test_money_that_nobody_can_win_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^money was put in, but no seat is left that can win it$"
    ):
        layers({A: 5, B: 5}, folded={A, B})
    with pytest.raises(ValueError, match=r"^a total put in is below zero$"):
        layers({A: -1, B: 5})


def test_rake_comes_off_each_pot_with_left_over_units_from_the_main_pot_first() -> None:
    pots = (Pot(42, (A, B, C)), Pot(54, (B, C)))
    assert rake_shares(3, pots) == (2, 1)
    assert rake_shares(0, pots) == (0, 0)
    assert rake_shares(96, pots) == (42, 54)
    assert rake_shares(0, ()) == ()


@pytest.mark.parametrize("rake", [-1, 97])
def test_rake_below_zero_or_above_the_pots_is_refused(rake: int) -> None:
    with pytest.raises(ValueError, match="rake"):
        rake_shares(rake, (Pot(42, (A, B, C)), Pot(54, (B, C))))


def test_a_player_who_is_still_in_without_having_paid_can_win_nothing() -> None:
    assert layers({A: 5, B: 0, C: 5}) == (Pot(10, (A, C)),)
