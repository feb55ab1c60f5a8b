"""The order of five-card hands, from first principles (docs/rules.md, 2).

A class is a set of hands that split a pot. Classes are numbered from 1, the worst, upwards, so that
bigger is better in every game; five equal cards, which only wild cards make, stand above the 7,462
classes of a plain deck. Everything else in this package comes from these lists.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, product
from typing import Final

ACE: Final = 12
"""The rank of an ace."""
DEUCE: Final = 0
"""The rank of a two."""
RANKS: Final = range(13)
"""Every rank, deuce first."""

Ranks = tuple[int, ...]
"""Five ranks, ascending."""


class Category(IntEnum):
    """The kinds of hand, worst first."""

    HIGH_CARD = 0
    PAIR = 1
    TWO_PAIR = 2
    THREE_OF_A_KIND = 3
    STRAIGHT = 4
    FLUSH = 5
    FULL_HOUSE = 6
    FOUR_OF_A_KIND = 7
    STRAIGHT_FLUSH = 8
    FIVE_OF_A_KIND = 9


_GROUPS: Final = {
    Category.HIGH_CARD: ((1, 5),),
    Category.PAIR: ((2, 1), (1, 3)),
    Category.TWO_PAIR: ((2, 2), (1, 1)),
    Category.THREE_OF_A_KIND: ((3, 1), (1, 2)),
    Category.FULL_HOUSE: ((3, 1), (2, 1)),
    Category.FOUR_OF_A_KIND: ((4, 1), (1, 1)),
    Category.FIVE_OF_A_KIND: ((5, 1),),
}
"""What a category groups: (cards of equal rank, number of such groups), the deciding ones first."""


@cache
def high_classes() -> tuple[tuple[Category, Ranks], ...]:
    """Every high class, worst first; the class at index i has the number i + 1."""
    return tuple((category, ranks) for category in Category for ranks in _in_category(category))


def plain_high_fives() -> dict[Ranks, int]:
    """The high class of the 6,175 choices of five ranks that are not of one suit."""
    return {
        ranks: number
        for number, (category, ranks) in enumerate(high_classes(), 1)
        if category not in (Category.FLUSH, Category.STRAIGHT_FLUSH, Category.FIVE_OF_A_KIND)
    }


def suited_fives() -> dict[Ranks, int]:
    """The high class of the 1,287 choices of five ranks of one suit."""
    return {
        ranks: number
        for number, (category, ranks) in enumerate(high_classes(), 1)
        if category in (Category.FLUSH, Category.STRAIGHT_FLUSH)
    }


@cache
def low_fives() -> dict[Ranks, int]:
    """The ace-to-five class of the 6,175 choices of five ranks; 6,175 for the wheel.

    Suits and straights do not count, the ace is lowest, and the lower pattern is the better hand
    (docs/rules.md, 2, razz).
    """
    patterns = [category for category in _GROUPS if category is not Category.FIVE_OF_A_KIND]
    best_first = chain.from_iterable(map(_with_pattern, patterns))
    return {
        tuple(sorted((low - 1) % 13 for low in ranks)): number
        for number, ranks in zip(range(6175, 0, -1), best_first, strict=True)
    }


@cache
def low8_masks() -> list[int]:
    """By mask of ranks from ace (bit 0) to eight (bit 7): the eight-or-better class, 1 to 56.

    0 where fewer than five bits are set; the five lowest play, the wheel is 56.
    """
    # The highest rank decides first, so lows compare as their masks do.
    masks = sorted(sum(1 << rank for rank in ranks) for ranks in combinations(range(8), 5))
    numbers = dict(zip(masks, range(len(masks), 0, -1), strict=True))
    return [
        max((number for low, number in numbers.items() if low & mask == low), default=0)
        for mask in range(256)
    ]


def wild_fives() -> dict[Ranks, int]:
    """The best class of five ranks, not of one suit, when each deuce is any card.

    A deuce may repeat a card that the hand holds already: five equal cards are a hand.
    """
    best = plain_high_fives()  # By what a hand holds beside its deuces; a two here is a stand-in.
    best.update(
        (ranks, number)
        for number, (category, ranks) in enumerate(high_classes(), 1)
        if category is Category.FIVE_OF_A_KIND
    )
    dealt = list(best)
    for naturals in range(4, -1, -1):
        for ranks in combinations_with_replacement(RANKS, naturals):
            best[ranks] = max(best[tuple(sorted((*ranks, rank)))] for rank in RANKS)
    return {
        ranks: best[tuple(rank for rank in ranks if rank != DEUCE)]
        for ranks in dealt
        if ranks[0] != ranks[4]
    }


@cache
def flush_classes(wild: int) -> list[int]:
    """By 13-bit mask of one suit's ranks: the best flush class with so many wild cards, 0 to 4.

    For up to seven cards; 0 where there are fewer than five. A wild card in a flush is a rank that
    the flush lacks (docs/rules.md, 2).
    """
    classes = [0] * (1 << 13)
    if wild:
        fewer = flush_classes(wild - 1)
        for mask in _masks(range(5 - wild, 8 - wild)):
            classes[mask] = max([fewer[mask | 1 << rank] for rank in RANKS])
    else:
        for ranks, number in suited_fives().items():
            classes[_mask(ranks)] = number
        _take_best_five(classes)
    return classes


@cache
def unpaired_lows() -> list[int]:
    """By 13-bit mask of the ranks in a hand: its ace-to-five class where they are five to seven.

    0 elsewhere: with fewer ranks it is the pairs that decide.
    """
    numbers = [0] * (1 << 13)
    for ranks, number in low_fives().items():
        if len(set(ranks)) == 5:
            numbers[_mask(ranks)] = number
    _take_best_five(numbers)
    return numbers


def category_of(number: int) -> Category:
    """The category of a high class. Raises ValueError for a number that is no class."""
    if not 1 <= number <= len(high_classes()):
        raise ValueError(f"{number} is not the number of a hand class")
    return high_classes()[number - 1][0]


def _take_best_five(classes: list[int]) -> None:
    """Fill in what six and seven ranks are worth from what fives are, by mask of ranks."""
    for mask in _masks((6, 7)):
        classes[mask] = max([classes[mask & ~(1 << rank)] for rank in RANKS if mask >> rank & 1])


def _masks(sizes: Iterable[int]) -> Iterator[int]:
    """The masks of so many ranks, fewer first."""
    for size in sizes:
        for ranks in combinations(RANKS, size):
            yield _mask(ranks)


def _mask(ranks: Iterable[int]) -> int:
    return sum([1 << rank for rank in ranks])


def _in_category(category: Category) -> Iterator[Ranks]:
    """The choices of five ranks in a category, worst first."""
    if category in (Category.STRAIGHT, Category.STRAIGHT_FLUSH):
        yield from _STRAIGHTS
    elif category in (Category.HIGH_CARD, Category.FLUSH):
        yield from (r for r in _with_pattern(Category.HIGH_CARD) if r not in _STRAIGHTS)
    else:
        yield from _with_pattern(category)


def _with_pattern(category: Category) -> Iterator[Ranks]:
    """The choices of five ranks that make just these groups, the lowest deciding ranks first."""
    groups = _GROUPS[category]
    choices = [sorted(combinations(reversed(RANKS), number)) for _, number in groups]
    for chosen in product(*choices):
        if len(set(chain(*chosen))) == sum(number for _, number in groups):
            cards = (ranks * size for ranks, (size, _) in zip(chosen, groups, strict=True))
            yield tuple(sorted(chain(*cards)))


_WHEEL: Final = (0, 1, 2, 3, ACE)
_STRAIGHTS: Final = (_WHEEL, *(tuple(range(low, low + 5)) for low in range(9)))
