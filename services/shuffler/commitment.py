"""What a deck is committed to, and the proof of each of its cards."""

from dataclasses import dataclass

from services.game.cards import card_name
from services.shuffler import merkle
from services.shuffler.deck import Deck


@dataclass(frozen=True, slots=True)
class Opened:
    """A card with all that proves it was committed to; `verify.verify_card` checks it."""

    position: int
    card: str
    """Two letters."""
    salt: bytes
    path: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Opened({self.position})"


class Commitment:
    """The Merkle tree over a deck. `root` (32 bytes) tells nothing about the cards."""

    def __init__(self, deck: Deck) -> None:
        self._deck = deck
        self._leaves = [
            merkle.leaf(position, card_name(card), deck.salt(position))
            for position, card in enumerate(deck.cards)
        ]
        self.root = merkle.root(self._leaves)

    def open(self, position: int) -> Opened:
        """The card at `position` (0 .. size - 1) and its proof."""
        return Opened(
            position=position,
            card=card_name(self._deck.cards[position]),
            salt=self._deck.salt(position),
            path=merkle.path(self._leaves, position),
        )
