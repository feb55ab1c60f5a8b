"""What a deck is committed to, and the proof of each of its cards."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final

from services.game.cards import card_name
from services.shuffler import merkle
from services.shuffler.deck import Deck

ROOTS_MAX: Final = 65_536
"""Decks whose roots are kept, about 300 bytes each: more than the tables of the largest room."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A card with what proves that it was committed to: `verify.verify_card` checks it by its path,
    `verify.verify_dealt` by the deck's leaves.
    """

    position: int
    card: str
    """Two letters."""
    salt: bytes
    path: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Opened({self.position})"


class Commitment:
    """The Merkle tree over a deck. `root` (32 bytes) tells nothing about the cards.

    root: of this deck, where it is known: the 52 leaves are then hashed only if they are asked for.
    """

    def __init__(self, deck: Deck, root: bytes | None = None) -> None:
        self._deck = deck
        self.root: Final = merkle.root(self._leaves) if root is None else root

    @cached_property
    def _leaves(self) -> list[bytes]:
        return [
            merkle.leaf(position, card_name(card), self._deck.salt(position))
            for position, card in enumerate(self._deck.cards)
        ]

    @property
    def leaves(self) -> bytes:
        """Every leaf, 32 bytes each, in the order of positions: as blind as the root."""
        return b"".join(self._leaves)

    def open(self, position: int, *, with_path: bool = True) -> Opened:
        """The card at `position` (0 .. size - 1) and its proof, without the path for those who have
        the leaves.
        """
        return Opened(
            position=position,
            card=card_name(self._deck.cards[position]),
            salt=self._deck.salt(position),
            path=merkle.path(self._leaves, position) if with_path else (),
        )


class Roots:
    """The roots of sealed decks that were made or opened here lately, and nothing else of them: a
    hand draws from its deck half a dozen times, and hashing its tree is most of a draw.
    """

    def __init__(self, kept_max: int = ROOTS_MAX) -> None:
        self._kept_max = kept_max
        self._roots: dict[bytes, bytes] = {}

    def commitment(self, sealed: bytes, deck: Deck) -> Commitment:
        """Of the deck that `sealed` was made from, or opened to."""
        key = sha256(sealed).digest()
        commitment = Commitment(deck, self._roots.get(key))
        self._roots[key] = commitment.root
        if len(self._roots) > self._kept_max:
            del self._roots[next(iter(self._roots))]
        return commitment
