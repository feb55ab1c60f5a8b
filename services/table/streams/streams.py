"""What goes out on one gRPC stream: encoded frames, gathered and written together.

The queue is bounded. A reader too slow for it loses what waits, not the table its time: each of his
tables is sent as a snapshot when he reads again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from services.runtime.errors import OUR_FAULT, DoorcardError

TICK_FROM_PER_S: Final = 4_000
"""Frames a second from which a gateway's stream waits for more to write at once."""

Write = Callable[[bytes], Awaitable[None]]


class Limits(NamedTuple):
    """What one stream may hold."""

    frames: int
    """In one message of the client's."""
    tables: int
    players: int
    tables_of_player: int
    queue_bytes: int
    """Updates that wait for a reader."""
    answers_bytes: int
    """Answers that wait for a reader before his requests are read no further."""
    answers_due: int
    """Requests without an answer before the next are read."""
    snapshots_bytes: int
    """Of tables that lost updates, in one message, about."""
    pause_s: float
    """The longest time that the next message is left unread after one with refused frames."""


OWN: Final = Limits(
    frames=64,
    tables=64,
    players=1,
    tables_of_player=64,
    queue_bytes=256 * 1024,
    answers_bytes=64 * 1024,
    answers_due=256,
    snapshots_bytes=64 * 1024,
    pause_s=1.0,
)
"""A player's own stream, and a spectator's."""
GATEWAY: Final = Limits(
    frames=1024,
    tables=4096,
    players=16_384,
    tables_of_player=64,
    queue_bytes=16 * 1024 * 1024,
    answers_bytes=1024 * 1024,
    answers_due=8192,
    snapshots_bytes=256 * 1024,
    pause_s=0.1,
)
"""A stream for many players at many tables."""


class Stream:
    """One stream and what waits to go out on it.

    player_id: whose private frames go here; empty for a spectator and for a gateway. gateway: its
    name; empty for a player's own stream. resync(stream, table id): queue a snapshot of a table
    that lost updates. tick_s: how long a busy stream waits for more to write at once.
    """

    # There are thousands of idle ones: what each holds is counted.
    __slots__ = (
        "_answers",
        "_answers_bytes",
        "_answers_due",
        "_awake",
        "_ended",
        "_failure",
        "_full",
        "_resync",
        "_room",
        "_tick_s",
        "_updates",
        "_waiter",
        "cut_by_us",
        "following",
        "gateway",
        "limits",
        "lost",
        "player_id",
        "queued_bytes",
        "tables",
    )

    def __init__(
        self,
        player_id: str,
        resync: "Callable[[Stream, str], Awaitable[None]]",
        *,
        gateway: str = "",
        tick_s: float = 0.0,
    ) -> None:
        self.player_id: Final = player_id
        self.gateway: Final = gateway
        self.limits = GATEWAY if gateway else OWN
        self.tables: set[str] = set()
        """Tables that are open on it."""
        self.following: dict[str, set[str]] = {}
        """Player -> tables that he follows on it."""
        self.lost: set[str] = set()
        """Tables whose updates were dropped."""
        self.cut_by_us = False
        """It ended by our fault: its players are about to come back."""
        self.queued_bytes = 0
        """Of updates."""
        self._answers_due = 0
        self._resync = resync
        self._tick_s = tick_s
        self._updates: list[bytes] = []
        self._answers: list[bytes] = []
        self._answers_bytes = 0
        self._awake = False
        self._waiter: asyncio.Future[None] | None = None
        self._full = False
        """Requests are read no further."""
        self._room: asyncio.Future[None] | None = None
        self._ended = False
        self._failure: DoorcardError | None = None

    def push(self, frames: bytes) -> None:
        """Queue encoded frames. Without room for them everything queued is lost."""
        if self.queued_bytes + len(frames) > self.limits.queue_bytes:
            self._updates.clear()
            self.queued_bytes = 0
            self.lost |= self.tables
        else:
            self._updates.append(frames)
            self.queued_bytes += len(frames)
        self._wake()

    def expect(self) -> None:
        """A request was taken whose answer comes later, by `answer_expected`."""
        self._answers_due += 1
        if self._answers_due >= self.limits.answers_due:
            self._full = True

    def answer_expected(self, frame: bytes) -> None:
        """Queue the answer to a request that was taken before."""
        self._answers_due -= 1
        self.answer(frame)

    def answer(self, frame: bytes) -> None:
        """Queue the answer to a request; it goes out after the updates that are queued."""
        self._answers.append(frame)
        self._answers_bytes += len(frame)
        if self._answers_bytes > self.limits.answers_bytes:
            self._full = True
        self._wake()

    def lose(self, table_id: str) -> None:
        """The table's updates have a gap on this stream."""
        self.lost.add(table_id)
        self._wake()

    async def room(self) -> None:
        """Return when another request may be read; for the one who reads them."""
        while self._full:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def end(self, failure: DoorcardError | None = None) -> None:
        """Nothing more comes: `write_out` writes what waits and returns, or raises the failure."""
        self._ended = True
        self._failure = failure
        self.cut_by_us = failure is not None and failure.code in OUR_FAULT
        self._wake()

    async def write_out(self, write: Write) -> None:
        """Write what is queued, all of it in one message, until the stream ends."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._awake:
                self._waiter = loop.create_future()
                await self._waiter
            if self._answers_due:
                # The answer to a request comes right behind the update that it made: one message.
                await asyncio.sleep(0)
            self._awake = False
            while self.lost and self.queued_bytes < self.limits.snapshots_bytes:
                await self._resync(self, self.lost.pop())
            if self.lost:
                self._awake = True
            frames = len(self._updates) + len(self._answers)
            message = self._take()
            if message:
                await write(message)
            # The next one may be hours away.
            del message
            if self._failure is not None:
                raise self._failure
            if self._ended and not self._answers_due and not self._awake:
                return
            if self._tick_s and frames >= TICK_FROM_PER_S * self._tick_s:
                await asyncio.sleep(self._tick_s)

    def _wake(self) -> None:
        # A bare future: this is done for every watcher of every action.
        self._awake = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take(self) -> bytes:
        message = b"".join((*self._updates, *self._answers))
        self._updates.clear()
        self._answers.clear()
        self.queued_bytes = self._answers_bytes = 0
        if self._answers_due < self.limits.answers_due:
            self._full = False
            if self._room is not None and not self._room.done():
                self._room.set_result(None)
        return message
