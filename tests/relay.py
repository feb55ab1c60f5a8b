"""A relay between a client and a server, which a test can cut, mend, slow down, make swallow
everything, and turn to another server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]
CHUNK: Final = 64 * 1024


class Relay:
    """target: opens a connection to the server; None while the line is cut."""

    def __init__(self, target: Connect | None) -> None:
        self.target = target
        self.port = 0
        self.delay_s = 0.0
        """Before each piece goes on."""
        self._open: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()

    def cut(self) -> None:
        """Break every connection and make none until there is a target again."""
        self.target = None
        for writer in self._open:
            writer.transport.abort()

    def turn_to(self, target: Connect) -> None:
        """Break every connection; those to come go to another server."""
        self.cut()
        self.target = target

    def hold(self) -> None:
        """Take everything and pass nothing on, as a black hole does, until it flows again."""
        self._flows.clear()

    def flow(self) -> None:
        """Pass on what was held, and what comes."""
        self._flows.set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        await self._flows.wait()
        if self.target is None:
            writer.transport.abort()
            return
        try:
            there, back = await self.target()
        except OSError:
            writer.transport.abort()
            return
        both = {writer, back}
        self._open |= both
        try:
            # The listener's end cancels what it carries.
            with suppress(asyncio.CancelledError):
                await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
        finally:
            self._open -= both

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while data := await reader.read(CHUNK):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


def to_socket(path: Path) -> Connect:
    """Connects to a Unix socket."""
    return lambda: asyncio.open_unix_connection(path)


def to_port(port: int) -> Connect:
    """Connects to a port of this machine."""
    return lambda: asyncio.open_connection("127.0.0.1", port)


@asynccontextmanager
async def on_socket(path: Path, target: Connect) -> AsyncIterator[Relay]:
    """A relay that listens on a Unix socket."""
    relay = Relay(target)
    async with await asyncio.start_unix_server(relay.take, path):
        yield relay
        relay.cut()
        relay.flow()


@asynccontextmanager
async def on_port(target: Connect) -> AsyncIterator[Relay]:
    """A relay that listens on a free port."""
    relay = Relay(target)
    async with await asyncio.start_server(relay.take, "127.0.0.1", 0) as server:
        relay.port = server.sockets[0].getsockname()[1]
        yield relay
        relay.cut()
        relay.flow()
