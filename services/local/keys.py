"""The keys of a room on one machine: made once, kept in a folder that only its owner may read.

auth-signing-key.pem   signs every token
auth-keys.json         the public half, which servers believe
<service>-seal.json    seal keys of shuffler and table
shuffler-receipts.json signs the shuffler's receipts
tokens/<name>.token    the services' own tokens, minted anew long before they expire
passwords/<name>       of the databases
"""

import asyncio
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from services.runtime.auth import TokenSigner
from services.runtime.roles import Role
from services.runtime.sealing import SealKeys, new_key
from services.shuffler.receipts import ReceiptKeys

TOKEN_TTL_S: Final = 3600
REFRESH_AFTER_S: Final = 1200
LOOK_S: Final = 10.0


class RoomKeys:
    """All keys of one room; what is missing in the folder is made when it is asked for.

    room: the room's name, part of everything sealed.
    """

    def __init__(self, folder: Path, room: str = "local") -> None:
        self._folder = folder
        self._room = room
        self._minted_s = 0.0
        self._private = self._signing_key()
        public = self._private.public_key()
        kid = f"room-{hashlib.sha256(public.public_bytes_raw()).hexdigest()[:8]}"
        self.signer: Final = TokenSigner(self._private, kid)
        self.auth_keys_file: Final = folder / "auth-keys.json"
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        _keep(self.auth_keys_file, json.dumps({kid: pem}, indent=2))

    def seal_keys_file(self, service: str) -> Path:
        """Seal keys of one service (`SealKeys.load`), which outlive restarts as its data do."""
        keys = SealKeys(self._room, {"1": new_key()})
        return _once(self._folder / f"{service}-seal.json", keys.to_json())

    def receipt_keys_file(self) -> Path:
        """The shuffler's receipt keys (`ReceiptKeys.load`)."""
        path = self._folder / "shuffler-receipts.json"
        return _once(path, ReceiptKeys.generate("receipts-1").to_json())

    def password(self, name: str) -> str:
        """A password made for `name`; letters and digits, so that it needs no quoting in a URL."""
        path = _once(self._folder / "passwords" / name, secrets.token_hex(24))
        return path.read_text(encoding="utf-8")

    def token_file(self, name: str) -> Path:
        """Where `mint_tokens` keeps the token of service `name`."""
        return self._folder / "tokens" / f"{name}.token"

    def mint_tokens(self, services: Iterable[str]) -> None:
        """A fresh token with role service for each, in its file."""
        self._minted_s = time.time()
        for name in services:
            _write(self.token_file(name), self.signer.mint(name, [Role.SERVICE], TOKEN_TTL_S))

    async def keep_tokens_fresh(self, services: Iterable[str]) -> None:
        """Mint again and again; ends by cancellation. By wall time, which goes on in a sleeping
        laptop.
        """
        names = tuple(services)
        while True:
            if not 0 <= time.time() - self._minted_s < REFRESH_AFTER_S:
                self.mint_tokens(names)
            await asyncio.sleep(LOOK_S)

    def _signing_key(self) -> Ed25519PrivateKey:
        path = _once(self._folder / "auth-signing-key.pem", _pem_of(Ed25519PrivateKey.generate()))
        key = load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{path} is not an Ed25519 key")
        return key


def _pem_of(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _once(path: Path, content: str) -> Path:
    if not path.exists():
        _write(path, content)
    return path


def _keep(path: Path, content: str) -> None:
    """Commands that run at the same time write nothing at all where it says that already."""
    if not path.exists() or path.read_text(encoding="utf-8") != content:
        _write(path, content)


def _write(path: Path, content: str) -> None:
    """Whole or not at all, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
