"""The audit log: once each, in order, chained, for operators and auditors, and never changed."""

import hashlib
from uuid import uuid4

import psycopg
import pytest
from doorcard.history.v1 import history_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp

from services.runtime.errors import AlreadyExists, InvalidArgument, NotFound, PermissionDenied
from tests.contract.history.conftest import SERVICE, Start

AUDITOR = ("audrey", ["auditor"])
TABLES = [str(uuid4()), str(uuid4())]


def record(n: int, **fields: object) -> pb.AuditRecord:
    """A table was paused, at second `n`."""
    made = pb.AuditRecord(
        record_id=str(uuid4()),
        at=Timestamp(seconds=1_700_000_000 + n),
        operator="olga",
        roles=["operator"],
        action="pause_table",
        table_id=TABLES[n % 2],
        reason=f"reason {n}",
        request_id=f"request-{n}",
        changes=[pb.AuditChange(field="state", before="OPEN", after="PAUSED")],
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


async def test_records_of_outbox_entries_are_kept_once_and_in_order(archive: Start) -> None:
    records = [record(n) for n in range(5)]
    entries = [pb.ArchiveEntry(seq=n + 1, audit=each) for n, each in enumerate(records)]
    async with archive() as call:
        for part in (entries[:3], entries[1:], entries):
            await call("StoreHands", pb.StoreHandsRequest(shard=1, epoch=1, entries=part), *SERVICE)
        answer = await call("ListAuditRecords", pb.ListAuditRecordsRequest(), *AUDITOR)
    assert [each.number for each in answer.entries] == [5, 4, 3, 2, 1]
    assert [each.record for each in answer.entries] == records[::-1]


async def test_a_record_that_is_appended_again_has_its_first_number(archive: Start) -> None:
    first, second = record(1), record(2)
    async with archive() as call:
        numbers = [
            (
                await call("AppendAuditRecord", pb.AppendAuditRecordRequest(record=each), *SERVICE)
            ).number
            for each in (first, second, first)
        ]
        assert numbers == [1, 2, 1]
        first.reason = "another"
        with pytest.raises(AlreadyExists) as refused:
            await call("AppendAuditRecord", pb.AppendAuditRecordRequest(record=first), *SERVICE)
    assert refused.value.reason == "RECORD_EXISTS"


async def test_the_log_is_listed_by_table_operator_and_time_in_pages(archive: Start) -> None:
    records = [record(n, operator="olga" if n < 4 else "otto") for n in range(6)]
    async with archive() as call:
        for each in records:
            await call("AppendAuditRecord", pb.AppendAuditRecordRequest(record=each), *SERVICE)

        async def numbers(**fields: object) -> list[int]:
            request = pb.ListAuditRecordsRequest(page_size=2, **fields)  # type: ignore[arg-type]
            found: list[int] = []
            while True:
                answer = await call("ListAuditRecords", request, *AUDITOR)
                found += [each.number for each in answer.entries]
                request.page_token = answer.next_page_token
                if not request.page_token:
                    return found

        assert await numbers() == [6, 5, 4, 3, 2, 1]
        assert await numbers(table_id=TABLES[0]) == [5, 3, 1]
        assert await numbers(operator="otto") == [6, 5]
        since, until = records[1].at, records[4].at
        assert await numbers(since=since, until=until) == [4, 3, 2]
        with pytest.raises(InvalidArgument):
            await numbers(since=until, until=since)


async def test_the_log_is_a_chain_of_hashes_that_the_archive_compares(
    archive: Start, archive_url: str
) -> None:
    async with archive() as call:
        for n in range(4):
            await call("AppendAuditRecord", pb.AppendAuditRecordRequest(record=record(n)), *SERVICE)
        listed = await call("ListAuditRecords", pb.ListAuditRecordsRequest(), *AUDITOR)
        digest = b""
        for entry in reversed(listed.entries):
            digest = hashlib.sha256(digest + entry.record.SerializeToString()).digest()
            assert entry.hash == digest
        whole = await call("VerifyAuditLog", pb.VerifyAuditLogRequest(), *AUDITOR)
        assert (whole.records, whole.broken_at, whole.last_number) == (4, 0, 4)
        assert whole.last_hash == digest
        later = pb.VerifyAuditLogRequest(from_number=3, known_hash=listed.entries[2].hash)
        assert (await call("VerifyAuditLog", later, *AUDITOR)).records == 2
        with psycopg.connect(archive_url) as connection:
            # Only who owns the table can do this; the chain shows it all the same.
            connection.execute("ALTER TABLE audit_log DISABLE TRIGGER audit_log_stays")
            connection.execute("UPDATE audit_log SET record = record || '\\x00' WHERE number = 3")
        assert (await call("VerifyAuditLog", pb.VerifyAuditLogRequest(), *AUDITOR)).broken_at == 3
        with pytest.raises(NotFound):
            await call("VerifyAuditLog", pb.VerifyAuditLogRequest(from_number=9), *AUDITOR)


async def test_a_mail_address_that_is_set_is_on_record_without_the_address(archive: Start) -> None:
    request = pb.SetMailAddressRequest(
        request_id="r1", player_id="anna", address="anna@example.org"
    )
    async with archive() as call:
        for _ in range(2):
            await call("SetMailAddress", request, "olga", ["operator"])
        (entry,) = (await call("ListAuditRecords", pb.ListAuditRecordsRequest(), *AUDITOR)).entries
    record = entry.record
    assert (record.operator, list(record.roles)) == ("olga", ["operator"])
    assert (record.action, record.subject) == ("set_mail_address", "anna")
    assert b"example.org" not in record.SerializeToString()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET operator = 'nobody'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
    ],
)
async def test_the_log_cannot_be_edited(archive: Start, archive_url: str, statement: str) -> None:
    async with archive() as call:
        await call("AppendAuditRecord", pb.AppendAuditRecordRequest(record=record(1)), *SERVICE)
    with (
        psycopg.connect(archive_url) as connection,
        pytest.raises(psycopg.errors.RaiseException, match="is never changed"),
    ):
        connection.execute(statement)


