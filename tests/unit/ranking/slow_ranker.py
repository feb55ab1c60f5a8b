"""A slow second opinion on hands, written on its own from docs/rules.md, 2; knows no tables.

Strengths are tuples that compare as hands do, bigger is better, and are comparable only within one
of the orders.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, combinations_with_replacement, pairwise
from typing import Any

Strength = tuple[Any, ...]


def high_of_five(cards: Sequence[int]) -> Strength:
    """Five cards as a high hand; equal cards may occur, and then five of a kind is best of all."""
    ranks = Counter(card // 4 + 2 for card in cards)
    by_size = sorted(ranks, key=lambda rank: (-ranks[rank], -rank))
    sizes = sorted(ranks.values(), reverse=True)
    one_suit = len({card % 4 for card in cards}) == 1 and len(ranks) == 5
    run = ""
    if len(ranks) == 5:
        present = "".join("x" if rank in ranks else "." for rank in range(2, 15))
        run = ("x" if 14 in ranks else ".") + present
    straight_top = run.find("xxxxx") + 5 if "xxxxx" in run else 0
    if sizes == [5]:
        return (9, *by_size)
    if one_suit and straight_top:
        return (8, straight_top)
    if sizes == [4, 1]:
        return (7, *by_size)
    if sizes == [3, 2]:
        return (6, *by_size)
    if one_suit:
        return (5, *by_size)
    if straight_top:
        return (4, straight_top)
    return (
        {(3, 1, 1): 3, (2, 2, 1): 2, (2, 1, 1, 1): 1, (1, 1, 1, 1, 1): 0}[tuple(sizes)],
        *by_size,
    )


def razz_of_five(cards: Sequence[int]) -> Strength:
    """Five cards as an ace-to-five low: fewer and lower groups are better."""
    ranks = Counter(1 if card // 4 == 12 else card // 4 + 2 for card in cards)
    by_size = sorted(ranks, key=lambda rank: (-ranks[rank], -rank))
    sizes = sorted(ranks.values(), reverse=True)
    return ([-size for size in sizes], [-rank for rank in by_size])


def eight_or_better_of_five(cards: Sequence[int]) -> Strength | None:
    """Five cards as an eight-or-better low, None when they do not qualify."""
    ranks = sorted({1 if card // 4 == 12 else card // 4 + 2 for card in cards}, reverse=True)
    return tuple(-rank for rank in ranks) if len(ranks) == 5 and ranks[0] <= 8 else None


def wild_of_five(cards: Sequence[int]) -> Strength:
    """Five cards, each deuce tried as every card of the deck."""
    naturals = [card for card in cards if card >= 4]
    deuces = len(cards) - len(naturals)
    return max(
        high_of_five([*naturals, *stand_ins])
        for stand_ins in combinations_with_replacement(range(52), deuces)
    )


def best(cards: Sequence[int], of_five: Callable[[Sequence[int]], Strength | None]) -> Any:
    """The best strength over all choices of five cards; None when none counts."""
    strengths = [of_five(five) for five in combinations(cards, 5)]
    return max((each for each in strengths if each is not None), default=None)


def agree_on_order(pairs: Sequence[tuple[int, Strength]]) -> Iterator[str]:
    """Where numbers and strengths, pair by pair in ascending order, do not rise together."""
    ordered = sorted(pairs)
    for (number, strength), (next_number, next_strength) in pairwise(ordered):
        if (number == next_number) != (strength == next_strength) or strength > next_strength:
            yield f"{number} {strength} then {next_number} {next_strength}"
