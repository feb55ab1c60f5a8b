"""While nobody is short, what a player may do is worked out once and looked up ever after: that is
what makes the game fast (services/game/steps.py).
"""

import pytest

from services.game.hand import Act, Deal, Hand
from services.game.wants import Legal
from tests.unit.game.play import act, deal_any, table, third_street, up

ROUND = ("p1 pb", "p2 cc", "p3 cbr 10", "p1 cbr 20", "p2 cc", "p3 cbr 30", "p1 cc", "p2 cc")
FULL_OPENING = ("p1 cbr 10", "p2 cbr 20", "p3 cbr 30", "p1 cc", "p2 cc")
PAIRED = ("p2 cbr 10", "p3 cbr 20", "p1 cbr 40", "p2 cc", "p3 cc")


def decisions(hand: Hand, *actions: str) -> list[Legal]:
    """What was offered before each action, and after the last."""
    found = []
    for action in actions:
        assert isinstance(hand.want, Act)
        found.append(hand.want.legal)
        act(hand, action)
    return found + ([hand.want.legal] if isinstance(hand.want, Act) else [])


def same_objects(first: list[Legal], second: list[Legal]) -> bool:
    return len(first) == len(second) and all(
        one is other for one, other in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("actions", [ROUND, FULL_OPENING], ids=["bring-in", "full"])
def test_a_round_of_deep_stacks_is_looked_up(actions: tuple[str, ...]) -> None:
    first = decisions(third_street([500] * 3, "2c Kh Qd"), *actions)
    assert same_objects(first, decisions(third_street([400, 800, 42], "2c Kh Qd"), *actions))


def test_two_players_look_up_too_also_when_others_have_folded() -> None:
    alone = decisions(third_street([500] * 2, "2c Kh"), "p1 pb", "p2 cbr 10", "p1 cbr 20", "p2 cc")
    again = decisions(third_street([500] * 2, "2c Kh"), "p1 pb", "p2 cbr 10", "p1 cbr 20", "p2 cc")
    assert same_objects(alone, again)
    folds = ("p1 pb", "p2 f", "p3 cbr 10", "p1 cbr 20", "p3 cbr 30", "p1 cc")
    first = decisions(third_street([500] * 3, "2c Kh Qd", cap_lifted="never"), *folds)
    assert same_objects(
        first, decisions(third_street([500] * 3, "2c Kh Qd", cap_lifted="never"), *folds)
    )


@pytest.mark.parametrize("short", [500, 72])
def test_both_sizes_of_an_open_pair_are_looked_up(short: int) -> None:
    def paired(stack: int) -> list[Legal]:
        hand = third_street([500, 500, stack], "2c Kh Qd", keep="3c Kd Th", fourth_street_pair=True)
        act(hand, "p1 cbr 10", "p2 cc", "p3 cc")
        up(hand, "3c Kd Th")
        return decisions(hand, *PAIRED)

    assert same_objects(paired(500), paired(short))


def test_later_streets_are_looked_up() -> None:
    def fifth() -> list[Legal]:
        hand = table([500, 500])
        while not (hand.street == 5 and isinstance(hand.want, Act)):
            if isinstance(hand.want, Deal):
                deal_any(hand)
            else:
                assert isinstance(hand.want, Act)
                offered, seat = hand.want.legal, hand.want.seat + 1
                act(hand, f"p{seat} pb" if offered.bring_in else f"p{seat} cc")
        return decisions(hand, f"p{hand.want.seat + 1} cbr 20")

    assert same_objects(fifth(), fifth())


def test_where_somebody_is_short_it_is_worked_out() -> None:
    first = decisions(third_street([500, 500, 35], "2c Kh Qd"), *ROUND[:6])
    second = decisions(third_street([500, 500, 35], "2c Kh Qd"), *ROUND[:6])
    assert same_objects(first[:-1], second[:-1])
    assert first[-1] is not second[-1]
    assert (first[-1].call, first[-1].wagers) == (second[-1].call, second[-1].wagers) == (10, (40,))
