"""When tables act: flat out, at a fixed rate, or one after another; and what that took."""

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final, Protocol

ANSWERS_S: Final = 20.0
"""Longest wait for the last answers of a phase."""


class Acting(Protocol):
    """A table that tells its pace when it can act (`turned`) and was answered (`answered`)."""

    since_s: float
    """When its action was wanted."""

    def act(self) -> Coroutine[Any, Any, None]:
        """Send one action."""


class Pace:
    """Has tables act, one action of each at a time."""

    def __init__(self) -> None:
        self.done = 0
        """Actions answered."""
        self._latencies_s: list[float] = []
        self._ready: deque[Acting] = deque()
        self._owed: deque[float] = deque()
        self._flat_out = False
        self._in_flight = 0
        self._sending: set[asyncio.Task[None]] = set()

    # What tables tell

    def turned(self, table: Acting) -> None:
        """The table can act."""
        if self._flat_out:
            self._send(table, time.perf_counter())
        elif self._owed:
            self._send(table, self._owed.popleft())
        else:
            self._ready.append(table)

    def answered(self, table: Acting) -> None:
        """Its action was done."""
        self.done += 1
        self._in_flight -= 1
        self._latencies_s.append(time.perf_counter() - table.since_s)

    # Phases: each returns when its last action is answered

    async def flat_out(self, seconds: float) -> int:
        """Every table acts as soon as it can; the number of actions."""
        before = self.done
        self._flat_out = True
        while self._ready:
            self._send(self._ready.popleft(), time.perf_counter())
        await asyncio.sleep(seconds)
        self._flat_out = False
        await self._answers()
        return self.done - before

    async def at_rate(self, per_s: float, seconds: float) -> list[float]:
        """Seconds of each action at a fixed rate, from when it was due: an action that found no
        table ready has waited since then.
        """
        self._latencies_s = []
        began_s = time.perf_counter()
        wanted = int(per_s * seconds)
        sent = 0
        while sent < wanted:
            now_s = time.perf_counter()
            while sent < min(wanted, (now_s - began_s) * per_s):
                due_s = began_s + sent / per_s
                sent += 1
                if self._ready:
                    self._send(self._ready.popleft(), due_s)
                else:
                    self._owed.append(due_s)
            await asyncio.sleep(0.001)
        await self._answers()
        return self._latencies_s

    async def one_by_one(self, count: int) -> list[float]:
        """Seconds of each of `count` actions with nothing else going on."""
        self._latencies_s = []
        for _ in range(count):
            self._owed.append(time.perf_counter())
            if self._ready:
                self.turned(self._ready.popleft())
            await self._answers()
            await asyncio.sleep(0.002)
        return self._latencies_s

    def _send(self, table: Acting, since_s: float) -> None:
        self._in_flight += 1
        table.since_s = since_s
        task = asyncio.get_running_loop().create_task(table.act())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _answers(self) -> None:
        late_s = time.perf_counter() + ANSWERS_S
        while self._in_flight or self._owed:
            if time.perf_counter() > late_s:
                raise RuntimeError(f"{self._in_flight} actions were not answered")
            await asyncio.sleep(0.001)
