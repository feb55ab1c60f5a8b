"""The archive's database; nothing else talks to it.

Records are kept as they came, whole; who may see what of them is for `views`.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from doorcard.history.v1.history_pb2 import (
    EMAIL_STATE_FAILED,
    EMAIL_STATE_SENT,
    EMAIL_STATE_WAITING,
    ArchiveEntry,
    HandRecord,
)
from psycopg import sql

from services.history import audit
from services.runtime import failpoints
from services.runtime.errors import (
    AlreadyExists,
    FailedPrecondition,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from services.runtime.ids import uuid5_of
from services.runtime.logs import logger
from services.runtime.postgres import Connection, Database

LOOK_AGAIN: Final = timedelta(seconds=5)
"""A hand that arrives between a request's check and its commit is found this late at most."""
LOOKED_AT_MAX: Final = 100
"""Requests that one claim ends or puts off, beyond those it gives out."""
FULL_RETRY_MS: Final = 600_000
LATER: Final = datetime.max.replace(tzinfo=UTC)
NO_HAND: Final = "ffffffff-ffff-ffff-ffff-ffffffffffff"


@dataclass(frozen=True, slots=True)
class MailRules:
    """Bounds of e-mail requests."""

    attempts_max: int
    backoff: timedelta
    """Before the second try; doubled for each further one."""
    backoff_max: timedelta
    hand_wait: timedelta
    """How long a request waits for its hand to arrive."""
    per_hour: int
    """Requests of one player in any hour."""

    def pause_after(self, attempt: int) -> timedelta:
        """Pause between the failure of try `attempt` (from 1) and the next one."""
        return min(self.backoff_max, self.backoff * (1 << min(attempt - 1, 30)))


@dataclass(frozen=True, slots=True)
class Kept:
    """A record with its place in a list: newest first, ties by hand id."""

    ended_at: datetime
    hand_id: str
    record: HandRecord


@dataclass(frozen=True, slots=True)
class Claimed:
    """An e-mail request that is ours to send until the lease ends."""

    email_request_id: str
    player_id: str
    address: str
    attempt: int
    record: HandRecord


