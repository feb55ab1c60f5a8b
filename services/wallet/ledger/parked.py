"""Entries that could not be applied: listed, tried again, or resolved with a reason.

Their content is kept for ever. Everything here goes on under the lock of the entry's own shard, so
other tables' money only waits as it waits for any batch.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from services.runtime.errors import FailedPrecondition, NotFound
from services.runtime.postgres import Connection, Database
from services.wallet.entries import ENTRIES_MAX, Entry
from services.wallet.ledger import settlement, shards
from services.wallet.posting import BEHIND_PARKED

APPLIED: Final = "APPLIED"


class Held(NamedTuple):
    """A parked entry."""

    shard: int
    epoch: int
    seq: int
    entry_id: str
    table_id: str
    reason: str
    """Why it could not be applied."""
    content: bytes
    """As it came."""
    at: datetime
    resolved: datetime | None
    resolved_by: str
    resolution: str
    """`APPLIED`, or the operator's reason."""


_READ: Final = (
    "SELECT shard, epoch, seq, entry_id::text, table_id, reason, content, at, resolved,"
    " coalesce(resolved_by, ''), coalesce(resolution, '') FROM parked"
)


async def entries(
    database: Database,
    *,
    table_id: str,
    resolved_too: bool,
    after: tuple[int, int, int],
    limit: int,
) -> list[Held]:
    """Parked entries after (shard, epoch, seq), in that order; every table's without `table_id`."""

    async def work(connection: Connection) -> list[Held]:
        cursor = await connection.execute(
            _READ + " WHERE (shard, epoch, seq) > (%s, %s, %s) AND %s IN ('', table_id)"
            " AND (%s OR resolved IS NULL) ORDER BY shard, epoch, seq LIMIT %s",
            (*after, table_id, resolved_too, limit),
        )
        return [Held(*row) for row in await cursor.fetchall()]

    return await database.snapshot(work)


async def retry(
    database: Database,
    shard: int,
    table_id: str,
    read: Callable[[bytes], Entry],
    *,
    made_by: str,
) -> tuple[list[Held], list[Held]]:
    """Apply the table's parked entries in order, up to the first that still cannot be; those that
    are applied now, and those that are still parked, at most `ENTRIES_MAX` at a time.

    read: what an entry's content says. Raises NotFound (NOTHING_PARKED).
    """

    async def work(connection: Connection) -> tuple[list[Held], list[Held]]:
        await shards.locked(connection, shard)
        cursor = await connection.execute(
            _READ + " WHERE shard = %s AND table_id = %s AND resolved IS NULL"
            " ORDER BY epoch, seq LIMIT %s",
            (shard, table_id, ENTRIES_MAX),
        )
        waiting = [Held(*row) for row in await cursor.fetchall()]
        if not waiting:
            raise NotFound("NOTHING_PARKED", "no entry of the table is parked")
        applied: list[Held] = []
        for held in waiting:
            posting = await settlement.posted_alone(
                connection, shard, read(held.content), again=True
            )
            if posting.parked:
                still, behind = held._replace(reason=posting.parked[0][1]), waiting
                rest = [each._replace(reason=BEHIND_PARKED) for each in behind[len(applied) + 1 :]]
                return applied, [still, *rest]
            applied.append(await _resolved(connection, held, made_by, APPLIED))
        return applied, []

    return await database.transaction(work)


async def resolve(database: Database, entry_id: str, reason: str, *, made_by: str) -> Held:
    """Settle that the entry is never applied; the same again changes nothing.

    Raises NotFound (ENTRY_UNKNOWN), FailedPrecondition (ALREADY_RESOLVED).
    """

    async def work(connection: Connection) -> Held:
        held = await _find(connection, entry_id)
        await shards.locked(connection, held.shard)
        held = await _find(connection, entry_id)
        if held.resolved is None:
            return await _resolved(connection, held, made_by, reason)
        if (held.resolved_by, held.resolution) != (made_by, reason):
            raise FailedPrecondition(
                "ALREADY_RESOLVED",
                "the entry was resolved before",
                metadata={"resolution": held.resolution},
            )
        return held

    return await database.transaction(work)


async def _find(connection: Connection, entry_id: str) -> Held:
    cursor = await connection.execute(
        _READ + " WHERE entry_id = %s ORDER BY shard, epoch, seq LIMIT 1", (entry_id,)
    )
    row = await cursor.fetchone()
    if row is None:
        raise NotFound("ENTRY_UNKNOWN", "no such entry is parked")
    return Held(*row)


async def _resolved(connection: Connection, held: Held, made_by: str, resolution: str) -> Held:
    cursor = await connection.execute(
        "UPDATE parked SET resolved = now(), resolved_by = %s, resolution = %s"
        " WHERE shard = %s AND epoch = %s AND seq = %s AND resolved IS NULL RETURNING resolved",
        (made_by, resolution, held.shard, held.epoch, held.seq),
    )
    row = await cursor.fetchone()
    return held._replace(
        resolved=row[0] if row else None, resolved_by=made_by, resolution=resolution
    )