async def test_whoever_inserts_a_row_does_not_choose_its_place(
    archive: Start, archive_url: str
) -> None:
    async with archive() as call:
        await call("AppendAuditRecord", pb.AppendAuditRecordRequest(record=record(1)), *SERVICE)
    with psycopg.connect(archive_url) as connection:
        row = connection.execute(
            "INSERT INTO audit_log"
            " (number, record_id, at, operator, action, table_id, record, hash)"
            " VALUES (77, gen_random_uuid(), now(), 'o', 'a', '', 'x', '')"
            " RETURNING number, hash"
        ).fetchone()
        first = connection.execute("SELECT hash FROM audit_log WHERE number = 1").fetchone()
    assert row is not None
    assert first is not None
    assert row == (2, hashlib.sha256(first[0] + b"x").digest())


@pytest.mark.parametrize("role", ["player", "service"])
async def test_the_log_is_read_by_operators_and_auditors_only(archive: Start, role: str) -> None:
    async with archive() as call:
        with pytest.raises(PermissionDenied):
            await call("ListAuditRecords", pb.ListAuditRecordsRequest(), "anna", [role])
        with pytest.raises(PermissionDenied):
            await call("VerifyAuditLog", pb.VerifyAuditLogRequest(), "anna", [role])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record_id", "none"),
        ("operator", ""),
        ("request_id", ""),
        ("action", "Pause!"),
        ("table_id", "none"),
        ("reason", "x" * 70_000),
    ],
)
async def test_a_record_that_is_none_is_refused(archive: Start, field: str, value: str) -> None:
    request = pb.AppendAuditRecordRequest(record=record(1, **{field: value}))
    async with archive() as call:
        with pytest.raises(InvalidArgument):
            await call("AppendAuditRecord", request, *SERVICE)
