"""Many hands at a time with numpy: the same numbers as `services.game.ranking`, hand by hand.

Hands are rows of an array (n, 5), (n, 6) or (n, 7) of uint8, cards 0..51; ValueError for another
shape, type or a card above 51. That the cards of a row are distinct is the caller's to know.

Two neighbouring cards are read as one 16-bit number, an index into a table of what the pair adds:
that halves the look-ups, which are what ranking costs. Rows are taken in chunks that stay in the
cache. Where the compiled kernel is installed, it takes the place of these loops.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from services.game.ranking import kernel, sevens, tables
from services.game.ranking.classes import flush_classes, low8_masks, unpaired_lows
from services.game.ranking.keys import (
    COUNTERS_OF_THREE,
    FACE_MASK,
    FACES,
    FLUSH_BITS,
    SUIT_MASK,
    WILD_AT,
    counters,
    held_bit,
)

Hands = NDArray[np.uint8]
Word = TypeVar("Word", bound=np.integer)
CHUNK_ROWS: Final = 1 << 16


def high(hands: Hands) -> NDArray[np.uint16]:
    """The class of each best high hand (docs/rules.md, 2): shape (n,), 1 to 7,462."""
    return _by_sums("high", _check(hands))(hands)


def deuces_wild(hands: Hands) -> NDArray[np.uint16]:
    """The class of each best high hand with wild deuces: shape (n,), five of a kind above 7,462."""
    return _by_sums("deuces_wild", _check(hands))(hands)


def low8(hands: Hands) -> NDArray[np.uint8]:
    """The class of each eight-or-better low: shape (n,), 1 to 56; 0 where none qualifies."""
    return _by_ranks_to_eight(_check(hands))(hands).astype(np.uint8, copy=False)


def ace_to_five(hands: Hands) -> NDArray[np.uint16]:
    """The class of each best razz hand: shape (n,), 1 to 6,175, the wheel."""
    count = _check(hands)
    classes = _by_unpaired_ranks(count)(hands)
    # The ranks held decide wherever there are five of them; elsewhere pairs do.
    few = np.flatnonzero(classes == 0)
    if few.size:
        adders, table = _paired_lows(count)
        for start, chunk in _chunks(hands[few]):
            found = np.take(table, _added_up(chunk, adders), mode="clip")
            classes[few[start : start + len(chunk)]] = found
    return classes


_KEY_FLUSH_BITS: Final = np.int64(FLUSH_BITS)
_FACES_ONLY: Final = np.int64(FACE_MASK)

_RANKS: Final = np.arange(52) >> 2
_FACES_OF_CARDS: Final = np.array(FACES)[_RANKS]


Adders = tuple[NDArray[np.int64], ...]
"""For each of `_pairs`, what it adds to the sum of keys, by the number that the pair is read as."""


class _Order(NamedTuple):
    """What ranks hands in one order by sums of keys."""

    keys: NDArray[np.int64]
    """By card: its face, and above it a counter of its suit."""
    adders: Adders
    table: NDArray[np.uint16]
    """The classes by sum of faces, flushes left out."""
    suited: NDArray[np.int64]
    """By card: its `held_bit`."""


@cache
def _by_sums(name: str, count: int) -> kernel.Rank:
    """What ranks hands of `count` cards in one order: the kernel, or numpy."""
    order = _order(name, count)
    with_numpy = partial(_classes, order=order)
    in_c = kernel.by_sum(order.keys, order.suited, order.table, _flushes())
    return kernel.agrees(in_c, with_numpy, count) or with_numpy


def _order(name: str, count: int) -> _Order:
    wild = name == "deuces_wild"
    suits = np.array([counters(card, wild_deuces=wild) for card in range(52)])
    suited = np.array([held_bit(card, wild_deuces=wild) for card in range(52)])
    keys = _FACES_OF_CARDS + suits
    first, *others = _adders(keys, count)
    return _Order(keys, (first + COUNTERS_OF_THREE, *others), _by_sum(name, count), suited)


def _by_sum(name: str, count: int) -> NDArray[np.uint16]:
    if count == 7:
        return np.frombuffer(sevens.table(name), np.uint16)
    return tables.dense(name, count)


def _adders(keys: NDArray[np.int64], count: int) -> Adders:
    """What the pairs of `count` cards add, so that each card's key is added once."""
    pair = _of_pairs(keys, keys, np.add)
    last = _of_pairs(np.zeros_like(keys), keys, np.add) if count % 2 else pair
    return (*[pair] * ((count - 1) // 2), last)


def _classes(hands: Hands, order: _Order) -> NDArray[np.uint16]:
    classes = np.empty(len(hands), np.uint16)
    for start, chunk in _chunks(hands):
        key = _added_up(chunk, order.adders)
        flushes = np.flatnonzero((key & _KEY_FLUSH_BITS) != 0)
        key &= _FACES_ONLY
        found = classes[start : start + len(chunk)]
        np.take(order.table, key, out=found, mode="clip")
        if flushes.size:
            found[flushes] = np.maximum(found[flushes], _flush_classes(chunk[flushes], order))
    return classes


def _added_up(chunk: Hands, adders: Adders) -> NDArray[np.int64]:
    """The sum of keys of each hand."""
    # Where an index cannot be out of range, clipping saves numpy a copy.
    first, *others = _pairs(chunk)
    key = np.take(adders[0], first, mode="clip")
    more = np.empty_like(key)
    for adder, pair in zip(adders[1:], others, strict=True):
        key += np.take(adder, pair, out=more, mode="clip")
    return key


def _flush_classes(hands: Hands, order: _Order) -> NDArray[np.uint16]:
    """The best flush of each hand, 0 where there is none."""
    held = order.suited[hands].sum(axis=1)
    wild = held >> WILD_AT
    flushes = _flushes()
    by_suit = [flushes[wild, held >> 13 * suit & SUIT_MASK] for suit in range(4)]
    best: NDArray[np.uint16] = np.max(by_suit, axis=0)
    return best


@cache
def _flushes() -> NDArray[np.uint16]:
    return np.array([flush_classes(wild) for wild in range(5)], np.uint16)


def _by_mask(hands: Hands, pair: NDArray[Word], table: NDArray[Word]) -> NDArray[Word]:
    """What `table` says of the union of the bits that `pair` gives the pairs of each hand."""
    classes = np.empty(len(hands), table.dtype)
    for start, chunk in _chunks(hands):
        first, *others = _pairs(chunk)
        mask = np.take(pair, first, mode="clip")
        more = np.empty_like(mask)
        for other in others:
            mask |= np.take(pair, other, out=more, mode="clip")
        np.take(table, mask, out=classes[start : start + len(chunk)], mode="clip")
    return classes


@cache
def _by_ranks_to_eight(count: int) -> kernel.Rank:
    """By the union of the ranks ace to eight of a hand's cards, which fit into a byte."""
    bits = 1 << (_RANKS + 1) % 13 & 0xFF
    return _by_union(bits, np.array(low8_masks(), np.uint8), count)


@cache
def _by_unpaired_ranks(count: int) -> kernel.Rank:
    """By the union of a hand's ranks; 0 where they are fewer than five."""
    return _by_union(1 << _RANKS, np.array(unpaired_lows(), np.uint16), count)


def _by_union(bits: NDArray[np.int64], classes: NDArray[Word], count: int) -> kernel.Rank:
    narrow = bits.astype(classes.dtype)
    pair = _of_pairs(narrow, narrow, np.bitwise_or)
    with_numpy = partial(_by_mask, pair=pair, table=classes)
    in_c = kernel.by_union(bits.astype(np.uint16), classes.astype(np.uint16))
    return kernel.agrees(in_c, with_numpy, count) or with_numpy


@cache
def _paired_lows(count: int) -> tuple[Adders, NDArray[np.uint16]]:
    return _adders(_FACES_OF_CARDS, count), _by_sum("ace_to_five", count)


def _of_pairs(low: NDArray[Word], high: NDArray[Word], joined: np.ufunc) -> NDArray[Word]:
    """A table over two cards read as one number, of what the first and the second give, joined."""
    table = np.zeros((256, 256), low.dtype)
    table[:52, :52] = joined.outer(high, low)  # The second card is the high byte.
    return table.reshape(-1)


def _chunks(hands: Hands) -> Iterator[tuple[int, Hands]]:
    """Runs of rows, each with the number of its first row."""
    for start in range(0, len(hands), CHUNK_ROWS):
        yield start, np.ascontiguousarray(hands[start : start + CHUNK_ROWS])


def _pairs(chunk: Hands) -> list[NDArray[np.uint16]]:
    """Neighbouring cards as numbers; with an odd count the last two pairs share a card."""
    rows, count = chunk.shape
    offsets = [*range(0, count - 1, 2), *([count - 2] if count % 2 else [])]
    return [
        np.ndarray((rows,), np.dtype("<u2"), chunk.data, offset, (count,)) for offset in offsets
    ]


def _check(hands: Hands) -> int:
    """The number of cards of a hand; raises ValueError for what is not an array of hands."""
    if hands.ndim != 2 or not 5 <= hands.shape[1] <= 7 or hands.dtype != np.uint8:
        raise ValueError("hands must be an array of uint8 with five, six or seven columns")
    if hands.size and hands.max() > 51:
        raise ValueError("a card is not one of 0..51")
    return int(hands.shape[1])
