"""The wire to Redis: one plain connection, used by one task.

Whoever wants something of Redis leaves a command and waits. All commands left in one tick of the
event loop go out in one write, not in a MULTI: each is answered alone. Only the sending task ever
touches the connection, and it drops it whenever reading was broken off, so no reply can reach the
wrong waiter. Who stops waiting changes nothing: his command has its effect all the same.

Every command may be sent again after a lost connection, when nobody knows whether it had its
effect; the scripts are written so that the second time does no harm.
"""

import asyncio
import hashlib
import random
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import hiredis
from prometheus_client import Counter
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import (
    ClusterDownError,
    MasterDownError,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from services.runtime.errors import Internal, Unavailable
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY, Dependency

BATCH_MAX: Final = 512
"""Commands in one write."""
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
WAITING_MAX: Final = 16_384
"""Commands left and not yet answered; the next one is refused."""
TRIES_MAX: Final = 8
CONNECT_TIMEOUT_S: Final = 1.0
BACKOFF_FIRST_S: Final = 0.02
BACKOFF_MAX_S: Final = 0.5
RETRY_AFTER_MS: Final = 500
PING_EVERY_S: Final = 5.0
SILENCE_MAX_S: Final = 15.0
"""A subscription that heard not even the answer to a ping for so long is made anew."""
HEARD_EVERY_S: Final = 1.0
"""How exactly it is known when something was heard last."""
CHANNELS_PER_COMMAND: Final = 64

LOST: Final = Counter(
    "doorcard_store_connections_lost",
    "Times that the connection to the store broke or could not be made.",
    registry=REGISTRY,
)

REDIS: Final = Dependency("redis", "exchange")
"""One exchange is one write and its replies, of all commands of a tick."""

Argument = bytes | str | int
_PASSING: Final = (TryAgainError, ClusterDownError, MasterDownError, ReadOnlyError)
_PASSING_WORDS: Final = ("LOADING", "BUSY", "NOREPLICAS")


class Script:
    """A Lua script and the name that Redis knows it by."""

    def __init__(self, path: Path) -> None:
        self.name: Final = path.stem
        self.text: Final = path.read_bytes()
        self.sha: Final = hashlib.sha1(self.text, usedforsecurity=False).hexdigest()


class _Command:
    __slots__ = ("answer", "answered", "give_up_at", "packed", "tries")

    def __init__(self, packed: bytes, answer: "asyncio.Future[Any]", give_up_at: float) -> None:
        self.packed = packed
        self.answer = answer
        self.give_up_at = give_up_at
        self.tries = 0
        # Not the same as answer.done(): a waiter may have gone away before the reply came.
        self.answered = False

    def succeed(self, reply: Any) -> None:
        self.answered = True
        if not self.answer.done():
            self.answer.set_result(reply)

    def fail(self, error: Exception) -> None:
        self.answered = True
        if not self.answer.done():
            self.answer.set_exception(error)


class Line:
    """Commands in, futures of replies out (bytes, ints, lists of them, None).

    A future fails with Unavailable (STORE_AWAY: perhaps it had its effect, perhaps not; STORE_FULL)
    or Internal (STORE_FAULT: Redis refused the command).

    url: redis://, rediss:// or unix://. reply_timeout_s: for the replies of one batch; after it the
    connection is dropped. patience_s: how long a command is tried again before it fails.
    """

    def __init__(
        self,
        url: str,
        scripts: Sequence[Script],
        *,
        reply_timeout_s: float = 2.0,
        patience_s: float = 4.0,
    ) -> None:
        self._connect = _connections(url)
        self._scripts = scripts
        self._reply_timeout_s = reply_timeout_s
        self._patience_s = patience_s
        self._connection: AbstractConnection | None = None
        self._waiting: deque[_Command] = deque()
        self._left = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to send; needs a running loop."""
        self._task = asyncio.create_task(self._send_for_ever(), name="redis line")

    async def close(self) -> None:
        """Stop; what still waits fails with Unavailable."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def ask(self, *command: Argument) -> "asyncio.Future[Any]":
        """Leave a command to be sent with everything else of this tick."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        if self._task is None or self._task.done() or len(self._waiting) >= WAITING_MAX:
            reason = "STORE_FULL" if self._task else "STORE_AWAY"
            answer.set_exception(_unavailable(reason))
            return answer
        packed: bytes = hiredis.pack_command(command)  # type: ignore[arg-type]  # a tuple of any length
        self._waiting.append(_Command(packed, answer, loop.time() + self._patience_s))
        self._left.set()
        return answer

    def run(
        self, script: Script, keys: Sequence[Argument], args: Sequence[Argument]
    ) -> "asyncio.Future[Any]":
        """`ask` for a script."""
        return self.ask("EVALSHA", script.sha, len(keys), *keys, *args)

    async def _send_for_ever(self) -> None:
        failures = 0
        batch: list[_Command] = []
        try:
            while True:
                await self._left.wait()
                batch = self._take()
                try:
                    with REDIS.timed("exchange"):
                        await self._exchange(batch)
                except Exception as error:
                    # Whatever broke off the reading, nothing may be read on this connection.
                    if not failures:
                        logger.warning("store_away", error=type(error).__name__)
                    LOST.inc()
                    await self._drop()
                again = [each for each in batch if not each.answered]
                self._put_back(again)
                failures = failures + 1 if again else 0
                if failures:
                    await asyncio.sleep(_backoff_s(failures))
                    self._expire()
        finally:
            await self._drop()
            for command in (*batch, *self._waiting):
                if not command.answered:
                    command.fail(_unavailable("STORE_AWAY"))
            self._waiting.clear()

    def _take(self) -> list[_Command]:
        batch: list[_Command] = []
        size = 0
        while self._waiting and len(batch) < BATCH_MAX and size < BATCH_BYTES_MAX:
            command = self._waiting.popleft()
            size += len(command.packed)
            batch.append(command)
        if not self._waiting:
            self._left.clear()
        return batch

    async def _exchange(self, batch: list[_Command]) -> None:
        """Send, read, answer. What is not answered then must be sent again."""
        async with asyncio.timeout(self._reply_timeout_s + CONNECT_TIMEOUT_S):
            connection = self._connection or await self._open()
            for command in batch:
                command.tries += 1
            await connection.send_packed_command(b"".join(each.packed for each in batch))
            refused: ResponseError | None = None
            for command in batch:
                try:
                    command.succeed(await connection.read_response(disable_decoding=True))
                except ResponseError as error:
                    if _passes(error):
                        refused = error
                    else:
                        logger.error("store_refused_a_command", error=str(error)[:200])
                        command.fail(Internal("STORE_FAULT", "the store refused a command"))
            if isinstance(refused, NoScriptError):
                await self._load_scripts(connection)
            elif isinstance(refused, ReadOnlyError):
                await self._drop()

    async def _open(self) -> AbstractConnection:
        connection = self._connect()
        self._connection = connection
        await connection.connect()  # type: ignore[no-untyped-call]
        await self._load_scripts(connection)
        return connection

    async def _load_scripts(self, connection: AbstractConnection) -> None:
        for script in self._scripts:
            await connection.send_command("SCRIPT", "LOAD", script.text)
        for script in self._scripts:
            sha = await connection.read_response(disable_decoding=True)
            if sha != script.sha.encode():
                raise ResponseError(f"script {script.name} is known by another name")

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    def _put_back(self, again: list[_Command]) -> None:
        for command in reversed(again):
            if command.tries < TRIES_MAX:
                self._waiting.appendleft(command)
            else:
                command.fail(_unavailable("STORE_AWAY"))
        if self._waiting:
            self._left.set()

    def _expire(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._waiting and self._waiting[0].give_up_at <= now:
            self._waiting.popleft().fail(_unavailable("STORE_AWAY"))
        if not self._waiting:
            self._left.clear()


class Subscription:
    """Sharded channels on a connection of its own; lost, it is made anew and all are subscribed.

    on_message(channel, message) and on_subscribed(channel), which comes after every subscribing,
    the repeated ones too: what was published before it was missed. Both are called on the loop and
    must not block or raise.
    """

    def __init__(
        self,
        url: str,
        on_message: Callable[[bytes, bytes], None],
        on_subscribed: Callable[[bytes], None],
    ) -> None:
        self._connect = _connections(url)
        self._on_message = on_message
        self._on_subscribed = on_subscribed
        self._wanted: set[bytes] = set()
        self._subscribed: set[bytes] = set()
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

    async def _listen_for_ever(self) -> None:
        failures = 0
        while True:
            connection = self._connect()
            self._subscribed.clear()
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await connection.connect()  # type: ignore[no-untyped-call]
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._write(connection))
                    both.create_task(self._read(connection))
            except* Exception as group:
                failures += 1
                logger.warning("wakes_away", error=type(group.exceptions[0]).__name__)
            finally:
                await connection.disconnect(nowait=True)
            await asyncio.sleep(_backoff_s(failures))

    async def _write(self, connection: AbstractConnection) -> None:
        while True:
            self._changed.clear()
            await self._send(connection, "SSUBSCRIBE", self._wanted - self._subscribed)
            await self._send(connection, "SUNSUBSCRIBE", self._subscribed - self._wanted)
            self._subscribed = set(self._wanted)
            try:
                async with asyncio.timeout(PING_EVERY_S):
                    await self._changed.wait()
            except TimeoutError:
                await connection.send_command("PING")

    async def _send(self, connection: AbstractConnection, what: str, channels: set[bytes]) -> None:
        ordered = sorted(channels)
        for start in range(0, len(ordered), CHANNELS_PER_COMMAND):
            await connection.send_command(what, *ordered[start : start + CHANNELS_PER_COMMAND])

    async def _read(self, connection: AbstractConnection) -> None:
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        async with asyncio.timeout(SILENCE_MAX_S) as silence:
            while True:
                reply = await connection.read_response(disable_decoding=True)
                # Not for every message: one comes with every commit.
                if loop.time() > heard_at + HEARD_EVERY_S:
                    heard_at = loop.time()
                    silence.reschedule(heard_at + SILENCE_MAX_S)
                if reply[0] == b"smessage":
                    self._on_message(reply[1], reply[2])
                elif reply[0] == b"ssubscribe":
                    self._on_subscribed(reply[1])


def _connections(url: str) -> Callable[[], AbstractConnection]:
    """A maker of connections; time-outs are the caller's, over whole batches."""
    pool = ConnectionPool.from_url(
        url, protocol=2, socket_timeout=None, socket_connect_timeout=CONNECT_TIMEOUT_S
    )
    return pool.make_connection


def _passes(error: ResponseError) -> bool:
    return isinstance(error, (*_PASSING, NoScriptError)) or str(error).startswith(_PASSING_WORDS)


def _unavailable(reason: str) -> Unavailable:
    message = "too many requests wait for the store"
    if reason == "STORE_AWAY":
        message = "the store does not answer"
    return Unavailable(reason, message, retry_after_ms=RETRY_AFTER_MS)


def _backoff_s(failures: int) -> float:
    ceiling = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(failures - 1, 8))
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311 (no secret)
