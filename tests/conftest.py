"""Async tests, and keys and tokens for those that talk to servers."""

import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from services.runtime.auth import TokenSigner
from services.runtime.settings import ServiceSettings


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, each in a loop of its own, the kind that services use."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    uvloop.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@dataclass(frozen=True)
class Room:
    """Keys of a room in a temporary folder, and whatever its servers need to believe its tokens."""

    folder: Path
    signer: TokenSigner
    auth_keys_file: Path

    def token(self, subject: str = "anna", roles: Iterable[str] = ("player",), **more: Any) -> str:
        """A token that holds for five minutes."""
        return self.signer.mint(subject, roles, more.pop("ttl_s", 300), **more)

    def metadata(
        self, subject: str = "anna", roles: Iterable[str] = ("player",), **more: Any
    ) -> list[tuple[str, str]]:
        """The header that carries `token`, for a call over a plain channel."""
        return [("authorization", f"Bearer {self.token(subject, roles, **more)}")]

    def token_file(self, subject: str = "anna", roles: Iterable[str] = ("player",)) -> Path:
        """A file with a token, for `ServiceSettings.token_file`."""
        path = self.folder / f"{subject}.token"
        path.write_text(self.token(subject, roles))
        return path

    def settings(self, kind: Any = ServiceSettings, **fields: Any) -> Any:
        """Settings of a server on free ports that believes this room's tokens; drains at once."""
        defaults: dict[str, Any] = {
            "listen": "127.0.0.1:0",
            "metrics_listen": "127.0.0.1:0",
            "auth_keys_file": self.auth_keys_file,
            "drain_seconds": 1.0,
        }
        return kind(**{**defaults, **fields})


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """Fresh keys."""
    private_key = Ed25519PrivateKey.generate()
    public_pem = private_key.public_key().public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )
    keys_file = tmp_path / "auth-keys.json"
    keys_file.write_text(json.dumps({"test-1": public_pem.decode()}))
    return Room(tmp_path, TokenSigner(private_key, "test-1"), keys_file)
