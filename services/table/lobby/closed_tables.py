"""Closed tables leave the lobby a day later: scheduled tables close every night, and the lobby must
not grow for ever. What is stored of them stays, since their ids are never used again.
"""

import asyncio
from typing import Final

from doorcard.table.v1 import table_pb2
from prometheus_client import Counter

from services.runtime.errors import DoorcardError, NotFound, Unavailable
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.draft.draft import Draft
from services.table.faults import Loop, passed_over
from services.table.hands import reservations
from services.table.state.lobby_lines import read_line
from services.table.state.state import Table
from services.table.store.store import Store
from services.table.tables.mailbox import TICKS
from services.table.tables.tables import Tables

EVERY_S: Final = 10.0
"""Between two shards; with 256 of them each is looked at about every three quarters of an hour."""
KEPT_MS: Final = 24 * 3_600_000
"""A closed table stays in the lobby for so long, for those who look for it."""

UNLISTED: Final = Counter(
    "doorcard_closed_tables_unlisted", "Closed tables taken off the lobby.", registry=REGISTRY
)


class ClosedTables:
    """What one replica does about them. kept_ms: from their closing."""

    def __init__(self, store: Store, tables: Tables, *, kept_ms: int = KEPT_MS) -> None:
        self._store = store
        self._tables = tables
        self._kept_ms = kept_ms

    async def run(self) -> None:
        """Look at one shard after the other until cancelled."""
        shard = 0
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                if not await self._store.shelves.my_turn():
                    continue
                await self.look_at(shard)
            except DoorcardError as error:
                logger.warning("closed_tables_not_read", shard=shard, reason=error.reason)
            # Whatever stopped it there must not keep it from the other shards.
            shard = (shard + 1) % self._store.shards

    async def look_at(self, shard: int) -> None:
        """Take the shard's closed tables off the lobby whose money is settled."""
        for table_id, line in (await self._store.lobby_of(shard)).items():
            try:
                with passed_over(Loop.CLOSED_TABLES, table_id):
                    if read_line(line).summary.state == table_pb2.TABLE_STATE_CLOSED:
                        await self._unlist(shard, table_id)
            except Unavailable:
                raise
            except DoorcardError as error:
                # One table that cannot be read must not keep it from the others.
                logger.error("closed_table_not_read", table=table_id, reason=error.reason)

    async def _unlist(self, shard: int, table_id: str) -> None:
        try:
            table = await self._tables.read(table_id)
        except NotFound:
            return
        if table.blob.closed_ms > self._store.now_ms() - self._kept_ms or table.blob.seats:
            return
        if table.blob.remembered:
            await self._forget(table)
            return
        await self._store.unlist(shard, table_id)
        UNLISTED.inc()
        logger.info("closed_table_unlisted", table=table_id)

    async def _forget(self, table: Table) -> None:
        """A closed table has no ticks that would forget what the ledger has long applied."""
        age_ms = await self._tables.undrained_age_ms(table.table_id)

        async def change(draft: Draft) -> None:
            draft.changed = reservations.forget(draft.table, draft.now_ms, age_ms)

        await self._tables.change(table.table_id, TICKS, "forget", change)
