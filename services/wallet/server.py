"""The wallet's contract over gRPC: requests in, the ledger's words out."""

from typing import Any, Final

from doorcard.wallet.v1 import wallet_pb2 as pb
from doorcard.wallet.v1 import wallet_pb2_grpc
from grpc import aio
from prometheus_client import Counter

from services.runtime.auth import Caller, acting_player, current_caller
from services.runtime.batches import Answering, Batch
from services.runtime.errors import InvalidArgument, NotFound, PermissionDenied
from services.runtime.ids import check_player_id, check_request_id, check_uuid
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.runtime.roles import Role
from services.runtime.shards import shard_of
from services.wallet import messages, pages, rake
from services.wallet.entries import Kind
from services.wallet.ledger import (
    cashier,
    lookup,
    payback,
    reservations,
    settlement,
    shards,
    statement,
    totals,
)
from services.wallet.messages import progress_message
from services.wallet.money import AMOUNT_MAX, check_amount, check_currency
from services.wallet.opening import LedgerDatabase
from services.wallet.operators import OperatorMethods
from services.wallet.schedules import Schedules
from services.wallet.settings import WalletSettings

SERVICE_NAME: Final = "doorcard.wallet.v1.WalletService"
REFERENCE_MAX: Final = 128
STATEMENT_PAGE: Final = 50
PENDING_PAGE: Final = 100
KINDS: Final[frozenset[int]] = frozenset(map(int, Kind))

Context = aio.ServicerContext[Any, Any]

_BATCH: Final = Answering(Batch(pb.DESCRIPTOR.services_by_name["WalletService"], "BatchAssessRake"))

PARKED: Final = Counter(
    "doorcard_ledger_parked", "Outbox entries parked, by reason.", ["reason"], registry=REGISTRY
)


