"""After the store's clock was set back, what is due lies as much further ahead; nobody would look.

So every table of the shards that a replica owns is ticked at its start, and when a step back is
seen: the tick brings back what is too far ahead (`hands.set_back`). Then again, for what replicas
that had not yet seen the step have written meanwhile, and for the shards of those that died.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.table.faults import Loop, passed_over
from services.table.store.store import Store

LOOK_EVERY_S: Final = 0.25
AGAIN_AFTER_S: Final = (0.0, 2.0, 10.0)
"""From when the step was seen; a replica beats twice a second and is dead after 1.5 s."""
OVER_AFTER_S: Final = 60.0
"""Whoever gets a shard later need not look at it for that step."""
AT_ONCE: Final = 64
"""Tables that are ticked at a time."""


class Reviews:
    """One replica's reviews.

    tick(table id): do what is due; raises nothing. owns(shard): whether this replica has it.
    """

    def __init__(
        self,
        store: Store,
        tick: Callable[[str], Awaitable[None]],
        *,
        owns: Callable[[int], bool],
    ) -> None:
        self._store = store
        self._tick = tick
        self._owns = owns
        self._reviewed_s: dict[int, float] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            with passed_over(Loop.REVIEWS):
                await self.once()
            await asyncio.sleep(LOOK_EVERY_S)

    async def once(self) -> None:
        """Review the own shards whose turn it is."""
        for shard in range(self._store.shards):
            if self._owns(shard) and self._is_wanted(shard):
                try:
                    await self._review(shard)
                except DoorcardError as error:
                    logger.info("shard_not_reviewed", shard=shard, reason=error.reason)

    def _is_wanted(self, shard: int) -> bool:
        seen_s, now_s = self._store.clock_steps.back_s.get(shard), monotonic_s()
        if seen_s is None or now_s > seen_s + OVER_AFTER_S:
            return False
        last_s = self._reviewed_s.get(shard, 0.0)
        return any(last_s < seen_s + after_s <= now_s for after_s in AGAIN_AFTER_S)

    async def _review(self, shard: int) -> None:
        began_s = monotonic_s()
        waiting = await self._store.waiting(shard)
        for start in range(0, len(waiting), AT_ONCE):
            await asyncio.gather(*map(self._tick, waiting[start : start + AT_ONCE]))
        self._reviewed_s[shard] = began_s
