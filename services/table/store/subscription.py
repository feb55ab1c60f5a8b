"""Sharded channels of one Redis server, on a connection of their own."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import MovedError

from services.runtime.logs import logger
from services.table.store.connections import CONNECT_TIMEOUT_S, Connect, backoff_s

PING_EVERY_S: Final = 5.0
SILENCE_MAX_S: Final = 15.0
"""A subscription that heard not even the answer to a ping for so long is made anew."""
HEARD_EVERY_S: Final = 1.0
"""How exactly it is known when something was heard last."""

OnMessage = Callable[[bytes, bytes], None]
OnSubscribed = Callable[[bytes], None]
Troubled = Callable[[Exception], None]


class Channels(Protocol):
    """Channels that are listened to."""

    def start(self) -> None:
        """Begin; needs a running loop."""

    async def close(self) -> None:
        """Stop listening."""

    def want(self, channel: bytes) -> None:
        """Listen to a channel from soon on; `on_subscribed` says from when."""

    def leave(self, channel: bytes) -> None:
        """Listen to it no longer."""

    def listens(self, channel: bytes) -> bool:
        """Whether the server counts us among those who listen to a channel, as far as we know."""


class Subscription:
    """Channels of one server; a lost connection is made anew and all of them subscribed again.

    on_message(channel, message) and on_subscribed(channel), which comes after every subscribing,
    the repeated ones too: what was published before it was missed. troubled(error): the connection
    was lost, or (MovedError) a channel belongs to another server. All are called on the loop and
    must not block or raise.
    """

    def __init__(
        self,
        connect: Connect,
        on_message: OnMessage,
        on_subscribed: OnSubscribed,
        troubled: Troubled = lambda _: None,
    ) -> None:
        self._connect = connect
        self._on_message = on_message
        self._on_subscribed = on_subscribed
        self._troubled = troubled
        self._wanted: set[bytes] = set()
        self._subscribed: set[bytes] = set()
        self._listens: set[bytes] = set()
        """Channels that the server said we are subscribed to, on the present connection."""
        self._answered = False
        """The present connection has brought something."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._task = asyncio.create_task(self._listen_for_ever(), name="redis subscription")

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def want(self, channel: bytes) -> None:
        """Listen to a channel from soon on; `on_subscribed` says from when."""
        self._wanted.add(channel)
        self._changed.set()

    def leave(self, channel: bytes) -> None:
        """Listen to it no longer."""
        self._wanted.discard(channel)
        self._changed.set()

    def listens(self, channel: bytes) -> bool:
        """Whether the server counts us among those who listen to a channel, as far as we know."""
        return channel in self._listens

    async def _listen_for_ever(self) -> None:
        failures = 0
        while True:
            connection = self._connect()
            self._subscribed.clear()
            self._answered = False
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await connection.connect()  # type: ignore[no-untyped-call]
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._write(connection))
                    both.create_task(self._read(connection))
            except* Exception as group:
                # Whatever broke it off, without a connection nobody is woken any more.
                failures = 1 if self._answered else failures + 1
                logger.warning("wakes_away", error=type(group.exceptions[0]).__name__)
                self._troubled(group.exceptions[0])
            finally:
                self._listens.clear()
                await connection.disconnect(nowait=True)
            await asyncio.sleep(backoff_s(failures))

    async def _write(self, connection: AbstractConnection) -> None:
        while True:
            self._changed.clear()
            wanted = set(self._wanted)
            # One by one: channels of one command must belong to one slot.
            for channel in sorted(wanted - self._subscribed):
                await connection.send_command("SSUBSCRIBE", channel)
            for channel in sorted(self._subscribed - wanted):
                await connection.send_command("SUNSUBSCRIBE", channel)
            self._subscribed = wanted
            try:
                async with asyncio.timeout(PING_EVERY_S):
                    await self._changed.wait()
            except TimeoutError:
                await connection.send_command("PING")

    async def _read(self, connection: AbstractConnection) -> None:
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        async with asyncio.timeout(SILENCE_MAX_S) as silence:
            while True:
                try:
                    reply = await connection.read_response(disable_decoding=True)
                except MovedError as error:
                    self._troubled(error)
                    continue
                self._answered = True
                # Not for every message: one comes with every commit.
                if loop.time() > heard_at + HEARD_EVERY_S:
                    heard_at = loop.time()
                    silence.reschedule(heard_at + SILENCE_MAX_S)
                if reply[0] == b"smessage":
                    self._on_message(reply[1], reply[2])
                elif reply[0] == b"ssubscribe":
                    self._listens.add(reply[1])
                    self._on_subscribed(reply[1])
                elif reply[0] == b"sunsubscribe":
                    # Of itself the server sends this when the channel's slot has moved away.
                    self._listens.discard(reply[1])
                    self._subscribed.discard(reply[1])
                    self._changed.set()