class WalletServicer(OperatorMethods, wallet_pb2_grpc.WalletServiceServicer):
    """Checks the fields of requests and who may ask, and hands over to the ledger."""

    def __init__(
        self, ledger: LedgerDatabase, schedules: Schedules, settings: WalletSettings
    ) -> None:
        self._ledger = ledger
        self._schedules = schedules
        self._shards = settings.shards
        self._time_zone = settings.time_zone

    async def Deposit(  # noqa: N802 (the contract's name)
        self, request: pb.DepositRequest, _context: Context
    ) -> pb.DepositResponse:
        done = await cashier.deposit(await self._ledger.opened(), _cash(request))
        return pb.DepositResponse(transfer_id=done.transfer_id, balance=done.balance)

    async def Withdraw(  # noqa: N802
        self, request: pb.WithdrawRequest, _context: Context
    ) -> pb.WithdrawResponse:
        done = await cashier.withdraw(await self._ledger.opened(), _cash(request))
        return pb.WithdrawResponse(transfer_id=done.transfer_id, balance=done.balance)

    async def GetBalance(  # noqa: N802
        self, request: pb.GetBalanceRequest, _context: Context
    ) -> pb.GetBalanceResponse:
        player_id = _visible_player(request.player_id)
        found = await statement.balances(await self._ledger.opened(), player_id)
        return pb.GetBalanceResponse(balances=[pb.Balance(**each._asdict()) for each in found])

    async def ListTransfers(  # noqa: N802
        self, request: pb.ListTransfersRequest, _context: Context
    ) -> pb.ListTransfersResponse:
        player_id = _visible_player(request.player_id)
        lines, position = await statement.lines(
            await self._ledger.opened(),
            player_id,
            _filters(request),
            pages.number_position(request.page_token),
            pages.page_size(request.page_size, STATEMENT_PAGE),
        )
        return pb.ListTransfersResponse(
            transfers=[messages.transfer_message(line) for line in lines],
            next_page_token=pages.number_token(position),
        )

    async def GetTransfer(  # noqa: N802
        self, request: pb.GetTransferRequest, _context: Context
    ) -> pb.GetTransferResponse:
        caller = current_caller()
        staff = _is_staff(caller)
        found = await lookup.transfer(
            await self._ledger.opened(),
            pages.transfer_number(request.transfer_id),
            "" if staff else acting_player(caller),
        )
        return messages.found_message(found, staff=staff)

    async def ReserveBuyIn(  # noqa: N802
        self, request: pb.ReserveBuyInRequest, _context: Context
    ) -> pb.ReserveBuyInResponse:
        buy_in = reservations.BuyIn(
            reservation_id=check_uuid(request.reservation_id, "reservation_id"),
            player_id=check_player_id(request.player_id),
            table_id=check_uuid(request.table_id, "table_id"),
            sitting_id=check_request_id(request.sitting_id, "sitting_id"),
            amount=check_amount(request.amount),
            currency=check_currency(request.currency),
        )
        found = await reservations.reserve(
            await self._ledger.opened(), buy_in, shard_of(buy_in.table_id, self._shards)
        )
        return pb.ReserveBuyInResponse(reservation=messages.reservation_message(found))

    async def GetReservation(  # noqa: N802
        self, request: pb.GetReservationRequest, _context: Context
    ) -> pb.GetReservationResponse:
        reservation_id = check_uuid(request.reservation_id, "reservation_id")
        found = await reservations.find(await self._ledger.opened(), reservation_id)
        return pb.GetReservationResponse(reservation=messages.reservation_message(found))

    async def ListReservations(  # noqa: N802
        self, request: pb.ListReservationsRequest, _context: Context
    ) -> pb.ListReservationsResponse:
        created_before = None
        if request.HasField("created_before"):
            created_before = messages.time_of(request.created_before, "created_before")
        size = pages.page_size(request.page_size, PENDING_PAGE)
        found = await reservations.list_pending(
            await self._ledger.opened(),
            created_before,
            messages.duration_of(request.older_than, "older_than"),
            pages.pending_position(request.page_token),
            size + 1,
        )
        return pb.ListReservationsResponse(
            reservations=[messages.reservation_message(each) for each in found[:size]],
            next_page_token=pages.pending_token(found[size - 1]) if len(found) > size else "",
        )

    async def ApplyEntries(  # noqa: N802
        self, request: pb.ApplyEntriesRequest, _context: Context
    ) -> pb.ApplyEntriesResponse:
        shard = self._shard(request.shard)
        entries = [messages.entry_of(each, shard, self._shards) for each in request.entries]
        progress, parked = await settlement.apply_entries(
            await self._ledger.opened(), shard, request.epoch, entries
        )
        for each in parked:
            PARKED.labels(each.reason).inc()
            logger.error("entry_parked", shard=shard, seq=each.seq, reason=each.reason)
        return pb.ApplyEntriesResponse(
            progress=progress_message(progress), parked=messages.parked_messages(parked)
        )

    async def GetProgress(  # noqa: N802
        self, request: pb.GetProgressRequest, _context: Context
    ) -> pb.GetProgressResponse:
        shard = self._shard(request.shard)
        found = await shards.progress(await self._ledger.opened(), shard)
        return pb.GetProgressResponse(progress=progress_message(found))

    async def OpenEpoch(  # noqa: N802
        self, request: pb.OpenEpochRequest, _context: Context
    ) -> pb.OpenEpochResponse:
        request_id = check_request_id(request.request_id)
        shard = self._shard(request.shard)
        if request.expected_epoch < 0:
            raise InvalidArgument.of_field("expected_epoch", "must be 0 or more", "BAD_EPOCH")
        progress, escrow = await shards.open_epoch(
            await self._ledger.opened(), request_id, shard, request.expected_epoch
        )
        logger.info("epoch_opened", shard=shard, epoch=progress.epoch)
        return pb.OpenEpochResponse(
            progress=progress_message(progress), escrow=messages.escrow_messages(escrow)
        )

    async def InspectEscrow(  # noqa: N802
        self, request: pb.InspectEscrowRequest, _context: Context
    ) -> pb.InspectEscrowResponse:
        shard = self._shard(request.shard)
        found = await shards.inspect(await self._ledger.opened(), shard)
        return pb.InspectEscrowResponse(
            progress=progress_message(found.progress),
            escrow=messages.escrow_messages(found.escrow),
            parked=messages.parked_messages(found.parked),
            pending=[messages.reservation_message(each) for each in found.pending],
        )

    async def PayBackEscrow(  # noqa: N802
        self, request: pb.PayBackEscrowRequest, _context: Context
    ) -> pb.PayBackEscrowResponse:
        check_request_id(request.request_id)
        shard = self._shard(request.shard)
        sittings = [messages.escrow_of(each) for each in request.sittings]
        if any(shard_of(each.table_id, self._shards) != shard for each in sittings):
            raise InvalidArgument.of_field("sittings", "all of the shard's tables", "WRONG_SHARD")
        paid, held = await payback.pay_back(
            await self._ledger.opened(), shard, request.epoch, sittings
        )
        if paid or held:
            logger.warning("escrow_paid_back", shard=shard, paid=len(paid), held=len(held))
        return pb.PayBackEscrowResponse(paid_sitting_ids=paid, held_sitting_ids=held)

    async def ListCurrencies(  # noqa: N802
        self, _request: pb.ListCurrenciesRequest, _context: Context
    ) -> pb.ListCurrenciesResponse:
        found = await totals.currencies(await self._ledger.opened())
        return pb.ListCurrenciesResponse(currencies=found)

    async def GetTotals(  # noqa: N802
        self, request: pb.GetTotalsRequest, _context: Context
    ) -> pb.GetTotalsResponse:
        currency = check_currency(request.currency)
        read = totals.recount if request.recount else totals.totals
        found = await read(await self._ledger.opened(), currency)
        return pb.GetTotalsResponse(**found._asdict())

    async def AssessRake(  # noqa: N802
        self, request: pb.AssessRakeRequest, _context: Context
    ) -> pb.AssessRakeResponse:
        schedule = messages.schedule_of(request.schedule)
        pots = messages.pots_of(request.pots)
        _refuse_faults("BAD_SCHEDULE", rake.schedule_faults(schedule))
        _refuse_faults("BAD_HAND", rake.hand_faults(pots, request.dealt_in, request.street))
        shares = rake.assess(schedule, pots, request.dealt_in, request.street)
        return pb.AssessRakeResponse(shares=shares, total=sum(shares))

    async def BatchAssessRake(  # noqa: N802
        self, request: pb.BatchAssessRakeRequest, context: Context
    ) -> pb.BatchAssessRakeResponse:
        response: pb.BatchAssessRakeResponse = await _BATCH.answer(self, request, context)
        return response

    async def GetRakeSchedule(  # noqa: N802
        self, request: pb.GetRakeScheduleRequest, _context: Context
    ) -> pb.GetRakeScheduleResponse:
        if not 0 <= request.small_bet <= AMOUNT_MAX:
            raise InvalidArgument.of_field("small_bet", f"must be 0 to {AMOUNT_MAX}", "BAD_AMOUNT")
        game = messages.game_of(request.game)
        versions = self._schedules.versions(request.schedule_id)
        if not versions or not 0 <= request.version <= versions:
            raise NotFound("SCHEDULE_UNKNOWN", "there is no such version of such a schedule")
        schedule = self._schedules.find(
            request.schedule_id, request.version, game, request.small_bet
        )
        if schedule is None:
            raise NotFound("STAKE_NOT_COVERED", "it says nothing for this game and small bet")
        return pb.GetRakeScheduleResponse(schedule=messages.schedule_message(schedule))

    async def GetRoomSettings(  # noqa: N802
        self, _request: pb.GetRoomSettingsRequest, _context: Context
    ) -> pb.GetRoomSettingsResponse:
        # Only once the ledger has agreed to it is the number the room's.
        await self._ledger.opened()
        return pb.GetRoomSettingsResponse(shards=self._shards, time_zone=self._time_zone)

    def _shard(self, shard: int) -> int:
        if not 0 <= shard < self._shards:
            raise InvalidArgument.of_field("shard", f"must be 0 to {self._shards - 1}", "BAD_SHARD")
        return shard


