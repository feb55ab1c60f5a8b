"""Sealed decks: what the caller keeps and cannot read, change, or use for another hand or table.

In the clear a deck is

    0x01 | number of cards, 1 byte | the cards, 1 byte each | salt seed | reshuffle seed

sealed by `runtime.sealing` under the table's subkey, with the hand in the associated data.
"""

from typing import Final

from services.runtime.sealing import SealBroken, SealKeys
from services.shuffler.deck import SEED_BYTES, Deck

FORMAT: Final = 1
SEALED_BYTES_MAX: Final = 512
"""More than any sealed deck has; longer ones are not even looked at."""
_PURPOSE: Final = "deck of hand "


def seal_deck(keys: SealKeys, deck: Deck, *, table_id: str, hand_id: str) -> bytes:
    """The deck, bound to its hand at its table."""
    content = bytes((FORMAT, len(deck.cards), *deck.cards)) + deck.salt_seed + deck.reshuffle_seed
    return keys.seal(content, table=table_id, purpose=_PURPOSE + hand_id, version=FORMAT)


def open_deck(keys: SealKeys, sealed: bytes, *, table_id: str, hand_id: str) -> Deck:
    """The deck that was sealed for this hand at this table. Raises SealBroken for anything else."""
    if len(sealed) > SEALED_BYTES_MAX:
        raise SealBroken("too long for a sealed deck")
    content = keys.open(sealed, table=table_id, purpose=_PURPOSE + hand_id, version=FORMAT)
    size = content[1]
    if content[0] != FORMAT or len(content) != 2 + size + 2 * SEED_BYTES:
        raise SealBroken("not a deck of a known format")
    cards, seeds = content[2 : 2 + size], content[2 + size :]
    return Deck(tuple(cards), seeds[:SEED_BYTES], seeds[SEED_BYTES:])
