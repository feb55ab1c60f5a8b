"""Notices that the store is another process than before: restarted, or failed over to a replica.

That says nothing about what it holds; it only starts a comparison with what is known here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.table.faults import Loop, passed_over
from services.table.store.store import Store
from services.table.store.store_gauges import facts_of

LOOK_EVERY_S: Final = 1.0


class Failovers:
    """compare: compares what this replica knows with the store."""

    def __init__(self, store: Store, compare: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._compare = compare
        self._run_ids: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                with passed_over(Loop.FAILOVERS):
                    await self.once()
            except DoorcardError as error:
                logger.info("run_ids_not_seen", reason=error.reason)
            await asyncio.sleep(LOOK_EVERY_S)

    async def once(self) -> None:
        """Compare if a server is one that was not there before. Raises DoorcardError."""
        reports = await self._store.server_reports()
        run_ids = frozenset(facts_of(info).get("run_id", "") for info, _ in reports)
        if self._run_ids and not run_ids <= self._run_ids:
            logger.warning("store_is_another_process")
            await self._compare()
        # Only now: a comparison that failed is made again.
        self._run_ids = run_ids
