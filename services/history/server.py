"""The archive's contract over gRPC: requests in, what the caller may see out."""

import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from doorcard.history.v1 import history_pb2 as pb
from doorcard.history.v1 import history_pb2_grpc
from grpc import aio

from services.history import views
from services.history.addresses import check_address, is_address
from services.history.audit import AuditLog
from services.history.audit_server import AuditMethods, check_record
from services.history.settings import HistorySettings
from services.history.store import Archive, MailRules
from services.runtime.auth import Caller, acting_player, current_caller
from services.runtime.clock import NS_PER_S
from services.runtime.errors import InvalidArgument, PermissionDenied
from services.runtime.ids import NAME_RULE, check_player_id, check_request_id, check_uuid, is_name
from services.runtime.logs import logger
from services.runtime.pages import page_size
from services.runtime.roles import Role

SERVICE_NAME: Final = pb.DESCRIPTOR.services_by_name["HistoryService"].full_name
ENTRIES_MAX: Final = 500
PAGE_DEFAULT: Final = 20
PAGE_MAX: Final = 100
PAGE_BYTES_MAX: Final = 2 * 1024 * 1024
"""A page of very long hands ends early; the reader's limit is twice that."""
CLAIM_MAX: Final = 100
LEASE_MAX_S: Final = 600
SHARDS_MAX: Final = 65_536

View = Callable[[pb.HandRecord], pb.HandRecord]
Context = aio.ServicerContext[Any, Any]


class HistoryServicer(AuditMethods, history_pb2_grpc.HistoryServiceServicer):
    """HistoryService."""

    def __init__(self, archive: Archive, audit: AuditLog) -> None:
        self._archive = archive
        self._audit = audit

    async def StoreHands(  # noqa: N802 (the contract's name)
        self, request: pb.StoreHandsRequest, _context: Context
    ) -> pb.StoreHandsResponse:
        _check_number("shard", request.shard, 0, SHARDS_MAX - 1)
        if request.epoch < 1:
            raise InvalidArgument.of_field("epoch", "must be 1 or more")
        if len(request.entries) > ENTRIES_MAX:
            raise InvalidArgument.of_field("entries", f"at most {ENTRIES_MAX}")
        for entry in request.entries:
            if entry.HasField("hand"):
                check_uuid(entry.hand.hand_id, "entries.hand.hand_id")
            if entry.HasField("audit"):
                check_record(entry.audit, "entries.audit")
        archived_seq = await self._archive.store(request.shard, request.epoch, request.entries)
        return pb.StoreHandsResponse(archived_seq=archived_seq)

    async def GetArchiveProgress(  # noqa: N802
        self, request: pb.GetArchiveProgressRequest, _context: Context
    ) -> pb.GetArchiveProgressResponse:
        _check_number("shard", request.shard, 0, SHARDS_MAX - 1)
        epoch, archived_seq = await self._archive.progress(request.shard)
        return pb.GetArchiveProgressResponse(epoch=epoch, archived_seq=archived_seq)

    async def GetHand(  # noqa: N802
        self, request: pb.GetHandRequest, _context: Context
    ) -> pb.GetHandResponse:
        caller = current_caller()
        hand_id = check_uuid(request.hand_id, "hand_id")
        if _is_staff(caller):
            record = await self._archive.hand(hand_id, read_by_staff=caller.subject)
            logger.info("hand_read_by_staff", subject=caller.subject, hand=hand_id)
            return pb.GetHandResponse(hand=views.whole(record))
        if _is_plain_service(caller):
            return pb.GetHandResponse(hand=views.public(await self._archive.hand(hand_id)))
        player_id = acting_player(caller)
        record = await self._archive.hand(hand_id)
        if not views.dealt_in(record, player_id):
            raise PermissionDenied("NOT_DEALT_IN", "only players dealt into the hand may see it")
        return pb.GetHandResponse(hand=views.for_player(record, player_id))

    async def ListHands(  # noqa: N802
        self, request: pb.ListHandsRequest, _context: Context
    ) -> pb.ListHandsResponse:
        caller = current_caller()
        limit = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)
        player_id, view = _listed(caller, request)
        table_id = request.table_id and check_uuid(request.table_id, "table_id")
        kept = await self._archive.hands(
            player_id=player_id,
            table_id=table_id,
            before=_from_token(request.page_token),
            limit=limit,
            read_by_staff=caller.subject if _is_staff(caller) else "",
        )
        response = pb.ListHandsResponse()
        room = PAGE_BYTES_MAX
        for each in kept:
            room -= each.record.ByteSize()
            if response.hands and room < 0:
                break
            response.hands.append(view(each.record))
        if len(response.hands) < len(kept) or len(kept) == limit:
            last = kept[len(response.hands) - 1]
            response.next_page_token = _to_token(last.ended_at, last.hand_id)
        return response

    async def RequestHandEmail(  # noqa: N802
        self, request: pb.RequestHandEmailRequest, _context: Context
    ) -> pb.RequestHandEmailResponse:
        caller = current_caller()
        player_id = acting_player(caller)
        # A gateway's token speaks for many players: its own address is none of theirs.
        own = caller.email if caller.subject == player_id else ""
        email_request_id, state = await self._archive.request_email(
            player_id=player_id,
            request_id=check_request_id(request.request_id),
            hand_id=check_uuid(request.hand_id, "hand_id"),
            token_address=own if is_address(own) else "",
        )
        return pb.RequestHandEmailResponse(
            email_request_id=email_request_id, state=pb.EmailState.ValueType(state)
        )

    async def SetMailAddress(  # noqa: N802
        self, request: pb.SetMailAddressRequest, _context: Context
    ) -> pb.SetMailAddressResponse:
        caller = current_caller()
        await self._archive.set_address(
            player_id=check_player_id(request.player_id),
            address=request.address and check_address(request.address),
            request_id=check_request_id(request.request_id),
            changed_by=caller.subject,
            roles=tuple(caller.roles),
        )
        logger.info("mail_address_set", by=caller.subject)
        return pb.SetMailAddressResponse()

    async def ClaimEmailRequests(  # noqa: N802
        self, request: pb.ClaimEmailRequestsRequest, _context: Context
    ) -> pb.ClaimEmailRequestsResponse:
        _check_number("limit", request.limit, 1, CLAIM_MAX)
        # Before it is made a timedelta, which cannot hold what a Duration can.
        nanoseconds = request.lease.seconds * NS_PER_S + request.lease.nanos
        if not NS_PER_S <= nanoseconds <= LEASE_MAX_S * NS_PER_S:
            raise InvalidArgument.of_field("lease", f"must be 1 to {LEASE_MAX_S} seconds")
        claimed = await self._archive.claim_emails(request.limit, request.lease.ToTimedelta())
        return pb.ClaimEmailRequestsResponse(
            requests=[
                pb.EmailRequest(
                    email_request_id=each.email_request_id,
                    player_id=each.player_id,
                    address=each.address,
                    attempt=each.attempt,
                    hand=views.for_player(each.record, each.player_id),
                )
                for each in claimed
            ]
        )

    async def CompleteEmailRequest(  # noqa: N802
        self, request: pb.CompleteEmailRequestRequest, _context: Context
    ) -> pb.CompleteEmailRequestResponse:
        if request.outcome not in (pb.EMAIL_STATE_SENT, pb.EMAIL_STATE_FAILED):
            raise InvalidArgument.of_field("outcome", "must be SENT or FAILED")
        sent = request.outcome == pb.EMAIL_STATE_SENT
        # A short word cannot hold what a mail server said about an address.
        if not sent and not is_name(request.reason):
            raise InvalidArgument.of_field("reason", f"must be {NAME_RULE}")
        state = await self._archive.complete_email(
            check_uuid(request.email_request_id, "email_request_id"),
            request.attempt,
            sent=sent,
            reason=request.reason,
        )
        return pb.CompleteEmailRequestResponse(state=pb.EmailState.ValueType(state))