def _cash(request: pb.DepositRequest | pb.WithdrawRequest) -> cashier.Cash:
    """The fields of a deposit or withdrawal, and who asks: an operator, or a cashier for those in
    his token's `act_for`.
    """
    caller = current_caller()
    player_id = check_player_id(request.player_id)
    if Role.OPERATOR not in caller.roles and not caller.may_act_for(player_id):
        raise PermissionDenied("NOT_YOUR_PLAYER", "the token does not act for this player")
    if len(request.reference) > REFERENCE_MAX or "\0" in request.reference:
        raise InvalidArgument.of_field(
            "reference", f"at most {REFERENCE_MAX} characters", "BAD_REFERENCE"
        )
    return cashier.Cash(
        request_id=check_request_id(request.request_id),
        player_id=player_id,
        amount=check_amount(request.amount),
        currency=check_currency(request.currency),
        reference=request.reference,
        made_by=caller.subject,
    )


def _filters(request: pb.ListTransfersRequest) -> statement.Filters:
    since = until = None
    if request.HasField("since"):
        since = messages.time_of(request.since, "since")
    if request.HasField("until"):
        until = messages.time_of(request.until, "until")
    if not KINDS.issuperset(request.kinds):
        raise InvalidArgument.of_field("kinds", "one of them does not exist", "BAD_KIND")
    return statement.Filters(
        currency=check_currency(request.currency) if request.currency else "",
        kinds=tuple(request.kinds),
        since=since,
        until=until,
        table_id=check_uuid(request.table_id, "table_id") if request.table_id else "",
    )


def _visible_player(requested: str) -> str:
    """Whose money the caller may see: his own, his gateway's players', for staff anyone's."""
    caller = current_caller()
    if requested and _is_staff(caller):
        return check_player_id(requested)
    return acting_player(caller, requested)


def _is_staff(caller: Caller) -> bool:
    return not caller.roles.isdisjoint({Role.OPERATOR, Role.AUDITOR})


def _refuse_faults(reason: str, faults: list[rake.Fault]) -> None:
    if faults:
        field, rule = faults[0]
        raise InvalidArgument(reason, f"{field}: {rule}", violations=faults)
