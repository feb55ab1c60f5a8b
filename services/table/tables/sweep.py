"""The sweep of deadlines: whatever is due is claimed and its table ticked.

A replica sweeps the shards that it owns, and now and then all others for what is overdue: their
owner is late, or dead, or there is none. A claim moves the deadline a lease ahead in the same
script that reads it, so no two replicas get it within the lease; order and pauses are random, so
that replicas do not keep step. A tick that fails is simply due again when its lease is over.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from prometheus_client import Counter, Gauge

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.store.store import Store

INTERVAL_S: Final = 0.1
OTHERS_EVERY_S: Final = 0.5
"""Pause between two passes over shards that others own."""
LATE_MS: Final = 500
"""Overdue for so long, a deadline is taken from a shard's owner."""
SHARDS_AT_ONCE: Final = 16
"""Claims that go out in one write."""
CLAIM_MAX: Final = 1000
TICKS_MAX: Final = 2000
"""Ticks under way; what is beyond stays unclaimed, for replicas with more time."""
TICK_TIMEOUT_S: Final = 10.0

CLAIMED: Final = Counter("doorcard_sweep_claimed", "Deadlines claimed.", registry=REGISTRY)
CLAIMED_LATE: Final = Counter(
    "doorcard_sweep_claimed_for_others",
    "Deadlines claimed on shards that another replica owns, because they were overdue.",
    registry=REGISTRY,
)
TICKS_FAILED: Final = Counter(
    "doorcard_sweep_ticks_failed", "Ticks that ended with an error.", ["reason"], registry=REGISTRY
)
TICKS_RUNNING: Final = Gauge("doorcard_sweep_ticks_running", "Ticks under way.", registry=REGISTRY)


class Sweep:
    """One replica's sweep.

    tick(table id): do what is due. owns(shard): whether this replica has it; by default it has all.
    interval_s: mean pause between passes over the own shards.
    """

    def __init__(
        self,
        store: Store,
        tick: Callable[[str], Awaitable[None]],
        *,
        owns: Callable[[int], bool] = lambda _shard: True,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._store = store
        self._tick = tick
        self._owns = owns
        self._others_next_at = 0.0
        self._interval_s = interval_s
        self._running: dict[str, asyncio.Task[None]] = {}
        self._roomy = asyncio.Event()
        self._roomy.set()
        self._stopping = False

    async def run(self) -> None:
        """Sweep until cancelled; ticks under way are then finished or cut at their time-out.

        Whatever the store says to it: a replica that ended because Redis is full could not take
        part in emptying it.
        """
        fault = ""
        try:
            while not self._stopping:
                try:
                    more, fault = await self.once(), ""
                except DoorcardError as error:
                    if error.reason != fault:
                        logger.warning("deadlines_not_claimed", reason=error.reason)
                    more, fault = False, error.reason
                if not more:
                    pause_s = self._interval_s * random.uniform(0.5, 1.5)  # noqa: S311 (no secret)
                    await asyncio.sleep(pause_s)
            # A background task that returned would look like one that failed.
            await asyncio.Event().wait()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Claim nothing more and wait for the ticks under way."""
        self._stopping = True
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=TICK_TIMEOUT_S)

    async def once(self) -> bool:
        """One pass over the own shards, and over the others when it is time for that; True if an
        own shard may have more that is due.
        """
        own: list[int] = []
        others: list[int] = []
        for shard in range(self._store.shards):
            (own if self._owns(shard) else others).append(shard)
        more = await self._pass(own, 0)
        if others and monotonic_s() >= self._others_next_at:
            await self._pass(others, LATE_MS)
            self._others_next_at = monotonic_s() + OTHERS_EVERY_S
        return more

    async def _pass(self, shards: list[int], overdue_ms: int) -> bool:
        random.shuffle(shards)
        more = False
        for start in range(0, len(shards), SHARDS_AT_ONCE):
            chunk = shards[start : start + SHARDS_AT_ONCE]
            limit = min(CLAIM_MAX, await self._room() // len(chunk))
            if self._stopping:
                return False
            claims = (self._store.claim_due(shard, limit, overdue_ms) for shard in chunk)
            for due in await asyncio.gather(*claims):
                more = more or len(due) == limit
                self._begin(due)
                if overdue_ms:
                    CLAIMED_LATE.inc(len(due))
        return more

    async def _room(self) -> int:
        """How many ticks may begin; waits while more than half of what can be are under way."""
        await self._roomy.wait()
        return TICKS_MAX - len(self._running)

    def _begin(self, due: list[str]) -> None:
        CLAIMED.inc(len(due))
        for table_id in due:
            # Still under way from the lease before: it sees for itself what is due by then.
            if table_id not in self._running:
                self._running[table_id] = asyncio.create_task(self._ticked(table_id))
        self._count()

    def _count(self) -> None:
        TICKS_RUNNING.set(len(self._running))
        if len(self._running) <= TICKS_MAX // 2:
            self._roomy.set()
        else:
            self._roomy.clear()

    async def _ticked(self, table_id: str) -> None:
        try:
            async with asyncio.timeout(TICK_TIMEOUT_S):
                await self._tick(table_id)
        except TimeoutError:
            TICKS_FAILED.labels("TIME_OUT").inc()
            logger.error("tick_timed_out", table=table_id)
        except DoorcardError as error:
            TICKS_FAILED.labels(error.reason).inc()
            logger.warning("tick_failed", table=table_id, reason=error.reason)
        except Exception:
            TICKS_FAILED.labels("FAULT").inc()
            logger.exception("tick_failed", table=table_id)
        finally:
            del self._running[table_id]
            self._count()
