"""The wire to one Redis server: one plain connection, used by one task.

Whoever wants something of Redis leaves a command and waits. All commands left in one tick of the
event loop go out in one write, not in a MULTI: each is answered alone. Only the sending task ever
touches the connection, and it drops it whenever reading was broken off, so no reply can reach the
wrong waiter. Who stops waiting changes nothing: his command has its effect all the same.

Every command may be sent again after a lost connection, when nobody knows whether it had its
effect; the scripts are written so that the second time does no harm.

With `replicas_required` one WAIT follows the commands of a write, on the same connection, and
nothing durable is answered before its reply. WAIT speaks only of what this connection wrote, so a
command that is sent again takes a write to its shard's fence along.
"""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import hiredis
from prometheus_client import Counter
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from services.runtime.errors import Internal, Unavailable
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY, Dependency
from services.table.store.connections import CONNECT_TIMEOUT_S, backoff_s, connections
from services.table.store.subscription import Channels, OnMessage, OnSubscribed, Subscription

BATCH_MAX: Final = 512
"""Commands in one write."""
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
WAITING_MAX: Final = 16_384
"""Commands left and not yet answered; the next one is refused."""
TRIES_MAX: Final = 8
"""Times that a command is sent whose effect is not known."""
RETRY_AFTER_MS: Final = 500
CONFIRM_MS: Final = 300
"""How long replicas have to confirm a write."""

LOST: Final = Counter(
    "doorcard_store_connections_lost",
    "Times that the connection to the store broke or could not be made.",
    registry=REGISTRY,
)
UNCONFIRMED: Final = Counter(
    "doorcard_store_writes_unconfirmed",
    "Writes that too few of the store's replicas confirmed in time.",
    registry=REGISTRY,
)

REDIS: Final = Dependency("redis", "exchange")
"""One exchange is one write and its replies, of all commands of a tick."""

Argument = bytes | str | int
_ELSEWHERE: Final = (MovedError, AskError)
_PASSING: Final = (TryAgainError, ClusterDownError, MasterDownError, ReadOnlyError)
_PASSING_WORDS: Final = ("LOADING", "BUSY", "NOREPLICAS")


def packed(*words: Argument) -> bytes:
    """A command as it goes over the wire."""
    return bytes(hiredis.pack_command(words))  # type: ignore[arg-type]  # a tuple of any length


_ASKING: Final = packed("ASKING")
_LUA: Final = b"#!lua\n"
_WHEN_FULL: Final = b"#!lua flags=allow-oom\n"


class Script:
    """A Lua script and the name that Redis knows it by.

    when_full: runs also where Redis has no memory left, as those do whose first line says so.
    """

    def __init__(self, path: Path, *, when_full: bool = False) -> None:
        text = path.read_bytes()
        self.name: Final = path.stem
        self.text: Final = text.replace(_LUA, _WHEN_FULL, 1) if when_full else text
        self.writes: Final = b"no-writes" not in self.text.partition(b"\n")[0]
        self.sha: Final = hashlib.sha1(self.text, usedforsecurity=False).hexdigest()


_FENCE: Final = Script(Path(__file__).parent / "scripts" / "fence.lua")


class Command:
    """A command on its way.

    key: one of its keys, which says where it belongs. durable: its reply waits for the replicas.
    """

    __slots__ = (
        "answer",
        "answered",
        "asking",
        "durable",
        "give_up_at",
        "key",
        "packed",
        "pauses",
        "tries",
    )

    def __init__(
        self,
        packed: bytes,
        key: str,
        answer: "asyncio.Future[Any]",
        give_up_at: float,
        *,
        durable: bool,
    ) -> None:
        self.packed = packed
        self.key = key
        self.answer = answer
        self.give_up_at = give_up_at
        self.durable = durable
        self.tries = 0
        """Times that it was sent and perhaps had its effect."""
        self.pauses = 0
        """Times that it waited for a node to take it."""
        self.asking = False
        """It was sent on to a node that is still taking over its slot."""
        # Not the same as answer.done(): a waiter may have gone away before the reply came.
        self.answered = False

    def before(self) -> list[bytes]:
        """What goes ahead of it, each with a reply of its own."""
        ahead = []
        if self.durable and self.tries > 1:
            fence = f"{self.key.partition('}')[0]}}}:fence"
            ahead.append(packed("EVAL", _FENCE.text, 1, fence, self.tries))
        if self.asking:
            ahead = [part for each in (*ahead, b"") for part in (_ASKING, each) if part]
        return ahead

    def succeed(self, reply: Any) -> None:
        """The reply."""
        self.answered = True
        if not self.answer.done():
            self.answer.set_result(reply)

    def fail(self, error: Exception) -> None:
        """It comes to nothing, as far as anybody knows."""
        self.answered = True
        if not self.answer.done():
            self.answer.set_exception(error)


