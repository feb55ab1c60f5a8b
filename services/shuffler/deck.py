"""What a deck is and where its order comes from.

A deck is its cards in order and two 256-bit seeds: one blinds the leaves of its commitment, the
other is the whole randomness of any reshuffle, fixed before the first card is seen. 51 unbiased
choices make the order: log2(52!) = 225.6 bits, drawn from the kernel for every deck.
"""

import hmac
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Final

from services.shuffler.generator import KernelGenerator

SIZE: Final = 52
SEED_BYTES: Final = 32
ORDER_BYTES: Final = 192
"""Bytes taken at a time for the order: 51 choices use about 60, so a second time is never seen."""
BYTE_VALUES: Final = 256

TakeBytes = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Deck:
    """A deck in the clear; it exists only inside the shuffler, while a request is answered."""

    cards: tuple[int, ...]
    """Cards 0..51 from the top, each at most once."""
    salt_seed: bytes
    """32 bytes; the salt of every position comes from it."""
    reshuffle_seed: bytes
    """32 bytes; a reshuffle's order, salts and own reshuffle seed come from it."""

    def __post_init__(self) -> None:
        if not 0 < len(self.cards) <= SIZE or len(set(self.cards)) != len(self.cards):
            raise ValueError("a deck has 1 to 52 cards, none twice")
        if not all(0 <= card < SIZE for card in self.cards):
            raise ValueError("a card is 0 to 51")
        if not len(self.salt_seed) == len(self.reshuffle_seed) == SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes")

    def __repr__(self) -> str:
        return f"Deck({len(self.cards)} cards)"

    def salt(self, position: int) -> bytes:
        """The 32 bytes that blind the leaf of a position."""
        return hmac.digest(self.salt_seed, b"doorcard salt" + bytes((position,)), sha256)

    def reshuffled(self, positions: Collection[int]) -> "Deck":
        """The deck that the cards at `positions` form, a function of the seed and the set of
        positions: whoever asks again, in whatever order, gets the same deck (docs/rules.md, 3).

        positions: 0 .. size - 1, none twice.
        """
        chosen = sorted(positions)
        key = hmac.digest(self.reshuffle_seed, b"doorcard reshuffle" + bytes(chosen), sha256)
        return Deck(
            cards=shuffled([self.cards[position] for position in chosen], _stream(key, b"order")),
            salt_seed=hmac.digest(key, b"salts", sha256),
            reshuffle_seed=hmac.digest(key, b"reshuffle", sha256),
        )


def fresh_deck(generator: KernelGenerator) -> Deck:
    """A new deck of 52 from the kernel's generator. Raises RngUnhealthy."""
    return Deck(
        cards=shuffled(range(SIZE), generator.draw),
        salt_seed=generator.draw(SEED_BYTES),
        reshuffle_seed=generator.draw(SEED_BYTES),
    )


def shuffled(cards: Sequence[int], take: TakeBytes) -> tuple[int, ...]:
    """`cards` (at most 256) in a uniformly random order, given that `take` gives uniform bytes.

    Fisher-Yates: each place takes one of the cards that are left, itself included. Swapping with
    any card, as faulty shuffles do, reaches n^n paths, which n! does not divide.
    """
    order = list(cards)
    choices = _Choices(take)
    for last in range(len(order) - 1, 0, -1):
        other = choices.below(last + 1)
        order[last], order[other] = order[other], order[last]
    return tuple(order)


class _Choices:
    """Uniform choices out of uniform bytes, by rejection: a remainder alone would favour the low
    ones.
    """

    def __init__(self, take: TakeBytes) -> None:
        self._take = take
        self._left = iter(b"")

    def below(self, bound: int) -> int:
        """0 .. bound - 1, for a bound of at most 256."""
        limit = BYTE_VALUES - BYTE_VALUES % bound
        while True:
            for byte in self._left:
                if byte < limit:
                    return byte % bound
            self._left = iter(self._take(ORDER_BYTES))


def _stream(key: bytes, label: bytes) -> TakeBytes:
    """HMAC-SHA256 in counter mode: the bytes that a seed stands for."""
    blocks = count()

    def take(length: int) -> bytes:
        made = b""
        while len(made) < length:
            made += hmac.digest(key, label + next(blocks).to_bytes(4), sha256)
        return made[:length]

    return take
