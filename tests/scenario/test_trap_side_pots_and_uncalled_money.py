"""Faults that other rooms were reported for: side pots, uncalled money, all-ins.

Whole chips, ante 1, bring-in 3, bets 10 and 20; A, B, C are p1, p2, p3.
"""

from services.game.events import EventKind
from services.game.hand import Act, Rake
from services.game.pots import Pot
from tests.unit.game.play import act, deal, finish, legal, run_out, table, third_street, to_act, up


def test_an_all_in_seat_keeps_its_claim_and_a_side_pot_is_opened() -> None:
    hand = table([14, 200, 200])
    deal(hand, "AsAd2c", "9h8hKd", "QdJsQh")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc", "p1 cc")
    up(hand, "Ac Kh 7c")
    act(hand, "p2 cbr 10", "p3 cc", "p1 cc")
    assert hand.all_in == {0}
    up(hand, "7d 5d 6d")
    act(hand, "p2 cbr 20", "p3 cc")
    up(hand, "8c 4s 2s")
    act(hand, "p2 cc", "p3 cc")
    up(hand, "9d 3c Th")
    act(hand, "p2 cc", "p3 cc")
    assert isinstance(hand.want, Rake)
    assert hand.want.pots == (Pot(42, (0, 1, 2)), Pot(54, (1, 2)))
    finish(hand)
    assert hand.stacks == {0: 42, 1: 213, 2: 159}


def test_what_nobody_called_goes_back_and_is_no_win() -> None:
    hand = table([100, 22])
    deal(hand, "KsQs9h", "AsAd2d")
    act(hand, "p2 pb", "p1 cbr 10", "p2 cbr 20", "p1 cbr 30", "p2 cc")
    for cards in ("8c 3h", "7c 4h", "5c 6h", "3c Ac"):
        up(hand, cards)
    assert isinstance(hand.want, Rake)
    assert hand.want.pots == (Pot(44, (0, 1)),)
    finish(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((0, 9),)
    assert {award[1] for award in hand.result.awards} == {1}
    assert hand.stacks == {0: 78, 1: 44}


def test_heads_up_a_short_ante_is_all_there_is_to_play_for() -> None:
    hand = table([994, 6], "razz", ante=7, bring_in=10, small=40)
    assert hand.put_in == {0: 7, 1: 6}
    deal(hand, "KcJdTh", "7c7d5h")
    for cards in ("9s 5s", "2c 3h", "Kd 3s", "Js 5c"):
        up(hand, cards)
    assert isinstance(hand.want, Rake)
    assert hand.turn == 0
    assert hand.want.pots == (Pot(12, (0, 1)),)
    finish(hand)
    # K-J-T-9-2 is unpaired: it beats 7-5-3 with a pair.
    assert hand.result is not None
    assert hand.result.uncalled == ((0, 1),)
    assert hand.stacks == {0: 1000, 1: 0}


def test_three_ways_a_short_ante_has_a_main_pot_and_the_rest_is_the_others() -> None:
    hand = third_street([3, 50, 50], "Kh 4d 9s", ante=5)
    act(hand, "p2 pb", "p3 cc")
    run_out(hand)
    assert hand.result is not None
    assert [pot.seats for pot in hand.result.pots] == [(0, 1, 2), (1, 2)]
    assert hand.result.pots[0].amount == 9
    # Of the antes 4 are dead money for B and C, with the 3 that each brought in and called.
    assert hand.result.pots[1].amount == 4 + 6


def test_everybody_is_asked_to_match_an_all_in() -> None:
    hand = third_street([11, 200, 200], "2c Kh 9d")
    act(hand, "p1 cbr 10")
    assert hand.all_in == {0}
    assert (to_act(hand), legal(hand).call, legal(hand).wagers) == (2, 10, (20,))
    act(hand, "p2 cc")
    assert (hand.street, to_act(hand), legal(hand).call) == (3, 3, 10)
    act(hand, "p3 f")
    assert hand.street == 4


def test_no_stack_is_ever_below_zero() -> None:
    hand = third_street([200, 200, 3], "Kh 9d 2c")
    assert legal(hand).bring_in == 2
    events = act(hand, "p3 pb")
    assert events == [(EventKind.BROUGHT_IN, 2, 2), (EventKind.ALL_IN, 2)]
    assert hand.stacks[2] == 0
    assert sum(hand.stacks.values()) + sum(hand.put_in.values()) == 403


def test_an_ante_is_dead_money_and_no_part_of_a_bet() -> None:
    hand = third_street([200, 200, 200], "2c Kh 9d")
    act(hand, "p1 cbr 10")
    assert (hand.stacks[0], hand.put_in[0], hand.bets[0]) == (189, 11, 10)
    assert legal(hand).call == 10
    act(hand, "p2 cc")
    assert legal(hand).call == 10


def test_an_all_in_spends_the_last_unit() -> None:
    # Limits 0.04/0.08 in cents, and a stack of 0.11.
    hand = third_street([200, 11], "2c Kh", ante=1, bring_in=2, small=4)
    act(hand, "p1 cbr 4", "p2 cbr 8", "p1 cbr 12")
    assert legal(hand).call == 2
    act(hand, "p2 cc")
    assert hand.stacks[1] == 0
    run_out(hand)
    assert all(isinstance(stack, int) for stack in hand.stacks.values())
    assert sum(hand.stacks.values()) == 211


def test_with_nobody_left_to_bet_against_nobody_is_asked() -> None:
    hand = third_street([200, 22], "Kh 2c")
    act(hand, "p2 cbr 10", "p1 cbr 20", "p2 cbr 21", "p1 cc")
    assert hand.betting_is_over
    while not hand.over:
        assert not isinstance(hand.want, Act)
        run_out(hand)