class Wire(ABC):
    """Commands in, futures of replies out (bytes, ints, lists of them, None).

    A future fails with Unavailable (STORE_AWAY, WRITE_UNCONFIRMED: perhaps it had its effect,
    perhaps not; STORE_FULL, STORE_MEMORY: it had none) or Internal (STORE_FAULT: Redis refused the
    command).
    """

    _patience_s: float
    _confirms: bool

    @abstractmethod
    def start(self) -> None:
        """Begin to send; needs a running loop."""

    @abstractmethod
    async def close(self) -> None:
        """Stop; what still waits fails with Unavailable."""

    @abstractmethod
    def leave(self, command: Command) -> None:
        """Send it with everything else of this tick."""

    @abstractmethod
    def nodes(self) -> Sequence[str]:
        """The servers that hold keys."""

    @abstractmethod
    def node_of(self, key: str) -> str:
        """The server that holds a key."""

    @abstractmethod
    def ask_node(self, node: str, *command: Argument) -> "asyncio.Future[Any]":
        """A command without keys, to one of `nodes`."""

    @abstractmethod
    def subscription(self, on_message: OnMessage, on_subscribed: OnSubscribed) -> Channels:
        """Sharded channels, on connections of their own."""

    def ask(self, *command: Argument) -> "asyncio.Future[Any]":
        """A command whose second word is its key; its answer waits for no replica."""
        return self._left(command, str(command[1]), durable=False)

    def run(
        self,
        script: Script,
        keys: Sequence[Argument],
        args: Sequence[Argument],
        *,
        durable: bool = True,
    ) -> "asyncio.Future[Any]":
        """A script; all keys belong to one slot.

        durable: answer only when the replicas have it, if any are required and if it writes.
        """
        command = ("EVALSHA", script.sha, len(keys), *keys, *args)
        return self._left(command, str(keys[0]), durable=durable and script.writes)

    def _left(self, words: Sequence[Argument], key: str, *, durable: bool) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        give_up_at = loop.time() + self._patience_s
        durable = durable and self._confirms
        self.leave(Command(packed(*words), key, answer, give_up_at, durable=durable))
        return answer


