"""Third street: who brings in, what he may do, and what follows (docs/rules.md, 3)."""

import pytest

from services.game.events import EventKind
from services.game.hand import Act, ActionKind, Deal, Refused
from tests.unit.game.play import act, choices, legal, run_out, third_street, to_act, up


@pytest.mark.parametrize(
    ("doors", "game", "who"),
    [
        ("2h 2c 2d", "high", 2),
        ("As Kd 3c", "high", 3),
        ("Ac Kc Qc", "high", 3),
        ("Kc Kd Ah", "razz", 2),
        ("Ac Ah As", "razz", 3),
        ("Ac 2c 3c", "razz", 3),
        ("5s 5h 6c", "hi_lo", 2),
    ],
)
def test_the_lowest_door_card_brings_in_and_in_razz_the_highest(
    doors: str, game: str, who: int
) -> None:
    assert to_act(third_street([200] * 3, doors, game=game)) == who


def test_the_bring_in_player_may_not_fold_or_check_or_call() -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    assert choices(legal(hand)) == [(ActionKind.BRING_IN, 0), (ActionKind.COMPLETE, 10)]
    for kind in (ActionKind.FOLD, ActionKind.CHECK, ActionKind.CALL):
        with pytest.raises(Refused) as refused:
            hand.act(0, kind)
        assert (refused.value.reason, refused.value.rule) == ("BRING_IN_REQUIRED", "3 bring-in")


def test_where_the_house_says_so_the_bring_in_may_not_open_full() -> None:
    hand = third_street([200] * 3, "2c Kh Qd", bring_in_may_open_full=False)
    assert choices(legal(hand)) == [(ActionKind.BRING_IN, 0)]
    with pytest.raises(Refused) as refused:
        hand.act(0, ActionKind.COMPLETE, 10)
    assert refused.value.reason == "BRING_IN_ONLY"


def test_a_stack_between_the_bring_in_and_the_small_bet_may_open_all_in() -> None:
    hand = third_street([8, 200, 200], "2c Kh Qd")
    assert legal(hand).wagers == (7,)
    act(hand, "p1 cbr 7")
    assert legal(hand).wager_kind == ActionKind.RAISE
    assert legal(hand).wagers == (17,)


def test_if_all_just_call_the_bring_in_the_round_ends_without_another_turn_for_it() -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    act(hand, "p1 pb", "p2 cc", "p3 cc")
    assert isinstance(hand.want, Deal)
    assert hand.street == 4


def test_after_a_completion_the_bring_in_player_may_fold_call_or_raise() -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc")
    assert choices(legal(hand)) == [
        (ActionKind.FOLD, 0),
        (ActionKind.CALL, 0),
        (ActionKind.RAISE, 20),
    ]


def test_nobody_may_raise_over_a_bring_in_that_was_not_completed() -> None:
    hand = third_street([200] * 3, "2c Kh Qd")
    act(hand, "p1 pb")
    assert (legal(hand).wager_kind, legal(hand).wagers) == (ActionKind.COMPLETE, (10,))
    with pytest.raises(Refused) as refused:
        hand.act(1, ActionKind.RAISE, 13)
    assert refused.value.reason == "WRONG_WAGER"


def test_a_bring_in_equal_to_the_small_bet_is_the_bet() -> None:
    hand = third_street([2000] * 3, "2c Kh Qd", bring_in=25, small=25, ante=12)
    assert choices(legal(hand)) == [(ActionKind.BRING_IN, 0)]
    act(hand, "p1 pb", "p2 cbr 50", "p3 cbr 75", "p1 cbr 100")
    assert legal(hand).closed == "CAP_REACHED"


