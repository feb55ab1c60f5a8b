"""When seventh street lacks cards (docs/rules.md, 3): every history of player counts."""

import random
from itertools import combinations_with_replacement

import pytest

from services.game.cards import parse_cards
from services.game.events import EventKind
from services.game.hand import Act, ActionKind, Deal, Hand
from services.game.rulebook import Rulebook, shipped
from tests.unit.game.play import deal_any, legal, run_out, table, to_act

HISTORIES = [
    tuple(sorted(counts, reverse=True)) for counts in combinations_with_replacement(range(2, 9), 5)
]

TABLE = {
    "77777": 2,
    "77776": 1,
    **dict.fromkeys(["87666", "87765", "87774", "88665", "88755"], 2),
    **dict.fromkeys(["88764", "88773", "88854", "88863", "88872"], 2),
    **dict.fromkeys(["88855", "88766"], 3),
    "87777": 3,
    "88776": 3,
    "88777": 4,
    "88866": 3,
    "88875": 3,
    "88876": 4,
    "88877": 4,
    **dict.fromkeys(["88882", "88883", "88884"], 3),
    **dict.fromkeys(["88885", "88886", "88887", "88888"], 4),
}


def to_seventh(counts: tuple[int, ...], rulebook: Rulebook) -> Hand:
    """A hand that as many players as given see on each street, 3 to 7."""
    hand = table([1000] * counts[0], rulebook)
    while hand.street < 7:
        if isinstance(hand.want, Deal):
            deal_any(hand)
            continue
        too_many = counts[0] - len(hand.folded) > counts[hand.street - 2]
        if too_many and legal(hand).fold:
            hand.act(to_act(hand) - 1, ActionKind.FOLD)
        else:
            pass_on(hand)
    return hand


def pass_on(hand: Hand) -> None:
    """Brings in, calls or checks."""
    offered = legal(hand)
    kind = ActionKind.CALL if offered.call else ActionKind.CHECK
    hand.act(to_act(hand) - 1, ActionKind.BRING_IN if offered.bring_in else kind)


def rule_of(hand: Hand) -> int:
    """Which of the four rules made the Deal of a burning house."""
    want = hand.want
    assert isinstance(want, Deal)
    if want.cards == ((-1, True),):
        return 4
    if want.reshuffle:
        return 3
    return 1 if want.burn else 2


def name(counts: tuple[int, ...]) -> str:
    return "".join(map(str, counts))


TRIOPOKER = shipped("triopoker")
NO_BURNS = shipped("interpoker")


def test_the_210_eight_handed_histories_are_decided_as_documented() -> None:
    eight = [counts for counts in HISTORIES if counts[0] == 8]
    assert len(eight) == 210
    decided = {name(counts): rule_of(to_seventh(counts, TRIOPOKER)) for counts in eight}
    assert [list(decided.values()).count(rule) for rule in (1, 2, 3, 4)] == [173, 10, 20, 7]
    for history, rule in TABLE.items():
        if history.startswith("8"):
            assert decided[history] == rule, history
    shared = {name(counts) for counts in eight if rule_of(to_seventh(counts, NO_BURNS)) == 4}
    assert shared == {history for history, rule in decided.items() if rule == 4}


def test_seven_handed_only_one_history_is_special_and_with_fewer_none() -> None:
    special = [
        name(counts)
        for counts in HISTORIES
        if counts[0] < 8 and rule_of(to_seventh(counts, TRIOPOKER)) != 1
    ]
    assert special == ["77777"]


@pytest.mark.parametrize("history", [h for h, rule in TABLE.items() if rule == 3])
def test_rule_3_shuffles_stub_and_burns_together_and_deals_one_each(history: str) -> None:
    hand = to_seventh(tuple(map(int, history)), TRIOPOKER)
    want = hand.want
    assert isinstance(want, Deal)
    assert (want.burn, want.positions) == (0, tuple(range(int(history[-1]))))
    dealt = 3 * int(history[0]) + sum(map(int, history[1:4]))
    assert len(set(want.reshuffle)) == len(want.reshuffle) == 52 - dealt
    events = deal_any(hand)
    assert events[0] == (EventKind.RESHUFFLED, len(want.reshuffle))
    run_out(hand)
    assert hand.over


