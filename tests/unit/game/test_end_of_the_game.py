"""Freeze-outs and games to an agreed time (docs/rules.md, 8)."""

import random
from itertools import pairwise

import pytest

from services.game.ending import Place, final_ranking, is_over, out_in_hand, payout
from services.game.hand import Hand, HandSetup
from services.game.rulebook import shipped
from tests.unit.game.play import run_out


def test_a_freeze_out_goes_on_until_one_has_all_the_chips() -> None:
    assert not is_over({"anna": 399, "ben": 1})
    assert is_over({"anna": 400, "ben": 0})


def test_a_timed_game_is_over_when_the_time_is_up_whatever_the_stacks_are() -> None:
    assert is_over({"anna": 150, "ben": 250}, time_is_up=True)


def test_a_timed_game_ends_early_when_one_has_all_the_chips() -> None:
    assert is_over({"anna": 0, "ben": 400}, time_is_up=False)


def test_at_the_agreed_time_the_most_chips_win() -> None:
    assert final_ranking({"anna": 150, "ben": 250, "carla": 200}) == (
        Place(1, ("ben",)),
        Place(2, ("carla",)),
        Place(3, ("anna",)),
    )


def test_equal_largest_stacks_share_the_first_place_and_the_next_is_third() -> None:
    assert final_ranking({"anna": 250, "ben": 250, "carla": 100}) == (
        Place(1, ("anna", "ben")),
        Place(3, ("carla",)),
    )


def test_of_two_out_in_one_hand_the_larger_stack_at_its_start_ranks_higher() -> None:
    before = {"anna": 100, "ben": 60, "carla": 240}
    assert out_in_hand(before, {"anna": 0, "ben": 0, "carla": 400}) == (("anna",), ("ben",))


def test_of_two_out_in_one_hand_equal_stacks_tie() -> None:
    before = {"anna": 60, "ben": 60, "carla": 280}
    gone = out_in_hand(before, {"anna": 0, "ben": 0, "carla": 400})
    assert gone == (("anna", "ben"),)
    assert final_ranking({"carla": 400}, [gone]) == (
        Place(1, ("carla",)),
        Place(2, ("anna", "ben")),
    )


def test_who_was_out_before_is_not_out_again() -> None:
    before = {"anna": 0, "ben": 60, "carla": 340}
    assert out_in_hand(before, {"anna": 0, "ben": 0, "carla": 400}) == (("ben",),)


def test_who_lasted_longer_ranks_higher_whatever_he_had() -> None:
    first = out_in_hand({"a": 300, "b": 20, "c": 480}, {"a": 0, "b": 20, "c": 780})
    second = out_in_hand({"b": 20, "c": 780}, {"b": 0, "c": 800})
    assert final_ranking({"c": 800}, [first, second]) == (
        Place(1, ("c",)),
        Place(2, ("b",)),
        Place(3, ("a",)),
    )


def test_hands_in_which_nobody_went_out_change_no_place() -> None:
    assert final_ranking({"a": 10, "b": 5}, [(), ()]) == (Place(1, ("a",)), Place(2, ("b",)))


@pytest.mark.parametrize("stacks", [{"a": 5, "b": -1}, {"a": 0, "b": 0}, {}])
def test_stacks_that_cannot_be_are_refused(stacks: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"below zero|nobody has a chip"):
        is_over(stacks)
    with pytest.raises(ValueError, match=r"below zero|nobody has a chip"):
        final_ranking(stacks)


def test_a_ranking_that_names_a_player_twice_or_not_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        final_ranking({"a": 5, "b": 5}, [(("a",),)])
    with pytest.raises(ValueError, match="twice"):
        final_ranking({"a": 5}, [(("b",),), (("b",),)])
    with pytest.raises(ValueError, match="missing"):
        final_ranking({"a": 5, "b": 0})
    with pytest.raises(ValueError, match="same players"):
        out_in_hand({"a": 5}, {"b": 5})


