"""Steps, short all-ins, reopening, the cap and its lifting, prices (docs/rules.md, 3)."""

import pytest

from services.game.hand import ActionKind, Hand, Refused
from tests.unit.game.play import act, choices, finish, legal, run_out, third_street, to_act, up


def fifth_street(stacks: list[int], **settings: object) -> Hand:
    """Everybody still in with 4 chips in, p1 opens, bets are 20."""
    n = len(stacks)
    doors = ["Ks", "3c", "7d", "9h"][:n]
    hand = third_street(stacks, " ".join(doors), keep="Kd 4c 8d Th Kc 5d 9s Jh", **settings)
    act(hand, "p2 pb", *(f"p{i} cc" for i in (3, 4, 1) if i <= n))
    up(hand, " ".join(["Kd", "4c", "8d", "Th"][:n]))
    act(hand, *(f"p{i} cc" for i in range(1, n + 1)))
    up(hand, " ".join(["Kc", "5d", "9s", "Jh"][:n]))
    return hand


def test_one_bet_and_three_raises_then_call_or_fold() -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cbr 20", "p1 cbr 30", "p2 cbr 40")
    assert choices(legal(hand)) == [(ActionKind.FOLD, 0), (ActionKind.CALL, 0)]
    with pytest.raises(Refused) as refused:
        hand.act(2, ActionKind.RAISE, 50)
    assert (refused.value.reason, refused.value.rule) == ("CAP_REACHED", "3 cap")


def test_an_all_in_is_no_raise_either_once_the_cap_is_reached() -> None:
    hand = third_street([200, 200, 46], "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cbr 20", "p1 cbr 30", "p2 cbr 40")
    assert legal(hand).wagers == ()
    assert legal(hand).closed == "CAP_REACHED"


def test_below_half_is_only_a_price_and_the_next_completes() -> None:
    hand = third_street([200, 5, 200], "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 4")
    assert (legal(hand).call, legal(hand).wagers) == (4, (10,))
    act(hand, "p3 cc")
    assert choices(legal(hand)) == [(ActionKind.FOLD, 0), (ActionKind.CALL, 0)]
    assert legal(hand).call == 1
    assert legal(hand).closed == "NOT_REOPENED"


def test_if_somebody_completes_over_it_the_bring_in_player_may_raise() -> None:
    hand = third_street([200, 5, 200], "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 4", "p3 cbr 10")
    assert legal(hand).wagers == (20,)


@pytest.mark.parametrize(
    ("stack", "reopens", "wagers"),
    [(6, "half", (15,)), (7, "half", (16,)), (7, "full", (10,)), (10, "full", (10,))],
)
def test_from_half_of_the_bet_an_all_in_is_the_bet(
    stack: int, reopens: str, wagers: tuple[int, ...]
) -> None:
    hand = third_street([200, stack, 200], "2c Kh Qd", short_all_in_reopens_at=reopens)
    act(hand, "p1 pb", f"p2 cbr {stack - 1}")
    assert legal(hand).wagers == wagers


def test_of_two_short_all_ins_together_one_may_raise_and_the_other_not() -> None:
    hand = fifth_street([200, 30, 200, 37])
    act(hand, "p1 cbr 20", "p2 cbr 26", "p3 cc", "p4 cbr 33")
    assert (to_act(hand), legal(hand).call, legal(hand).wagers) == (1, 13, (53,))
    act(hand, "p1 cc")
    assert (to_act(hand), legal(hand).call) == (3, 7)
    assert legal(hand).closed == "NOT_REOPENED"
    with pytest.raises(Refused) as refused:
        hand.act(2, ActionKind.RAISE, 53)
    assert (refused.value.reason, refused.value.rule) == ("NOT_REOPENED", "3 steps")


def test_an_all_in_of_585_over_400_prices_the_next_raise_at_785() -> None:
    """Seen in a real room."""
    hand = third_street([5000, 5000, 5000, 615], "2c Kh Qd Jc", ante=30, bring_in=50, small=200)
    act(hand, "p1 pb", "p2 cbr 200", "p3 cbr 400", "p4 cbr 585")
    assert legal(hand).wagers == (785,)


def test_a_check_is_an_action_and_a_short_bet_does_not_reopen_it() -> None:
    hand = fifth_street([200, 12, 200])
    act(hand, "p1 cc", "p2 cbr 8", "p3 cc")
    assert (to_act(hand), legal(hand).closed) == (1, "NOT_REOPENED")


def test_who_checked_may_raise_a_full_bet() -> None:
    hand = fifth_street([200, 200, 200])
    act(hand, "p1 cc", "p2 cbr 20", "p3 f")
    assert legal(hand).wagers == (40,)


def test_a_short_bet_is_completed_by_the_next() -> None:
    hand = fifth_street([200, 12, 200])
    act(hand, "p1 cc", "p2 cbr 8")
    assert (legal(hand).wager_kind, legal(hand).wagers) == (ActionKind.COMPLETE, (20,))


def test_a_short_all_in_that_counts_uses_a_step_of_the_cap() -> None:
    hand = third_street([200, 200, 17, 200], "2c Kh Qd Jc")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cbr 16", "p4 cbr 26", "p1 cbr 36")
    assert legal(hand).closed == "CAP_REACHED"


