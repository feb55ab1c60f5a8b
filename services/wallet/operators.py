"""The part of the contract that is for operators and auditors: corrections and oversight."""

from datetime import date
from typing import Any, Final

from doorcard.wallet.v1 import wallet_pb2 as pb
from grpc import aio

from services.runtime.auth import current_caller
from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_player_id, check_request_id, check_uuid
from services.runtime.logs import logger
from services.runtime.shards import shard_of
from services.wallet import messages, pages
from services.wallet.entries import Entry
from services.wallet.ledger import (
    closing,
    corrections,
    lookup,
    parked,
    rake_report,
    resolution,
    verify,
)
from services.wallet.ledger.rake_report import Grouping
from services.wallet.money import AMOUNT_MAX, check_change, check_currency
from services.wallet.opening import LedgerDatabase

REASON_MAX: Final = 256
ACCOUNTS_PAGE: Final = 100
PARKED_PAGE: Final = 100
REPORT_PAGE: Final = 100
HASH_BYTES: Final = 32
GROUPINGS: Final[frozenset[int]] = frozenset(map(int, Grouping))

Context = aio.ServicerContext[Any, Any]


class OperatorMethods:
    """Checks the fields of requests and hands over to the ledger; who may call, the roles say."""

    _ledger: LedgerDatabase
    _shards: int

    async def AdjustBalance(  # noqa: N802 (the contract's name)
        self, request: pb.AdjustBalanceRequest, _context: Context
    ) -> pb.AdjustBalanceResponse:
        if request.WhichOneof("target") is None:
            raise InvalidArgument.of_field("target", "a player or a sitting", "BAD_TARGET")
        by_sitting = request.HasField("sitting_id")
        adjustment = corrections.Adjustment(
            request_id=check_request_id(request.request_id),
            player_id="" if by_sitting else check_player_id(request.player_id),
            sitting_id=check_request_id(request.sitting_id, "sitting_id") if by_sitting else "",
            amount=check_change(request.amount),
            currency=check_currency(request.currency),
            reason=check_reason(request.reason),
            made_by=current_caller().subject,
        )
        done = await corrections.adjust(await self._ledger.opened(), adjustment)
        logger.warning("balance_adjusted", transfer=done.transfer_id, by=adjustment.made_by)
        return pb.AdjustBalanceResponse(transfer_id=done.transfer_id, balance=done.balance)

    async def ReverseTransfer(  # noqa: N802
        self, request: pb.ReverseTransferRequest, _context: Context
    ) -> pb.ReverseTransferResponse:
        reversal = corrections.Reversal(
            request_id=check_request_id(request.request_id),
            entry=pages.transfer_number(request.transfer_id),
            reason=check_reason(request.reason),
            made_by=current_caller().subject,
        )
        done = await corrections.reverse(await self._ledger.opened(), reversal)
        logger.warning("transfer_reversed", transfer=done.transfer_id, by=reversal.made_by)
        return pb.ReverseTransferResponse(transfer_id=done.transfer_id)

    async def CloseAccount(  # noqa: N802
        self, request: pb.CloseAccountRequest, _context: Context
    ) -> pb.CloseAccountResponse:
        done = await closing.close(await self._ledger.opened(), _closing(request))
        return pb.CloseAccountResponse(transfer_id=done.transfer_id)

    async def ReopenAccount(  # noqa: N802
        self, request: pb.ReopenAccountRequest, _context: Context
    ) -> pb.ReopenAccountResponse:
        done = await closing.reopen(await self._ledger.opened(), _closing(request))
        return pb.ReopenAccountResponse(transfer_id=done.transfer_id)

    async def ListAccounts(  # noqa: N802
        self, request: pb.ListAccountsRequest, _context: Context
    ) -> pb.ListAccountsResponse:
        if not 0 <= request.purpose < len(lookup.PURPOSES):
            raise InvalidArgument.of_field("purpose", "is none that exists", "BAD_PURPOSE")
        found, position = await lookup.accounts(
            await self._ledger.opened(),
            owner=check_request_id(request.owner, "owner") if request.owner else "",
            purpose=lookup.PURPOSES[request.purpose],
            currency=check_currency(request.currency) if request.currency else "",
            after=pages.number_position(request.page_token) or 0,
            limit=pages.page_size(request.page_size, ACCOUNTS_PAGE),
        )
        return pb.ListAccountsResponse(
            accounts=[messages.account_message(each) for each in found],
            next_page_token=pages.number_token(position),
        )

    async def ListParkedEntries(  # noqa: N802
        self, request: pb.ListParkedEntriesRequest, _context: Context
    ) -> pb.ListParkedEntriesResponse:
        size = pages.page_size(request.page_size, PARKED_PAGE)
        found = await parked.entries(
            await self._ledger.opened(),
            table_id=request.table_id.lower(),
            resolved_too=request.include_resolved,
            after=pages.parked_position(request.page_token),
            limit=size + 1,
        )
        return pb.ListParkedEntriesResponse(
            entries=[messages.held_message(each) for each in found[:size]],
            next_page_token=pages.parked_token(found[size - 1]) if len(found) > size else "",
        )

    async def RetryParkedEntries(  # noqa: N802
        self, request: pb.RetryParkedEntriesRequest, _context: Context
    ) -> pb.RetryParkedEntriesResponse:
        check_request_id(request.request_id)
        table_id = check_uuid(request.table_id, "table_id")
        shard = shard_of(table_id, self._shards)
        who = current_caller().subject

        def read(content: bytes) -> Entry:
            return messages.entry_of(pb.LedgerEntry.FromString(content), shard, self._shards)

        applied, still = await parked.retry(
            await self._ledger.opened(), shard, table_id, read, made_by=who
        )
        logger.warning(
            "parked_retried", table=table_id, applied=len(applied), parked=len(still), by=who
        )
        return pb.RetryParkedEntriesResponse(
            applied=[messages.held_message(each, whole=False) for each in applied],
            parked=[messages.held_message(each, whole=False) for each in still],
        )

    async def ResolveParkedEntry(  # noqa: N802
        self, request: pb.ResolveParkedEntryRequest, _context: Context
    ) -> pb.ResolveParkedEntryResponse:
        check_request_id(request.request_id)
        entry_id = check_uuid(request.entry_id, "entry_id")
        who = current_caller().subject
        resolved = await parked.resolve(
            await self._ledger.opened(), entry_id, check_reason(request.reason), made_by=who
        )
        logger.warning("parked_resolved", table=resolved.table_id, entry=entry_id, by=who)
        return pb.ResolveParkedEntryResponse(entry=messages.held_message(resolved))

    async def RecordResolution(  # noqa: N802
        self, request: pb.RecordResolutionRequest, _context: Context
    ) -> pb.RecordResolutionResponse:
        table_id = check_uuid(request.table_id, "table_id")
        for field in ("epoch", "applied_seq"):
            if not 0 <= getattr(request, field) <= AMOUNT_MAX:
                raise InvalidArgument.of_field(field, f"must be 0 to {AMOUNT_MAX}", "BAD_PLACE")
        settled = resolution.Resolution(
            request_id=check_request_id(request.request_id),
            table_id=table_id,
            epoch=request.epoch,
            applied_seq=request.applied_seq,
            reason=check_reason(request.reason),
            made_by=current_caller().subject,
        )
        shard = shard_of(table_id, self._shards)
        done = await resolution.record(await self._ledger.opened(), shard, settled)
        logger.warning(
            "difference_resolved", table=table_id, transfer=done.transfer_id, by=settled.made_by
        )
        return pb.RecordResolutionResponse(transfer_id=done.transfer_id)

    async def VerifyLedger(  # noqa: N802
        self, request: pb.VerifyLedgerRequest, _context: Context
    ) -> pb.VerifyLedgerResponse:
        known = verify.Known(request.known_seal, request.known_hash)
        if known.number < 0 or (known.number > 0) != (len(known.hash) == HASH_BYTES):
            raise InvalidArgument.of_field(
                "known_hash", f"{HASH_BYTES} bytes beside a number above 0", "BAD_SEAL"
            )
        page = await verify.page(
            await self._ledger.opened(), pages.ledger_position(request.page_token), known
        )
        for each in page.findings:
            logger.error("ledger_tampered", row=each.row, seal=each.seal)
        return messages.verified_message(page)

    async def ReportRake(  # noqa: N802
        self, request: pb.ReportRakeRequest, _context: Context
    ) -> pb.ReportRakeResponse:
        if request.by not in GROUPINGS:
            raise InvalidArgument.of_field("by", "day, stake, table or player", "BAD_GROUPING")
        question = rake_report.Question(
            by=Grouping(request.by),
            currency=check_currency(request.currency),
            first_day=messages.day_of(request.first_day, "first_day") or date.min,
            last_day=messages.day_of(request.last_day, "last_day") or date.max,
            table_id=check_uuid(request.table_id, "table_id") if request.table_id else "",
            player_id=check_player_id(request.player_id) if request.player_id else "",
        )
        if question.last_day < question.first_day:
            raise InvalidArgument.of_field("last_day", "must not be before first_day", "BAD_DAY")
        size = pages.page_size(request.page_size, REPORT_PAGE)
        report = await rake_report.report(
            await self._ledger.opened(), question, pages.text_position(request.page_token), size + 1
        )
        last = report.lines[size - 1] if len(report.lines) > size else None
        return pb.ReportRakeResponse(
            lines=[messages.rake_message(each) for each in report.lines[:size]],
            next_page_token=pages.text_token(last and rake_report.key_of(question.by, last)),
            complete_until=messages.timestamp_of(report.complete_until),
        )


def check_reason(reason: str) -> str:
    """`reason` itself: something that a person wrote. Raises InvalidArgument."""
    if not 1 <= len(reason) <= REASON_MAX or not reason.strip() or not reason.isprintable():
        raise InvalidArgument.of_field(
            "reason", f"must be 1 to {REASON_MAX} printable characters", "BAD_REASON"
        )
    return reason


def _closing(request: pb.CloseAccountRequest | pb.ReopenAccountRequest) -> closing.Closing:
    return closing.Closing(
        request_id=check_request_id(request.request_id),
        player_id=check_player_id(request.player_id),
        currency=check_currency(request.currency),
        reason=check_reason(request.reason),
        made_by=current_caller().subject,
    )