def test_rule_4_turns_up_one_of_the_burns_and_the_stub_stays_unused() -> None:
    hand = to_seventh((8, 8, 8, 8, 8), TRIOPOKER)
    want = hand.want
    assert isinstance(want, Deal)
    assert (want.burn, want.positions, want.reshuffle) == (0, (0,), (24, 33, 42))


def test_a_house_without_burns_turns_it_up_from_the_stub() -> None:
    hand = to_seventh((8, 8, 8, 8, 8), NO_BURNS)
    want = hand.want
    assert isinstance(want, Deal)
    assert (want.burn, want.positions, want.reshuffle) == (0, (48,), ())
    deal_any(hand)
    run_out(hand)
    assert hand.over
    assert hand.community >= 0
    assert all(len(hand.cards(seat)) == 6 for seat in range(8))


def test_tda_mixes_the_last_card_with_the_burns_burns_one_and_shares_the_next() -> None:
    rulebook = TRIOPOKER.with_house(short_deck="tda")
    hand = to_seventh((8, 8, 8, 8, 8), rulebook)
    want = hand.want
    assert isinstance(want, Deal)
    assert (want.cards, want.burn, want.positions) == (((-1, True),), 1, (1,))
    assert want.reshuffle == (51, 24, 33, 42)


def test_tda_with_seven_players_adds_the_burns_and_everyone_gets_a_card() -> None:
    rulebook = TRIOPOKER.with_house(short_deck="tda")
    hand = to_seventh((7, 7, 7, 7, 7), rulebook)
    want = hand.want
    assert isinstance(want, Deal)
    assert (len(want.cards), want.burn, want.reshuffle) == (6, 0, ())
    deal_any(hand)
    want = hand.want
    assert isinstance(want, Deal)
    assert (len(want.cards), want.burn, want.positions) == (1, 1, (1,))
    assert want.reshuffle == (51, 21, 29, 37)
    deal_any(hand)
    assert all(len(hand.cards(seat)) == 7 for seat in range(7))
    assert isinstance(hand.want, Act)


@pytest.mark.parametrize("short_deck", ["tda", "reshuffle_burns", "community"])
def test_no_position_is_dealt_twice_and_everyone_has_seven_cards(short_deck: str) -> None:
    rulebook = TRIOPOKER.with_house(short_deck=short_deck)
    for counts in HISTORIES:
        if counts[0] < 7:
            continue
        hand = to_seventh(counts, rulebook)
        while isinstance(hand.want, Deal):
            want = hand.want
            deck = len(want.reshuffle) or 52
            assert len(set(want.positions)) == len(want.cards)
            assert max(want.positions) < deck
            deal_any(hand, random.Random(7))
        shared = int(hand.community >= 0)
        for seat in set(hand.seats) - hand.folded:
            assert len(hand.cards(seat)) + shared == 7


@pytest.mark.parametrize(("counts", "opens"), [(True, 1), (False, 2)])
def test_a_community_card_counts_in_the_boards_where_the_house_says_so(
    counts: bool, opens: int
) -> None:
    """p1 shows an unpaired ace, p2 a pair of twos; an ace is turned up for all."""
    rulebook = NO_BURNS.with_house(community_card_opens=counts, fourth_street_pair=False)
    hand = table([1000] * 8, rulebook)
    rows = "AcTd9d8d 2c2d4h5s 3c4d5h6s 3d4s5d6h 3h4c6d7s 3s5c6c7d 8c7c9hKd JcQcKh8s"
    boards = [parse_cards(row) for row in rows.split()]
    gone = {card for board in boards for card in board} | set(parse_cards("As"))
    downs = [card for card in range(52) if card not in gone][:16]
    hand.deal(downs + [board[0] for board in boards])
    for street in (4, 5, 6, 7):
        while isinstance(hand.want, Act):
            pass_on(hand)
        hand.deal([board[street - 3] for board in boards] if street < 7 else parse_cards("As"))
    assert to_act(hand) == opens
