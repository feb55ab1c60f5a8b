"""The key of each card; sums of keys tell the ranks of a hand apart and find its flush."""

from functools import cache
from itertools import product
from typing import Final

FACES: Final = (0, 1, 5, 22, 98, 453, 2031, 8698, 22854, 83661, 262349, 636345, 1479181)
"""The face of each rank, deuce first: each the smallest with which no two choices of seven ranks,
at most four of each, have the same sum. Then no two choices of five or six have either."""

FLUSH_AT: Final = 23
"""The bit where the sum of suit weights begins; no sum of seven faces reaches it."""

FACE_MASK: Final = (1 << FLUSH_AT) - 1
"""The bits of a sum of keys that hold the sum of faces."""

SUIT_WEIGHTS: Final = (-16, -15, 9, 16)
"""The weight of each suit, clubs first. Sums of five to seven weights tell every flush. Being on
both sides of zero keeps sums of keys below 2^30, where Python's integers are one digit and fast."""

KEYS: Final = [FACES[card >> 2] + (SUIT_WEIGHTS[card & 3] << FLUSH_AT) for card in range(52)]
"""The key of each card."""


@cache
def flush_suits(count: int) -> list[int]:
    """By `sum of keys >> FLUSH_AT` (negative sums from the end): 0, or 1 + the suit of the flush.

    `count` is the number of cards, five to seven. Raises ValueError when a sum is ambiguous, which
    the weights above exclude.
    """
    suits = [-1] * 256
    for held in product(range(count + 1), repeat=4):
        if sum(held) != count:
            continue
        total = sum(number * weight for number, weight in zip(held, SUIT_WEIGHTS, strict=True))
        suit = next((suit + 1 for suit in range(4) if held[suit] >= 5), 0)
        if suits[total] not in (-1, suit):
            raise ValueError(f"suit weights add up to {total} with and without a flush")
        suits[total] = suit
    return [max(suit, 0) for suit in suits]
