"""One hand at a time, in plain Python: five to seven cards in, the number of its class out.

Cards are distinct ints 0..51 (rank * 4 + suit) in any order. A wrong number of cards or a card
above 51 raises ValueError; that cards are distinct and not negative is the caller's to know. The
first call of a function gets its tables ready, so that importing costs nothing.

Seven cards are looked up as three pairs and one: that halves the additions, which are what Python
is slow at.
"""
# ruff: noqa: PLW0603 (a table behind one global name is the fastest that Python can look up)

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeVar

from services.game.ranking import sevens
from services.game.ranking.classes import (
    flush_classes,
    low8_masks,
    unpaired_lows,
)
from services.game.ranking.keys import (
    COUNTERS_OF_THREE,
    FACE_MASK,
    FACES,
    FACES_AT,
    FLUSH_BITS,
    KEYS,
    SUIT_MASK,
    WEIGHT_MASK,
    WILD_AT,
    counters,
    flush_suits,
    held_bit,
)

Pairs = list[list[int]]
"""What two cards add, by the first and the second."""

# All of these are empty until the first call of the function that uses them, so that its look-up
# fails.
_key_pairs: Pairs = []
_flush_suits: list[tuple[list[int], ...]] = []
_flushes: list[int] = []
_high: "Sequence[int]" = ()


def high(cards: Sequence[int]) -> int:
    """The class of the best high hand: 1 to 7,462, bigger is better (docs/rules.md, 2)."""
    try:
        a, b, c, d, e, f, g = cards
        pairs = _key_pairs
        key = pairs[a][b] + pairs[c][d] + pairs[e][f] + KEYS[g]
        if suits := _flush_suits[key & WEIGHT_MASK]:
            for bits in suits:
                if flush := _flushes[
                    bits[a] | bits[b] | bits[c] | bits[d] | bits[e] | bits[f] | bits[g]
                ]:
                    return flush
        return _high[key >> FACES_AT]
    except (ValueError, IndexError):
        return _otherwise(cards, high, _load_high, _high_of_few)


_low8_pairs: Pairs = []
_lows: list[int] = []


def low8(cards: Sequence[int]) -> int | None:
    """The class of the best eight-or-better low: 1 to 56, bigger is better; None without one.

    Five different ranks, eight or lower, ace low (docs/rules.md, 2). The wheel is 56.
    """
    try:
        a, b, c, d, e, f, g = cards
        pairs = _low8_pairs
        return _lows[pairs[a][b] | pairs[c][d] | pairs[e][f] | _LOW8_BITS[g]] or None
    except (ValueError, IndexError):
        return _otherwise(cards, low8, _load_low8, _low8_of_few)


_rank_pairs: Pairs = []
_unpaired: list[int] = []
_razz: "Sequence[int]" = ()


def ace_to_five(cards: Sequence[int]) -> int:
    """The class of the best razz hand: 1 to 6,175, the wheel; bigger wins (docs/rules.md, 2)."""
    try:
        a, b, c, d, e, f, g = cards
        pairs = _rank_pairs
        if unpaired := _unpaired[pairs[a][b] | pairs[c][d] | pairs[e][f] | _RANK_BITS[g]]:
            return unpaired
        pairs = _key_pairs
        return _razz[pairs[a][b] + pairs[c][d] + pairs[e][f] + KEYS[g] >> FACES_AT]
    except (ValueError, IndexError):
        return _otherwise(cards, ace_to_five, _load_razz, _razz_of_few)


_wild_pairs: Pairs = []
_held_pairs: Pairs = []
_wild_keys: list[int] = []
_wild: "Sequence[int]" = ()


def deuces_wild(cards: Sequence[int]) -> int:
    """The class of the best high hand with wild deuces: as `high`, five of a kind above 7,462."""
    try:
        a, b, c, d, e, f, g = cards
        pairs = _wild_pairs
        key = pairs[a][b] + pairs[c][d] + pairs[e][f] + _wild_keys[g]
        best = _wild[key & FACE_MASK]
        if key & FLUSH_BITS:
            pairs = _held_pairs
            flush = _wild_flush(pairs[a][b] + pairs[c][d] + pairs[e][f] + _WILD_HELD[g])
            return max(flush, best)
        return best
    except (ValueError, IndexError):
        return _otherwise(cards, deuces_wild, _load_wild, _wild_of_few)


Number = TypeVar("Number", bound=int | None)