class Archive:
    """Hands, e-mail requests and addresses. Every method is one transaction.

    All raise Unavailable while the database is away.
    """

    def __init__(self, database: Database, rules: MailRules) -> None:
        self._database = database
        self._rules = rules

    # Hands

    async def store(self, shard: int, epoch: int, entries: Sequence[ArchiveEntry]) -> int:
        """Keep hands and audit records of outbox entries and advance; what is kept is passed over.

        entries: ascending. Returns archived_seq of this epoch. Raises FailedPrecondition:
        EPOCH_ENDED for an epoch before the newest one, ARCHIVE_GAP if the first new entry does not
        follow archived_seq (metadata archived_seq).
        """

        async def work(connection: Connection) -> int:
            last_epoch, archived_seq = await _lock_progress(connection, shard)
            if epoch < last_epoch:
                raise FailedPrecondition(
                    "EPOCH_ENDED",
                    "the archive has entries of a later epoch",
                    metadata={"epoch": str(last_epoch)},
                )
            if epoch > last_epoch:
                archived_seq = 0
            fresh = [entry for entry in entries if entry.seq > archived_seq]
            if not fresh:
                return archived_seq
            expected = range(archived_seq + 1, archived_seq + 1 + len(fresh))
            if [entry.seq for entry in fresh] != list(expected):
                raise FailedPrecondition(
                    "ARCHIVE_GAP",
                    "the entries do not follow the last one archived",
                    metadata={"archived_seq": str(archived_seq)},
                )
            await _insert_hands(connection, shard, epoch, fresh)
            audits = [entry.audit for entry in fresh if entry.HasField("audit")]
            if audits:
                await audit.insert(connection, audits)
            await connection.execute(
                "UPDATE archive_progress SET epoch = %s, archived_seq = %s WHERE shard = %s",
                (epoch, fresh[-1].seq, shard),
            )
            failpoints.reach("archive.storing")
            return fresh[-1].seq

        archived_seq = await self._database.transaction(work)
        failpoints.reach("archive.stored")
        return archived_seq

    async def progress(self, shard: int) -> tuple[int, int]:
        """(epoch, archived_seq) of a shard; (0, 0) before its first entry."""

        async def work(connection: Connection) -> tuple[int, int]:
            cursor = await connection.execute(
                "SELECT epoch, archived_seq FROM archive_progress WHERE shard = %s", (shard,)
            )
            return await cursor.fetchone() or (0, 0)

        return await self._database.transaction(work)

    async def hand(self, hand_id: str, *, read_by_staff: str = "") -> HandRecord:
        """A record. `read_by_staff`: whose reading leaves a trace. Raises NotFound."""

        async def work(connection: Connection) -> HandRecord:
            record = await _record(connection, hand_id)
            if read_by_staff:
                await connection.execute(
                    "INSERT INTO staff_reads (subject, hand_id) VALUES (%s, %s)",
                    (read_by_staff, hand_id),
                )
            return record

        return await self._database.transaction(work)

    async def hands(
        self,
        *,
        player_id: str = "",
        table_id: str = "",
        before: tuple[datetime, str] | None = None,
        limit: int,
        read_by_staff: str = "",
    ) -> list[Kept]:
        """Hands of a player, of a table, or of a player at a table, newest first.

        before: the last hand of the page before, as (ended_at, hand_id).
        """
        listed = sql.SQL("hand_players" if player_id else "hands")
        conditions = [sql.SQL("(ended_at, hand_id) < (%(ended_at)s, %(hand_id)s)")]
        if player_id:
            conditions.append(sql.SQL("player_id = %(player_id)s"))
        if table_id:
            conditions.append(sql.SQL("table_id = %(table_id)s"))
        query = sql.SQL(
            "SELECT p.ended_at, p.hand_id::text, h.record FROM (SELECT ended_at, hand_id FROM {}"
            " WHERE {} ORDER BY ended_at DESC, hand_id DESC LIMIT %(limit)s) p"
            " JOIN hands h USING (hand_id) ORDER BY p.ended_at DESC, p.hand_id DESC"
        ).format(listed, sql.SQL(" AND ").join(conditions))
        ended_at, hand_id = before or (LATER, NO_HAND)
        values = {
            "player_id": player_id,
            "table_id": table_id,
            "ended_at": ended_at,
            "hand_id": hand_id,
            "limit": limit,
        }

        async def work(connection: Connection) -> list[Kept]:
            cursor = await connection.execute(query, values)
            kept = [Kept(at, found, HandRecord.FromString(raw)) async for at, found, raw in cursor]
            if read_by_staff:
                await connection.execute(
                    "INSERT INTO staff_reads (subject, player_id, table_id) VALUES (%s, %s, %s)",
                    (read_by_staff, player_id or None, table_id or None),
                )
            return kept

        return await self._database.transaction(work)

    # E-mail

    async def request_email(
        self, *, player_id: str, request_id: str, hand_id: str, token_address: str
    ) -> tuple[str, int]:
        """Take a request, once for each request_id of a player: (its id, its state).

        token_address: the address in the player's own token, "" for none. Raises AlreadyExists
        (REQUEST_ID_REUSED: for another hand), PermissionDenied (NOT_DEALT_IN),
        FailedPrecondition (NO_MAIL_ADDRESS), ResourceExhausted (RATE_LIMITED).
        """
        email_request_id = uuid5_of("hand-email", player_id, request_id)

        async def work(connection: Connection) -> tuple[str, int]:
            # One request of a player at a time: the bound below is exact.
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (player_id,)
            )
            cursor = await connection.execute(
                "SELECT hand_id::text, state FROM email_requests WHERE email_request_id = %s",
                (email_request_id,),
            )
            earlier = await cursor.fetchone()
            if earlier is not None:
                if earlier[0] != hand_id:
                    raise AlreadyExists("REQUEST_ID_REUSED", "this request_id asked for other")
                return email_request_id, earlier[1]
            await _check_dealt_in(connection, player_id, hand_id)
            await self._check_mail(connection, player_id, token_address)
            await connection.execute(
                "INSERT INTO email_requests"
                " (email_request_id, player_id, request_id, hand_id, token_address)"
                " VALUES (%s, %s, %s, %s, %s)",
                (email_request_id, player_id, request_id, hand_id, token_address or None),
            )
            return email_request_id, EMAIL_STATE_WAITING

        return await self._database.transaction(work)

    async def set_address(
        self,
        *,
        player_id: str,
        address: str,
        request_id: str,
        changed_by: str,
        roles: Sequence[str],
    ) -> None:
        """Set or ("") clear a player's address, once for each request_id, and put that on record
        without the address. Raises AlreadyExists.
        """
        content = hashlib.sha256(f"{player_id}\n{address}".encode()).digest()

        async def work(connection: Connection) -> None:
            cursor = await connection.execute(
                "INSERT INTO mail_address_changes"
                " (request_id, player_id, content_sha256, changed_by) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                (request_id, player_id, content, changed_by),
            )
            if cursor.rowcount == 0:
                cursor = await connection.execute(
                    "SELECT content_sha256 FROM mail_address_changes WHERE request_id = %s",
                    (request_id,),
                )
                row = await cursor.fetchone()
                if row is None or row[0] != content:
                    raise AlreadyExists("REQUEST_ID_REUSED", "this request_id set something else")
                return
            if address:
                await connection.execute(
                    "INSERT INTO mail_addresses (player_id, address) VALUES (%s, %s)"
                    " ON CONFLICT (player_id) DO UPDATE SET address = EXCLUDED.address",
                    (player_id, address),
                )
            else:
                await connection.execute(
                    "DELETE FROM mail_addresses WHERE player_id = %s", (player_id,)
                )
            record = audit.of_mail_address(player_id, request_id, changed_by, roles, bool(address))
            await audit.insert(connection, [record])

        await self._database.transaction(work)

    async def claim_emails(self, limit: int, lease: timedelta) -> list[Claimed]:
        """Take requests that are due, longest due first; they come back when the lease ends.

        Requests that can never be sent end here as FAILED: the hand did not arrive in time, the
        player was not dealt in, there is no address any more, the last try's lease has lapsed.
        """

        values = {"attempts_max": self._rules.attempts_max, "limit": limit}

        async def work(connection: Connection) -> list[Claimed]:
            await self._end_hopeless(connection)
            claimed = []
            cursor = await connection.execute(_SENDABLE, values)
            for request_id, hand_id, player_id, attempt, address in await cursor.fetchall():
                await _put_off(connection, request_id, lease, attempt=attempt + 1)
                record = await _record(connection, hand_id)
                claimed.append(Claimed(request_id, player_id, address, attempt + 1, record))
            return claimed

        return await self._database.transaction(work)

    async def complete_email(
        self, email_request_id: str, attempt: int, *, sent: bool, reason: str
    ) -> int:
        """Note what became of a try; the request's state after it. Raises NotFound.

        A mail that was sent is sent, even if its lease had lapsed; a failure counts only for the
        try that is running.
        """

        async def work(connection: Connection) -> int:
            cursor = await connection.execute(
                "SELECT state, attempt FROM email_requests WHERE email_request_id = %s FOR UPDATE",
                (email_request_id,),
            )
            row = await cursor.fetchone()
            if row is None:
                raise NotFound("EMAIL_REQUEST_NOT_FOUND", "there is no such e-mail request")
            state, running = row
            if sent and 1 <= attempt <= running and state != EMAIL_STATE_SENT:
                await _end(connection, email_request_id, EMAIL_STATE_SENT, "")
                return EMAIL_STATE_SENT
            if state != EMAIL_STATE_WAITING or attempt != running:
                return int(state)
            if attempt >= self._rules.attempts_max:
                await _end(connection, email_request_id, EMAIL_STATE_FAILED, reason)
                return EMAIL_STATE_FAILED
            pause = self._rules.pause_after(attempt)
            await _put_off(connection, email_request_id, pause, attempt=attempt, reason=reason)
            return EMAIL_STATE_WAITING

        return await self._database.transaction(work)

    async def _end_hopeless(self, connection: Connection) -> None:
        """End due requests that cannot be sent; those whose hand may still come are put off."""
        values = {"attempts_max": self._rules.attempts_max, "limit": LOOKED_AT_MAX}
        cursor = await connection.execute(_UNSENDABLE, values)
        for request_id, age, arrived, dealt_in, address in await cursor.fetchall():
            if not arrived and age < self._rules.hand_wait:
                await _put_off(connection, request_id, LOOK_AGAIN, attempt=0)
                continue
            if not arrived:
                reason = "HAND_NOT_FOUND"
            elif not dealt_in:
                reason = "NOT_DEALT_IN"
            elif address is None:
                reason = "NO_MAIL_ADDRESS"
            else:
                reason = "ATTEMPTS_USED_UP"
            await _end(connection, request_id, EMAIL_STATE_FAILED, reason)

    async def _check_mail(self, connection: Connection, player_id: str, token_address: str) -> None:
        cursor = await connection.execute(
            "SELECT EXISTS (SELECT FROM mail_addresses WHERE player_id = %(player_id)s),"
            " (SELECT count(*) FROM email_requests WHERE player_id = %(player_id)s"
            " AND requested_at > now() - interval '1 hour')",
            {"player_id": player_id},
        )
        has_address, asked = await cursor.fetchone() or (False, 0)
        if not (token_address or has_address):
            raise FailedPrecondition(
                "NO_MAIL_ADDRESS", "neither the token nor an operator gives an address"
            )
        if asked >= self._rules.per_hour:
            raise ResourceExhausted(
                "RATE_LIMITED",
                f"at most {self._rules.per_hour} e-mails an hour",
                metadata={"limit": "mails.player", "per_hour": str(self._rules.per_hour)},
                retry_after_ms=FULL_RETRY_MS,
            )


