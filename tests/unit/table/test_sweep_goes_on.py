"""The sweep outlives whatever the store says to it."""

import asyncio
from typing import cast

from services.runtime.errors import Internal
from services.table.store.store import Store
from services.table.tables.sweep import Sweep


class Full:
    """A store of one shard that refuses to be written to, once."""

    shards = 1

    def __init__(self) -> None:
        self.claims = 0

    async def claim_due(self, _shard: int, _limit: int, _overdue_ms: int) -> list[str]:
        self.claims += 1
        if self.claims == 1:
            raise Internal("STORE_FAULT", "the store refused a command")
        return ["table"]


async def test_a_store_that_is_full_does_not_end_the_sweep() -> None:
    ticked = asyncio.Event()

    async def tick(_table_id: str) -> None:
        ticked.set()

    sweep = Sweep(cast(Store, Full()), tick, interval_s=0.001)
    running = asyncio.create_task(sweep.run())
    async with asyncio.timeout(10):
        await ticked.wait()
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
