"""The audit log's part of HistoryService: gRPC in, domain out."""

import re
from datetime import UTC, datetime
from typing import Any, Final

from doorcard.history.v1 import history_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio

from services.history.audit import NUMBER_MAX, AuditLog
from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_player_id, check_request_id, check_uuid
from services.runtime.pages import page_size

RECORD_BYTES_MAX: Final = 64 * 1024
"""More than a table can make: a record that is refused would keep its shard from being archived."""
PAGE_DEFAULT: Final = 20
PAGE_MAX: Final = 100
SHA256_BYTES: Final = 32
_ACTION: Final = re.compile(r"[a-z_]{1,48}")

Context = aio.ServicerContext[Any, Any]


class AuditMethods:
    """The methods that concern the audit log."""

    _audit: AuditLog

    async def AppendAuditRecord(  # noqa: N802 (the contract's name)
        self, request: pb.AppendAuditRecordRequest, _context: Context
    ) -> pb.AppendAuditRecordResponse:
        check_record(request.record, "record")
        return pb.AppendAuditRecordResponse(number=await self._audit.append(request.record))

    async def ListAuditRecords(  # noqa: N802
        self, request: pb.ListAuditRecordsRequest, _context: Context
    ) -> pb.ListAuditRecordsResponse:
        limit = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)
        since = _time(request.since, "since") if request.HasField("since") else None
        until = _time(request.until, "until") if request.HasField("until") else None
        if since and until and until < since:
            raise InvalidArgument.of_field("until", "must not be before since")
        found = await self._audit.entries(
            table_id=request.table_id and check_uuid(request.table_id, "table_id"),
            operator=request.operator and check_player_id(request.operator, "operator"),
            since=since,
            until=until,
            before=_from_token(request.page_token),
            limit=limit,
        )
        response = pb.ListAuditRecordsResponse(
            entries=[
                pb.AuditEntry(number=each.number, record=each.record, hash=each.hash)
                for each in found
            ]
        )
        if len(found) == limit:
            response.next_page_token = str(found[-1].number)
        return response

    async def VerifyAuditLog(  # noqa: N802
        self, request: pb.VerifyAuditLogRequest, _context: Context
    ) -> pb.VerifyAuditLogResponse:
        if request.from_number < 0:
            raise InvalidArgument.of_field("from_number", "must be 0 or more")
        if request.known_hash and len(request.known_hash) != SHA256_BYTES:
            raise InvalidArgument.of_field("known_hash", f"must be {SHA256_BYTES} bytes or none")
        if request.known_hash and request.from_number < 2:
            raise InvalidArgument.of_field("known_hash", "nothing is before the first record")
        found = await self._audit.verify(max(1, request.from_number), request.known_hash)
        return pb.VerifyAuditLogResponse(**found._asdict())


def check_record(record: pb.AuditRecord, field: str) -> None:
    """Raises InvalidArgument for a record that the log does not take."""
    check_uuid(record.record_id, f"{field}.record_id")
    check_player_id(record.operator, f"{field}.operator")
    check_request_id(record.request_id, f"{field}.request_id")
    if record.table_id:
        check_uuid(record.table_id, f"{field}.table_id")
    if not _ACTION.fullmatch(record.action):
        raise InvalidArgument.of_field(f"{field}.action", "must be 1 to 48 of a-z _")
    if record.ByteSize() > RECORD_BYTES_MAX:
        raise InvalidArgument.of_field(field, f"at most {RECORD_BYTES_MAX} bytes")
    _time(record.at, f"{field}.at")


def _time(at: Timestamp, field: str) -> datetime:
    try:
        return at.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument.of_field(field, "is no time that a calendar has") from None


def _from_token(token: str) -> int:
    if not token:
        return NUMBER_MAX
    if not token.isascii() or not token.isdigit() or int(token) > NUMBER_MAX:
        raise InvalidArgument.of_field(
            "page_token", "must come from an earlier answer", "BAD_PAGE_TOKEN"
        )
    return int(token)
