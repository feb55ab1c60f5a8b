"""What a deck is committed to, and the proof of each of its cards."""

from dataclasses import dataclass

from services.game.cards import card_name
from services.shuffler import merkle
from services.shuffler.deck import Deck


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
    """The Merkle tree over a deck. `root` (32 bytes) tells nothing about the cards."""

    def __init__(self, deck: Deck) -> None:
        self._deck = deck
        self._leaves = [
            merkle.leaf(position, card_name(card), deck.salt(position))
            for position, card in enumerate(deck.cards)
        ]
        self.root = merkle.root(self._leaves)

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
