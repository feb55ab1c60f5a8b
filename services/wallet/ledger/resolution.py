"""Records that an operator settled a difference between a table and its escrow.

A record moves nothing. It stands in the journal, under the seals, beside the adjustments that the
operator made; who reads the ledger later finds why the table was allowed to go on.
"""

from typing import NamedTuple

from services.runtime.errors import FailedPrecondition, NotFound
from services.runtime.postgres import Connection, Database
from services.wallet.entries import Kind
from services.wallet.ledger import journal, requests, shards
from services.wallet.ledger.journal import Head
from services.wallet.ledger.requests import Done, Refused, done


class Resolution(NamedTuple):
    """What is to be recorded, its fields checked."""

    request_id: str
    table_id: str
    epoch: int
    """Of the comparison that found table and escrow equal ..."""
    applied_seq: int
    """... and how far the ledger was applied then."""
    reason: str
    made_by: str
    """Who asked for it; no part of what must be the same on a repeat."""


async def record(database: Database, shard: int, resolution: Resolution) -> Done:
    """Record it, once for its request id.

    Raises AlreadyExists (ID_REUSED), NotFound (TABLE_UNKNOWN), FailedPrecondition (STILL_PARKED;
    COMPARED_BEYOND, when the ledger has not come as far as is claimed). None is remembered.
    """
    request = requests.asked(resolution.request_id, requests.RESOLVE, *resolution[1:-1])

    async def work(connection: Connection) -> Done | Refused:
        progress = await shards.locked(connection, shard)
        earlier = await requests.answer_of(connection, request)
        if earlier is not None:
            return earlier
        cursor = await connection.execute(
            "SELECT EXISTS (SELECT FROM tables WHERE table_id = %(table)s), EXISTS (SELECT"
            " FROM parked WHERE shard = %(shard)s AND table_id = %(table)s AND resolved IS NULL)",
            {"table": resolution.table_id, "shard": shard},
        )
        known, parked = await cursor.fetchone() or (False, False)
        if not known or progress.epoch == 0:
            raise NotFound("TABLE_UNKNOWN", "no money was ever set aside for this table")
        if parked:
            raise FailedPrecondition("STILL_PARKED", "entries of the table are parked: they first")
        place = (resolution.epoch, resolution.applied_seq)
        if place > (progress.epoch, progress.applied_seq):
            raise FailedPrecondition(
                "COMPARED_BEYOND", "the ledger is not that far", metadata=shards.facts(progress)
            )
        head = Head(
            Kind.RESOLUTION,
            resolution.request_id,
            resolution.made_by,
            reference=f"compared at {shard}/{resolution.epoch}/{resolution.applied_seq}",
            reason=resolution.reason,
            table_id=resolution.table_id,
        )
        return await requests.remember(connection, request, await journal.write(connection, head))

    return await done(database, work)
