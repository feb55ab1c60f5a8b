"""Sealing: what leaves a process for a store can be read and changed by no one without the room's
keys.

AES-256-GCM under a per-table subkey (HKDF-SHA256), with a random nonce; room, table, purpose,
version and key id are associated data, so a sealed text taken from one place opens in no other. A
sealed text is

    0x01 | length of key id, 1 byte | key id | nonce, 12 bytes | ciphertext and 16-byte tag
"""

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from services.runtime.noise import random_bytes

FORMAT: Final = 1
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
CIPHERS_KEPT_MAX: Final = 8192
"""Table subkeys kept ready in memory; deriving one anew costs some microseconds."""
PLACES_KEPT_MAX: Final = 2 * CIPHERS_KEPT_MAX
"""Beginnings of associated data: a blob's and an event's for each table."""

_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,32}")


class SealBroken(Exception):  # noqa: N818 (what happened, in plain words)
    """A sealed text that does not open: another key, another place, or it was changed. Says nothing
    more.
    """


class SealKeys:
    """The room's seal keys. The first is current and seals; the others only open what is older.

    room: part of every associated data, so that two rooms sharing a key still cannot open each
    other's texts. keys: key id -> 32 bytes, current first.
    """

    def __init__(self, room: str, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise ValueError("no seal key given")
        for key_id, key in keys.items():
            if not _KEY_ID.fullmatch(key_id):
                raise ValueError(f"seal key id {key_id!r}: 1 to 32 of A-Z a-z 0-9 . _ -")
            if len(key) != KEY_BYTES:
                raise ValueError(f"seal key {key_id!r}: {KEY_BYTES} bytes needed, not {len(key)}")
        self.room: Final = room
        self.current: Final = next(iter(keys))
        self._keys: Final = dict(keys)
        self._header = bytes((FORMAT, len(self.current))) + self.current.encode()
        self._ciphers: dict[tuple[str, str], AESGCM] = {}

    @classmethod
    def load(cls, path: Path | str) -> "SealKeys":
        """From `{"room": "...", "keys": [{"id": "...", "key": "<base64 of 32 bytes>"}, ...]}`.

        Raises ValueError naming the file and what is wrong, never a key; OSError if it cannot be
        read.
        """
        text = Path(path).read_text(encoding="utf-8")
        try:
            content = json.loads(text)
            keys = {
                entry["id"]: b64decode(entry["key"], validate=True) for entry in content["keys"]
            }
            return cls(content["room"], keys)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: room and keys with id and key are needed") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_json(self) -> str:
        """The content of a key file, as `load` reads it."""
        keys = [{"id": each, "key": b64encode(key).decode()} for each, key in self._keys.items()]
        return json.dumps({"room": self.room, "keys": keys}, indent=2)

    def subkey(self, table_id: str, key_id: str | None = None) -> bytes:
        """The 32-byte key of one table under a key id (the current one if None)."""
        key = self._keys[key_id or self.current]
        info = b"doorcard table" + _framed(self.room, table_id)
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(key)

    def seal(self, plaintext: bytes, *, table: str, purpose: str, version: int) -> bytes:
        """Seal for one place: table id, purpose ("blob", "event", "outbox", ...) and version (0 ..
        2^64-1).
        """
        nonce = random_bytes(NONCE_BYTES)
        place = self._place(table, purpose, version, self.current)
        sealed = self._cipher(table, self.current).encrypt(nonce, plaintext, place)
        return b"".join((self._header, nonce, sealed))

    def open(self, sealed: bytes, *, table: str, purpose: str, version: int) -> bytes:
        """The plaintext sealed for exactly this place. Raises SealBroken."""
        key_id = key_id_of(sealed)
        if key_id not in self._keys:
            raise SealBroken(f"sealed under key {key_id!r}, which is not among ours")
        start = 2 + len(key_id)
        nonce = sealed[start : start + NONCE_BYTES]
        place = self._place(table, purpose, version, key_id)
        try:
            return self._cipher(table, key_id).decrypt(nonce, sealed[start + NONCE_BYTES :], place)
        except (InvalidTag, ValueError) as error:
            raise SealBroken(f"a {purpose} does not open") from error

    def is_current(self, sealed: bytes) -> bool:
        """Whether the text is under the current key; a key retires when nothing is under it."""
        return sealed.startswith(self._header)

    def _place(self, table: str, purpose: str, version: int, key_id: str) -> bytes:
        return _framed(self.room, table, purpose, key_id) + version.to_bytes(8)

    def _cipher(self, table: str, key_id: str) -> AESGCM:
        cipher = self._ciphers.get((table, key_id))
        if cipher is None:
            while len(self._ciphers) >= CIPHERS_KEPT_MAX:
                del self._ciphers[next(iter(self._ciphers))]
            cipher = self._ciphers[table, key_id] = AESGCM(self.subkey(table, key_id))
        return cipher


def new_key() -> bytes:
    """A fresh seal key from the kernel."""
    return os.urandom(KEY_BYTES)


def key_id_of(sealed: bytes) -> str:
    """The id of the key a text is sealed under. Raises SealBroken if it has not the form of one."""
    if len(sealed) < 2 or sealed[0] != FORMAT or len(sealed) < 2 + sealed[1] + NONCE_BYTES:
        raise SealBroken("not a sealed text of a known format")
    return sealed[2 : 2 + sealed[1]].decode("ascii", "replace")


@lru_cache(maxsize=PLACES_KEPT_MAX)
def _framed(*texts: str) -> bytes:
    """Each text after its length: no two lists of texts give the same bytes."""
    parts = [text.encode() for text in texts]
    return b"".join(len(part).to_bytes(4) + part for part in parts)
