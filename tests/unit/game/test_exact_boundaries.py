"""Amounts that are exactly enough, and players who are exactly equal (docs/rules.md, 3 to 6)."""

from typing import Any

import pytest

from services.game.events import EventKind
from services.game.hand import ActionKind, Deal, Hand, Rake, Refused
from services.game.pots import unmatched
from tests.unit.game.play import act, deal_any, finish, legal, table, third_street, to_act, up


def refusal(hand: Hand, kind: ActionKind, amount: int) -> str:
    with pytest.raises(Refused) as refused:
        hand.act(to_act(hand) - 1, kind, amount)
    return refused.value.reason


def test_nothing_is_bet_before_the_first_cards() -> None:
    hand = table([200, 200])
    assert (hand.to, hand.bets, hand.put_in) == (0, {0: 0, 1: 0}, {0: 1, 1: 1})
    assert Hand(hand.setup).put_in == {0: 0, 1: 0}
    assert Hand(hand.setup).bets == {0: 0, 1: 0}


def test_a_stack_of_exactly_the_call_offers_no_wager() -> None:
    hand = third_street([200, 200, 11], "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 10")
    assert (legal(hand).call, legal(hand).wagers) == (10, ())
    assert refusal(hand, ActionKind.RAISE, 10) == "STACK_TOO_SHORT"


def test_a_stack_of_exactly_the_bring_in_cannot_open_full() -> None:
    hand = third_street([4, 200, 200], "2c Kh Qd")
    assert (legal(hand).bring_in, legal(hand).wagers) == (3, ())
    assert refusal(hand, ActionKind.COMPLETE, 3) == "STACK_TOO_SHORT"


def test_there_is_no_raise_against_an_opponent_who_can_exactly_call() -> None:
    hand = third_street([11, 200, 200], "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 10", "p3 f")
    assert (to_act(hand), legal(hand).closed) == (1, "STACK_TOO_SHORT")
    hand = third_street([200, 200, 11], "2c Kh Qd")
    act(hand, "p1 cbr 10", "p2 f")
    assert to_act(hand) == 3
    hand = third_street([11, 11, 200], "2c Kh Qd")
    act(hand, "p1 pb", "p2 f", "p3 cbr 10")
    assert legal(hand).closed == "STACK_TOO_SHORT"
    hand = third_street([200, 11, 200, 11], "2c Kh Qd Jc")
    act(hand, "p1 cbr 10", "p2 f", "p3 f")
    assert (to_act(hand), legal(hand).closed) == (4, "STACK_TOO_SHORT")


def test_a_raise_needs_an_opponent_who_can_put_in_more() -> None:
    """p3, with chips to raise, faces p1 with 10 left in all and p2 who went all-in for 10."""
    hand = third_street([11, 11, 200], "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 10")
    assert (to_act(hand), legal(hand).closed) == (3, "NOBODY_CAN_CALL")


@pytest.mark.parametrize(("stack", "reason"), [(41, "STACK_TOO_SHORT"), (42, "CAP_REACHED")])
def test_at_the_cap_a_stack_of_exactly_the_call_is_short_and_one_more_is_capped(
    stack: int, reason: str
) -> None:
    hand = third_street([200, 200, 200, stack], "2c Kh Qd Jc", cap_lifted="never")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cbr 20", "p4 cc", "p1 cbr 30", "p2 cbr 40", "p3 cc")
    assert (to_act(hand), legal(hand).closed) == (4, reason)


