"""Ranks many hands: by name for people, packed for programs."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.game.names import name_of_high, name_of_low
from services.game.ranking import (
    ace_to_five,
    batch,
    best_high,
    best_low,
    deuces_wild,
    high,
    low8,
)

Cards = tuple[int, ...]
Hands = NDArray[np.uint8]
FAULTS_MAX: Final = 20
"""No more faults of a batch are told."""


class Order(StrEnum):
    """In which order hands are ranked."""

    HIGH = "high"
    LOW8 = "low8"
    ACE_TO_FIVE = "ace_to_five"
    DEUCES_WILD = "deuces_wild"


class Ranked(NamedTuple):
    """A hand that counts in its order."""

    rank: int
    """Its class, bigger is better."""
    name: str
    """In words."""
    best: Cards
    """The five cards that play, highest first; of a low the ace last."""


class Fault(NamedTuple):
    """A card of a batch that cannot be."""

    hand: int
    place: int
    reason: str


def rank_hands(order: Order, hands: Sequence[Cards]) -> list[Ranked | None]:
    """Each hand of five to seven cards, None for a low that does not qualify."""
    return [_ranked(cards, _WORDS[order]) for cards in hands]


def rank_packed(order: Order, cards: int, packed: bytes) -> bytes | list[Fault]:
    """The classes, two bytes each, lower one first, of hands of so many cards, a byte each.

    0 for a low that does not qualify. Where cards are not 0..51, or twice in a hand, the faults.
    """
    hands = np.frombuffer(packed, np.uint8).reshape(-1, cards)
    faults = _faults(hands)
    if faults:
        return faults
    return _MANY[order](hands).astype("<u2").tobytes()


class _Words(NamedTuple):
    """How hands are ranked, named and shown in one order."""

    rank: Callable[[Cards], int | None]
    name: Callable[[int], str]
    best: Callable[[Cards], Cards | None]


_WORDS: Final[Mapping[Order, _Words]] = {
    Order.HIGH: _Words(high, name_of_high, lambda cards: best_high(cards)[1]),
    Order.LOW8: _Words(low8, lambda number: name_of_low(_razz_of_low8(number)), best_low),
    Order.ACE_TO_FIVE: _Words(
        ace_to_five, name_of_low, lambda cards: best_low(cards, eight_or_better=False)
    ),
    Order.DEUCES_WILD: _Words(
        deuces_wild, name_of_high, lambda cards: best_high(cards, wild_deuces=True)[1]
    ),
}

_MANY: Final[Mapping[Order, Callable[[batch.Hands], NDArray[Any]]]] = {
    Order.HIGH: batch.high,
    Order.LOW8: batch.low8,
    Order.ACE_TO_FIVE: batch.ace_to_five,
    Order.DEUCES_WILD: batch.deuces_wild,
}

RAZZ_CLASSES: Final = 6_175
LOW8_CLASSES: Final = 56


def _razz_of_low8(number: int) -> int:
    """Lows that qualify are the best of razz in the same order; the wheel is last in both."""
    return number + RAZZ_CLASSES - LOW8_CLASSES


def _ranked(cards: Cards, words: _Words) -> Ranked | None:
    rank = words.rank(cards)
    if rank is None:
        return None
    return Ranked(rank, words.name(rank), words.best(cards) or ())


def _faults(hands: Hands) -> list[Fault]:
    unknown = hands > 51
    if unknown.any():
        places = np.argwhere(unknown)[:FAULTS_MAX].tolist()
        return [Fault(hand, place, "is not a card") for hand, place in places]
    seen = np.zeros(len(hands), np.uint64)
    faults: list[Fault] = []
    for place in range(hands.shape[1]):
        bits = np.uint64(1) << hands[:, place].astype(np.uint64)
        again = np.flatnonzero(seen & bits)[:FAULTS_MAX].tolist()
        faults += [Fault(hand, place, "occurs a second time") for hand in again]
        seen |= bits
    return sorted(faults)[:FAULTS_MAX]
