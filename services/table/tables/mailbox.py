"""The mailbox of a table: its commands one at a time, in the order they came.

A mailbox exists only while there is work. Whoever stops waiting changes nothing: his command runs
all the same, and its commit is never broken off.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from prometheus_client import Gauge

from services.runtime.errors import ResourceExhausted
from services.runtime.logs import bound, rebind
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


def _nobody(_table_id: str, _player_id: str) -> bool:
    return False


class Mailboxes:
    """The mailboxes of all tables with work.

    sits: whether a player has a seat at a table, who has room beside any number of strangers.
    """

    def __init__(self, sits: Callable[[str, str], bool] = _nobody) -> None:
        self._sits = sits
        self._waiting = 0
        DEPTH.set_function(lambda: self._waiting)
        self._boxes: dict[str, _Mailbox] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def submit(self, table_id: str, sender: str, work: Work[T]) -> "asyncio.Future[T]":
        """Leave a command behind those that wait; the future is its result.

        sender: the player, or `TICKS`. Raises ResourceExhausted (MAILBOX_FULL) when too many of his
        wait.
        """
        loop = asyncio.get_running_loop()
        box = self._boxes.get(table_id)
        if box is None:
            box = self._boxes[table_id] = _Mailbox()
            self._empty.clear()
            # A context of its own: what one sender bound must not be another's, nor who he is.
            box.task = loop.create_task(
                self._empty_out(table_id, box), context=contextvars.Context()
            )
        elif box.waiting:
            self._check_room(table_id, sender, box.waiting)
        future: asyncio.Future[T] = loop.create_future()
        box.waiting.append(_Letter(sender, work, future, bound()))
        self._waiting += 1
        return future

    def busy(self, table_id: str) -> bool:
        """Whether a command of the table runs or waits."""
        return table_id in self._boxes

    async def emptied(self) -> None:
        """Return when no table has work."""
        await self._empty.wait()

    async def _empty_out(self, table_id: str, box: "_Mailbox") -> None:
        try:
            while box.waiting:
                letter = box.waiting.popleft()
                self._waiting -= 1
                # Lines and calls of this turn belong to the call that asked for it.
                rebind(letter.ids)
                await _run(letter.work, letter.future)
        finally:
            self._waiting -= len(box.waiting)
            for letter in box.waiting:
                letter.future.cancel()
            del self._boxes[table_id]
            if not self._boxes:
                self._empty.set()

    def _check_room(self, table_id: str, sender: str, waiting: "Collection[_Letter]") -> None:
        of_his = sum(each.sender == sender for each in waiting)
        limit = PER_PLAYER_MAX if sender else TICKS_MAX
        crowded = sender and len(waiting) >= PLAYERS_WAITING_MAX
        if crowded:
            of_players = sum(each.sender != TICKS for each in waiting)
            crowded = of_players >= PLAYERS_WAITING_MAX and not self._sits(table_id, sender)
        if of_his >= limit or crowded:
            raise ResourceExhausted(
                "MAILBOX_FULL",
                "too many requests of this player wait at this table",
                metadata={"limit": str(limit)},
                retry_after_ms=RETRY_AFTER_MS,
            )


class _Letter(NamedTuple):
    sender: str
    work: Work[Any]
    future: asyncio.Future[Any]
    ids: Mapping[str, Any]


class _Mailbox:
    __slots__ = ("task", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[_Letter] = deque()
        self.task: asyncio.Task[None] | None = None


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
            # Looked at: asyncio complains of errors that nobody waited for.
            future.exception()
    else:
        if not future.done():
            future.set_result(result)
