"""Stores that lose what they had confirmed: a replica promoted behind, a file cut short, an empty
server.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from tests import relay, valkey


class LossyStore(Protocol):
    """A store in front of which replicas do not notice which server it is."""

    url: str

    async def mark(self) -> None:
        """Everything until now will survive; what comes later will not."""

    async def lose(self) -> None:
        """Lose it."""


class Failover:
    """A primary whose replica falls behind, and is promoted."""

    def __init__(
        self,
        url: str,
        front: relay.Relay,
        link: relay.Relay,
        primary: valkey.Valkey,
        replica: valkey.Valkey,
    ) -> None:
        self.url = url
        self._front = front
        self._link = link
        self._primary = primary
        self._replica = replica

    async def mark(self) -> None:
        await self.catch_up()
        self._link.cut()

    async def catch_up(self) -> None:
        """The replica has everything until now."""
        # Not on the loop that carries what is copied.
        await asyncio.to_thread(self._wait_for_the_copy)

    def _wait_for_the_copy(self) -> None:
        with self._primary.client() as primary:
            primary.set("{room}:last", "1")
            assert any(primary.wait(1, 2000) for _ in range(10)), "the replica does not follow"

    async def lose(self) -> None:
        self._front.cut()
        self._primary.kill()
        with self._replica.client() as replica:
            replica.execute_command("REPLICAOF", "NO", "ONE")
        self._front.turn_to(relay.to_socket(self._replica.socket))


class CutFile:
    """A server whose append-only file is cut at a command, as if the rest had not reached it."""

    def __init__(self, server: valkey.Valkey) -> None:
        self.url = server.url
        self._server = server
        self._size = 0

    async def mark(self) -> None:
        self._size = self._server.appended.stat().st_size

    async def lose(self) -> None:
        self._server.kill()
        with self._server.appended.open("r+b") as file:
            assert file.seek(0, 2) > self._size > 0
            file.truncate(self._size)
        self._server.start()


class Emptied:
    """A server that starts again without its files."""

    def __init__(self, server: valkey.Valkey) -> None:
        self.url = server.url
        self.server = server

    async def mark(self) -> None:
        """Nothing survives."""

    async def lose(self) -> None:
        self.server.kill()
        for file in self.server.folder.glob("appendonlydir/*"):
            file.unlink()
        self.server.start()


@asynccontextmanager
async def failover() -> AsyncIterator[Failover]:
    """Two servers, and relays before them and between them."""
    with _folder() as one, _folder() as other:
        primary, replica = valkey.Valkey(Path(one), tcp=True), valkey.Valkey(Path(other))
        front_socket = Path(one) / "front.sock"
        try:
            async with (
                relay.on_socket(front_socket, relay.to_socket(primary.socket)) as front,
                relay.on_port(relay.to_port(primary.port)) as link,
            ):
                with primary.client() as client:
                    # It waits for more replicas otherwise.
                    client.config_set("repl-diskless-sync-delay", "0")
                with replica.client() as client:
                    client.execute_command("REPLICAOF", "127.0.0.1", str(link.port))
                yield Failover(f"unix://{front_socket}", front, link, primary, replica)
        finally:
            primary.kill()
            replica.kill()


@asynccontextmanager
async def cut_file() -> AsyncIterator[LossyStore]:
    """A server with an append-only file."""
    with valkey.running() as server:
        yield CutFile(server)


@asynccontextmanager
async def emptied() -> AsyncIterator[Emptied]:
    """A server."""
    with valkey.running() as server:
        yield Emptied(server)


def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="doorcard-vk-", ignore_cleanup_errors=True)
