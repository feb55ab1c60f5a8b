"""Tables that rank five, six or seven cards with one look-up, built from the five-card classes.

Every card has a key: the face of its rank in the low bits, a weight of its suit above. The sum of
the keys of a hand tells which ranks it holds, because the faces are chosen so that no two choices
of at most seven ranks have the same sum, and which suit, if any, makes a flush. The best five of
six are the best of the six choices that leave one card out, and so on for seven.

Importing this builds nothing.
"""

from collections.abc import Callable
from functools import cache
from itertools import chain, combinations_with_replacement
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.game.ranking import classes
from services.game.ranking.classes import RANKS, Ranks
from services.game.ranking.keys import FACES

Words = NDArray[np.uint16]

FIVES: Final[dict[str, Callable[[], dict[Ranks, int]]]] = {
    "high": classes.plain_high_fives,
    "ace_to_five": classes.low_fives,
    "deuces_wild": classes.wild_fives,
}
"""The class of each choice of five ranks, by the name of the order."""


@cache
def rank_sums(order: str, count: int) -> tuple[NDArray[np.int64], Words]:
    """The sum of faces of each choice of `count` ranks (5, 6 or 7), and the class of its best five.

    Flushes are left out. `order` is a key of `FIVES`.
    """
    ranks, sums = _choices(count)
    if count == 5:
        fives = FIVES[order]()
        return sums, np.array([fives[tuple(row)] for row in ranks.tolist()], np.uint16)
    smaller = dense(order, count - 1)
    best = smaller[sums - _FACES[ranks[:, 0]]]
    for column in range(1, count):
        np.maximum(best, smaller[sums - _FACES[ranks[:, column]]], out=best)
    return sums, best


def dense(order: str, count: int) -> Words:
    """The classes of `rank_sums`, indexed by the sum of faces; 0 where no hand has that sum.

    For seven cards 7,825,760 entries, 15.7 MB. Not kept here.
    """
    sums, best = rank_sums(order, count)
    table: Words = np.zeros(int(sums.max()) + 1, np.uint16)
    table[sums] = best
    return table


def _choices(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The choices of `count` ranks that one deck holds, ascending, and their sums of faces."""
    drawn = combinations_with_replacement(RANKS, count)
    ranks = np.fromiter(chain.from_iterable(drawn), np.int64).reshape(-1, count)
    for column in range(count - 4):
        ranks = ranks[ranks[:, column] != ranks[:, column + 4]]
    return ranks, _FACES[ranks].sum(axis=1)


_FACES = np.array(FACES)
