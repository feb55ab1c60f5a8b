"""The mailbox of a table: its commands one at a time, in the order they came.

A mailbox exists only while there is work. Whoever stops waiting changes nothing: his command runs
all the same, and its commit is never broken off.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from prometheus_client import Gauge

from services.runtime.errors import ResourceExhausted
from services.runtime.logs import bind, bound, rebind
from services.runtime.metrics import REGISTRY

PER_PLAYER_MAX: Final = 4
"""Commands of one player that wait at one table."""
PLAYERS_WAITING_MAX: Final = 128
"""Commands of all players that wait at one table; ticks and who sits there have room beyond it."""
TICKS_MAX: Final = 8
RETRY_AFTER_MS: Final = 200

TICKS: Final = ""
"""Who the room's own commands are from."""

DEPTH: Final = Gauge(
    "doorcard_table_mailbox_depth", "Commands that wait for their table's turn.", registry=REGISTRY
)

T = TypeVar("T")
Work = Callable[[], Awaitable[T]]


def _unknown() -> bool:
    return False


class Mailboxes:
    """The mailboxes of all tables with work."""

    def __init__(self) -> None:
        self._boxes: dict[str, _Mailbox] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def submit(
        self, table_id: str, sender: str, work: Work[T], sits: Callable[[], bool] = _unknown
    ) -> "asyncio.Future[T]":
        """Leave a command behind those that wait; the future is its result.

        sender: the player, or `TICKS`. sits: whether he has a seat, who has room beside any number
        of strangers. Raises ResourceExhausted (MAILBOX_FULL) when too many of his wait.
        """
        loop = asyncio.get_running_loop()
        box = self._boxes.get(table_id)
        if box is None:
            box = _Mailbox()
            box.admit(sender, sits)
            self._boxes[table_id] = box
            self._empty.clear()
            # A context of its own: what one sender bound must not be another's, nor who he is.
            task = loop.create_task(self._empty_out(table_id, box), context=contextvars.Context())
            box.task = task
        else:
            box.admit(sender, sits)
        future: asyncio.Future[T] = loop.create_future()
        future.add_done_callback(_notice)
        box.waiting.append(_Letter(sender, work, future, bound()))
        DEPTH.inc()
        return future

    def busy(self, table_id: str) -> bool:
        """Whether a command of the table runs or waits."""
        return table_id in self._boxes

    async def emptied(self) -> None:
        """Return when no table has work."""
        await self._empty.wait()

    async def _empty_out(self, table_id: str, box: "_Mailbox") -> None:
        fresh = True
        try:
            while box.waiting:
                letter = box.waiting.popleft()
                box.leave(letter.sender)
                DEPTH.dec()
                # Lines and calls of this turn belong to the call that asked for it.
                if fresh:
                    bind(**letter.ids)
                else:
                    rebind(letter.ids)
                fresh = False
                await _run(letter.work, letter.future)
        finally:
            DEPTH.dec(len(box.waiting))
            for letter in box.waiting:
                letter.future.cancel()
            del self._boxes[table_id]
            if not self._boxes:
                self._empty.set()


class _Letter(NamedTuple):
    sender: str
    work: Work[Any]
    future: asyncio.Future[Any]
    ids: Mapping[str, Any]


class _Mailbox:
    __slots__ = ("senders", "task", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[_Letter] = deque()
        self.senders: dict[str, int] = {}
        self.task: asyncio.Task[None] | None = None

    def admit(self, sender: str, sits: Callable[[], bool]) -> None:
        limit = PER_PLAYER_MAX if sender else TICKS_MAX
        of_his = self.senders.get(sender, 0)
        of_players = len(self.waiting) - self.senders.get(TICKS, 0)
        crowded = sender and of_players >= PLAYERS_WAITING_MAX
        if of_his >= limit or (crowded and not sits()):
            raise ResourceExhausted(
                "MAILBOX_FULL",
                "too many requests of this player wait at this table",
                metadata={"limit": str(limit)},
                retry_after_ms=RETRY_AFTER_MS,
            )
        self.senders[sender] = of_his + 1

    def leave(self, sender: str) -> None:
        self.senders[sender] -= 1
        if not self.senders[sender]:
            del self.senders[sender]


async def _run(work: Work[T], future: "asyncio.Future[T]") -> None:
    try:
        result = await work()
    except asyncio.CancelledError:
        future.cancel()
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
    except Exception as error:
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)


def _notice(future: "asyncio.Future[Any]") -> None:
    """Look at the outcome: asyncio complains of errors that nobody waited for."""
    if not future.cancelled():
        future.exception()
