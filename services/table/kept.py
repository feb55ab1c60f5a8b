"""Tables kept in memory, and how they are compared with what the store has of them.

What was known here is never newer than the store, so where it is, the store has lost something: the
shard is closed, and nothing is built on what is left.
"""

from collections import OrderedDict

from services.runtime.errors import Unavailable
from services.table.state import Table
from services.table.store import Store
from services.table.stored import ShardState, Stored, shard_closed


class KeptTables:
    """The tables that were committed or loaded here last, at most `kept_max` of them.

    Whatever asks the store raises Unavailable, SHARD_CLOSED where a table is gone or older than it
    was known to be, and where a closed shard does not have it.
    """

    def __init__(self, store: Store, kept_max: int) -> None:
        self._store = store
        self._kept_max = kept_max
        self._kept: OrderedDict[str, Table] = OrderedDict()

    def get(self, table_id: str) -> Table | None:
        """The table as it was last known; only a commit may rely on it."""
        return self._kept.get(table_id)

    def keep(self, table: Table) -> None:
        """The table is as the store has it."""
        self._kept[table.table_id] = table
        self._kept.move_to_end(table.table_id)
        while len(self._kept) > self._kept_max:
            self._kept.popitem(last=False)

    def keep_if_untouched(self, table: Table) -> None:
        """After a refusal; a change that touched something before it refused leaves no trace."""
        if table.stored is not None and table.encode() == table.stored.blob:
            self.keep(table)
        else:
            self.drop(table.table_id)

    def drop(self, table_id: str) -> None:
        """Load it anew when it is wanted."""
        self._kept.pop(table_id, None)

    async def load(self, table_id: str) -> Table | None:
        """The table as the store has it, None if there never was one."""
        stored = await self._store.load(table_id)
        if stored is not None:
            return Table.load(table_id, stored)
        await self._check_absent(table_id)
        return None

    async def newer(self, table: Table) -> Table | None:
        """The table as another replica left it; None if it is as we know it."""
        present = await self._store.load(table.table_id)
        if present is not None and table.stored is not None and present[:2] == table.stored[:2]:
            return None
        self.drop(table.table_id)
        if present is None or _is_older(present, table.stored):
            raise await self._lost(table.table_id)
        return Table.load(table.table_id, present)

    async def is_current(self, table: Table) -> bool:
        """Whether nobody else has changed it."""
        known = table.stored
        if known is None:
            return False
        version = await self._store.version(table.table_id)
        if version == known[:2]:
            return True
        if version is None or _is_older(Stored(*version, b""), known):
            raise await self._lost(table.table_id)
        return False

    async def _check_absent(self, table_id: str) -> None:
        """Raises if there may well have been such a table, which is lost."""
        shard = self._store.shard_of(table_id)
        found = await self._store.shard(shard)
        if found.state is ShardState.CLOSED:
            raise shard_closed(found.reason)
        if found.state is ShardState.UNOPENED and self._store.epoch(shard):
            raise await self._lost(table_id)

    async def _lost(self, table_id: str) -> Unavailable:
        shard = self._store.shard_of(table_id)
        unopened = await self._store.shard_state(shard) is ShardState.UNOPENED
        reason = "REDIS_LOST" if unopened else "TABLE_ROLLED_BACK"
        await self._store.close_shard(shard, reason)
        return shard_closed(reason)


def _is_older(present: Stored, known: Stored | None) -> bool:
    """Whether the store has lost a version that was known; another tag is another writing."""
    return known is not None and (
        present.version < known.version
        or (present.version == known.version and present.tag != known.tag)
    )
