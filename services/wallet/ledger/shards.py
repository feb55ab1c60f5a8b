"""Progress and epochs of the shards, and what they hold in escrow."""

from typing import Final, NamedTuple

from psycopg.errors import UniqueViolation
from psycopg.rows import class_row

from services.runtime.errors import Aborted, FailedPrecondition
from services.runtime.postgres import Connection, Database
from services.wallet.entries import Parked, Progress
from services.wallet.ledger import requests, reservations
from services.wallet.ledger.reservations import Reservation

_PROGRESS: Final = "SELECT shard, epoch, applied_seq, applied_id FROM progress WHERE shard = %s"


class SittingEscrow(NamedTuple):
    """Posted escrow of a sitting."""

    sitting_id: str
    player_id: str
    table_id: str
    amount: int
    """Minor units."""
    currency: str


class Inspection(NamedTuple):
    """A shard's escrow at one moment."""

    progress: Progress
    escrow: list[SittingEscrow]
    """Those above zero."""
    parked: list[Parked]
    """Not yet resolved."""
    pending: list[Reservation]
    """Pending reservations of its tables."""


async def progress(database: Database, shard: int) -> Progress:
    """How far the shard is applied; epoch 0 if it was never opened."""

    async def work(connection: Connection) -> Progress:
        return await _read(connection, shard)

    return await database.snapshot(work)


async def open_epoch(
    database: Database, request_id: str, shard: int, expected_epoch: int
) -> tuple[Progress, list[SittingEscrow]]:
    """End `expected_epoch` and begin the next one, with the escrow posted at that moment.

    The same request again gets the same epoch. Raises Aborted (EPOCH_MOVED, with the present
    epoch), AlreadyExists (ID_REUSED).
    """

    async def work(connection: Connection) -> tuple[Progress, list[SittingEscrow]]:
        before = await locked(connection, shard)
        if not await _opened_before(connection, request_id, shard, expected_epoch):
            check_epoch(before, expected_epoch)
            await _advance(connection, request_id, before)
        return await _read(connection, shard), await _escrow(connection, shard)

    return await database.transaction(work, again_on=(UniqueViolation,))


async def inspect(database: Database, shard: int) -> Inspection:
    """Progress, posted escrow, parked entries and pending reservations in one snapshot."""

    async def work(connection: Connection) -> Inspection:
        return Inspection(
            await _read(connection, shard),
            await _escrow(connection, shard),
            await _parked(connection, shard),
            await reservations.pending_of(connection, shard),
        )

    return await database.snapshot(work)


async def locked(connection: Connection, shard: int) -> Progress:
    """Progress with its row locked until the transaction ends."""
    return await _read(connection, shard, " FOR NO KEY UPDATE")


def check_epoch(found: Progress, expected_epoch: int) -> None:
    """Raises Aborted (EPOCH_MOVED) with the ledger's progress unless that is its epoch."""
    if found.epoch != expected_epoch:
        raise Aborted(
            "EPOCH_MOVED",
            f"the ledger is at epoch {found.epoch} of the shard",
            metadata=facts(found),
        )


def check_next(found: Progress, seq: int, previous_id: str) -> None:
    """Raises FailedPrecondition unless the entry follows what is applied (SEQ_GAP, LINK_BROKEN)."""
    if seq != found.applied_seq + 1:
        raise FailedPrecondition(
            "SEQ_GAP", f"the ledger is at entry {found.applied_seq}", metadata=facts(found)
        )
    if previous_id != found.applied_id:
        raise broken_link(found)


def broken_link(found: Progress) -> FailedPrecondition:
    """The outbox is not the one whose entries were applied."""
    return FailedPrecondition(
        "LINK_BROKEN",
        f"the ledger applied another entry {found.applied_seq}",
        metadata=facts(found),
    )


def facts(found: Progress) -> dict[str, str]:
    """Progress as metadata of an error."""
    return {key: str(value) for key, value in found._asdict().items()}


async def advance(connection: Connection, progress: Progress) -> None:
    """Set how far the locked shard is applied."""
    await connection.execute(
        "UPDATE progress SET applied_seq = %s, applied_id = %s WHERE shard = %s",
        (progress.applied_seq, progress.applied_id, progress.shard),
    )


async def _read(connection: Connection, shard: int, lock: str = "") -> Progress:
    cursor = connection.cursor(row_factory=class_row(Progress))
    await cursor.execute(
        _PROGRESS + lock,
        (shard,),
    )
    return await cursor.fetchone() or Progress(shard, 0, 0, "")


async def _opened_before(
    connection: Connection, request_id: str, shard: int, expected_epoch: int
) -> bool:
    cursor = await connection.execute(
        "SELECT shard, epoch FROM epochs WHERE request_id = %s", (request_id,)
    )
    row = await cursor.fetchone()
    if row is not None and row != (shard, expected_epoch + 1):
        raise requests.id_reused()
    return row is not None


async def _advance(connection: Connection, request_id: str, before: Progress) -> None:
    await connection.execute(
        "INSERT INTO progress (shard, epoch, applied_seq, applied_id) VALUES (%s, 1, 0, '')"
        " ON CONFLICT (shard) DO UPDATE"
        " SET epoch = progress.epoch + 1, applied_seq = 0, applied_id = ''",
        (before.shard,),
    )
    await connection.execute(
        "INSERT INTO epochs (shard, epoch, request_id, ended_seq, ended_id)"
        " VALUES (%s, %s, %s, %s, %s)",
        (before.shard, before.epoch + 1, request_id, before.applied_seq, before.applied_id),
    )


async def _escrow(connection: Connection, shard: int) -> list[SittingEscrow]:
    cursor = await connection.execute(
        "SELECT e.owner, p.owner, e.table_id, e.balance, e.currency"
        " FROM accounts e JOIN accounts p ON p.id = e.player"
        " WHERE e.shard = %s AND e.purpose = 'escrow' AND NOT e.closed AND e.balance > 0"
        " ORDER BY e.table_id, e.id",
        (shard,),
    )
    return [SittingEscrow(*row) for row in await cursor.fetchall()]


async def _parked(connection: Connection, shard: int) -> list[Parked]:
    cursor = await connection.execute(
        "SELECT seq, entry_id::text, table_id, reason, content FROM parked"
        " WHERE shard = %s AND resolved IS NULL ORDER BY epoch, seq",
        (shard,),
    )
    return [Parked(*row) for row in await cursor.fetchall()]
