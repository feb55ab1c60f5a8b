"""Uncalled money, pots, rake, the order of showing, awards (docs/rules.md, 4, 6 and 7)."""

from typing import Any

import pytest

from services.game.events import EventKind
from services.game.hand import Act, ActionKind, Deal, Hand, Rake, Refused, Showdown, ShowdownResult
from services.game.pots import Pot
from tests.unit.game.play import (
    act,
    deal,
    deal_any,
    finish,
    legal,
    run_out,
    table,
    third_street,
    to_act,
    up,
)


def seventh_street(stacks: list[int], **settings: Any) -> Hand:
    """Everybody still in with 4 chips; p1 shows kings and opens, bets are 20."""
    doors = ["Ks", "3c", "7d", "9h"][: len(stacks)]
    cards = ["Kd 4c 8d Th", "Qc 5d 9s Jh", "2c 6d Td Qh"]
    hand = third_street(stacks, " ".join(doors), keep=" ".join(cards), **settings)
    for row in cards:
        check_round(hand)
        up(hand, " ".join(row.split()[: len(stacks)]))
    check_round(hand)
    deal_any(hand)
    return hand


def check_round(hand: Hand) -> None:
    while isinstance(hand.want, Act):
        offered = legal(hand)
        kind = ActionKind.CALL if offered.call else ActionKind.CHECK
        hand.act(hand.want.seat, ActionKind.BRING_IN if offered.bring_in else kind)


def showing_order(hand: Hand) -> list[int]:
    if isinstance(hand.want, Rake):
        hand.rake([0] * len(hand.want.pots))
    want = hand.want
    assert isinstance(want, Showdown)
    return [seat + 1 for seat in want.order]


def test_the_last_to_bet_or_raise_shows_first_then_clockwise() -> None:
    hand = seventh_street([200] * 4)
    act(hand, "p1 cc", "p2 cbr 20", "p3 cbr 40", "p4 cc", "p1 f", "p2 cc")
    assert showing_order(hand) == [3, 4, 2]


def test_checked_through_whoever_acted_first_shows_first() -> None:
    hand = seventh_street([200] * 4)
    check_round(hand)
    assert showing_order(hand) == [1, 2, 3, 4]


def test_if_the_first_to_act_folded_the_next_clockwise_shows_first() -> None:
    hand = seventh_street([200] * 4)
    act(hand, "p1 f")
    check_round(hand)
    assert showing_order(hand) == [2, 3, 4]


def test_if_the_best_board_is_all_in_he_who_acted_first_shows_first() -> None:
    hand = seventh_street([4, 200, 200, 200])
    assert to_act(hand) == 2
    check_round(hand)
    assert showing_order(hand) == [2, 3, 4, 1]


def test_if_nobody_could_act_the_best_visible_hand_shows_first() -> None:
    hand = third_street([200, 11], "2c Kh", keep="3c Ad 4c 5d 6c 7d")
    act(hand, "p1 pb", "p2 cbr 10", "p1 cc")
    for row in ("3c Ad", "4c 5d", "6c 7d"):
        up(hand, row)
    deal_any(hand)
    assert showing_order(hand) == [2, 1]


def test_a_bet_on_an_earlier_street_does_not_count_for_the_order() -> None:
    hand = third_street([200] * 2, "2c Kh", keep="3c Ad 4c 5d 6c 7d")
    act(hand, "p1 cbr 10", "p2 cc")
    up(hand, "3c Ad")
    act(hand, "p2 cc", "p1 cbr 10", "p2 cc")
    for row in ("4c 5d", "6c 7d"):
        up(hand, row)
        check_round(hand)
    deal_any(hand)
    check_round(hand)
    assert showing_order(hand) == [2, 1]


def test_hands_are_tabled_when_no_more_betting_is_possible() -> None:
    hand = third_street([200, 11], "2c Kh")
    act(hand, "p1 pb", "p2 cbr 10")
    events = act(hand, "p1 cc")
    shown = [event for event in events if event[0] == EventKind.SHOWN]
    assert [(seat, len(cards), name) for _, seat, cards, name in shown] == [(0, 3, ""), (1, 3, "")]
    assert hand.tabled
    while isinstance(hand.want, Deal):
        assert all(up for _, up in hand.want.cards)
        deal_any(hand)
    assert all(len(hand.up_cards(seat)) == 4 for seat in (0, 1))
    hand.rake([0])
    want = hand.want
    assert isinstance(want, Showdown)
    assert want.tabled


def test_after_a_last_round_with_an_all_in_hands_are_tabled_without_one_they_are_not() -> None:
    hand = seventh_street([4, 200, 200])
    check_round(hand)
    assert hand.tabled
    hand = seventh_street([200, 200, 200])
    check_round(hand)
    assert not hand.tabled


