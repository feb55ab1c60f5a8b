"""Hands in words: "a full house, kings over nines", "an eight-six-four-three-ace low"."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from services.game.ranking import ace_to_five, deuces_wild, high, low8
from services.game.ranking.classes import ACE, Category, Ranks, high_classes, low_fives
from services.game.rulebook import Game

HAND: Final = 5
"""Cards that make a hand."""
_WORDS: Final = (
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "jack",
    "queen",
    "king",
    "ace",
)


def high_name(cards: Sequence[int], *, wild_deuces: bool = False) -> str:
    """The best high hand of five to seven cards: "two pair, kings and nines, ace"."""
    return name_of_high(deuces_wild(cards) if wild_deuces else high(cards))


def low_name(cards: Sequence[int]) -> str:
    """The best ace-to-five low of five to seven cards: "a seven-five-four-two-ace low".

    Also for razz, where a low may hold pairs: "a pair of sevens, king jack two".
    """
    return name_of_low(ace_to_five(cards))


def low8_name(cards: Sequence[int]) -> str | None:
    """The best eight-or-better low; None when there is none."""
    return None if low8(cards) is None else low_name(cards)


def strength(cards: Sequence[int], game: Game, *, wild_deuces: bool = False) -> str:
    """What three to seven cards make as they stand: "a pair of kings, ace", "an eight-five-ace low
    so far"; in hi-lo the high hand, and the low where there is one. Empty for no cards.
    """
    if not cards:
        return ""
    if len(cards) < HAND:
        ranks = tuple(sorted(card >> 2 for card in cards))
        return _few_low(ranks) if game is Game.RAZZ else _few_high(ranks, wild_deuces)
    if game is Game.RAZZ:
        return low_name(cards)
    words = high_name(cards, wild_deuces=wild_deuces)
    low = low8_name(cards) if game is Game.HI_LO else None
    return f"{words}, and {low}" if low else words


@cache
def _few_high(ranks: Ranks, wild_deuces: bool) -> str:
    """What up to four cards make."""
    fixed = [rank for rank in ranks if not (wild_deuces and rank == 0)]
    best = max(fixed, key=lambda rank: (fixed.count(rank), rank), default=ACE)
    ranks = (*fixed, *[best] * (len(ranks) - len(fixed)))
    order = _by_group(ranks, ranks)
    if len(order) == len(ranks):
        return f"{_WORDS[order[0]]} high{', ' if order[1:] else ''}{_row(order[1:])}"
    return _few_equal(ranks, order)


@cache
def _few_low(ranks: Ranks) -> str:
    """What up to four cards make, the ace low."""
    low_first = [(rank + 1) % 13 for rank in ranks]
    order = _by_group(ranks, low_first)
    if len(order) < len(ranks):
        return _few_equal(ranks, order)
    words = "-".join(_WORDS[rank] for rank in order)
    return f"{_article(words)} {words} low so far"


def _few_equal(ranks: Ranks, order: Sequence[int]) -> str:
    pattern = sorted((ranks.count(rank) for rank in order), reverse=True)
    return _grouped_name(_PATTERNS[(*pattern, *[1] * (HAND - len(ranks)))], order)


@cache
def name_of_high(number: int) -> str:
    """The name of a class that `ranking.high` or `ranking.deuces_wild` answered."""
    category, ranks = high_classes()[number - 1]
    if category in (Category.STRAIGHT, Category.STRAIGHT_FLUSH):
        # The ace of a wheel is its lowest card.
        top = ranks[3] if ranks[:2] == (0, 1) and ranks[4] == ACE else ranks[4]
        if category is Category.STRAIGHT:
            return f"a straight, {_WORDS[top]} high"
        return "a royal flush" if top == ACE else f"a straight flush, {_WORDS[top]} high"
    if category is Category.FLUSH:
        return f"a flush, {_row(ranks[::-1])}"
    if category is Category.HIGH_CARD:
        return f"{_WORDS[ranks[4]]} high, {_row(ranks[3::-1])}"
    return _grouped_name(category, _by_group(ranks, ranks))


@cache
def name_of_low(number: int) -> str:
    """The name of a class that `ranking.ace_to_five` answered."""
    ranks = _ranks_of_lows()[number]
    low_first = [(rank + 1) % 13 for rank in ranks]
    order = _by_group(ranks, low_first)
    if len(order) == 5:
        words = "-".join(_WORDS[rank] for rank in order)
        return f"{_article(words)} {words} low"
    pattern = tuple(sorted((ranks.count(rank) for rank in order), reverse=True))
    return _grouped_name(_PATTERNS[pattern], order)


_PATTERNS: Final = {
    (2, 1, 1, 1): Category.PAIR,
    (2, 2, 1): Category.TWO_PAIR,
    (3, 1, 1): Category.THREE_OF_A_KIND,
    (3, 2): Category.FULL_HOUSE,
    (4, 1): Category.FOUR_OF_A_KIND,
}


def _grouped_name(category: Category, order: Sequence[int]) -> str:
    """The name of a hand with equal ranks; `order` has each rank once, the deciding one first, and
    no kickers where it has too few cards for them.
    """
    first = _plural(order[0])
    named = 2 if category in (Category.TWO_PAIR, Category.FULL_HOUSE) else 1
    kickers = f", {_row(order[named:])}" if order[named:] else ""
    match category:
        case Category.PAIR:
            return f"a pair of {first}{kickers}"
        case Category.TWO_PAIR:
            return f"two pair, {first} and {_plural(order[1])}{kickers}"
        case Category.THREE_OF_A_KIND:
            return f"three of a kind, {first}{kickers}"
        case Category.FULL_HOUSE:
            return f"a full house, {first} over {_plural(order[1])}"
        case Category.FOUR_OF_A_KIND:
            return f"four of a kind, {first}{kickers}"
        case _:
            return f"five of a kind, {first}"


def _by_group(ranks: Ranks, places: Sequence[int]) -> list[int]:
    """Each rank once, larger groups first, then the higher place."""
    place = dict(zip(ranks, places, strict=True))
    return sorted(place, key=lambda rank: (ranks.count(rank), place[rank]), reverse=True)


@cache
def _ranks_of_lows() -> dict[int, Ranks]:
    return {number: ranks for ranks, number in low_fives().items()}


def _article(words: str) -> str:
    return "an" if words.startswith(("eight", "ace")) else "a"


def _row(ranks: Sequence[int]) -> str:
    return " ".join(_WORDS[rank] for rank in ranks)


def _plural(rank: int) -> str:
    return f"{_WORDS[rank]}{'es' if _WORDS[rank] == 'six' else 's'}"
