"""The commitment to a deck: a Merkle tree hashed as RFC 6962, section 2.1, has it.

    leaf = SHA-256(0x00 | position, 1 byte | card, 2 ASCII letters | salt, 32 bytes)
    node = SHA-256(0x01 | left | right)

The left subtree of n leaves holds the largest power of two below n.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
SALT_BYTES: Final = 32
LEAVES_MAX: Final = 256
_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"


def leaf(position: int, card: str, salt: bytes) -> bytes:
    """The hash of one position: 0 is the top, `card` is two letters ("As"), `salt` 32 bytes.

    Raises ValueError on other lengths: they would let two different cards give one leaf.
    """
    letters = card.encode("ascii")
    if not 0 <= position < LEAVES_MAX or len(letters) != 2 or len(salt) != SALT_BYTES:
        raise ValueError("a leaf is a position 0 to 255, two letters and a salt of 32 bytes")
    return sha256(_LEAF + bytes((position,)) + letters + salt).digest()


def split(leaves: bytes) -> list[bytes]:
    """The leaves that stand one after another. Raises ValueError unless they are 1 to 256."""
    if not 0 < len(leaves) <= LEAVES_MAX * HASH_BYTES or len(leaves) % HASH_BYTES:
        raise ValueError(f"leaves are 1 to {LEAVES_MAX} times {HASH_BYTES} bytes")
    return [leaves[at : at + HASH_BYTES] for at in range(0, len(leaves), HASH_BYTES)]


def node(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees."""
    return sha256(_NODE + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over at least one leaf, 32 bytes."""
    if len(leaves) == 1:
        return leaves[0]
    split = _split(len(leaves))
    return node(root(leaves[:split]), root(leaves[split:]))


def path(leaves: Sequence[bytes], position: int) -> tuple[bytes, ...]:
    """The sibling hashes from the leaf at `position` up to below the root."""
    if len(leaves) == 1:
        return ()
    split = _split(len(leaves))
    if position < split:
        return (*path(leaves[:split], position), root(leaves[split:]))
    return (*path(leaves[split:], position - split), root(leaves[:split]))


def climb(at_leaf: bytes, position: int, size: int, siblings: Sequence[bytes]) -> bytes | None:
    """The root that a leaf leads to in a tree of `size` leaves; None if the path has not the length
    that this place in such a tree has.
    """
    if size == 1:
        return at_leaf if not siblings else None
    if not siblings:
        return None
    split = _split(size)
    *below, sibling = siblings
    if position < split:
        left = climb(at_leaf, position, split, below)
        return None if left is None else node(left, sibling)
    right = climb(at_leaf, position - split, size - split, below)
    return None if right is None else node(sibling, right)


def _split(size: int) -> int:
    return 1 << (size - 1).bit_length() - 1