def test_where_the_house_does_not_table_hands_the_last_card_lies_down() -> None:
    hand = third_street([200, 11], "2c Kh", all_in_face_up=False)
    act(hand, "p1 pb", "p2 cbr 10", "p1 cc")
    assert not hand.tabled
    while hand.street < 7:
        deal_any(hand)
    assert isinstance(hand.want, Deal)
    assert not any(up for _, up in hand.want.cards)


def test_an_all_in_player_keeps_his_claim_and_the_rest_is_a_side_pot() -> None:
    hand = _with_known_cards()
    finish(hand)
    assert hand.result is not None
    assert [(pot.amount, pot.seats) for pot in hand.result.pots] == [(42, (0, 1, 2)), (54, (1, 2))]
    assert hand.stacks == {0: 42, 1: 213, 2: 159}


def _with_known_cards() -> Hand:
    """A [As Ad | 2c Ac 7d 8c | 9d] all-in for 14 against two (docs/rules.md, 4)."""
    hand = table([14, 200, 200])
    deal(hand, "AsAd2c", "9h8hKd", "QdJsQh")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc", "p1 cc")
    up(hand, "Ac Kh 7c")
    act(hand, "p2 cbr 10", "p3 cc", "p1 cc")
    up(hand, "7d 5d 6c")
    act(hand, "p2 cbr 20", "p3 cc")
    up(hand, "8c 4s 2s")
    act(hand, "p2 cc", "p3 cc")
    up(hand, "9d 3c Th")
    act(hand, "p2 cc", "p3 cc")
    return hand


def test_rake_comes_off_each_pot_before_it_is_divided() -> None:
    hand = _with_known_cards()
    assert isinstance(hand.want, Rake)
    assert (hand.want.dealt_in, hand.want.street) == (3, 7)
    finish(hand, rake=[2, 1])
    assert hand.stacks == {0: 40, 1: 212, 2: 159}


@pytest.mark.parametrize("shares", [[1], [43, 0], [-1, 0], [0, 0, 0]])
def test_rake_that_does_not_fit_the_pots_is_refused(shares: list[int]) -> None:
    hand = _with_known_cards()
    with pytest.raises(Refused) as refused:
        hand.rake(shares)
    assert refused.value.reason == "RAKE_DOES_NOT_FIT"


def test_an_uncontested_hand_asks_for_rake_and_for_no_showdown() -> None:
    hand = third_street([200] * 3, "2c Kh 9h")
    act(hand, "p1 pb", "p2 f")
    events = act(hand, "p3 f")
    assert [event[0] for event in events] == [EventKind.FOLDED, EventKind.UNCALLED, EventKind.POTS]
    assert isinstance(hand.want, Rake)
    events = hand.rake([1])
    assert [event[0] for event in events] == [EventKind.RAKED, EventKind.AWARDED, EventKind.ENDED]
    assert hand.stacks == {0: 201, 1: 199, 2: 199}


def test_awards_that_are_not_the_pots_are_refused() -> None:
    hand = _with_known_cards()
    hand.rake([0, 0])
    want = hand.want
    assert isinstance(want, Showdown)
    reveals = tuple((seat, True, "") for seat in want.order)
    for awards, reason in (
        (((0, 0, 42, 0, ""), (1, 1, 53, 0, "")), "AWARDS_DO_NOT_ADD_UP"),
        (((0, 0, 42, 0, ""), (1, 0, 54, 0, "")), "AWARD_DOES_NOT_FIT"),
        (((0, 0, 42, 0, ""), (2, 1, 54, 0, "")), "AWARD_DOES_NOT_FIT"),
        (((0, 0, 43, 0, ""), (0, 1, -1, 0, ""), (1, 1, 54, 0, "")), "AWARD_DOES_NOT_FIT"),
    ):
        with pytest.raises(Refused) as refused:
            hand.settle(ShowdownResult(awards, reveals))
        assert refused.value.reason == reason
    with pytest.raises(Refused) as refused:
        hand.settle(ShowdownResult(((0, 0, 42, 0, ""), (1, 1, 54, 0, "")), reveals[1:]))
    assert refused.value.reason == "REVEALS_DO_NOT_FIT"
    assert not hand.over


def test_the_showdown_names_pots_net_of_rake_and_only_those_that_are_contested() -> None:
    hand = third_street([10, 200, 200], "2c Kh 9h", keep="3c Ks Th Kd 3d Tc")
    act(hand, "p1 pb", "p2 cbr 10", "p3 cc", "p1 cc")
    up(hand, "3c Ks Th")
    act(hand, "p2 cbr 10", "p3 cc")
    up(hand, "3d Kd Tc")
    act(hand, "p2 cc", "p3 f")
    while isinstance(hand.want, Deal):
        deal_any(hand)
    hand.rake([3, 2])
    want = hand.want
    assert isinstance(want, Showdown)
    assert want.pots == (Pot(27, (0, 1)),)
    run_out(hand)
    assert hand.result is not None
    assert sum(hand.result.net.values()) == -5
