"""The loops of `batch` in C, where the wheel of the folder `kernel` is installed; else there are
none, and numpy does it all.

The kernel gets its tables from the ranking, which uses it only after it has ranked `GATE` as numpy
does.
"""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from services.game.ranking.keys import COUNTERS_OF_THREE, FACE_MASK, FLUSH_BITS

Words = NDArray[np.uint16]
Rank = Callable[[NDArray[np.uint8]], Words]
"""From hands, (n, 5) to (n, 7), to their classes, (n,)."""

GATE: Final = np.array(
    [
        [(first + step * place) % 52 for place in range(7)]
        for step in range(52)
        if step % 13  # Fewer than seven cards lie so far apart.
        for first in range(52)
    ],
    np.uint8,
)
"""Hands of seven cards in even steps through the deck; without columns, of fewer."""


def by_sum(
    keys: NDArray[np.int64], held: NDArray[np.int64], classes: Words, flushes: Words
) -> Rank | None:
    """Ranks by sums of keys, and flushes by sums of held bits; None without a kernel.

    keys, held: by card. classes: by sum of faces. flushes: by wild cards and ranks.
    """
    kernel = installed()
    return None if kernel is None else _BySum(kernel, keys, held, classes, flushes)


def by_union(bits: Words, classes: Words) -> Rank | None:
    """Ranks by the union of the cards' bits; None without a kernel.

    bits: by card. classes: by union, as many as there may be.
    """
    kernel = installed()
    return None if kernel is None else _ByUnion(kernel, bits, classes)


def agrees(rank: Rank | None, with_numpy: Rank, count: int) -> Rank | None:
    """The kernel's way to rank hands of `count` cards if it gives numpy's classes, else None."""
    if rank is None:
        return None
    hands = np.ascontiguousarray(GATE[:, :count])
    return rank if np.array_equal(rank(hands), with_numpy(hands)) else None


class _BySum:
    def __init__(
        self,
        kernel: Any,
        keys: NDArray[np.int64],
        held: NDArray[np.int64],
        classes: Words,
        flushes: Words,
    ) -> None:
        self._rank = kernel.by_sum
        # Addresses hold only as long as these do.
        self._kept = [np.ascontiguousarray(each) for each in (keys, held, classes, flushes)]
        addresses = [each.ctypes.data for each in self._kept]
        self._tables = kernel.BySum(
            *addresses, len(classes), COUNTERS_OF_THREE, FACE_MASK, FLUSH_BITS
        )

    def __call__(self, hands: NDArray[np.uint8]) -> Words:
        return _found(self._rank, hands, self._tables)


class _ByUnion:
    def __init__(self, kernel: Any, bits: Words, classes: Words) -> None:
        self._rank = kernel.by_union
        self._bits = np.ascontiguousarray(bits)
        self._classes = np.ascontiguousarray(classes)

    def __call__(self, hands: NDArray[np.uint8]) -> Words:
        return _found(self._rank, hands, self._bits.ctypes.data, self._classes.ctypes.data)


def _found(rank: Callable[..., int], hands: NDArray[np.uint8], *tables: Any) -> Words:
    rows = np.ascontiguousarray(hands)
    found: Words = np.empty(len(rows), np.uint16)
    if rank(rows.ctypes.data, *rows.shape, *tables, found.ctypes.data):
        raise ValueError("a card is not one of 0..51")
    return found


@cache
def installed() -> Any:
    """The kernel, None where there is none."""
    try:
        return importlib.import_module("doorcard_kernel")
    except (ImportError, OSError):  # OSError: it was made for another platform.
        return None