_DUE: Final = """
FROM email_requests r
LEFT JOIN hands h ON h.hand_id = r.hand_id
LEFT JOIN hand_players p ON p.player_id = r.player_id AND p.hand_id = r.hand_id
LEFT JOIN mail_addresses a ON a.player_id = r.player_id
WHERE r.state = 1 AND r.due_at <= now()
AND (p.hand_id IS NOT NULL AND coalesce(a.address, r.token_address) IS NOT NULL
     AND r.attempt < %(attempts_max)s)"""
_TAKE: Final = "ORDER BY r.due_at LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED"
_SENDABLE: Final = f"""
SELECT r.email_request_id::text, r.hand_id::text, r.player_id, r.attempt,
       coalesce(a.address, r.token_address)
{_DUE} {_TAKE}"""
_UNSENDABLE: Final = f"""
SELECT r.email_request_id::text, now() - r.requested_at, h.hand_id IS NOT NULL,
       p.hand_id IS NOT NULL, coalesce(a.address, r.token_address)
{_DUE} IS FALSE {_TAKE}"""


async def _lock_progress(connection: Connection, shard: int) -> tuple[int, int]:
    """(epoch, archived_seq), held until the transaction ends: doubled drains queue here."""
    await connection.execute(
        "INSERT INTO archive_progress (shard, epoch, archived_seq) VALUES (%s, 0, 0)"
        " ON CONFLICT DO NOTHING",
        (shard,),
    )
    cursor = await connection.execute(
        "SELECT epoch, archived_seq FROM archive_progress WHERE shard = %s FOR UPDATE", (shard,)
    )
    return await cursor.fetchone() or (0, 0)


