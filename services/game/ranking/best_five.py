"""The category of a hand and the five cards that make it, worked out when somebody asks.

Where several choices of five are equally good, that with the higher cards by suit is given; what a
house makes of equal choices when chips are odd is decided in `services.game.showdown`.
"""

from collections.abc import Callable, Sequence
from itertools import combinations

from services.game.ranking.classes import Category, category_of
from services.game.ranking.scalar import ace_to_five, deuces_wild, high, low8

Cards = tuple[int, ...]
"""Cards, ints 0..51."""


def best_high(cards: Sequence[int], *, wild_deuces: bool = False) -> tuple[Category, Cards]:
    """The category of the best high hand and its five cards, highest first (docs/rules.md, 2).

    Raises ValueError for other than five to seven cards.
    """
    rank = deuces_wild if wild_deuces else high
    return category_of(rank(cards)), equal_fives(cards, rank)[0]


def best_low(cards: Sequence[int], *, eight_or_better: bool = True) -> Cards | None:
    """The five cards of the best ace-to-five low, highest first with the ace last.

    None when `eight_or_better` and there is no low of five different ranks up to the eight
    (docs/rules.md, 2). Raises ValueError for other than five to seven cards.
    """
    if eight_or_better and low8(cards) is None:
        return None
    fives = equal_fives(cards, ace_to_five)
    return max((sorted_low(five) for five in fives), key=lambda five: [low_order(c) for c in five])


def equal_fives(cards: Sequence[int], rank: Callable[[Sequence[int]], int]) -> list[Cards]:
    """Every choice of five cards that is worth as much as the whole hand, each highest first.

    The choices come highest cards first as well.
    """
    whole = rank(cards)
    ordered = sorted(cards, reverse=True)
    return [five for five in combinations(ordered, 5) if rank(five) == whole]


def low_order(card: int) -> int:
    """A card's place from low to high with the ace lowest, then by suit: 0 for the ace of clubs."""
    return (card + 4) % 52


def sorted_low(cards: Sequence[int]) -> Cards:
    """Cards from the top of a low down: highest rank first, the ace last, higher suit first."""
    return tuple(sorted(cards, key=low_order, reverse=True))
