"""The numbered outbox towards the ledger: what settlement reads and trims, when to stop dealing.

What the ledger says it has applied is compared on every reading and trimming with what Redis holds;
a Redis that was rolled back or lost shows itself here and its shard is closed.
"""

import asyncio
from typing import Final

from doorcard.table.v1 import internal_pb2
from prometheus_client import Gauge

from services.runtime.errors import DoorcardError, FailedPrecondition, Internal
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.faults import Loop, passed_over
from services.table.store.store import Store
from services.table.store.stored import OutboxRecord, ShardState

BYTES_MAX: Final = 16 * 1024 * 1024
"""Sealed bytes a shard's outbox may hold before no new hand begins on it."""
READ_BYTES_MAX: Final = 3 * 1024 * 1024
"""Serialized entries in one answer."""
MEASURE_EVERY_S: Final = 5.0

LAG: Final = Gauge(
    "doorcard_outbox_lag_seconds",
    "Age of the oldest entry that the ledger has not applied, over all shards.",
    registry=REGISTRY,
)
ENTRIES: Final = Gauge(
    "doorcard_outbox_entries", "Entries in the outboxes of all shards.", registry=REGISTRY
)
BYTES: Final = Gauge(
    "doorcard_outbox_bytes", "Bytes in the fullest shard's outbox.", registry=REGISTRY
)
SHARDS: Final = Gauge("doorcard_shards", "Shards by state.", ["state"], registry=REGISTRY)


class Outbox:
    """The outboxes of all shards.

    undrained_max_ms, bytes_max: beyond either no new hand begins on the shard.
    """

    def __init__(
        self,
        store: Store,
        *,
        undrained_max_ms: int,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._store = store
        self._undrained_max_ms = undrained_max_ms
        self._bytes_max = bytes_max

    async def may_deal(self, shard: int) -> bool:
        """Whether a new hand may begin: the ledger and the archive keep up."""
        backlog = await self._store.backlog(shard)
        return (
            backlog.undrained_age_ms <= self._undrained_max_ms
            and backlog.bytes_held <= self._bytes_max
        )

    async def read(
        self, request: internal_pb2.ReadOutboxRequest
    ) -> internal_pb2.ReadOutboxResponse:
        """Entries after a position, at most `limit` and no more than an answer may carry.

        Closes the shard if what the ledger knows is not there.
        """
        found = await self._store.read_outbox(
            request.shard,
            after_seq=request.after_seq,
            limit=request.limit,
            epoch=request.epoch,
            applied_id=request.applied_id,
        )
        state = found.state
        if found.verdict and state is not ShardState.CLOSED:
            await self._store.close_shard(request.shard, found.verdict, epoch=found.epoch)
            state = ShardState.CLOSED
        response = internal_pb2.ReadOutboxResponse(
            epoch=found.epoch, state=_STATES[state], last_seq=found.last_seq
        )
        if found.verdict:
            return response
        size = 0
        before: OutboxRecord | None = None
        for record in found.entries:
            size += len(record.payload)
            if before is not None and not _follows(before, record):
                # What a hole cuts off is lost; what comes before it is not.
                break
            if size > READ_BYTES_MAX and response.entries:
                break
            response.entries.append(entry_of(record))
            before = record
        return response

    async def trim(self, request: internal_pb2.TrimOutboxRequest) -> int:
        """Forget what is applied and archived, but for the last of it; entries that are left.

        Raises FailedPrecondition SHARD_DIFFERS, and closes the shard, if the ledger is ahead of it.
        """
        verdict, left = await self._store.trim_outbox(
            request.shard,
            epoch=request.epoch,
            applied_seq=request.applied_seq,
            archived_seq=request.archived_seq,
        )
        if verdict:
            await self._store.close_shard(request.shard, verdict, epoch=request.epoch)
            raise FailedPrecondition(
                "SHARD_DIFFERS",
                "the ledger is ahead of this shard, which is closed now",
                metadata={"why": verdict},
            )
        return left

    async def run(self) -> None:
        """Measure lag and size of all shards until cancelled."""
        while True:
            try:
                with passed_over(Loop.OUTBOX):
                    await self._measure()
            except DoorcardError as error:
                logger.warning("outbox_not_measured", reason=error.reason)
            await asyncio.sleep(MEASURE_EVERY_S)

    async def _measure(self) -> None:
        every = range(self._store.shards)
        states = await asyncio.gather(*map(self._store.shard_state, every))
        backlogs = await asyncio.gather(*map(self._store.backlog, every))
        for state in ShardState:
            SHARDS.labels(state.name.lower()).set(states.count(state))
        LAG.set(max(each.undrained_age_ms for each in backlogs) / 1000)
        ENTRIES.set(sum(each.entries_held for each in backlogs))
        BYTES.set(max(each.bytes_held for each in backlogs))


def entry_of(record: OutboxRecord) -> internal_pb2.OutboxEntry:
    """The entry as settlement gets it: what the table wrote, with number, id and link."""
    entry = internal_pb2.OutboxEntry.FromString(record.payload)
    if entry.ledger.table_id != record.table_id:
        raise Internal("OUTBOX_BROKEN", "an entry is for another table than wrote it")
    entry.ledger.seq = record.seq
    entry.ledger.entry_id = record.entry_id
    entry.ledger.previous_entry_id = record.previous_entry_id
    return entry


def _follows(before: OutboxRecord, record: OutboxRecord) -> bool:
    return record.seq == before.seq + 1 and record.previous_entry_id == before.entry_id


_STATES: Final = {
    ShardState.UNOPENED: internal_pb2.SHARD_STATE_UNSPECIFIED,
    ShardState.OPENING: internal_pb2.SHARD_STATE_UNSPECIFIED,
    ShardState.OPEN: internal_pb2.SHARD_STATE_OPEN,
    ShardState.CLOSED: internal_pb2.SHARD_STATE_CLOSED,
    ShardState.REBUILDING: internal_pb2.SHARD_STATE_REBUILDING,
}
