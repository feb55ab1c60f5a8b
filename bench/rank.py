"""Ranking hands against eval7, phevaluator and PokerKit: one by one, and in batches.

The peers rank the same random hands, each given its own kind of cards beforehand. A batch is ranked
from an array of cards; the time to fill it is not in the figure, as that of making the peers' cards
is not in theirs.
"""

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any, Final

import eval7
import numpy as np
import phevaluator
import pokerkit
from numpy.typing import NDArray

from bench.row import Row, at_least, at_most, beside, interleaved_rates
from services.game.cards import card_name, card_names, parse_cards
from services.game.ranking import ace_to_five, batch, deuces_wild, high, kernel, low8
from services.game.rulebook import Game
from services.showdown.equity import Estimation, Spot

SEED: Final = 20240618
ROUNDS: Final = 15
ONE_BY_ONE: Final = 20_000
"""Different hands of a round."""
SLOWER: Final = 4_000
"""Different hands of a round for peers that are slower."""
SLOWEST: Final = 100
BATCH: Final = 400_000
BATCH_TIMES: Final = 15
LOW_BATCH_TIMES: Final = 40
SCALAR_TIMES: Final = 1.2
FIRST_CALLS: Final = 5

Hands = Sequence[Sequence[int]]


def rows() -> Iterator[Row]:
    """The figures of ranking."""
    hands = random_hands(ONE_BY_ONE)
    in_eval7 = _round(eval7.evaluate, [[eval7.Card(card_name(c)) for c in h] for h in hands])
    yield from _one_by_one(hands, in_eval7)
    yield from _in_batches(in_eval7)
    yield _deals(in_eval7)
    yield _first_call()


def random_hands(count: int) -> list[tuple[int, ...]]:
    """Hands of seven cards."""
    dice = random.Random(SEED)
    return [tuple(dice.sample(range(52), 7)) for _ in range(count)]


def _one_by_one(hands: Hands, in_eval7: Callable[[], int]) -> Iterator[Row]:
    scalar = partial(_round, high)
    yield _times("rank_high_one", scalar(hands), in_eval7, SCALAR_TIMES)
    for name, rank in (("low8", low8), ("razz", ace_to_five), ("deuces_wild", deuces_wild)):
        yield _beside(f"rank_{name}_one", _round(rank, hands), in_eval7)
    few, fewest = hands[:SLOWER], hands[:SLOWEST]
    in_phevaluator = _round(lambda cards: phevaluator.evaluate_cards(*cards), few)
    yield _beside("rank_high_one_phevaluator", scalar(few), in_phevaluator)
    in_pokerkit = _round(
        pokerkit.StandardHighHand.from_game,
        [[*pokerkit.Card.parse(card_names([*hand]))] for hand in fewest],
    )
    yield _beside("rank_high_one_pokerkit", scalar(hands), in_pokerkit)


def _in_batches(in_eval7: Callable[[], int]) -> Iterator[Row]:
    cards = np.array(random_hands(ONE_BY_ONE), np.uint8)
    dice = np.random.default_rng(SEED)
    # More hands than were drawn one by one: the same ones with their suits and places exchanged.
    many = cards[dice.integers(0, len(cards), BATCH)]
    many = dice.permuted(many // 4 * 4 + (many + dice.integers(0, 4, (BATCH, 1))) % 4, axis=1)
    many = np.ascontiguousarray(many.astype(np.uint8))

    def ranked(rank: Callable[[batch.Hands], NDArray[Any]]) -> Callable[[], int]:
        return lambda: len(rank(many))

    # With the compiled kernel it is another figure.
    suffix = "_kernel" if kernel.installed() else ""
    yield _times(f"rank_high_batch{suffix}", ranked(batch.high), in_eval7, BATCH_TIMES)
    yield _times(f"rank_low8_batch{suffix}", ranked(batch.low8), in_eval7, LOW_BATCH_TIMES)
    yield _times(f"rank_razz_batch{suffix}", ranked(batch.ace_to_five), in_eval7, LOW_BATCH_TIMES)
    yield _beside(f"rank_deuces_wild_batch{suffix}", ranked(batch.deuces_wild), in_eval7)


def _deals(in_eval7: Callable[[], int]) -> Row:
    """Hands compared in an enumeration of heads-up deals, beside hands that eval7 ranks."""
    spot = Spot(Game.HIGH, (parse_cards("AsAhKd2c3c"), parse_cards("7c8c9cTd2h")))

    def enumerated() -> int:
        estimation = Estimation(spot, exact_deals_max=spot.deals, standard_error_max=0.1, seed=SEED)
        while part := estimation.next_part():
            estimation.add(part())
        return estimation.deals * len(spot.hands)

    return _beside("rank_equity_exact", enumerated, in_eval7)


def _first_call() -> Row:
    """Milliseconds of a process's first ranking with the table in a file, against making it."""
    with tempfile.TemporaryDirectory() as folder:
        _first_call_ms(folder)
        took = [(_first_call_ms(folder), _first_call_ms("")) for _ in range(FIRST_CALLS)]
    mapped, made = (median(each) for each in zip(*took, strict=True))
    ratio = median(one / other for one, other in took)
    return at_most("rank_first_call", mapped, "ms", made, ratio, 1.0)


_FIRST_CALL: Final = """
import pathlib, sys, time
from services.game.ranking import high
from services.showdown.table_files import share_tables
began_s = time.perf_counter()
if sys.argv[1]:
    share_tables(pathlib.Path(sys.argv[1]), ["high"])
high((0, 5, 10, 15, 20, 25, 30))
print((time.perf_counter() - began_s) * 1000)
"""


def _first_call_ms(folder: str) -> float:
    command = [sys.executable, "-c", _FIRST_CALL, folder]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _round(rank: Callable[[Any], Any], hands: Sequence[Any]) -> Callable[[], int]:
    def ranked() -> int:
        for hand in hands:
            rank(hand)
        return len(hands)

    return ranked


def _times(name: str, ours: Callable[[], int], theirs: Callable[[], int], times: float) -> Row:
    rate, floor, ratio = interleaved_rates(ours, theirs, ROUNDS)
    return at_least(name, rate, "hands/s", floor, ratio, times)


def _beside(name: str, ours: Callable[[], int], theirs: Callable[[], int]) -> Row:
    rate, floor, _ = interleaved_rates(ours, theirs, ROUNDS)
    return beside(name, rate, "hands/s", floor)