@pytest.mark.parametrize(
    ("lifted", "closed"), [("never", "CAP_REACHED"), ("two_in_hand", ""), ("round_began_two", "")]
)
def test_heads_up_from_the_start_the_cap_is_lifted_where_the_house_does(
    lifted: str, closed: str
) -> None:
    hand = third_street([200] * 2, "2c Kh", cap_lifted=lifted)
    act(hand, "p1 pb", "p2 cbr 10", "p1 cbr 20", "p2 cbr 30", "p1 cbr 40")
    assert legal(hand).closed == closed


@pytest.mark.parametrize(
    ("lifted", "closed"),
    [("never", "CAP_REACHED"), ("two_in_hand", ""), ("round_began_two", "CAP_REACHED")],
)
def test_in_the_middle_of_a_round_only_two_in_hand_lifts_it(lifted: str, closed: str) -> None:
    hand = third_street([200] * 3, "2c Kh Qd", cap_lifted=lifted)
    act(hand, "p1 pb", "p2 cbr 10", "p3 cbr 20", "p1 f", "p2 cbr 30", "p3 cbr 40")
    assert legal(hand).closed == closed


def test_a_third_player_who_is_all_in_keeps_the_cap() -> None:
    hand = third_street([200, 200, 17], "2c Kh Qd", cap_lifted="two_in_hand")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cbr 16", "p1 cbr 26", "p2 cbr 36")
    assert legal(hand).closed == "CAP_REACHED"


def test_no_raise_unless_an_opponent_can_put_in_more() -> None:
    hand = third_street([200, 11], "2c Kh")
    act(hand, "p1 pb", "p2 cbr 10")
    assert choices(legal(hand)) == [(ActionKind.FOLD, 0), (ActionKind.CALL, 0)]
    with pytest.raises(Refused) as refused:
        hand.act(0, ActionKind.RAISE, 20)
    assert (refused.value.reason, refused.value.rule) == ("NOBODY_CAN_CALL", "3 price")


def test_others_must_match_an_all_in() -> None:
    hand = third_street([11, 200, 200], "2c Kh Qd")
    act(hand, "p1 cbr 10")
    for player in (2, 3):
        assert to_act(hand) == player
        assert (legal(hand).call, legal(hand).wagers) == (10, (20,))
        act(hand, f"p{player} cc")
    assert hand.street == 4


def test_the_part_nobody_matched_goes_back_before_the_pot_is_counted() -> None:
    hand = third_street([100, 22], "Kh 2d")
    act(hand, "p2 pb", "p1 cbr 10", "p2 cbr 20", "p1 cbr 30", "p2 cc")
    run_out(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((0, 9),)
    assert [pot.amount for pot in hand.result.pots] == [44]


def test_uncalled_antes_go_back_too() -> None:
    hand = third_street([7, 6], "Kh 2d", ante=7)
    run_out(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((0, 1),)


def test_no_rake_is_asked_for_money_nobody_called() -> None:
    hand = third_street([200] * 6, "2c Kh Qd Jc 9h 8d")
    act(hand, "p1 pb", "p2 cbr 10", *(f"p{i} f" for i in (3, 4, 5, 6, 1)))
    assert hand.result is not None
    assert (hand.result.uncalled, hand.result.pots[0].amount) == (((1, 7),), 12)
    finish(hand)
    assert hand.result.net == {0: -4, 1: 8, 2: -1, 3: -1, 4: -1, 5: -1}


def test_the_antes_are_dead_money() -> None:
    hand = third_street([200] * 3, "2c Kh Qd", ante=5)
    act(hand, "p1 pb", "p2 cbr 10")
    assert hand.put_in[1] == 15
    assert legal(hand).call == 10


def test_betting_is_over_when_one_player_can_act_and_owes_nothing() -> None:
    hand = third_street([11, 11, 200], "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc", "p1 cc")
    assert hand.betting_is_over
    run_out(hand)
    assert [item[0] for item in hand.inputs].count(2) == 4


@pytest.mark.parametrize("amount", [0, 1, 9, 11, 20, 200, -10])
def test_an_amount_that_is_not_offered_is_refused_and_never_trimmed(amount: int) -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    act(hand, "p1 pb")
    with pytest.raises(Refused) as refused:
        hand.act(1, ActionKind.COMPLETE, amount)
    assert (refused.value.reason, refused.value.rule) == ("AMOUNT_NOT_OFFERED", "3 steps")
    assert hand.turn == 1


@pytest.mark.parametrize("kind", [ActionKind.FOLD, ActionKind.CALL, ActionKind.CHECK])
def test_check_call_and_fold_carry_no_amount(kind: ActionKind) -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    act(hand, "p1 pb")
    with pytest.raises(Refused) as refused:
        hand.act(1, kind, 3)
    assert refused.value.reason == "AMOUNT_NOT_TAKEN"


def test_only_the_player_in_turn_may_act() -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    with pytest.raises(Refused) as refused:
        hand.act(1, ActionKind.FOLD)
    assert refused.value.reason == "NOT_YOUR_TURN"
    act(hand, "p1 pb", "p2 cc", "p3 cc")
    with pytest.raises(Refused) as refused:
        hand.act(1, ActionKind.FOLD)
    assert refused.value.reason == "NO_ACTION_WANTED"
