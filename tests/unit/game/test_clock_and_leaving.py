"""Time-outs under both policies, players who leave, hands called off (docs/rules.md, 5)."""

import pytest

from services.game.events import EventKind
from services.game.hand import Act, ActionKind, Deal, Hand, Rake, Refused, Showdown
from tests.unit.game.play import (
    act,
    choices,
    deal_any,
    finish,
    legal,
    run_out,
    table,
    third_street,
    to_act,
    up,
)

KINDS = EventKind


def kinds(events: list[tuple[object, ...]]) -> list[object]:
    return [event[0] for event in events]


def test_the_documents_example_of_protection() -> None:
    """At 5/10 A brings in 1, B completes, C calls, A is out of time: pots of 4.50 and 8."""
    hand = third_street(
        [20000] * 3, "2c Kh 9h", rulebook="triopoker", ante=50, bring_in=100, small=500
    )
    act(hand, "p1 pb", "p2 cbr 500", "p3 cc")
    events = hand.time_out()
    assert events[:2] == [(KINDS.TIMED_OUT, 0), (KINDS.PROTECTED, 0)]
    assert hand.all_in == {0}
    run_out(hand)
    assert hand.result is not None
    assert [(pot.amount, pot.seats) for pot in hand.result.pots] == [
        (450, (0, 1, 2)),
        (800, (1, 2)),
    ]
    assert all(item[1] != 0 for item in hand.inputs[5:] if item[0] == 2)
    assert len(hand.cards(0)) == 7
    assert hand.stacks[0] >= 20000 - 150


def test_who_has_put_in_only_the_ante_is_folded() -> None:
    hand = third_street([200] * 3, "2c Kh 9h", time_out="all_in_if_invested")
    act(hand, "p1 pb")
    assert kinds(hand.time_out())[:2] == [KINDS.TIMED_OUT, KINDS.FOLDED]
    assert hand.folded == {1}


def test_protection_holds_also_when_checking_was_free() -> None:
    hand = third_street([200] * 3, "2c Kh 9h", keep="3c Ks Th", time_out="all_in_if_invested")
    act(hand, "p1 pb", "p2 cc", "p3 cc")
    up(hand, "3c Ks Th")
    hand.time_out()
    assert hand.all_in == {1}
    assert to_act(hand) == 3


def test_with_the_allowance_used_up_it_is_check_or_fold() -> None:
    hand = third_street([200] * 3, "2c Kh 9h", keep="3c Ks Th", time_out="all_in_if_invested")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc")
    assert kinds(hand.time_out(protect=False))[1] == KINDS.FOLDED
    up(hand, "Ks Th")
    assert kinds(hand.time_out(protect=False))[1] == KINDS.CHECKED


