"""Drains a shard's outbox: ledger first, then archive, then the outbox is trimmed.

Each step is idempotent and each knows by itself how far it has come, so a drain may be killed
between any two steps, doubled or lost; the next one goes on where the last one stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from doorcard.history.v1 import history_pb2
from doorcard.table.v1 import internal_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime import failpoints
from services.runtime.clock import milliseconds, now_ms
from services.runtime.errors import DoorcardError, FailedPrecondition
from services.runtime.ids import uuid5_of
from services.runtime.logs import logger
from services.settlement import meters
from services.settlement.pausing import PARKED, pause
from services.settlement.peers import Peers

ROUNDS_MAX: Final = 20
"""Batches of one trigger."""

_SHUT: Final = (internal_pb2.SHARD_STATE_CLOSED, internal_pb2.SHARD_STATE_REBUILDING)
Entries = Sequence[internal_pb2.OutboxEntry]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a shard is drained in its present epoch."""

    epoch: int
    applied_seq: int
    applied_id: str
    archived_seq: int


class Drain:
    """Drains shards.

    peers: table, wallet and history. batch: entries at a time.
    """

    def __init__(self, peers: Peers, *, batch: int) -> None:
        self._peers = peers
        self._batch = batch
        self._trimmed: dict[int, Position] = {}
        """What the tables were told last, by shard; saves the call that would tell nothing new."""

    def shard(self, shard: int) -> Position | None:
        """Apply, archive and trim what is there, at most `ROUNDS_MAX` batches.

        None for a shard that was never opened. The ledger goes on while the archive is away; its
        failure is raised at the end. Raises DoorcardError.
        """
        at = self._position(shard)
        if at is None:
            return None
        at, archive_fault = self._archive_position(shard, at)
        for _ in range(ROUNDS_MAX):
            read = self._read(shard, at, after=at.applied_seq)
            if read.epoch != at.epoch and read.state in _SHUT:
                # Nothing there continues what the ledger has; the tables reopen the shard.
                return at
            if read.entries:
                failpoints.reach("drain.read")
            at = self._apply(shard, at, read.entries)
            if archive_fault is None:
                at, archive_fault = self._archive(shard, at, read.entries)
            self._trim(shard, at)
            if not read.entries or at.applied_seq >= read.last_seq:
                break
        if archive_fault is not None:
            raise archive_fault
        return at

    def _position(self, shard: int) -> Position | None:
        request = wallet_pb2.GetProgressRequest(shard=shard)
        progress = self._peers.call(self._peers.wallet.GetProgress, request).progress
        if progress.epoch == 0:
            return None
        return Position(progress.epoch, progress.applied_seq, progress.applied_id, 0)

    def _archive_position(self, shard: int, at: Position) -> tuple[Position, DoorcardError | None]:
        try:
            return replace(at, archived_seq=self._archived(shard, at.epoch)), None
        except DoorcardError as error:
            return at, error

    def _archived(self, shard: int, epoch: int) -> int:
        request = history_pb2.GetArchiveProgressRequest(shard=shard)
        found = self._peers.call(self._peers.history.GetArchiveProgress, request)
        # An archive that has seen nothing of this epoch begins it with the first entry.
        return found.archived_seq if found.epoch == epoch else 0

    def _read(self, shard: int, at: Position, *, after: int) -> internal_pb2.ReadOutboxResponse:
        request = internal_pb2.ReadOutboxRequest(
            shard=shard,
            after_seq=after,
            limit=self._batch,
            applied_id=at.applied_id,
            epoch=at.epoch,
        )
        read = self._peers.call(self._peers.tables.ReadOutbox, request)
        shut = read.state in _SHUT
        meters.SHARD_CLOSED.labels(str(shard)).set(int(shut))
        if read.epoch not in (0, at.epoch) and not shut:
            raise FailedPrecondition("EPOCH_DIFFERS", "ledger and tables are in different epochs")
        return read

    def _apply(self, shard: int, at: Position, entries: Entries) -> Position:
        if not entries:
            return at
        request = wallet_pb2.ApplyEntriesRequest(
            shard=shard, epoch=at.epoch, entries=[entry.ledger for entry in entries]
        )
        answer = self._peers.call(self._peers.wallet.ApplyEntries, request)
        failpoints.reach("drain.applied")
        if answer.progress.epoch != at.epoch:
            raise FailedPrecondition("EPOCH_DIFFERS", "another epoch began during the drain")
        for entry in entries:
            if at.applied_seq < entry.ledger.seq <= answer.progress.applied_seq:
                meters.SETTLED.labels(str(entry.ledger.WhichOneof("entry"))).inc()
                meters.DELAY.observe(max(0, now_ms() - milliseconds(entry.at)) / 1000)
                if entry.HasField("hand"):
                    _tell("hand_settled", shard, entry.ledger.seq, entry.hand)
        self._pause_tables_of(answer.parked)
        return replace(
            at, applied_seq=answer.progress.applied_seq, applied_id=answer.progress.applied_id
        )

    def _pause_tables_of(self, parked: Sequence[wallet_pb2.ParkedEntry]) -> None:
        for each in parked:
            meters.PARKED.labels(each.reason).inc()
            logger.error(
                "entry_parked", table=each.table_id, entry=each.entry_id, reason=each.reason
            )
        for table_id, first in {each.table_id: each for each in reversed(parked)}.items():
            pause(self._peers, table_id, PARKED, uuid5_of("parked", first.entry_id))

    def _archive(
        self, shard: int, at: Position, entries: Entries
    ) -> tuple[Position, DoorcardError | None]:
        """Bring the archive up to the ledger, from `entries` and what it lacks before them."""
        try:
            for _ in range(ROUNDS_MAX):
                if at.archived_seq >= at.applied_seq:
                    break
                if not entries or entries[0].ledger.seq > at.archived_seq + 1:
                    behind = self._read(shard, at, after=at.archived_seq).entries
                    at = self._store(shard, at, behind)
                else:
                    at = self._store(shard, at, entries)
        except DoorcardError as error:
            return at, error
        return at, None

    def _store(self, shard: int, at: Position, entries: Entries) -> Position:
        """Archive those of the entries that the ledger has."""
        request = history_pb2.StoreHandsRequest(
            shard=shard,
            epoch=at.epoch,
            entries=[
                history_pb2.ArchiveEntry(
                    seq=entry.ledger.seq,
                    hand=entry.hand if entry.HasField("hand") else None,
                    audit=entry.audit if entry.HasField("audit") else None,
                )
                for entry in entries
                if entry.ledger.seq <= at.applied_seq
            ],
        )
        if not request.entries:
            # Another drain may have archived and trimmed it since.
            archived_seq = self._archived(shard, at.epoch)
            if archived_seq > at.archived_seq:
                return replace(at, archived_seq=archived_seq)
            raise FailedPrecondition("ARCHIVE_GAP", "the outbox lacks what the archive needs next")
        answer = self._peers.call(self._peers.history.StoreHands, request)
        failpoints.reach("drain.archived")
        for entry in request.entries:
            if entry.HasField("hand") and at.archived_seq < entry.seq <= answer.archived_seq:
                meters.ARCHIVED.inc()
                _tell("hand_archived", shard, entry.seq, entry.hand)
        return replace(at, archived_seq=answer.archived_seq)

    def _trim(self, shard: int, at: Position) -> None:
        if self._trimmed.get(shard) == at:
            return
        request = internal_pb2.TrimOutboxRequest(
            shard=shard,
            epoch=at.epoch,
            applied_seq=at.applied_seq,
            archived_seq=at.archived_seq,
        )
        self._peers.call(self._peers.tables.TrimOutbox, request)
        failpoints.reach("drain.trimmed")
        self._trimmed[shard] = at


def _tell(event: str, shard: int, seq: int, hand: history_pb2.HandRecord) -> None:
    logger.info(event, table=hand.table_id, hand=hand.hand_id, shard=shard, seq=seq)
