"""Faults of every kind, one after the other, at random from a seed."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

from services.runtime.failpoints import POINTS
from tests.chaos.rooms import FaultyRoom
from tests.chaos.triggers import flood

LINE_S: Final = (0.5, 4.0)
HALT_S: Final = (0.5, 3.0)
CLOCK_S: Final = 3.0
JUMP_S: Final = 300
SLOW_S: Final = 0.1
POINT_S: Final = 8.0
"""Longest wait for somebody to come by a fail point: not each is on every path."""
FLUSH_EVERY: Final = 15
"""The tables' Redis loses everything at one in so many faults."""

Fault = Callable[[], Awaitable[str]]


class Faults:
    """Hits a room. tables_lost: told after the tables' Redis lost everything."""

    def __init__(self, room: FaultyRoom, rng: random.Random, clocks: tuple[str, ...]) -> None:
        self.done: Final[Counter[str]] = Counter()
        """Faults by kind."""
        self.last = ""
        self._room = room
        self._rng = rng
        self._clocks = clocks
        self._kinds: Final[dict[str, Fault]] = {
            "killed": self._kill,
            "killed at a step": self._kill_at_step,
            "killed while another was at a step": self._kill_another,
            "halted": self._halt,
            "line cut": lambda: self._line(self._room.lines.cut),
            "line swallowing": lambda: self._line(self._room.lines.swallow),
            "line slow": lambda: self._line(partial(self._room.lines.slow, delay_s=SLOW_S)),
            "broker emptied": self._empty_broker,
            "triggers flooded": self._flood,
            "clock jumped": self._jump,
        }

    async def one(self) -> None:
        """The next fault; it is over on return, but not what it caused."""
        kind = self._rng.choice(list(self._kinds))
        fault = self._kinds[kind]
        if self._rng.randrange(FLUSH_EVERY) == 0:
            kind, fault = "tables' Redis emptied", self._empty_tables
        what = await fault()
        if what:
            self.done[kind] += 1
            self.last = f"{kind}: {what}"

    async def _kill(self) -> str:
        name = self._some_process()
        await self._room.kill(name)
        return name

    async def _kill_at_step(self) -> str:
        point = self._rng.choice(list(POINTS))
        self._room.arm(point, "SIGKILL group")
        return point if await self._came_by(point) else ""

    async def _kill_another(self) -> str:
        point, name = self._rng.choice(list(POINTS)), self._some_process()
        self._room.arm(point, "SIGSTOP")
        if not await self._came_by(point):
            return ""
        halted = await self._room.halted()
        try:
            if self._room.pid(name):
                await self._room.kill(name)
        finally:
            with suppress(ProcessLookupError):
                os.kill(halted, signal.SIGCONT)
        return f"{name} while another was at {point}"

    async def _halt(self) -> str:
        name = self._some_process()
        pid = self._room.pid(name)
        os.killpg(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(self._rng.uniform(*HALT_S))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGCONT)
        return name

    async def _line(self, hurt: Callable[[str, str], None]) -> str:
        pair = self._rng.choice(self._room.lines.pairs())
        hurt(*pair)
        try:
            await asyncio.sleep(self._rng.uniform(*LINE_S))
        finally:
            self._room.lines.mend(*pair)
        return " to ".join(pair)

    async def _empty_broker(self) -> str:
        return await self._empty("broker")

    async def _empty_tables(self) -> str:
        return await self._empty("valkey")

    async def _empty(self, name: str) -> str:
        if not self._room.ready(name):
            return ""
        await self._room.flush(name)
        return name

    async def _flood(self) -> str:
        if not self._room.ready("broker"):
            return ""
        await asyncio.to_thread(flood, self._room, random.Random(self._rng.random()))
        return "every trigger many times, shuffled"

    async def _jump(self) -> str:
        name = self._rng.choice(self._clocks)
        ahead_s = self._rng.choice((-JUMP_S, JUMP_S))
        self._room.set_clock(name, ahead_s)
        try:
            await asyncio.sleep(CLOCK_S)
        finally:
            self._room.set_clock(name, 0)
        return f"{name} by {ahead_s} s"

    async def _came_by(self, point: str) -> bool:
        try:
            await self._room.reached(point, POINT_S)
        except AssertionError:
            self._room.disarm()
            return False
        return True

    def _some_process(self) -> str:
        alive = [name for name in self._room.names() if name != "smtp" and self._room.ready(name)]
        return self._rng.choice(alive)
