"""One hand at a time, in plain Python: five to seven cards in, the number of its class out.

Cards are distinct ints 0..51 (rank * 4 + suit) in any order. A wrong number of cards or a card
above 51 raises ValueError; that cards are distinct and not negative is the caller's to know. The
first call of each function builds its table (about 0.1 s), so that importing costs nothing.
"""

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from types import ModuleType
from typing import Final

from services.game.ranking.classes import low8_masks
from services.game.ranking.keys import FACE_MASK, FACES, FLUSH_AT, KEYS, flush_suits

# Of seven cards, filled by the first call of `high`. Empty, so that a look-up before that fails.
_flush_suits_of_7: list[int] = []
_classes_of_7: "array[int]" = array("H")
_flush_classes: list[int] = []

_SUIT_BITS: Final = [
    [(1 << (card >> 2)) * (card & 3 == suit) for card in range(52)] for suit in range(4)
]
"""By suit and card: the bit of its rank, or 0 for a card of another suit."""


def high(cards: Sequence[int]) -> int:
    """The class of the best high hand: 1 to 7,462, bigger is better (RULES.md, 2)."""
    try:
        a, b, c, d, e, f, g = cards
        keys = KEYS
        key = keys[a] + keys[b] + keys[c] + keys[d] + keys[e] + keys[f] + keys[g]
        if suit := _flush_suits_of_7[key >> FLUSH_AT]:
            bits = _SUIT_BITS[suit - 1]
            return _flush_classes[
                bits[a] | bits[b] | bits[c] | bits[d] | bits[e] | bits[f] | bits[g]
            ]
        return _classes_of_7[key & FACE_MASK]
    except (ValueError, IndexError):
        return _high_of_few(cards)


def low8(cards: Sequence[int]) -> int | None:
    """The class of the best eight-or-better low: 1 to 56, bigger is better; None without one.

    Five different ranks, eight or lower, ace low (RULES.md, 2). The wheel is 56.
    """
    _check(cards)
    mask = 0
    for card in cards:
        mask |= _LOW_BITS[card]
    return low8_masks()[mask] or None


def ace_to_five(cards: Sequence[int]) -> int:
    """The class of the best razz hand: 1 to 6,175, the wheel, bigger is better (RULES.md, 2)."""
    _check(cards)
    return _by_sum("ace_to_five", len(cards))[sum([_CARD_FACES[card] for card in cards])]


def deuces_wild(cards: Sequence[int]) -> int:
    """The class of the best high hand with wild deuces: as `high`, five of a kind above 7,462."""
    _check(cards)
    naturals = [card for card in cards if card > 3]
    wild = len(cards) - len(naturals)
    if not wild:
        return high(cards)
    best = _by_sum("deuces_wild", len(cards))[sum([_CARD_FACES[card] for card in cards])]
    flushes = _flushes()[wild]
    return max(best, *[flushes[_mask(naturals, suit)] for suit in range(4)])


def _high_of_few(cards: Sequence[int]) -> int:
    """Five or six cards, seven before the table is built, and what is no hand at all."""
    _check(cards)
    if len(cards) == 7:
        if _classes_of_7:
            raise ValueError("the cards are not distinct")
        _load()
        return high(cards)
    key = sum([KEYS[card] for card in cards])
    if suit := flush_suits(len(cards))[key >> FLUSH_AT]:
        return _flushes()[0][_mask(cards, suit - 1)]
    return _by_sum("high", len(cards))[key & FACE_MASK]


def _check(cards: Sequence[int]) -> None:
    if not 5 <= len(cards) <= 7:
        raise ValueError(f"{len(cards)} cards: a hand is ranked from five, six or seven")
    if not 0 <= min(cards) <= max(cards) <= 51:
        raise ValueError("a card is not one of 0..51")


def _mask(cards: Iterable[int], suit: int) -> int:
    """The ranks held in a suit as 13 bits."""
    mask = 0
    for card in cards:
        mask |= _SUIT_BITS[suit][card]
    return mask


_CARD_FACES: Final = [FACES[card >> 2] for card in range(52)]
_LOW_BITS: Final = [1 << (card // 4 + 1) % 13 & 0xFF for card in range(52)]


def _load() -> None:
    _classes_of_7[:] = array("H", _tables().dense("high", 7).tobytes())
    _flush_classes[:] = _flushes()[0]
    _flush_suits_of_7[:] = flush_suits(7)


@cache
def _by_sum(order: str, count: int) -> dict[int, int]:
    sums, classes = _tables().rank_sums(order, count)
    return dict(zip(sums.tolist(), classes.tolist(), strict=True))


@cache
def _flushes() -> list[list[int]]:
    flushes: list[list[int]] = _tables().flushes().tolist()
    return flushes


def _tables() -> ModuleType:
    # numpy takes longer to import than the rest of the game; who only plays hands never ranks one.
    from services.game.ranking import tables  # noqa: PLC0415

    return tables
