"""Tables kept in memory, and how they are compared with what the store has of them.

What was known here is never newer than the store, so where it is, the store has lost something: the
shard is closed, and nothing is built on what is left. Only where a shard was rebuilt since, a table
that is not there is known to be lost.
"""

from collections import OrderedDict, defaultdict
from typing import NoReturn

from services.table.state.state import Table
from services.table.store.store import Store
from services.table.store.stored import (
    DOCUMENT,
    EPOCH_BITS,
    ShardState,
    Stored,
    epoch_of,
    shard_closed,
    table_unknown,
)


class KeptTables:
    """The tables that were committed or loaded here last, at most `kept_max` of them.

    Whatever asks the store raises Unavailable, SHARD_CLOSED where a table is gone or older than it
    was known to be, and where a closed shard does not have it; NotFound (TABLE_UNKNOWN) where it
    was lost and its shard rebuilt without it.
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
            is_table = not stored.blob.startswith(DOCUMENT)
            return Table.load(table_id, stored) if is_table else None
        await self._check_absent(table_id)
        return None

    async def newer(self, table: Table) -> Table | None:
        """The table as another replica left it; None if it is as we know it."""
        present = await self._store.load(table.table_id)
        if present is not None and table.stored is not None and present[:2] == table.stored[:2]:
            return None
        self.drop(table.table_id)
        if present is None or _is_older(present, table.stored):
            await self._lost(table.table_id, table.version)
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
            await self._lost(table.table_id, known.version)
        return False

    async def compare(self) -> None:
        """Compare every kept table with the store, which may have failed over to a copy that lacks
        what is known here: then the shard is closed.
        """
        # What was known before asking; commits go on meanwhile.
        shards: defaultdict[int, dict[str, Stored]] = defaultdict(dict)
        for table_id, table in self._kept.items():
            if table.stored is not None:
                shards[self._store.shard_of(table_id)][table_id] = table.stored
        for shard, known in shards.items():
            now = await self._store.versions(shard, list(known))
            for (table_id, before), found in zip(known.items(), now.found, strict=True):
                if not _is_older(Stored(*found, b""), before):
                    continue
                self.drop(table_id)
                epoch = epoch_of(before.version)
                if now.epoch <= epoch and not now.state.shut:
                    await self._store.close_shard(shard, "TABLE_ROLLED_BACK", epoch=epoch)

    async def _check_absent(self, table_id: str) -> None:
        """Raises if there may well have been such a table, which is lost."""
        shard = self._store.shard_of(table_id)
        found = await self._store.shard(shard)
        if found.state.shut:
            raise shard_closed(found.reason)
        if found.state is ShardState.UNOPENED and self._store.epoch(shard):
            await self._lost(table_id, self._store.epoch(shard) << EPOCH_BITS)

    async def _lost(self, table_id: str, known: int) -> NoReturn:
        """The store does not have the version that was known here."""
        shard, epoch = self._store.shard_of(table_id), epoch_of(known)
        found = await self._store.shard(shard)
        if found.state.shut:
            raise shard_closed(found.reason)
        if found.state is ShardState.OPEN and found.epoch > epoch:
            raise table_unknown()
        reason, left = "TABLE_ROLLED_BACK", epoch
        if found.state is ShardState.UNOPENED:
            reason, left = "REDIS_LOST", 0
        await self._store.close_shard(shard, reason, epoch=left)
        raise shard_closed(reason)


def _is_older(present: Stored, known: Stored | None) -> bool:
    """Whether the store has lost a version that was known; another tag is another writing."""
    return known is not None and (
        present.version < known.version
        or (present.version == known.version and present.tag != known.tag)
    )
