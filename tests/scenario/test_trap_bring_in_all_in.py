"""Faults that other rooms were reported for: a bring-in seat with too few chips, and what a short
all-in does to the price (ante 1, bring-in 3, bets 10 and 20).
"""

import pytest

from services.game.hand import Rake, Refused
from services.game.pots import Pot
from tests.unit.game.play import act, deal_any, legal, run_out, third_street, to_act


def test_behind_a_seat_all_in_for_the_ante_the_next_brings_in_or_folds() -> None:
    hand = third_street([1, 200, 200, 200], "2c Kh 9d Js")
    assert to_act(hand) == 2
    offered = legal(hand)
    assert (offered.bring_in, offered.fold, offered.check) == (3, True, False)
    assert offered.wagers == (10,)
    act(hand, "p2 f")
    assert (to_act(hand), legal(hand).bring_in) == (3, 3)


def test_the_duty_goes_clockwise_and_not_to_the_second_lowest_card() -> None:
    hand = third_street([1, 200, 200, 200], "2c Kh 3d 9s")
    assert to_act(hand) == 2
    assert legal(hand).bring_in == 3


def test_a_short_bring_in_leaves_the_price_with_a_side_pot_of_the_rest() -> None:
    hand = third_street([3, 200, 200], "2c Kh 9d")
    act(hand, "p1 pb")
    assert (legal(hand).call, legal(hand).wagers) == (3, (10,))
    act(hand, "p2 cc", "p3 cc")
    run_out(hand)
    assert hand.result is not None
    assert hand.result.pots == (Pot(9, (0, 1, 2)), Pot(2, (1, 2)))


def test_heads_up_the_other_matches_only_what_is_there() -> None:
    hand = third_street([3, 200], "2c Kh")
    act(hand, "p1 pb")
    assert legal(hand).call == 2
    act(hand, "p2 cc")
    run_out(hand)
    assert hand.result is not None
    assert hand.result.pots == (Pot(6, (0, 1)),)


def test_what_only_one_caller_paid_over_a_short_bring_in_comes_back() -> None:
    hand = third_street([3, 200, 200], "2c Kh 9d")
    act(hand, "p1 pb", "p2 cc", "p3 f")
    while not isinstance(hand.want, Rake):
        deal_any(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((1, 1),)


@pytest.mark.parametrize(
    ("stack", "to", "price", "next_to"),
    [
        (5, 4, 4, 10),  # below half: no step, the next completes to the small bet
        (6, 5, 5, 15),  # half: it is the bet
        (7, 6, 6, 16),
    ],
)
def test_an_all_in_over_the_bring_in_counts_from_half_of_the_bet(
    stack: int, to: int, price: int, next_to: int
) -> None:
    hand = third_street([200, stack, 200], "2c Kh 9d")
    act(hand, "p1 pb", f"p2 cbr {to}")
    assert (legal(hand).call, legal(hand).wagers) == (price, (next_to,))


@pytest.mark.parametrize("to", [13, 14])
def test_the_next_raise_is_not_priced_from_an_all_in_below_half(to: int) -> None:
    hand = third_street([200, 5, 200], "2c Kh 9d")
    act(hand, "p1 pb", "p2 cbr 4")
    with pytest.raises(Refused) as refused:
        act(hand, f"p3 cbr {to}")
    assert refused.value.reason == "AMOUNT_NOT_OFFERED"
