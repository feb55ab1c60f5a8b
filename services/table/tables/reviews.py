"""After the store's clock was set back, what is due lies as much further ahead; nobody would look.

So every table of the shards that a replica owns is ticked when a step back is seen: the tick
brings back what is too far ahead (`hands.set_back`). Then again, for what replicas that had not yet
seen the step have written meanwhile, and for the shards of those that died. Nobody may have seen
it: of a shard that is new to a replica those tables are ticked that wait for longer than hands do.
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
FAR_MS: Final = 60_000
"""Few tables wait for longer, so a replica that starts is not busy with all of them."""
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
            beyond_ms = self._beyond_ms(shard)
            if beyond_ms is not None and self._owns(shard):
                try:
                    await self._review(shard, beyond_ms)
                except DoorcardError as error:
                    logger.info("shard_not_reviewed", shard=shard, reason=error.reason)

    def _beyond_ms(self, shard: int) -> int | None:
        """How far ahead lies what is to be reviewed now; None for nothing."""
        steps, now_s, last_s = self._store.clock_steps, monotonic_s(), self._reviewed_s.get(shard)
        seen_s = steps.back_s.get(shard)
        if seen_s is not None and now_s <= seen_s + OVER_AFTER_S:
            before_s = last_s or 0.0
            if any(before_s < seen_s + after_s <= now_s for after_s in AGAIN_AFTER_S):
                return 0
        return FAR_MS if last_s is None and steps.knows(shard) else None

    async def _review(self, shard: int, beyond_ms: int) -> None:
        began_s = monotonic_s()
        waiting = await self._store.waiting(shard, beyond_ms)
        for start in range(0, len(waiting), AT_ONCE):
            await asyncio.gather(*map(self._tick, waiting[start : start + AT_ONCE]))
        self._reviewed_s[shard] = began_s
