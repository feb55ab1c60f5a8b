"""What the reopening of a shard writes to the store. Every step may be repeated, and is refused
where the shard has gone on meanwhile.
"""

from secrets import token_bytes
from typing import Final

from services.table.store.store import BLOB, EVENT, TAG_BYTES, Store
from services.table.store.stored import EPOCH_BITS, ShardState, Stored, epoch_of
from services.table.tables.tables import IDLE_MS

_SHARD: Final = ("shard", "outbox", "deadlines")


class ShardMoved(Exception):  # noqa: N818 (what happened, in plain words)
    """Somebody else has taken the shard further, or closed it again."""


class Epochs:
    """Epochs of shards in a store, and tables written anew at the beginning of one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def end(self, shard: int, ledger_epoch: int, applied_seq: int) -> int:
        """Note which epoch of a closed shard the ledger is to end; the one that was noted.

        ledger_epoch, applied_seq: the ledger's progress. Raises ShardMoved.
        """
        step = ("end", ledger_epoch, applied_seq)
        state, ending = await self._store.run("reopen", shard, _SHARD, *step)
        if state != ShardState.CLOSED.encode():
            raise ShardMoved
        return int(ending)

    async def begin(self, shard: int, epoch: int) -> None:
        """Begin an epoch that the ledger has begun. Raises ShardMoved."""
        state, _ = await self._store.run("reopen", shard, _SHARD, "rebuild", epoch)
        if state != ShardState.REBUILDING.encode():
            raise ShardMoved

    async def open(self, shard: int, epoch: int) -> None:
        """Take commits again. Raises ShardMoved."""
        state, _ = await self._store.run("reopen", shard, _SHARD, "open", epoch)
        if state != ShardState.OPEN.encode():
            raise ShardMoved

    @staticmethod
    def version_in(epoch: int, present: Stored) -> int:
        """The version that a table written anew has."""
        first = (epoch << EPOCH_BITS) + 1
        return present.version + 1 if epoch_of(present.version) >= epoch else first

    async def write(
        self,
        epoch: int,
        table_id: str,
        present: Stored,
        blob: bytes,
        event: bytes,
        lobby: bytes,
        deadline_ms: int,
    ) -> bool:
        """Write a table anew, without what went before; False if it is another by now.

        deadline_ms: when it is due, 0 for never. Raises ShardMoved.
        """
        shard = self._store.shard_of(table_id)
        version = self.version_in(epoch, present)
        answer = await self._store.run(
            "rebuild",
            shard,
            ("shard", f"table:{table_id}", f"events:{table_id}", "deadlines", "lobby"),
            epoch,
            present.version,
            present.tag,
            version,
            token_bytes(TAG_BYTES),
            self._store.seal(blob, table_id, BLOB, version),
            self._store.seal(event, table_id, EVENT, version),
            deadline_ms or "",
            table_id,
            lobby,
            self._store.wake_channel(shard),
            IDLE_MS,
        )
        return _is_done(answer)

    async def forget(self, epoch: int, table_id: str) -> bool:
        """Take a table that is lost out of the lobby; False if it is there. Raises ShardMoved."""
        shard = self._store.shard_of(table_id)
        names = ("shard", f"table:{table_id}", "lobby")
        return _is_done(await self._store.run("forget", shard, names, epoch, table_id))


def _is_done(answer: bytes) -> bool:
    if answer not in (b"", b"CONFLICT"):
        raise ShardMoved
    return answer == b""
