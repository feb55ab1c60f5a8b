"""Many hands at once get the numbers that they get one by one."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from services.game import ranking
from services.game.ranking import batch

SEED = 20240614


def hands(count: int, how_many: int = 3_000) -> batch.Hands:
    draw = random.Random(f"{SEED} {count}")
    return np.array([draw.sample(range(52), count) for _ in range(how_many)], np.uint8)


@pytest.mark.parametrize("count", [5, 6, 7])
@pytest.mark.parametrize(
    ("many", "one"),
    [
        (batch.high, ranking.high),
        (batch.low8, ranking.low8),
        (batch.ace_to_five, ranking.ace_to_five),
        (batch.deuces_wild, ranking.deuces_wild),
    ],
)
def test_a_batch_gives_the_numbers_of_its_hands(
    many: Callable[[batch.Hands], Any], one: Callable[[list[int]], int | None], count: int
) -> None:
    rows = hands(count)
    assert many(rows).tolist() == [one(row) or 0 for row in rows.tolist()]


@pytest.mark.parametrize("rank", [batch.high, batch.ace_to_five])
def test_hands_of_one_suit_and_of_few_ranks_are_ranked_as_well(
    rank: Callable[[batch.Hands], Any],
) -> None:
    draw = random.Random(SEED)
    suited = [draw.sample(range(suit, 52, 4), 7) for suit in range(4) for _ in range(50)]
    crowded = [draw.sample(range(8 * low, 8 * low + 8), 7) for low in range(6) for _ in range(30)]
    rows = suited + crowded
    one = ranking.high if rank is batch.high else ranking.ace_to_five
    assert rank(np.array(rows, np.uint8)).tolist() == [one(row) for row in rows]


def test_a_batch_larger_than_a_chunk_is_ranked_whole() -> None:
    rows = np.tile(hands(7, 700), (100, 1))
    assert len(rows) > batch.CHUNK_ROWS
    assert np.array_equal(batch.high(rows), np.tile(batch.high(rows[:700]), 100))


def test_hands_may_lie_anywhere_in_memory() -> None:
    rows = hands(7, 500)
    assert np.array_equal(batch.low8(rows[::-3]), batch.low8(rows)[::-3])
    assert np.array_equal(batch.high(np.asfortranarray(rows)), batch.high(rows))


def test_no_hands_are_no_classes() -> None:
    for rank in (batch.high, batch.low8, batch.ace_to_five, batch.deuces_wild):
        assert rank(np.empty((0, 7), np.uint8)).shape == (0,)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((3, 4), np.uint8),
        np.zeros((3, 8), np.uint8),
        np.zeros(7, np.uint8),
        np.zeros((3, 7), np.int64),
        np.full((3, 7), 52, np.uint8),
    ],
)
def test_what_are_no_hands_is_refused(rows: Any) -> None:
    for rank in (batch.high, batch.low8, batch.ace_to_five, batch.deuces_wild):
        with pytest.raises(ValueError, match=r"hands must be|not one of"):
            rank(rows)