@pytest.mark.parametrize("stack", [44, 45])
def test_a_stack_of_exactly_a_wager_leaves_the_decisions_of_deep_players_as_they_are(
    stack: int,
) -> None:
    """Before and after, a table of deep stacks decides the same."""
    for stacks in ([500] * 3, [500, 500, stack], [500] * 3):
        hand = third_street(stacks, "2c Kh Qd", keep="3c Ks Th", cap_lifted="never")
        act(hand, "p1 pb", "p2 cc", "p3 cc")
        up(hand, "3c Ks Th")
        act(hand, "p2 cbr 10", "p3 cbr 20", "p1 cbr 30", "p2 cbr 40")
        left = stacks[2] - 4 - 20
        assert legal(hand).call == min(20, left)
        assert legal(hand).closed == ("STACK_TOO_SHORT" if left <= 20 else "CAP_REACHED")


def fourth(stacks: list[int], **house: str) -> Hand:
    hand = third_street(stacks, "2c Kh Qd", keep="3c Ks Th", **house)
    act(hand, "p1 cbr 10", "p2 cc", "p3 cc")
    up(hand, "3c Ks Th")
    return hand


def test_nothing_is_owed_to_a_bet_whose_player_left_when_only_an_all_in_is_still_in() -> None:
    hand = fourth([11, 200, 200])
    act(hand, "p2 cbr 10")
    assert hand.leave(1)[1] == (EventKind.FOLDED, 1)
    assert hand.betting_is_over
    assert hand.stacks[2] == 200 - 11


def test_chips_behind_a_protected_player_are_no_price_for_the_others() -> None:
    hand = third_street([200, 200, 200], "2c Kh Qd", keep="3c Ks Th", time_out="all_in_if_invested")
    act(hand, "p1 cbr 10", "p2 cc", "p3 cc")
    up(hand, "3c Ks Th")
    act(hand, "p2 cc", "p3 cc")
    hand.time_out()
    assert hand.all_in == {0}
    while isinstance(hand.want, Deal):
        deal_any(hand)
    first, second = to_act(hand), 5 - to_act(hand)
    act(hand, f"p{first} cbr 20")
    hand.leave(first - 1)
    assert hand.betting_is_over
    assert hand.stacks[second - 1] == 200 - 11


def over_with_equal_claims(**house: str) -> Hand:
    """p1 is all-in for 10; p2 and p3 have 20 each in, and p3 plays for what he has put in."""
    hand = third_street(
        [11, 200, 200], "2c Kh Qd", keep="3c Ks Th", time_out="all_in_if_invested", **house
    )
    act(hand, "p1 cbr 10", "p2 cc", "p3 cc")
    up(hand, "3c Ks Th")
    act(hand, "p2 cbr 10", "p3 cc")
    deal_any(hand)
    return hand


def test_of_two_with_equal_claims_neither_is_alone_with_the_layer() -> None:
    hand = over_with_equal_claims()
    hand.time_out()
    assert hand.betting_is_over
    alive = next(seat for seat in (1, 2) if seat not in hand.all_in)
    assert hand.leave(alive)[1] == (EventKind.FOLDED, alive)


def test_chips_that_can_no_longer_be_put_in_claim_nothing() -> None:
    """p3 is in for less with chips behind that are out of play: p2 alone claims what p4 matched."""
    hand = third_street([200] * 4, "2c Kh Qd Jc", keep="3c Ks Th 9s", time_out="all_in_if_invested")
    act(hand, "p1 cbr 10", "p2 cc", "p3 cc", "p4 cc")
    up(hand, "3c Ks Th 9s")
    act(hand, "p2 cbr 10")
    hand.time_out()
    act(hand, "p4 cc", "p1 f")
    deal_any(hand)
    hand.leave(3)
    assert hand.betting_is_over
    assert hand.leave(1)[1] == (EventKind.PROTECTED, 1)


def with_a_protected_player(short: int) -> Hand:
    """p1, who has that much in all, is to act; p2 bet 10 on fourth street, p3 is out of time with
    chips behind, p4 called and left: he and p2 have 21 in."""
    hand = third_street(
        [short, 200, 200, 200],
        "2c Kh Qd Jc",
        keep="3c Ks Th 9s",
        time_out="all_in_if_invested",
    )
    act(hand, "p1 cbr 10", "p2 cc", "p3 cc", "p4 cc")
    up(hand, "3c Ks Th 9s")
    act(hand, "p2 cbr 10")
    hand.time_out()
    act(hand, "p4 cc")
    hand.leave(3)
    assert to_act(hand) == 1
    return hand