def mail_rules(settings: HistorySettings) -> MailRules:
    """The bounds of e-mail requests that the settings give."""
    return MailRules(
        attempts_max=settings.email_attempts_max,
        backoff=timedelta(seconds=settings.email_backoff_seconds),
        backoff_max=timedelta(seconds=settings.email_backoff_max_seconds),
        hand_wait=timedelta(seconds=settings.email_hand_wait_seconds),
        per_hour=settings.email_requests_per_hour,
    )


def _is_staff(caller: Caller) -> bool:
    return not caller.roles.isdisjoint((Role.OPERATOR, Role.AUDITOR))


def _is_plain_service(caller: Caller) -> bool:
    """A service that acts for no player; it sees what the rail saw."""
    return Role.SERVICE in caller.roles and not caller.act_for


def _listed(caller: Caller, request: pb.ListHandsRequest) -> tuple[str, View]:
    """Whose hands are asked for ("" for a whole table's), and in which view."""
    if _is_staff(caller) or _is_plain_service(caller):
        if not (request.player_id or request.table_id):
            raise InvalidArgument.of_field("player_id", "name a player, a table or both")
        player_id = request.player_id and check_player_id(request.player_id)
        return player_id, views.whole if _is_staff(caller) else views.public
    player_id = acting_player(caller, request.player_id or None)
    return player_id, lambda record: views.for_player(record, player_id)


def _check_number(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidArgument.of_field(field, f"must be {least} to {most}")


def _to_token(ended_at: datetime, hand_id: str) -> str:
    return base64.urlsafe_b64encode(f"{ended_at.isoformat()} {hand_id}".encode()).decode()


def _from_token(token: str) -> tuple[datetime, str] | None:
    if not token:
        return None
    try:
        at, _, hand_id = base64.b64decode(token, b"-_", validate=True).decode().partition(" ")
        return datetime.fromisoformat(at).astimezone(UTC), check_uuid(hand_id, "page_token")
    except (ValueError, OverflowError, binascii.Error, InvalidArgument):
        raise InvalidArgument.of_field(
            "page_token", "must come from an earlier answer", "BAD_PAGE_TOKEN"
        ) from None
