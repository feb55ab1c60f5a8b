"""Token buckets in Redis, which all replicas take from: one script, each bucket in a slot of its
own, gone by itself when it is full.
"""

import hashlib
from enum import StrEnum
from typing import Final, NamedTuple

from services.table.store.line import Argument, Script, Wire

US_PER_S: Final = 1_000_000


class Kind(StrEnum):
    """What is counted."""

    SEATS = "seats"
    """Taking seats, waiting for them, changing tables, adding chips."""
    STREAMS = "streams"
    """Opening streams."""
    LOBBY = "lobby"
    """Reading the lobby and tables."""
    CALLS = "calls"
    """All other unary calls but actions in a hand."""


class Scope(StrEnum):
    """For whom."""

    PLAYER = "player"
    ADDRESS = "address"
    TABLE = "table"


class Rate(NamedTuple):
    """A bucket: how fast it fills and how much it holds."""

    per_second: float
    burst: int


Limit = tuple[Kind, Scope]


class Buckets:
    """The buckets in Redis. secret: what addresses and names are hashed with."""

    def __init__(self, line: Wire, script: Script, secret: bytes) -> None:
        self._line = line
        self._script = script
        self._secret = secret

    async def take(self, limit: Limit, whose: str, rate: Rate) -> int:
        """Take a token: 0, or the milliseconds until there is one. Raises Unavailable."""
        name = f"{limit[0]}.{limit[1]} {whose}".encode()
        bucket = hashlib.blake2b(name, key=self._secret, digest_size=16).hexdigest()
        args: list[Argument] = [max(1, round(US_PER_S / rate.per_second)), rate.burst]
        keys: list[Argument] = [f"{{limit:{bucket}}}"]
        return int(await self._line.run(self._script, keys, args, durable=False))
