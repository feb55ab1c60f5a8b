"""What holds on every street alike: short all-ins and time-outs (docs/rules.md, 3 and 5)."""

import pytest

from services.game.events import EventKind
from services.game.hand import ActionKind, Deal, Hand
from tests.unit.game.play import act, deal_any, finish, legal, third_street, to_act, up

STREETS = [3, 4, 5, 6, 7]
SPENT = {3: 1, 4: 4, 5: 4, 6: 4, 7: 4}
"""Ante and bring-in: what each player has put in before the street."""
UPS = {4: "3d Ts 9s 8s", 5: "4d 7h 6h 5h", 6: "5d 2h 3h 4h"}
KEEP = "".join(UPS.values()).replace(" ", "")


def size(street: int) -> int:
    return 10 if street < 5 else 20


def opened(street: int, stacks: list[int], **house: object) -> Hand:
    """p2 is to open, for nothing in on fourth street and later; on third p1 has brought in."""
    hand = third_street(stacks, "2c Kh Qd Jc", keep=KEEP, **house)
    act(hand, "p1 pb")
    if street == 3:
        return hand
    act(hand, "p2 cc", "p3 cc", "p4 cc")
    for number in range(4, street + 1):
        if number < 7:
            up(hand, UPS[number])
        else:
            deal_any(hand)
        if number < street:
            act(hand, "p2 cc", "p3 cc", "p4 cc", "p1 cc")
    assert (hand.street, to_act(hand)) == (street, 2)
    return hand


@pytest.mark.parametrize("street", STREETS)
@pytest.mark.parametrize("reopens", ["half", "full"])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_short_raise_counts_from_half_of_the_size_where_the_house_says_half(
    street: int, reopens: str, over: int
) -> None:
    bet = size(street)
    to = bet + bet // 2 + over
    stacks = [300, 300, SPENT[street] + to, 300]
    hand = opened(street, stacks, short_all_in_reopens_at=reopens)
    act(hand, f"p2 cbr {bet}", f"p3 cbr {to}")
    counts = reopens == "half" and over >= 0
    assert legal(hand).wagers == (to + bet if counts else 2 * bet,)
    act(hand, "p4 cc", "p1 f")
    assert (to_act(hand), legal(hand).call) == (2, to - bet)
    assert legal(hand).closed == ("" if counts else "NOT_REOPENED")


@pytest.mark.parametrize("street", STREETS)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_short_opening_counts_from_half_of_the_size(street: int, over: int) -> None:
    bet = size(street)
    to = bet // 2 + over
    hand = opened(street, [300, SPENT[street] + to, 300, 300])
    act(hand, f"p2 cbr {to}")
    if over < 0:
        assert (legal(hand).wager_kind, legal(hand).wagers) == (ActionKind.COMPLETE, (bet,))
    else:
        assert (legal(hand).wager_kind, legal(hand).wagers) == (ActionKind.RAISE, (to + bet,))


@pytest.mark.parametrize("street", STREETS)
def test_short_all_ins_that_count_use_up_the_cap_on_every_street(street: int) -> None:
    bet = size(street)
    to = bet + bet // 2
    hand = opened(street, [300, 300, SPENT[street] + to, 300])
    act(hand, f"p2 cbr {bet}", f"p3 cbr {to}", f"p4 cbr {to + bet}", f"p1 cbr {to + 2 * bet}")
    assert legal(hand).closed == "CAP_REACHED"


PROTECTS = "all_in_if_invested"
CHECKS = "check_or_fold"


@pytest.mark.parametrize("policy", [PROTECTS, CHECKS])
@pytest.mark.parametrize("street", STREETS[1:])
@pytest.mark.parametrize("before", [[], ["p2 cc"], ["p2 cc", "p3 cc"], ["p2 cc", "p3 cc", "p4 cc"]])
def test_out_of_time_in_any_position_where_a_check_is_free(
    street: int, policy: str, before: list[str]
) -> None:
    hand = opened(street, [300] * 4, time_out=policy)
    act(hand, *before)
    seat = to_act(hand) - 1
    events = hand.time_out()
    kind = EventKind.PROTECTED if policy == PROTECTS else EventKind.CHECKED
    assert events[:2] == [(EventKind.TIMED_OUT, seat), (kind, seat)]
    assert seat not in hand.folded
    assert (seat in hand.all_in) == (policy == PROTECTS)


@pytest.mark.parametrize("policy", [PROTECTS, CHECKS])
@pytest.mark.parametrize("street", STREETS[1:])
@pytest.mark.parametrize("callers", [0, 1, 2])
def test_out_of_time_in_any_position_facing_a_bet(street: int, policy: str, callers: int) -> None:
    hand = opened(street, [300] * 4, time_out=policy)
    act(hand, f"p2 cbr {size(street)}", *["p3 cc", "p4 cc"][:callers])
    seat = to_act(hand) - 1
    events = hand.time_out()
    kind = EventKind.PROTECTED if policy == PROTECTS else EventKind.FOLDED
    assert events[:2] == [(EventKind.TIMED_OUT, seat), (kind, seat)]
    assert hand.stacks[seat] == 300 - 4
    assert (seat in hand.folded) == (policy == CHECKS)


@pytest.mark.parametrize("street", STREETS[1:])
def test_a_protected_player_gets_his_cards_and_wins_only_what_he_matched(street: int) -> None:
    hand = opened(street, [300] * 4, time_out=PROTECTS)
    act(hand, f"p2 cbr {size(street)}")
    hand.time_out()
    act(hand, "p4 cc", "p1 f")
    while hand.want is not None and not hand.over:
        if isinstance(hand.want, Deal):
            deal_any(hand)
        elif hand.result is None:
            assert to_act(hand) != 3
            act(hand, f"p{to_act(hand)} cc")
        else:
            finish(hand)
    assert len(hand.cards(2)) == 7
    assert hand.result is not None
    assert 2 in hand.result.shown + hand.result.mucked
    assert [(pot.amount, pot.seats) for pot in hand.result.pots] == [
        (16, (1, 2, 3)),
        (2 * size(street), (1, 3)),
    ]


def test_a_layer_whose_payers_all_folded_belongs_to_the_last_pot() -> None:
    """p3 and p4, who raised to 30 and 40, leave; the others are in for 10, 20 and 20, antes aside:
    10 that nobody matched goes back to p4, and what he and p3 paid above 20 has no payer left."""
    hand = third_street([11, 200, 200, 200, 21], "2c Kh Qd Jc Td")
    act(hand, "p1 cbr 10", "p2 cbr 20", "p3 cbr 30")
    hand.leave(2)
    act(hand, "p4 cbr 40", "p5 cc")
    hand.leave(3)
    assert hand.betting_is_over
    while not hand.over:
        if isinstance(hand.want, Deal):
            deal_any(hand)
        else:
            finish(hand)
    assert hand.result is not None
    assert hand.result.uncalled == ((3, 10),)
    assert [(pot.amount, pot.seats) for pot in hand.result.pots] == [(55, (0, 1, 4)), (60, (1, 4))]
    assert (hand.stacks[2], hand.stacks[3]) == (169, 169)
