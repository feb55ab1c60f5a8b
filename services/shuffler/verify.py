"""What a player runs after a hand: was my card where the deck was committed to it?

The root and the leaves were published before the first card; card, position and salt came with the
card. Only SHA-256 is needed, so this is as easily written in any other language (`merkle.py` has
the form). What the shuffler itself is asked for comes with a path instead: it needs no leaves.
"""

from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from services.shuffler import merkle
from services.shuffler.deck import SIZE


def verify_dealt(*, root: bytes, leaves: bytes, position: int, card: str, salt: bytes) -> bool:
    """Whether the deck behind `root` holds `card` at `position`, by all of its leaves.

    root: 32 bytes; leaves: 32 bytes for each card of the deck; both as published before the deal.
    position: 0 is the top. card: two letters ("As"). salt: 32 bytes. Never raises: whatever is
    malformed proves nothing.
    """
    try:
        each = merkle.split(leaves)
        if not 0 <= position < len(each):
            return False
        return merkle.root(each) == root and merkle.leaf(position, card, salt) == each[position]
    except (ValueError, TypeError):
        return False


def verify_card(
    *, root: bytes, position: int, card: str, salt: bytes, path: Sequence[bytes], size: int = SIZE
) -> bool:
    """Whether the deck behind `root` holds `card` at `position`, by the path from its leaf.

    root: 32 bytes, as published before the deal. position: 0 is the top. card: two letters ("As").
    salt: 32 bytes. path: sibling hashes of 32 bytes from the leaf up. size: cards in the deck; 52
    but for a reshuffled one. Never raises: whatever is malformed proves nothing.
    """
    try:
        if not 0 <= position < size <= merkle.LEAVES_MAX:
            return False
        if any(len(sibling) != merkle.HASH_BYTES for sibling in path):
            return False
        at_leaf = merkle.leaf(position, card, salt)
        return merkle.climb(at_leaf, position, size, path) == root
    except (ValueError, TypeError):
        return False


def verify_receipt(*, public_key: bytes, statement: bytes, signature: bytes) -> bool:
    """Whether the shuffler with this raw Ed25519 key (32 bytes, from ListReceiptKeys) signed the
    statement. Never raises.
    """
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True