def _otherwise(
    cards: Sequence[int],
    rank: Callable[[Sequence[int]], Number],
    load: Callable[[], None],
    of_few: Callable[[Sequence[int]], Number],
) -> Number:
    """Five or six cards, seven before the tables are there, and what is no hand at all."""
    if not 5 <= len(cards) <= 7:
        raise ValueError(f"{len(cards)} cards: a hand is ranked from five, six or seven")
    if not 0 <= min(cards) <= max(cards) <= 51:
        raise ValueError("a card is not one of 0..51")
    if len(cards) < 7:
        return of_few(cards)
    if len(set(cards)) < 7:
        raise ValueError("the cards are not distinct")
    load()
    return rank(cards)


def _high_of_few(cards: Sequence[int]) -> int:
    key = sum([KEYS[card] for card in cards])
    for suit in flush_suits(len(cards))[key & WEIGHT_MASK]:
        if flush := flush_classes(0)[_ranks_of_suit(cards, suit)]:
            return flush
    return _by_sum("high", len(cards))[key >> FACES_AT]


def _low8_of_few(cards: Sequence[int]) -> int | None:
    mask = 0
    for card in cards:
        mask |= _LOW8_BITS[card]
    return low8_masks()[mask] or None


def _razz_of_few(cards: Sequence[int]) -> int:
    return _by_sum("ace_to_five", len(cards))[sum([FACES[card >> 2] for card in cards])]


def _wild_of_few(cards: Sequence[int]) -> int:
    best = _by_sum("deuces_wild", len(cards))[sum([FACES[card >> 2] for card in cards])]
    return max(best, _wild_flush(sum([_WILD_HELD[card] for card in cards])))


def _wild_flush(held: int) -> int:
    """The best flush in any suit with wild deuces, from the sum of held bits; 0 without one."""
    flushes = flush_classes(held >> WILD_AT)
    return max(
        flushes[held & SUIT_MASK],
        flushes[held >> 13 & SUIT_MASK],
        flushes[held >> 26 & SUIT_MASK],
        flushes[held >> 39 & SUIT_MASK],
    )


def _ranks_of_suit(cards: Sequence[int], suit: int) -> int:
    """The ranks held in a suit as 13 bits."""
    bits = _SUIT_BITS[suit]
    mask = 0
    for card in cards:
        mask |= bits[card]
    return mask


_CARDS: Final = range(52)
_RANK_BITS: Final = [1 << (card >> 2) for card in _CARDS]
_LOW8_BITS: Final = [1 << ((card >> 2) + 1) % 13 & 0xFF for card in _CARDS]
_SUIT_BITS: Final = [
    [(1 << (card >> 2)) * (card & 3 == suit) for card in _CARDS] for suit in range(4)
]
"""By suit and card: the bit of its rank, or 0 for a card of another suit."""


_WILD_HELD: Final = [held_bit(card, wild_deuces=True) for card in _CARDS]


def _load_high() -> None:
    global _key_pairs, _flush_suits, _flushes, _high
    _key_pairs = _sums_of_pairs(KEYS)
    _flush_suits = [tuple(_SUIT_BITS[suit] for suit in suits) for suits in flush_suits(7)]
    _flushes = flush_classes(0)
    _high = sevens.table("high")


def _load_low8() -> None:
    global _low8_pairs, _lows
    _low8_pairs = _unions_of_pairs(_LOW8_BITS)
    _lows = low8_masks()


def _load_razz() -> None:
    global _rank_pairs, _unpaired, _key_pairs, _razz
    _rank_pairs = _unions_of_pairs(_RANK_BITS)
    _unpaired = unpaired_lows()
    _key_pairs = _sums_of_pairs(KEYS)
    _razz = sevens.table("ace_to_five")


def _load_wild() -> None:
    global _wild_pairs, _held_pairs, _wild_keys, _wild
    keys = [FACES[card >> 2] + counters(card, wild_deuces=True) for card in _CARDS]
    _wild_pairs = _sums_of_pairs(keys)
    _held_pairs = _sums_of_pairs(_WILD_HELD)
    _wild_keys = [COUNTERS_OF_THREE + key for key in keys]
    _wild = sevens.table("deuces_wild")


def _sums_of_pairs(values: Sequence[int]) -> Pairs:
    # Equal sums are one object: fewer of them have to stay in the processor's cache.
    sums: dict[int, int] = {}
    return [[sums.setdefault(one + other, one + other) for other in values] for one in values]


def _unions_of_pairs(values: Sequence[int]) -> Pairs:
    unions: dict[int, int] = {}
    return [[unions.setdefault(one | other, one | other) for other in values] for one in values]


@cache
def _by_sum(order: str, count: int) -> dict[int, int]:
    # numpy takes longer to import than the rest of the game; few hands have few cards.
    from services.game.ranking import tables  # noqa: PLC0415

    sums, classes = tables.rank_sums(order, count)
    return dict(zip(sums.tolist(), classes.tolist(), strict=True))