@pytest.mark.parametrize(
    ("pool", "percents", "ranking", "paid"),
    [
        # The winner takes all.
        (600, (100,), [Place(1, ("a",)), Place(2, ("b",))], {"a": 600, "b": 0}),
        # Equal largest stacks share; the odd unit goes to who comes first.
        (601, (100,), [Place(1, ("c", "a")), Place(3, ("b",))], {"c": 301, "a": 300, "b": 0}),
        # Two thirds share what the third gets.
        (
            1000,
            (50, 30, 20),
            [Place(1, ("a",)), Place(2, ("b",)), Place(3, ("c", "d"))],
            {"a": 500, "b": 300, "c": 100, "d": 100},
        ),
        # Two seconds share what second and third get.
        (
            1001,
            (50, 30, 20),
            [Place(1, ("a",)), Place(2, ("b", "c"))],
            {"a": 501, "b": 250, "c": 250},
        ),
        # What is left of the percents goes down the places, one unit each.
        (
            5,
            (34, 33, 33),
            [Place(1, ("a",)), Place(2, ("b",)), Place(3, ("c",))],
            {"a": 2, "b": 2, "c": 1},
        ),
        (1, (50, 50), [Place(1, ("a",)), Place(2, ("b",))], {"a": 1, "b": 0}),
        # A prize for a place that nobody has goes to the others, however much it is.
        (2**53 - 1, (60, 40), [Place(1, ("a",))], {"a": 2**53 - 1}),
    ],
)
def test_prizes_are_all_of_the_chips_and_go_by_places(
    pool: int, percents: tuple[int, ...], ranking: list[Place[str]], paid: dict[str, int]
) -> None:
    assert payout(pool, percents, ranking) == paid


@pytest.mark.parametrize("seed", range(50))
def test_whatever_the_prizes_every_unit_is_paid_and_a_better_place_never_gets_less(
    seed: int,
) -> None:
    rng = random.Random(seed)
    stacks = {number: rng.choice((0, 7, 20, 20, rng.randrange(1, 10**9))) for number in range(8)}
    stacks[0] = stacks[0] or 1
    broke = [number for number, stack in stacks.items() if not stack]
    places = final_ranking(stacks, [(tuple(broke),)] if broke else [])
    cuts = sorted(rng.choices(range(101), k=rng.randrange(8)))
    edges = [0, *cuts, 100]
    percents = sorted((b - a for a, b in pairwise(edges)), reverse=True)
    paid = payout(sum(stacks.values()), percents, places)
    assert sum(paid.values()) == sum(stacks.values())
    by_place = [paid[player] for place in places for player in place.players]
    assert min(by_place) >= 0
    assert all(better + 1 >= worse for better, worse in pairwise(by_place))
    for place in places:
        amounts = [paid[player] for player in place.players]
        assert max(amounts) - min(amounts) <= 1


@pytest.mark.parametrize("percents", [(), (50, 40), (110, -10)])
def test_prizes_that_are_not_the_whole_are_refused(percents: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"100 percent|empty"):
        payout(100, percents, [Place(1, ("a",))])


@pytest.mark.parametrize("seed", range(5))
def test_a_freeze_out_played_to_its_end_ranks_everybody_once(seed: int) -> None:
    rng = random.Random(seed)
    rulebook = shipped("club")
    stacks = dict.fromkeys(range(5), 60)
    out = []
    for _ in range(2_000):
        if is_over(stacks):
            break
        seats = tuple(seat for seat, stack in stacks.items() if stack)
        setup = HandSetup(
            rulebook, rulebook.stakes[0], seats, tuple(stacks[s] for s in seats), rng.choice(seats)
        )
        hand = Hand(setup)
        hand.start()
        run_out(hand, rng.choice, rng)
        after = {**stacks, **hand.stacks}
        out.append(out_in_hand(stacks, after))
        stacks = after
    assert is_over(stacks)
    places = final_ranking(stacks, out)
    assert {player for place in places for player in place.players} == set(range(5))
    assert sum(len(place.players) for place in places) == 5
    assert places[0].players == tuple(seat for seat, stack in stacks.items() if stack)
