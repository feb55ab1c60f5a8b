"""Whose rake it was: a hand's rake shared among its players, for reports (docs/rules.md, 7)."""

from collections.abc import Sequence
from typing import Final

THOUSANDTHS: Final = 1000
"""Of a minor unit: shares of small rakes are mostly fractions."""


def by_dealt(rake: int, players: int) -> tuple[int, ...]:
    """Everyone dealt in bears the same part; thousandths of a unit that add up to the rake."""
    return apportion(rake * THOUSANDTHS, (1,) * players)


def by_contributed(rake: int, contributed: Sequence[int]) -> tuple[int, ...]:
    """Each bears as much of it as he put into the pots, uncalled money left out; thousandths of a
    unit that add up to the rake.
    """
    return apportion(rake * THOUSANDTHS, contributed)


def apportion(whole: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Parts in the proportion of the weights that add up to `whole` exactly.

    What rounding down leaves goes to the largest remainders, one each, the earlier one first where
    they are equal. Where all weights are 0 they count as equal. Raises ValueError for negative
    amounts, and for something to share and nobody to bear it.
    """
    if whole < 0 or min(weights, default=0) < 0:
        raise ValueError("neither the whole nor a weight may be below zero")
    if not weights:
        if whole:
            raise ValueError("there is nobody to bear it")
        return ()
    if not any(weights):
        weights = (1,) * len(weights)
    total = sum(weights)
    parts = [whole * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(whole * weights[i] % total))
    for i in by_remainder[: whole - sum(parts)]:
        parts[i] += 1
    return tuple(parts)
