"""The audit log in the archive's database: what operators changed, once each, in a hash chain.

The database numbers and chains the rows and refuses to change, delete or truncate them
(`migrations/versions/0002_audit_log.py`).
"""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from doorcard.history.v1.history_pb2 import AuditChange, AuditRecord
from psycopg import sql

from services.runtime.clock import now_ms, timestamp
from services.runtime.errors import AlreadyExists, NotFound
from services.runtime.ids import uuid5_of
from services.runtime.postgres import Connection, Database

VERIFIED_MAX: Final = 5000
"""Records that one call compares with the chain."""
NUMBER_MAX: Final = 2**63 - 1


class Logged(NamedTuple):
    """A record in its place."""

    number: int
    record: AuditRecord
    hash: bytes
    """SHA-256 of the hash before it and the record's bytes."""


class Verified(NamedTuple):
    """What a comparison with the chain found."""

    records: int
    broken_at: int
    """0 when nothing is."""
    last_number: int
    last_hash: bytes
    more: bool


class AuditLog:
    """The log. Every method is one transaction.

    All raise Unavailable while the database is away.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, record: AuditRecord) -> int:
        """Put a record into the log, once for its id; its number. Raises AlreadyExists."""

        async def work(connection: Connection) -> int:
            await insert(connection, [record])
            cursor = await connection.execute(
                "SELECT number, record FROM audit_log WHERE record_id = %s", (record.record_id,)
            )
            number, kept = await cursor.fetchone() or (0, b"")
            if _content(AuditRecord.FromString(kept)) != _content(record):
                raise AlreadyExists("RECORD_EXISTS", "the log has another record under this id")
            return int(number)

        return await self._database.transaction(work)

    async def entries(
        self,
        *,
        table_id: str = "",
        operator: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        before: int = NUMBER_MAX,
        limit: int,
    ) -> list[Logged]:
        """Records that fit, newest first, below the number `before`."""
        conditions = [sql.SQL("number < %(before)s")]
        for value, condition in (
            (table_id, "table_id = %(table_id)s"),
            (operator, "operator = %(operator)s"),
            (since, "at >= %(since)s"),
            (until, "at < %(until)s"),
        ):
            if value:
                conditions.append(sql.SQL(condition))
        query = sql.SQL(
            "SELECT number, record, hash FROM audit_log WHERE {} ORDER BY number DESC"
            " LIMIT %(limit)s"
        ).format(sql.SQL(" AND ").join(conditions))
        values = {
            "table_id": table_id,
            "operator": operator,
            "since": since,
            "until": until,
            "before": before,
            "limit": limit,
        }

        async def work(connection: Connection) -> list[Logged]:
            cursor = await connection.execute(query, values)
            return [
                Logged(n, AuditRecord.FromString(raw), digest) async for n, raw, digest in cursor
            ]

        return await self._database.transaction(work)

    async def verify(self, from_number: int, known_hash: bytes) -> Verified:
        """Compare records with the chain, from a number on, `VERIFIED_MAX` at a time.

        known_hash: what the record before has to have; empty to take the log's word for it. Raises
        NotFound if there is no record before.
        """

        async def work(connection: Connection) -> Verified:
            previous = known_hash
            if from_number > 1:
                cursor = await connection.execute(
                    "SELECT hash FROM audit_log WHERE number = %s", (from_number - 1,)
                )
                row = await cursor.fetchone()
                if row is None:
                    raise NotFound("RECORD_NOT_FOUND", "the log is not as long as that")
                if known_hash and known_hash != row[0]:
                    return Verified(0, from_number - 1, 0, b"", more=False)
                previous = row[0]
            cursor = await connection.execute(
                "SELECT number, record, hash FROM audit_log WHERE number >= %s"
                " ORDER BY number LIMIT %s",
                (from_number, VERIFIED_MAX),
            )
            expected = from_number
            async for number, raw, digest in cursor:
                if number != expected or digest != hashlib.sha256(previous + raw).digest():
                    done = expected - from_number
                    return Verified(done, expected, expected - 1, previous, more=False)
                previous, expected = digest, expected + 1
            done = expected - from_number
            return Verified(done, 0, expected - 1, previous, more=done == VERIFIED_MAX)

        return await self._database.snapshot(work)


def of_mail_address(
    player_id: str, request_id: str, operator: str, roles: Iterable[str], given: bool
) -> AuditRecord:
    """That an operator set (`given`) or cleared a player's mail address, which is not kept here."""
    return AuditRecord(
        record_id=uuid5_of("audit mail address", request_id),
        at=timestamp(now_ms()),
        operator=operator,
        roles=sorted(roles),
        action="set_mail_address",
        subject=player_id,
        request_id=request_id,
        changes=[AuditChange(field="mail address", after="another" if given else "the token's")],
    )


async def insert(connection: Connection, records: Iterable[AuditRecord]) -> None:
    """Add records in order within a transaction; one that is there already is passed over."""
    async with connection.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO audit_log (record_id, at, operator, action, table_id, record)"
            " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (record_id) DO NOTHING",
            [
                (
                    record.record_id,
                    record.at.ToDatetime(tzinfo=UTC),
                    record.operator,
                    record.action,
                    record.table_id,
                    record.SerializeToString(),
                )
                for record in records
            ],
        )


def _content(record: AuditRecord) -> AuditRecord:
    """The record but for its time, which a repeat of a request has anew."""
    content = AuditRecord()
    content.CopyFrom(record)
    content.ClearField("at")
    return content
