"""The key of each card; sums of keys tell the ranks of a hand apart and find its flush."""

from functools import cache
from itertools import product
from typing import Final

from services.game.ranking.classes import DEUCE

FACES: Final = (0, 1, 5, 22, 98, 453, 2031, 8698, 22854, 83661, 262349, 636345, 1479181)
"""The face of each rank, deuce first: each the smallest with which no two choices of seven ranks,
at most four of each, have the same sum. Then no two choices of five or six have either."""

SUIT_WEIGHTS: Final = (0, 1, 13, 18)
"""The weight of each suit, clubs first. A sum of seven weights that no flush can have proves that
there is none; of hands without a flush 3.4 % have a sum that one could have. Weights that tell
every flush exist, but these are the best whose sums of keys stay below 2^30, where Python's
integers are one digit and fast."""

FACES_AT: Final = 7
"""The bit of a key where the face begins; no sum of seven weights reaches it."""

WEIGHT_MASK: Final = (1 << FACES_AT) - 1
"""The bits of a sum of keys that hold the sum of weights."""

KEYS: Final = [(FACES[card >> 2] << FACES_AT) + SUIT_WEIGHTS[card & 3] for card in range(52)]
"""The key of each card."""

COUNTERS_AT: Final = 23
"""The bit of a longer key where suits are counted, each in four bits, above the face: for wild
cards and for batches. No sum of seven faces reaches it."""

FACE_MASK: Final = (1 << COUNTERS_AT) - 1
"""The bits of a sum of longer keys that hold the sum of faces."""

COUNTERS_OF_THREE: Final = 0x3333 << COUNTERS_AT
"""The counters begin at three, so that five cards of a suit set the highest bit of its four."""

FLUSH_BITS: Final = 0x8888 << COUNTERS_AT
"""Those highest bits."""

SUIT_MASK: Final = (1 << 13) - 1
"""The ranks of one suit in a sum of `held_bit`; 13 bits for each suit, clubs lowest."""

WILD_AT: Final = 4 * 13
"""The bit of a sum of `held_bit` where the number of wild cards begins."""


def counters(card: int, *, wild_deuces: bool = False) -> int:
    """What a card adds to the counters of suits; a wild card is of every suit."""
    if wild_deuces and card >> 2 == DEUCE:
        return 0x1111 << COUNTERS_AT
    return 1 << (COUNTERS_AT + 4 * (card & 3))


def held_bit(card: int, *, wild_deuces: bool = False) -> int:
    """A bit for each card that sums of them tell apart; wild cards are counted above."""
    if wild_deuces and card >> 2 == DEUCE:
        return 1 << WILD_AT
    return 1 << (13 * (card & 3) + (card >> 2))


@cache
def flush_suits(count: int) -> tuple[tuple[int, ...], ...]:
    """By sum of weights: the suits of which a hand with this sum may hold a flush.

    `count` is the number of cards, five to seven.
    """
    suits: list[set[int]] = [set() for _ in range(count * max(SUIT_WEIGHTS) + 1)]
    for held in product(range(count + 1), repeat=4):
        if sum(held) == count and max(held) >= 5:
            total = sum(number * weight for number, weight in zip(held, SUIT_WEIGHTS, strict=True))
            suits[total].add(held.index(max(held)))
    return tuple(tuple(sorted(each)) for each in suits)