def test_a_protected_player_caps_the_price_he_can_be_asked_for_by_no_one() -> None:
    """Heads-up, the other player has nobody left to bet against."""
    hand = third_street([200] * 2, "2c Kh", time_out="all_in_if_invested")
    act(hand, "p1 pb", "p2 cbr 10")
    hand.time_out()
    assert hand.betting_is_over
    run_out(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((1, 7),)


@pytest.mark.parametrize("policy", ["all_in_if_invested", "check_or_fold"])
def test_out_of_time_the_bring_in_is_posted_and_its_player_stays_live(policy: str) -> None:
    hand = third_street([200] * 3, "2c Kh 9h", time_out=policy)
    assert hand.time_out() == [(KINDS.TIMED_OUT, 0), (KINDS.BROUGHT_IN, 0, 3)]
    act(hand, "p2 cbr 10", "p3 cc")
    assert (to_act(hand), legal(hand).wagers) == (1, (20,))


@pytest.mark.parametrize("policy", ["all_in_if_invested", "check_or_fold"])
def test_out_of_time_a_passed_on_bring_in_is_folded(policy: str) -> None:
    hand = third_street([1, 200, 200, 200], "2c Kh 9h 7d", time_out=policy)
    hand.time_out()
    assert hand.folded == {1}
    assert to_act(hand) == 3


def test_check_or_fold_checks_when_it_is_free_and_folds_otherwise() -> None:
    hand = third_street([200] * 3, "2c Kh 9h", keep="3c Ks Th", rulebook="club", bring_in=2)
    act(hand, "p1 pb", "p2 cc", "p3 cc")
    up(hand, "3c Ks Th")
    assert hand.time_out() == [(KINDS.TIMED_OUT, 1), (KINDS.CHECKED, 1)]
    act(hand, "p3 cbr 10")
    assert hand.time_out() == [(KINDS.TIMED_OUT, 0), (KINDS.FOLDED, 0)]


def test_a_time_out_answers_the_decision_like_an_action() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    turn = hand.turn
    hand.time_out()
    assert hand.turn == turn + 1
    with pytest.raises(Refused) as refused:
        hand.act(0, ActionKind.BRING_IN)
    assert refused.value.reason == "NOT_YOUR_TURN"


def test_nobody_can_run_out_of_time_while_cards_are_wanted() -> None:
    hand = table([200] * 3)
    with pytest.raises(Refused) as refused:
        hand.time_out()
    assert refused.value.reason == "NO_TIME_OUT_WANTED"


# Leaving


def test_who_leaves_is_folded_at_once_and_what_he_put_in_stays() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    act(hand, "p1 pb", "p2 cbr 10")
    assert hand.leave(0) == [(KINDS.LEFT, 0), (KINDS.FOLDED, 0)]
    assert (to_act(hand), hand.put_in[0]) == (3, 4)
    act(hand, "p3 cc")
    assert hand.street == 4


def test_the_player_in_turn_may_leave_and_the_decision_is_answered() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    act(hand, "p1 pb")
    turn = hand.turn
    hand.leave(1)
    assert (to_act(hand), hand.turn) == (3, turn + 1)


def test_another_who_leaves_keeps_the_decision_of_the_player_in_turn() -> None:
    hand = third_street([200] * 4, "2c Kh 9h 7d")
    act(hand, "p1 pb")
    turn = hand.turn
    hand.leave(3)
    assert (to_act(hand), hand.turn) == (2, turn)


def test_the_bring_in_player_who_leaves_passes_the_duty_on() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    hand.leave(0)
    assert to_act(hand) == 2
    assert (ActionKind.FOLD, 0) in choices(legal(hand))


def test_who_is_all_in_stays_in_when_he_leaves() -> None:
    hand = third_street([11, 200, 200], "2c Kh 9h")
    act(hand, "p1 cbr 10")
    assert hand.leave(0) == [(KINDS.LEFT, 0)]
    act(hand, "p2 cc", "p3 cc")
    run_out(hand)
    assert 0 not in hand.folded


def test_who_alone_can_claim_a_layer_is_not_folded_out_of_it() -> None:
    """p1 all-in for 10 with the ante, p2 and p3 put in more, p3 folds: p2 alone can claim that."""
    hand = third_street([10, 200, 200], "2c Kh 9h", keep="3c Ks Th Kd 3d Tc 9c")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc", "p1 cc")
    assert hand.all_in == {0}
    up(hand, "3c Ks Th")
    act(hand, "p2 cbr 10", "p3 cc")
    up(hand, "3d Kd Tc")
    act(hand, "p2 cc", "p3 f")
    assert hand.betting_is_over
    assert hand.leave(1) == [(KINDS.LEFT, 1), (KINDS.PROTECTED, 1)]
    run_out(hand)
    assert hand.result is not None
    assert [(pot.amount, pot.seats) for pot in hand.result.pots] == [(30, (0, 1)), (22, (1,))]
    assert (1, 1, 22, 0, "") in hand.result.awards


def test_while_another_can_still_call_a_layer_is_not_his_alone() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc")
    hand.leave(2)
    hand.leave(1)
    assert hand.folded == {1, 2}
    finish(hand)
    assert hand.result is not None
    assert hand.result.net == {0: 22, 1: -11, 2: -11}


def test_when_all_others_leave_the_last_one_has_the_pot() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    act(hand, "p1 pb")
    hand.leave(1)
    hand.leave(2)
    assert isinstance(hand.want, Rake)
    finish(hand)
    assert hand.result is not None
    assert hand.result.net == {0: 2, 1: -1, 2: -1}


def test_one_who_leaves_while_cards_are_wanted_gets_none() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    act(hand, "p1 pb", "p2 cc", "p3 cc")
    hand.leave(1)
    want = hand.want
    assert isinstance(want, Deal)
    assert [seat for seat, _ in want.cards] == [0, 2]
    assert want.positions == (9, 10)


def test_one_who_leaves_before_the_first_card_is_not_dealt_in() -> None:
    hand = table([200] * 3)
    hand.leave(1)
    deal_any(hand)
    act(hand, f"p{to_act(hand)} pb")
    act(hand, f"p{to_act(hand)} f")
    want = hand.want
    assert isinstance(want, Rake)
    assert want.dealt_in == 2
    assert sum(pot.amount for pot in want.pots) == 3


def test_with_fewer_than_two_left_before_the_first_card_the_antes_go_back() -> None:
    hand = table([200, 300])
    events = hand.leave(0)
    assert kinds(events) == [KINDS.LEFT, KINDS.FOLDED, KINDS.VOIDED, KINDS.ENDED]
    assert hand.over
    assert hand.stacks == {0: 200, 1: 300}


def test_once_the_cards_and_the_betting_are_done_a_hand_stands() -> None:
    hand = third_street([200] * 2, "2c Kh")
    while not isinstance(hand.want, Rake):
        if isinstance(hand.want, Deal):
            deal_any(hand)
        else:
            act(hand, f"p{to_act(hand)} {'pb' if legal(hand).bring_in else 'cc'}")
    assert hand.leave(0) == [(KINDS.LEFT, 0)]
    hand.rake([0])
    want = hand.want
    assert isinstance(want, Showdown)
    assert set(want.hands) == {0, 1}


def test_nobody_leaves_twice_or_before_the_hand_or_after_it() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    hand.leave(1)
    for seat, reason in ((1, "ALREADY_LEFT"), (7, "NOT_DEALT_IN")):
        with pytest.raises(Refused) as refused:
            hand.leave(seat)
        assert refused.value.reason == reason
    hand.void()
    with pytest.raises(Refused) as refused:
        hand.leave(0)
    assert refused.value.reason == "HAND_OVER"
    with pytest.raises(Refused) as refused:
        Hand(hand.setup).leave(0)
    assert refused.value.reason == "NOT_STARTED"


def test_a_void_hand_gives_every_stake_back() -> None:
    hand = third_street([11, 200, 200], "2c Kh 9h")
    act(hand, "p1 cbr 10", "p2 cbr 20")
    assert hand.void()[-1] == (KINDS.ENDED, ((0, 11), (1, 200), (2, 200)))
    assert hand.result is not None
    assert hand.result.voided
    assert set(hand.result.net.values()) == {0}
    with pytest.raises(Refused):
        hand.void()


def test_a_void_is_possible_up_to_the_last_award() -> None:
    hand = third_street([200] * 2, "2c Kh")
    act(hand, "p1 cbr 10", "p2 cbr 20", "p1 f")
    assert hand.result is not None
    assert hand.result.uncalled
    hand.void()
    assert hand.stacks == {0: 200, 1: 200}
    assert not isinstance(hand.want, Act)