async def _insert_hands(
    connection: Connection, shard: int, epoch: int, entries: Iterable[ArchiveEntry]
) -> None:
    entries = [entry for entry in entries if entry.HasField("hand")]
    if not entries:
        return
    async with connection.cursor() as cursor:
        # A hand that is archived stays as it first came, whatever a rebuilt table says of it.
        await cursor.executemany(
            "INSERT INTO hands (hand_id, table_id, shard, epoch, seq, ended_at, record)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (hand_id) DO NOTHING",
            [
                (
                    entry.hand.hand_id,
                    entry.hand.table_id,
                    shard,
                    epoch,
                    entry.seq,
                    _ended_at(entry.hand),
                    entry.hand.SerializeToString(),
                )
                for entry in entries
            ],
        )
        if cursor.rowcount != len(entries):
            logger.error("hands_archived_before", count=len(entries) - cursor.rowcount)
        await cursor.executemany(
            "INSERT INTO hand_players (player_id, hand_id, table_id, ended_at)"
            " VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [
                (player.player_id, entry.hand.hand_id, entry.hand.table_id, _ended_at(entry.hand))
                for entry in entries
                for player in entry.hand.players
            ],
        )
    await connection.execute(
        "UPDATE email_requests SET due_at = now()"
        " WHERE state = 1 AND attempt = 0 AND hand_id = ANY(%s::uuid[])",
        ([entry.hand.hand_id for entry in entries],),
    )


async def _check_dealt_in(connection: Connection, player_id: str, hand_id: str) -> None:
    """PermissionDenied if the hand is here and the player is not among its players."""
    cursor = await connection.execute(
        "SELECT EXISTS (SELECT FROM hand_players WHERE player_id = %s AND hand_id = %s)"
        " FROM hands WHERE hand_id = %s",
        (player_id, hand_id, hand_id),
    )
    if await cursor.fetchone() == (False,):
        raise PermissionDenied("NOT_DEALT_IN", "only players dealt into the hand may ask for it")


async def _record(connection: Connection, hand_id: str) -> HandRecord:
    cursor = await connection.execute("SELECT record FROM hands WHERE hand_id = %s", (hand_id,))
    row = await cursor.fetchone()
    if row is None:
        raise NotFound("HAND_NOT_FOUND", "the archive has no such hand")
    return HandRecord.FromString(row[0])


async def _put_off(
    connection: Connection,
    email_request_id: str,
    pause: timedelta,
    *,
    attempt: int,
    reason: str = "",
) -> None:
    await connection.execute(
        "UPDATE email_requests SET due_at = now() + %s, attempt = %s, reason = %s"
        " WHERE email_request_id = %s",
        (pause, attempt, reason, email_request_id),
    )


async def _end(connection: Connection, email_request_id: str, state: int, reason: str) -> None:
    """No further try; the address is forgotten with it."""
    await connection.execute(
        "UPDATE email_requests SET state = %s, reason = %s, ended_at = now(), token_address = NULL"
        " WHERE email_request_id = %s",
        (state, reason, email_request_id),
    )


def _ended_at(hand: HandRecord) -> datetime:
    return hand.ended.ToDatetime(tzinfo=UTC)
