"""Faults that other rooms were reported for: who brings in and opens, the cap, the open pair on
fourth street, the last street of a full table, time running out.
"""

from typing import Any

import pytest

from services.game.events import EventKind
from services.game.hand import Deal, Hand, Refused
from tests.unit.game.play import act, deal_any, legal, table, third_street, to_act, up


def test_suits_break_ties_of_the_bring_in() -> None:
    assert to_act(third_street([200] * 3, "2h 2c 2d")) == 2
    assert to_act(third_street([200] * 3, "Kc Kd Ah", rulebook="razz")) == 2


@pytest.mark.parametrize(
    ("doors", "fourth", "opens"),
    [("As Ac", "6s 6h", 1), ("Ac As", "6s 6h", 1), ("Qd 3h", "3d Qc", 1), ("3h Qd", "Qc 3d", 2)],
)
def test_equal_razz_boards_open_by_the_suit_of_the_highest_card(
    doors: str, fourth: str, opens: int
) -> None:
    hand = third_street([200] * 2, doors, fourth, rulebook="razz", first_to_act_tie="suit")
    brings_in = to_act(hand)
    act(hand, f"p{brings_in} pb", f"p{3 - brings_in} cc")
    up(hand, fourth)
    assert to_act(hand) == opens


@pytest.mark.parametrize(
    ("doors", "fourth", "opens"),
    [("Kd Kh", "9c 8s", 1), ("Kh Kd", "8s 9c", 2), ("Ac 2d", "Kd 2h", 2)],
)
def test_kickers_and_pairs_decide_who_opens(doors: str, fourth: str, opens: int) -> None:
    hand = third_street([200] * 2, doors, fourth)
    brings_in = to_act(hand)
    act(hand, f"p{brings_in} pb", f"p{3 - brings_in} cc")
    up(hand, fourth)
    assert to_act(hand) == opens


def test_folded_and_all_in_seats_are_skipped() -> None:
    hand = third_street([200, 11, 200, 200], "2c Ah Kd Qs", "As 3h 4d 5s")
    act(hand, "p1 cbr 10", "p2 cc", "p3 f", "p4 cc")
    up(hand, "3h As 5s")
    # p2 has the best board and no chips: the next clockwise who can act opens, past the folded p3.
    assert to_act(hand) == 4
    act(hand, "p4 cc")
    assert to_act(hand) == 1


def test_after_the_bet_and_three_raises_there_is_only_call_or_fold() -> None:
    hand = third_street([200] * 3, "2c Kh 9d")
    act(hand, "p1 cbr 10", "p2 cbr 20", "p3 cbr 30", "p1 cbr 40", "p2 cc")
    assert (legal(hand).wagers, legal(hand).call, legal(hand).fold) == ((), 10, True)
    with pytest.raises(Refused) as refused:
        act(hand, "p3 cbr 50")
    assert (refused.value.reason, refused.value.rule) == ("CAP_REACHED", "3 cap")


@pytest.mark.parametrize(
    ("cap_lifted", "wagers"), [("never", ()), ("two_in_hand", (50,)), ("round_began_two", (50,))]
)
def test_heads_up_the_house_says_whether_there_is_a_cap(
    cap_lifted: str, wagers: tuple[int, ...]
) -> None:
    hand = third_street([200] * 2, "2c Kh", cap_lifted=cap_lifted)
    act(hand, "p1 cbr 10", "p2 cbr 20", "p1 cbr 30", "p2 cbr 40")
    assert legal(hand).wagers == wagers


def with_queens_on_fourth(*, allowed: bool, third_stack: int = 200) -> Hand:
    """p2 shows a pair of queens on fourth street."""
    stacks = [200, 200, third_stack]
    hand = third_street(stacks, "2c Qh 9d", "Qs 3h 4d", fourth_street_pair=allowed)
    act(hand, "p1 cbr 10", "p2 cc", "p3 cc")
    up(hand, "3h Qs 4d")
    return hand


def test_an_open_pair_on_fourth_lets_everybody_choose_until_one_bets_big() -> None:
    hand = with_queens_on_fourth(allowed=True)
    assert legal(hand).wagers == (10, 20)
    act(hand, "p2 cbr 10")
    assert legal(hand).wagers == (20, 30)
    act(hand, "p3 cbr 30")
    assert legal(hand).wagers == (50,)


def test_after_a_big_bet_a_small_raise_is_refused() -> None:
    hand = with_queens_on_fourth(allowed=True)
    act(hand, "p2 cbr 20")
    with pytest.raises(Refused, match="to 40, not to 30"):
        act(hand, "p3 cbr 30")
    assert legal(hand).wagers == (40,)


def test_without_the_option_the_bet_is_small() -> None:
    hand = with_queens_on_fourth(allowed=False)
    assert legal(hand).wagers == (10,)


def test_an_all_in_of_eight_over_a_big_bet_is_no_raise() -> None:
    hand = with_queens_on_fourth(allowed=True, third_stack=39)
    act(hand, "p2 cbr 20", "p3 cbr 28")
    assert (legal(hand).call, legal(hand).wagers) == (28, (40,))


def seventh_street(players: int, **house: Any) -> Deal:
    """What a table wants for seventh street when everybody stayed."""
    hand = table([200] * players, **house)
    while not (isinstance(hand.want, Deal) and hand.street == 7):
        if isinstance(hand.want, Deal):
            deal_any(hand)
        else:
            word = "pb" if legal(hand).bring_in else "cc"
            act(hand, f"p{to_act(hand)} {word}")
    return hand.want


def test_eight_players_share_the_last_card_where_nothing_was_burned() -> None:
    wanted = seventh_street(8)
    assert (wanted.cards, wanted.positions, wanted.burn) == (((-1, True),), (48,), 0)


def test_eight_players_after_burns_share_one_of_the_mixed_cards() -> None:
    wanted = seventh_street(8, burn_cards=True, short_deck="tda")
    assert wanted.cards == ((-1, True),)
    assert len(wanted.reshuffle) == 4
    assert (wanted.burn, wanted.positions) == (1, (1,))


def test_seven_players_after_burns_all_get_a_card() -> None:
    wanted = seventh_street(7, burn_cards=True, short_deck="tda")
    # All but the last card of the stub first; the rest comes with the burns.
    assert len(wanted.cards) == 6
    for house in ("tda", "reshuffle_burns"):
        assert (-1, True) not in seventh_street(7, burn_cards=True, short_deck=house).cards


def test_nobody_is_folded_where_a_check_is_free() -> None:
    hand = third_street([200, 200, 200], "2c Kh 9d", "3h 4s 5d")
    events = hand.time_out()
    assert (EventKind.BROUGHT_IN, 0, 3) in events
    act(hand, "p2 cc", "p3 cc")
    up(hand, "3h 4s 5d")
    assert (EventKind.CHECKED, 1) in hand.time_out()
    act(hand, "p3 cbr 10")
    assert (EventKind.FOLDED, 0) in hand.time_out()
