"""What goes out on one gRPC stream: encoded frames, gathered and written together.

The queue is bounded. A reader too slow for it loses what waits, not the table its time: each of his
tables is sent as a snapshot when he reads again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from services.runtime.errors import DoorcardError

QUEUE_BYTES_MAX: Final = 256 * 1024
"""Updates that wait for a reader."""
RESULTS_BYTES_MAX: Final = 64 * 1024
"""Answers that wait for a reader before his requests are read no further."""

Write = Callable[[bytes], Awaitable[None]]


class Stream:
    """One stream and what waits to go out on it.

    player_id: whose private frames go here; empty for a spectator. resync(stream, table id):
    queue a snapshot of a table that lost updates.
    """

    def __init__(self, player_id: str, resync: "Callable[[Stream, str], Awaitable[None]]") -> None:
        self.player_id: Final = player_id
        self.tables: set[str] = set()
        """Tables that are open on it."""
        self.lost: set[str] = set()
        """Tables whose updates were dropped."""
        self.answers_due = 0
        """Requests that are not yet answered."""
        self._resync = resync
        self._updates: list[bytes] = []
        self._updates_bytes = 0
        self._results: list[bytes] = []
        self._results_bytes = 0
        self._awake = False
        self._waiter: asyncio.Future[None] | None = None
        self._roomy = asyncio.Event()
        self._roomy.set()
        self._ended = False
        self._failure: DoorcardError | None = None

    def push(self, frames: bytes) -> None:
        """Queue encoded frames. Without room for them everything queued is lost."""
        if self._updates_bytes + len(frames) > QUEUE_BYTES_MAX:
            self._updates.clear()
            self._updates_bytes = 0
            self.lost |= self.tables
        else:
            self._updates.append(frames)
            self._updates_bytes += len(frames)
        self._wake()

    def answer(self, frames: bytes) -> None:
        """Queue the answer to a request; it goes out after the updates that are queued."""
        self._results.append(frames)
        self._results_bytes += len(frames)
        if self._results_bytes > RESULTS_BYTES_MAX:
            self._roomy.clear()
        self._wake()

    def lose(self, table_id: str) -> None:
        """The table's updates have a gap on this stream."""
        self.lost.add(table_id)
        self._wake()

    async def room(self) -> None:
        """Return when another request may be read."""
        await self._roomy.wait()

    def end(self, failure: DoorcardError | None = None) -> None:
        """Nothing more comes: `write_out` writes what waits and returns, or raises the failure."""
        self._ended = True
        self._failure = failure
        self._wake()

    async def write_out(self, write: Write) -> None:
        """Write what is queued, all of it in one message, until the stream ends."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._awake:
                self._waiter = loop.create_future()
                await self._waiter
            if self.answers_due:
                # The answer to a request comes right behind the update that it made: one message.
                await asyncio.sleep(0)
            self._awake = False
            for table_id in list(self.lost):
                self.lost.discard(table_id)
                await self._resync(self, table_id)
            message = self._take()
            if message:
                await write(message)
            if self._failure is not None:
                raise self._failure
            if self._ended and not self.answers_due and not self._awake:
                return

    def _wake(self) -> None:
        # A bare future: this is done for every watcher of every action.
        self._awake = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take(self) -> bytes:
        message = b"".join((*self._updates, *self._results))
        self._updates.clear()
        self._results.clear()
        self._updates_bytes = self._results_bytes = 0
        self._roomy.set()
        return message
