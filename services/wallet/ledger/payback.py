"""Escrow that lost its seat when its shard's epoch ended: paid back to its players."""

from collections.abc import Sequence
from typing import Final

from psycopg.errors import UniqueViolation

from services.runtime.errors import FailedPrecondition, InvalidArgument
from services.runtime.ids import uuid5_of
from services.runtime.postgres import Connection, Database
from services.wallet.entries import CashOut, Entry, Kind
from services.wallet.ledger import requests, settlement, shards
from services.wallet.ledger.requests import Asked
from services.wallet.ledger.shards import SittingEscrow
from services.wallet.posting import BEHIND_PARKED, Posting, array

SITTINGS_MAX: Final = 500


async def pay_back(
    database: Database, shard: int, epoch: int, sittings: Sequence[SittingEscrow]
) -> tuple[list[str], list[str]]:
    """Pay each sitting's whole escrow to its player and end it, once for sitting and epoch; the
    sittings that are paid, now or earlier, and those held because their tables have parked entries.

    Nothing is paid unless every sitting is as it is said to be. Raises Aborted (EPOCH_MOVED),
    InvalidArgument (BAD_BATCH), AlreadyExists (ID_REUSED), FailedPrecondition (SITTING_UNKNOWN,
    SITTING_ENDED, TABLE_DIFFERS, PLAYER_DIFFERS, CURRENCY_DIFFERS, AMOUNT_DIFFERS, BALANCE_LIMIT).
    """
    asked = {request_of(each, epoch): each for each in sittings}
    if len(sittings) > SITTINGS_MAX or len({each.sitting_id for each in sittings}) < len(sittings):
        raise InvalidArgument.of_field(
            "sittings", f"at most {SITTINGS_MAX}, each once", "BAD_BATCH"
        )

    async def work(connection: Connection) -> tuple[list[str], list[str]]:
        shards.check_epoch(await shards.locked(connection, shard), epoch)
        earlier = await _paid_before(connection, asked)
        entries = [
            _entry(request, each) for request, each in asked.items() if request.id not in earlier
        ]
        posting = await settlement.load(connection, shard, entries)
        posting.post_all(entries)
        held = _held(posting)
        await settlement.write(connection, posting)
        await _remember(connection, posting, asked)
        return [each.sitting_id for each in sittings if each.sitting_id not in held], held

    return await database.transaction(work, again_on=(UniqueViolation,))


def request_of(sitting: SittingEscrow, epoch: int) -> Asked:
    """The payment's own id, from what it is for: a UUIDv5 of sitting and epoch."""
    return requests.asked(
        uuid5_of("payback", sitting.sitting_id, epoch), requests.PAY_BACK, *sitting
    )


def _entry(request: Asked, sitting: SittingEscrow) -> Entry:
    work = CashOut(sitting.sitting_id, sitting.player_id, sitting.amount, Kind.PAYBACK)
    return Entry(0, request.id, "", sitting.table_id, sitting.currency, work, bytes)


def _held(posting: Posting) -> list[str]:
    """Raises FailedPrecondition with the first reason that is no parked entry's."""
    held = []
    for entry, reason in posting.parked:
        sitting_id = entry.work.sitting_id if isinstance(entry.work, CashOut) else ""
        if reason != BEHIND_PARKED:
            raise FailedPrecondition(
                reason,
                "a sitting's escrow is not what it is said to be",
                metadata={"sitting_id": sitting_id},
            )
        held.append(sitting_id)
    return held


async def _paid_before(connection: Connection, asked: dict[Asked, SittingEscrow]) -> set[str]:
    cursor = await connection.execute(
        "SELECT id, content FROM requests WHERE id = ANY(%s)", ([each.id for each in asked],)
    )
    contents = {each.id: each.content for each in asked}
    found = set()
    for request_id, content in await cursor.fetchall():
        if content != contents[request_id]:
            raise requests.id_reused()
        found.add(request_id)
    return found


async def _remember(
    connection: Connection, posting: Posting, asked: dict[Asked, SittingEscrow]
) -> None:
    entries = {source: number for number, _, source, *_ in posting.journal}
    paid = [each for each in asked if each.id in entries]
    if paid:
        await connection.execute(
            "INSERT INTO requests (id, kind, content, entry, balance)"
            " SELECT id, %s, content, entry, 0"
            " FROM unnest(%s::text[], %s::bytea[], %s::bigint[]) AS paid (id, content, entry)",
            (
                requests.PAY_BACK,
                [each.id for each in paid],
                [each.content for each in paid],
                array(entries[each.id] for each in paid),
            ),
        )