class Line(Wire):
    """The wire to one server.

    url: redis://, rediss:// or unix://. reply_timeout_s: for the replies of one batch; after it the
    connection is dropped. patience_s: how long a command is tried again before it fails.
    replicas_required: how many must have a durable write before it is answered. elsewhere: takes
    over commands that this server did not answer, with the reason; without it they are sent to it
    again.
    """

    def __init__(
        self,
        url: str,
        scripts: Sequence[Script],
        *,
        reply_timeout_s: float = 2.0,
        patience_s: float = 4.0,
        replicas_required: int = 0,
        elsewhere: Callable[[Command, Exception], None] | None = None,
    ) -> None:
        self._url = url
        self._connect = connections(url)
        self._scripts = scripts
        self._reply_timeout_s = reply_timeout_s
        self._patience_s = patience_s
        self._confirms = replicas_required > 0
        self._replicas_required = replicas_required
        self._wait = packed("WAIT", replicas_required, CONFIRM_MS)
        self._elsewhere = elsewhere
        self._connection: AbstractConnection | None = None
        self._waiting: deque[Command] = deque()
        self._passed_on: set[Command] = set()
        self._left_some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._send_for_ever(), name="redis line")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def leave(self, command: Command) -> None:
        if self._task is None or self._task.done() or len(self._waiting) >= WAITING_MAX:
            command.fail(unavailable("STORE_FULL" if self._task else "STORE_AWAY"))
            return
        self._waiting.append(command)
        self._left_some.set()

    def take_back(self) -> list[Command]:
        """The commands that were left and not yet sent."""
        back = list(self._waiting)
        self._waiting.clear()
        self._left_some.clear()
        return back

    def nodes(self) -> Sequence[str]:
        return ("",)

    def node_of(self, key: str) -> str:  # noqa: ARG002 (there is one)
        return ""

    def ask_node(self, node: str, *command: Argument) -> "asyncio.Future[Any]":  # noqa: ARG002
        return self._left(command, "", durable=False)

    def subscription(self, on_message: OnMessage, on_subscribed: OnSubscribed) -> Channels:
        return Subscription(connections(self._url), on_message, on_subscribed)

    async def _send_for_ever(self) -> None:
        failures = 0
        batch: list[Command] = []
        try:
            while True:
                await self._left_some.wait()
                batch = self._take()
                failure: Exception | None = None
                try:
                    with REDIS.timed("exchange"):
                        await self._exchange(batch)
                except Exception as error:
                    # Whatever broke off the reading, nothing may be read on this connection.
                    if not failures:
                        logger.warning("store_away", error=type(error).__name__)
                    LOST.inc()
                    failure = error
                    await self._drop()
                again = [e for e in batch if not e.answered and e not in self._passed_on]
                self._passed_on.clear()
                self._put_back(again, failure)
                # What went elsewhere is answered there, whatever becomes of this line.
                batch = []
                failures = failures + 1 if again else 0
                if failures:
                    await asyncio.sleep(backoff_s(failures))
                    self._expire()
        finally:
            await self._drop()
            for command in (*batch, *self._waiting):
                if not command.answered and command not in self._passed_on:
                    command.fail(unavailable("STORE_AWAY"))
            self._waiting.clear()

    def _take(self) -> list[Command]:
        batch: list[Command] = []
        size = 0
        while self._waiting and len(batch) < BATCH_MAX and size < BATCH_BYTES_MAX:
            command = self._waiting.popleft()
            size += len(command.packed)
            batch.append(command)
        if not self._waiting:
            self._left_some.clear()
        return batch

    async def _exchange(self, batch: list[Command]) -> None:
        """Send, read, answer. What is not answered then must be sent again."""
        async with asyncio.timeout(self._reply_timeout_s + CONNECT_TIMEOUT_S):
            connection = self._connection or await self._open()
            parts: list[bytes] = []
            ahead: dict[Command, int] = {}
            waits = False
            for command in batch:
                command.tries += 1
                waits = waits or command.durable
                if command.asking or command.tries > 1:
                    before = command.before()
                    ahead[command] = len(before)
                    parts += before
                parts.append(command.packed)
            if waits:
                parts.append(self._wait)
            await connection.send_packed_command(b"".join(parts))
            await self._answer(connection, batch, ahead, waits=waits)

    async def _answer(
        self,
        connection: AbstractConnection,
        batch: list[Command],
        ahead: dict[Command, int],
        *,
        waits: bool,
    ) -> None:
        refused: list[tuple[Command, ResponseError]] = []
        written: list[tuple[Command, Any]] = []
        unfenced: set[Command] = set()
        for command in batch:
            for _ in range(ahead.get(command, 0)):
                try:
                    await connection.read_response(disable_decoding=True)
                except ResponseError:
                    unfenced.add(command)
            try:
                reply = await connection.read_response(disable_decoding=True)
            except ResponseError as error:
                refused.append((command, error))
                continue
            if command.durable:
                written.append((command, reply))
            else:
                command.succeed(reply)
        copies = await connection.read_response(disable_decoding=True) if waits else 0
        for command, reply in written:
            if copies >= self._replicas_required and command not in unfenced:
                command.succeed(reply)
            else:
                UNCONFIRMED.inc()
                command.fail(unavailable("WRITE_UNCONFIRMED"))
        for command, refusal in refused:
            await self._refused(connection, command, refusal)

    async def _refused(
        self, connection: AbstractConnection, command: Command, error: ResponseError
    ) -> None:
        if isinstance(error, NoScriptError):
            await self._load_scripts(connection)
        elif isinstance(error, OutOfMemoryError):
            command.fail(unavailable("STORE_MEMORY"))
        elif not _passes(error):
            logger.error("store_refused_a_command", error=str(error)[:200])
            command.fail(Internal("STORE_FAULT", "the store refused a command"))
        elif self._elsewhere is not None:
            # It had no effect: the time it may take is bound enough.
            command.tries -= 1
            self._passed_on.add(command)
            self._elsewhere(command, error)
        elif isinstance(error, ReadOnlyError):
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

    def _put_back(self, again: list[Command], failure: Exception | None) -> None:
        if self._elsewhere is not None and failure is not None:
            for command in (*again, *self.take_back()):
                self._elsewhere(command, failure)
            return
        for command in reversed(again):
            if command.tries < TRIES_MAX:
                self._waiting.appendleft(command)
            else:
                command.fail(unavailable("STORE_AWAY"))
        if self._waiting:
            self._left_some.set()

    def _expire(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._waiting and self._waiting[0].give_up_at <= now:
            self._waiting.popleft().fail(unavailable("STORE_AWAY"))
        if not self._waiting:
            self._left_some.clear()


def unavailable(reason: str) -> Unavailable:
    """STORE_AWAY, STORE_FULL, STORE_MEMORY or WRITE_UNCONFIRMED."""
    return Unavailable(reason, _WORDS[reason], retry_after_ms=RETRY_AFTER_MS)


_WORDS: Final = {
    "STORE_AWAY": "the store does not answer",
    "STORE_FULL": "too many requests wait for the store",
    "STORE_MEMORY": "the store has no memory left; what ends is written, nothing new begins",
    "WRITE_UNCONFIRMED": "too few replicas of the store confirmed it: ask again with the same id",
}


def _passes(error: ResponseError) -> bool:
    return isinstance(error, (*_ELSEWHERE, *_PASSING)) or str(error).startswith(_PASSING_WORDS)
