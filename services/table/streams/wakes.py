"""Wake-ups of watched tables. They are hints: what was missed is found by comparing versions.

Versions are compared after every subscribing and once a second, the watched tables of a shard in
one script. A version that goes back, or another tag at the same version, means that Redis has lost
what was shown: the shard is closed. Once it is rebuilt, in a new epoch, versions that are not there
are known to be lost.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from prometheus_client import Gauge

from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.faults import Loop, passed_over
from services.table.store.store import Store
from services.table.store.stored import Versions, epoch_of

COMPARE_EVERY_S: Final = 1.0
TABLES_AT_ONCE: Final = 500

WATCHED: Final = Gauge("doorcard_watched_tables", "Tables watched here.", registry=REGISTRY)


class Wakes:
    """Tells the watchers of this replica when a table they watch has a new version.

    woken(table id, version): called on the loop; must not block or raise. Versions only rise, some
    may be passed over. gone(table id): likewise, where the shard was rebuilt without the table.
    """

    def __init__(
        self, store: Store, woken: Callable[[str, int], None], gone: Callable[[str], None]
    ) -> None:
        self._store = store
        self._woken = woken
        self._gone = gone
        self._known: dict[int, dict[str, tuple[int, bytes]]] = {}
        self._to_compare: set[int] = set()
        self._early = asyncio.Event()
        self._subscription = store.subscription(self._heard, self._subscribed)

    def watch(self, table_id: str) -> None:
        """Begin to tell of a table. Read it after this call: what comes later is told."""
        shard = self._store.shard_of(table_id)
        tables = self._known.setdefault(shard, {})
        if not tables:
            self._subscription.want(shard)
        tables.setdefault(table_id, (0, b""))
        WATCHED.set(sum(map(len, self._known.values())))

    def forget(self, table_id: str) -> None:
        """Tell of it no longer."""
        shard = self._store.shard_of(table_id)
        tables = self._known.get(shard, {})
        tables.pop(table_id, None)
        if not tables:
            self._known.pop(shard, None)
            self._subscription.leave(shard)
        WATCHED.set(sum(map(len, self._known.values())))

    def committed(self, table_id: str, version: int) -> None:
        """A version was committed here: its watchers learn it without a wake-up."""
        self._learns(table_id, version)

    async def run(self) -> None:
        """Listen and compare until cancelled."""
        self._subscription.start()
        loop = asyncio.get_running_loop()
        try:
            all_next_at = loop.time()
            while True:
                self._early.clear()
                shards, self._to_compare = self._to_compare, set()
                if loop.time() >= all_next_at:
                    all_next_at = loop.time() + COMPARE_EVERY_S
                    shards = set(self._known)
                await asyncio.gather(*(self._compare(shard) for shard in shards))
                try:
                    async with asyncio.timeout_at(all_next_at):
                        await self._early.wait()
                except TimeoutError:
                    continue
        finally:
            await self._subscription.close()

    def _heard(self, table_id: str, version: int) -> None:
        if self._learns(table_id, version):
            with passed_over(Loop.WAKES, table_id):
                self._woken(table_id, version)

    def _learns(self, table_id: str, version: int) -> bool:
        """Note a version of a watched table; False if it is none, or known."""
        tables = self._known.get(self._store.shard_of(table_id))
        known = tables.get(table_id) if tables else None
        if not (tables and known and version > known[0]):
            return False
        tables[table_id] = (version, b"")
        return True

    def _subscribed(self, shard: int) -> None:
        self._to_compare.add(shard)
        self._early.set()

    async def _compare(self, shard: int) -> None:
        # What was known before asking; a wake-up may overtake the answer.
        known = list(self._known.get(shard, {}).items())
        try:
            for start in range(0, len(known), TABLES_AT_ONCE):
                part = known[start : start + TABLES_AT_ONCE]
                now = await self._store.versions(shard, [table_id for table_id, _ in part])
                if now.state.shut:
                    return
                for (table_id, before), found in zip(part, now.found, strict=True):
                    with passed_over(Loop.WAKES, table_id):
                        await self._compared(shard, now, table_id, before, found)
        except DoorcardError as error:
            logger.warning("versions_not_compared", shard=shard, reason=error.reason)

    async def _compared(
        self,
        shard: int,
        present: Versions,
        table_id: str,
        before: tuple[int, bytes],
        now: tuple[int, bytes],
    ) -> None:
        if now[0] < before[0] or (now[0] == before[0] and before[1] and now[1] != before[1]):
            epoch = epoch_of(before[0])
            if present.epoch > epoch:
                self._gone(table_id)
            else:
                await self._store.close_shard(shard, "TABLE_ROLLED_BACK", epoch=epoch)
            return
        tables = self._known.get(shard, {})
        latest = tables.get(table_id)
        if latest is None or now[0] < latest[0]:
            return
        tables[table_id] = now
        if now[0] > latest[0]:
            self._woken(table_id, now[0])
