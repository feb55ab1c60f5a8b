"""The open pair on fourth street, at 5/10 (docs/rules.md, 3)."""

from typing import Any

import pytest

from services.game.hand import ActionKind, Hand, Refused
from tests.unit.game.play import act, legal, third_street, to_act, up


def fourth_street(stacks: list[int], cards: str = "Kd 4d 8s Ts", **settings: Any) -> Hand:
    """Everybody called a bring-in of 1; p1 shows kings and opens."""
    doors = ["Ks", "3d", "7h", "9c"][: len(stacks)]
    settings = {"fourth_street_pair": True, "bring_in": 1, "small": 5, **settings}
    hand = third_street(stacks, " ".join(doors), keep=cards, **settings)
    act(hand, "p2 pb", *(f"p{i} cc" for i in (3, 4, 1) if i <= len(stacks)))
    up(hand, " ".join(cards.split()[: len(stacks)]))
    return hand


def test_everybody_may_bet_small_or_big_until_somebody_bets_big() -> None:
    hand = fourth_street([200] * 4)
    assert legal(hand).wagers == (5, 10)
    act(hand, "p1 cbr 5")
    assert legal(hand).wagers == (10, 15)
    act(hand, "p2 cbr 10")
    assert legal(hand).wagers == (15, 20)
    act(hand, "p3 cbr 20")
    assert legal(hand).wagers == (30,)
    act(hand, "p4 cbr 30")
    assert legal(hand).closed == "CAP_REACHED"


@pytest.mark.parametrize(
    ("before", "short", "wagers"),
    [
        ("", 2, (5, 10)),
        ("", 3, (8, 13)),
        ("", 7, (17,)),
        ("5", 12, (22,)),
        ("10", 14, (20,)),
        ("10", 15, (25,)),
        ("5", 7, (10, 15)),
        ("5", 8, (13, 18)),
        ("5", 10, (15, 20)),
    ],
)
def test_a_short_all_in_is_judged_by_the_size_it_reaches(
    before: str, short: int, wagers: tuple[int, ...]
) -> None:
    hand = fourth_street([200, short + 2, 200, 200])
    act(hand, f"p1 cbr {before}" if before else "p1 cc")
    assert short in legal(hand).wagers
    act(hand, f"p2 cbr {short}")
    assert legal(hand).wagers == wagers


def test_a_stack_between_the_sizes_may_bet_small_or_all_in() -> None:
    hand = fourth_street([9, 200, 200])
    assert legal(hand).wagers == (5, 7)


def test_before_a_big_wager_half_of_the_small_bet_reopens() -> None:
    hand = fourth_street([200, 10, 200])
    act(hand, "p1 cbr 5", "p2 cbr 8", "p3 cc")
    assert legal(hand).wagers == (13, 18)
    hand = fourth_street([200, 9, 200])
    act(hand, "p1 cbr 5", "p2 cbr 7", "p3 cc")
    assert legal(hand).closed == "NOT_REOPENED"


def test_after_a_big_wager_half_of_the_big_bet_reopens() -> None:
    hand = fourth_street([200, 16, 200])
    act(hand, "p1 cbr 10", "p2 cbr 14", "p3 cc")
    assert legal(hand).closed == "NOT_REOPENED"


def test_the_pair_of_an_all_in_player_counts() -> None:
    hand = fourth_street([2, 200, 200])
    assert hand.all_in == {0}
    assert (to_act(hand), legal(hand).wagers) == (2, (5, 10))


def test_it_stays_when_the_pair_folds() -> None:
    hand = fourth_street([200] * 4)
    act(hand, "p1 f")
    assert legal(hand).wagers == (5, 10)


def test_a_pair_that_folded_before_does_not_count() -> None:
    hand = third_street(
        [200] * 3, "Ks 3d 7h", keep="3c 8s", fourth_street_pair=True, bring_in=1, small=5
    )
    act(hand, "p2 pb", "p3 cc", "p1 f")
    up(hand, "4c 8s")
    assert legal(hand).wagers == (5,)


@pytest.mark.parametrize(
    ("cards", "settings"),
    [
        ("Qd 4d 8s Ts", {}),
        ("Kd 4d 8s Ts", {"fourth_street_pair": False}),
        ("Kd 4d 8s Ts", {"fourth_street_pair": False, "game": "hi_lo"}),
    ],
)
def test_without_the_pair_or_the_rule_there_is_one_size(
    cards: str, settings: dict[str, Any]
) -> None:
    hand = fourth_street([200] * 4, cards, **settings)
    assert legal(hand).wagers == (5,)
    with pytest.raises(Refused) as refused:
        hand.act(0, ActionKind.BET, 10)
    assert refused.value.reason == "AMOUNT_NOT_OFFERED"


def test_a_pair_on_fifth_street_changes_nothing() -> None:
    hand = fourth_street([200] * 3, "Qd 4d 8s")
    act(hand, "p1 cc", "p2 cc", "p3 cc")
    up(hand, "Qh 4h 8h")
    assert legal(hand).wagers == (10,)
