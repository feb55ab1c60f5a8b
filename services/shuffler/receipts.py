"""Signed receipts: statements about decks that the shuffler cannot deny later.

A statement is JSON with sorted keys and no spaces, in ASCII. Its `statement` is "deck", "draw" or
"reshuffle"; roots are in hex, times in milliseconds since 1970 UTC; a draw names positions, never
cards.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from services.runtime.ids import is_name

VERSION: Final = 1
KEYS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Receipt:
    """A statement and who signed it."""

    key_id: str
    statement: bytes
    signature: bytes


class ReceiptKeys:
    """The keys that receipts are signed with, current first; retired ones keep only their public
    half, so that old receipts can still be checked.
    """

    def __init__(
        self, key_id: str, key: Ed25519PrivateKey, retired: Mapping[str, Ed25519PublicKey]
    ) -> None:
        if len(retired) >= KEYS_MAX:
            raise ValueError(f"at most {KEYS_MAX} receipt keys")
        for each in (key_id, *retired):
            if not is_name(each):
                raise ValueError(f"receipt key id {each!r} is not a name")
        if key_id in retired:
            raise ValueError(f"receipt key id {key_id!r} is given twice")
        self._key_id = key_id
        self._key = key
        self._retired = dict(retired)

    @classmethod
    def generate(cls, key_id: str) -> "ReceiptKeys":
        """One fresh key."""
        return cls(key_id, Ed25519PrivateKey.generate(), {})

    @classmethod
    def load(cls, path: Path | str) -> "ReceiptKeys":
        """From `{"keys": [{"id": "...", "private_key": "<base64>"}, {"id": "...", "public_key":
        "<base64>"}, ...]}`: the current key, then retired ones; raw keys of 32 bytes.

        Raises ValueError naming the file and what is wrong, never a key; OSError if it cannot be
        read.
        """
        text = Path(path).read_text(encoding="utf-8")
        try:
            current, *others = json.loads(text)["keys"]
            private = b64decode(current["private_key"], validate=True)
            retired = {
                other["id"]: Ed25519PublicKey.from_public_bytes(
                    b64decode(other["public_key"], validate=True)
                )
                for other in others
            }
            return cls(current["id"], Ed25519PrivateKey.from_private_bytes(private), retired)
        except (KeyError, TypeError) as error:
            needed = "keys is needed: id and private_key of the current one, then id and public_key"
            raise ValueError(f"{path}: {needed} of retired ones") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_json(self) -> str:
        """The content of a key file, as `load` reads it."""
        private = b64encode(self._key.private_bytes_raw()).decode()
        keys = [{"id": self._key_id, "private_key": private}]
        for key_id, key in self._retired.items():
            keys.append({"id": key_id, "public_key": b64encode(key.public_bytes_raw()).decode()})
        return json.dumps({"keys": keys}, indent=2)

    def public_keys(self) -> list[tuple[str, bytes]]:
        """Key id and raw public key (32 bytes) of every key, current first."""
        current = (self._key_id, self._key.public_key().public_bytes_raw())
        return [current, *((each, key.public_bytes_raw()) for each, key in self._retired.items())]

    def sign(self, statement: bytes) -> Receipt:
        """A receipt by the current key."""
        return Receipt(self._key_id, statement, self._key.sign(statement))


@dataclass(frozen=True, slots=True)
class HandContext:
    """What a deck belongs to."""

    table_id: str
    hand_id: str


def deck_statement(
    context: HandContext, root: bytes, *, source: str, size: int, at_ms: int
) -> bytes:
    """A deck of `size` cards was made; `source` says where its order comes from."""
    return _statement("deck", context, root, at_ms, size=size, source=source)


def draw_statement(
    context: HandContext, root: bytes, positions: Iterable[int], *, at_ms: int
) -> bytes:
    """These positions of the deck were opened."""
    return _statement("draw", context, root, at_ms, positions=list(positions))


def reshuffle_statement(
    context: HandContext, root: bytes, *, old_root: bytes, positions: Iterable[int], at_ms: int
) -> bytes:
    """The cards at these positions of the deck behind `old_root` became the deck behind `root`."""
    chosen = sorted(positions)
    return _statement("reshuffle", context, root, at_ms, old_root=old_root.hex(), positions=chosen)


def _statement(kind: str, context: HandContext, root: bytes, at_ms: int, **more: object) -> bytes:
    content = {
        "version": VERSION,
        "statement": kind,
        "table_id": context.table_id,
        "hand_id": context.hand_id,
        "root": root.hex(),
        "time_ms": at_ms,
        **more,
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")