def test_an_all_in_bring_in_for_less_leaves_the_price_for_the_others() -> None:
    hand = third_street([3, 200, 200], "2c Kh Qd")
    act(hand, "p1 pb")
    assert legal(hand).call == 3
    assert legal(hand).wagers == (10,)
    act(hand, "p2 cc", "p3 f")
    run_out(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((1, 1),)


def test_heads_up_the_other_player_only_matches_a_short_bring_in() -> None:
    hand = third_street([3, 200], "2c Kh")
    act(hand, "p1 pb")
    assert choices(legal(hand)) == [(ActionKind.FOLD, 0), (ActionKind.CALL, 0)]
    assert legal(hand).call == 2


def test_nobody_brings_in_more_than_an_opponent_can_match() -> None:
    hand = third_street([200, 3], "2c Kh")
    assert legal(hand).bring_in == 2


@pytest.mark.parametrize(("stack", "wagers"), [(5, (10,)), (7, (16,))])
def test_an_all_in_bring_in_below_one_that_equals_the_small_bet_is_a_short_all_in(
    stack: int, wagers: tuple[int, ...]
) -> None:
    hand = third_street([stack, 200, 200], "2c Kh Qd", bring_in=10)
    act(hand, "p1 pb")
    assert legal(hand).call == stack - 1
    assert legal(hand).wagers == wagers


def test_a_bring_in_card_that_is_all_in_for_the_ante_passes_the_duty_clockwise() -> None:
    hand = third_street([200, 1, 200, 200], "Kh 2c Qd 3c")
    assert to_act(hand) == 3
    assert choices(legal(hand)) == [
        (ActionKind.BRING_IN, 0),
        (ActionKind.FOLD, 0),
        (ActionKind.COMPLETE, 10),
    ]
    with pytest.raises(Refused) as refused:
        hand.act(2, ActionKind.CHECK)
    assert refused.value.reason == "CHECK_NOT_FREE"
    act(hand, "p3 f")
    assert to_act(hand) == 4
    act(hand, "p4 pb")
    assert to_act(hand) == 1
    act(hand, "p1 cc")
    assert hand.street == 4


def test_the_last_one_with_chips_owes_no_bring_in() -> None:
    hand = third_street([1, 200, 200], "2c Kh Qd")
    act(hand, "p2 f")
    assert hand.betting_is_over
    run_out(hand)
    assert sum(hand.stacks.values()) == 401


def test_with_fewer_than_two_stacks_after_the_antes_the_cards_run_out() -> None:
    hand = third_street([6, 994], "2c Kh", ante=7, game="razz")
    assert hand.betting_is_over
    run_out(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((1, 1),)
    assert hand.result.pots[0].amount == 12
    assert not any(item[0] == 2 for item in hand.inputs)


def test_a_private_round_has_no_bring_in_and_the_best_door_card_opens() -> None:
    hand = third_street([200] * 3, "2c Kh Qd", bring_in_rule="none")
    assert to_act(hand) == 2
    assert choices(legal(hand)) == [
        (ActionKind.FOLD, 0),
        (ActionKind.CHECK, 0),
        (ActionKind.BET, 10),
    ]
    with pytest.raises(Refused) as refused:
        hand.act(1, ActionKind.BRING_IN)
    assert refused.value.reason == "NOT_BRING_IN"
    act(hand, "p2 cc", "p3 cc", "p1 cbr 10", "p2 cbr 20")
    assert legal(hand).call == 20


def test_the_worked_example_of_the_club_comes_out_exactly() -> None:
    hand = third_street(
        [200] * 4, "Ks 3d 3c 9h", keep="Kh 5h 2s", rulebook="club", bring_in=2, small=5
    )
    assert to_act(hand) == 3
    events = act(hand, "p3 pb")
    assert events == [(EventKind.BROUGHT_IN, 2, 2)]
    act(hand, "p4 cbr 5", "p1 cc", "p2 f")
    assert legal(hand).call == 3
    act(hand, "p3 cc")
    assert sum(hand.put_in.values()) == 19
    up(hand, "Kh 5h 2s")
    want = hand.want
    assert isinstance(want, Act)
    assert (want.seat, want.legal.wagers, want.legal.check) == (0, (5, 10), True)