@pytest.mark.parametrize(
    ("short", "what"), [(20, EventKind.PROTECTED), (21, EventKind.FOLDED), (200, EventKind.FOLDED)]
)
def test_a_layer_of_one_unit_that_no_one_still_in_can_reach_keeps_a_leaving_player_in(
    short: int, what: EventKind
) -> None:
    """Chips behind p3 are out of play, so that p1's alone count."""
    assert with_a_protected_player(short).leave(1)[1] == (what, 1)


def test_an_all_in_player_one_unit_short_of_a_layer_does_not_claim_it() -> None:
    hand = with_a_protected_player(20)
    act(hand, "p1 cc")
    assert hand.betting_is_over
    assert hand.leave(1)[1] == (EventKind.PROTECTED, 1)


@pytest.mark.parametrize(
    "house", [{"bring_in": 6}, {"short_all_in_reopens_at": "full"}], ids=["high", "full"]
)
def test_who_brought_in_may_raise_a_completion_that_is_little_above_what_he_has_in(
    house: dict[str, Any],
) -> None:
    hand = third_street([200] * 3, "2c Kh Qd", **house)
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc")
    assert (to_act(hand), legal(hand).wagers) == (1, (20,))


def open_pair(stacks: list[int]) -> Hand:
    """Fourth street of three; p2 has the open pair and opens, for the small bet or the big one."""
    hand = third_street(stacks, "2c Kh Qd", keep="3c Kd Th", fourth_street_pair=True)
    act(hand, "p1 cbr 10", "p2 cc", "p3 cc")
    up(hand, "3c Kd Th")
    return hand


def test_a_stack_of_exactly_the_small_bet_is_offered_once_beside_an_open_pair() -> None:
    assert legal(open_pair([200, 21, 200])).wagers == (10,)
    assert legal(open_pair([200, 22, 200])).wagers == (10, 11)
    assert legal(open_pair([200, 31, 200])).wagers == (10, 20)


def test_beside_an_open_pair_a_stack_between_both_raises_is_offered_the_small_one_and_all_in() -> (
    None
):
    """Before and after, a table of deep stacks is offered both."""
    for behind in (189, 25, 189):
        hand = open_pair([200, 200, 11 + behind])
        act(hand, "p2 cbr 10")
        assert legal(hand).wagers == (20, min(30, behind))


def seventh_checked(*actions: str) -> Hand:
    """Three players, p1 with the best board, on seventh street after checks."""
    hand = third_street([300] * 3, "Kh 2c Qd", keep="Ks 3c Th 9h 5s 7d 8h 4c Js")
    act(hand, "p2 pb", "p3 cc", "p1 cc")
    for cards in ("Ks 3c Th", "9h 5s 7d", "8h 4c Js"):
        up(hand, cards)
        act(hand, "p1 cc", "p2 cc", "p3 cc")
    deal_any(hand)
    act(hand, *actions)
    return hand


def test_who_acted_first_shows_first_also_from_the_first_place_when_another_folds() -> None:
    hand = seventh_checked("p1 cc", "p2 f", "p3 cc")
    assert isinstance(hand.want, Rake)
    hand.rake([0])
    finish(hand)
    assert hand.result is not None
    assert (hand.result.shown + hand.result.mucked)[0] == 0
    assert hand.result.shown[0] == 0


def test_a_single_total_is_unmatched_as_a_whole() -> None:
    assert unmatched([5]) == (0, 5)
    assert unmatched([]) == (0, 0)
    assert unmatched([3, 5, 4]) == (1, 1)
    assert unmatched([5, 5]) == (0, 0)
