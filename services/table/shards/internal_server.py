"""TableInternalService: what settlement and operators ask of tables. gRPC in, domain out."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from doorcard.table.v1 import internal_pb2, internal_pb2_grpc

from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_uuid
from services.table.draft import audit
from services.table.draft.audit import Instruction
from services.table.shards.outbox import Outbox, entry_of
from services.table.state.state import TableMoney
from services.table.store.store import Store
from services.table.store.stored import shard_closed

if TYPE_CHECKING:
    from grpc.aio import ServicerContext

    Context = ServicerContext[Any, Any]

READ_MAX: Final = 500
SEQ_MAX: Final = 2**53 - 1


class Tables(Protocol):
    """What this service needs of the tables."""

    async def resolve_reservation(
        self, table_id: str, reservation_id: str, sitting_id: str
    ) -> bool:
        """True if it is seated, False if it was refused and released."""


class Operators(Protocol):
    """What it needs of what operators do."""

    async def pause(self, table_id: str, by: Instruction) -> int:
        """Version of the commit."""


class TableInternalServer(internal_pb2_grpc.TableInternalServiceServicer):
    """Outboxes, money and pauses, for the room itself. money_of: the money in a stored blob."""

    def __init__(
        self,
        store: Store,
        outbox: Outbox,
        tables: Tables,
        operators: Operators,
        money_of: Callable[[bytes], TableMoney],
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._tables = tables
        self._operators = operators
        self._money_of = money_of

    async def ReadOutbox(  # noqa: N802 (gRPC's names)
        self, request: internal_pb2.ReadOutboxRequest, _context: "Context"
    ) -> internal_pb2.ReadOutboxResponse:
        self._check_shard(request.shard)
        if not 1 <= request.limit <= READ_MAX:
            raise InvalidArgument.of_field("limit", f"must be 1 to {READ_MAX}")
        _check_number("after_seq", request.after_seq)
        _check_number("epoch", request.epoch)
        return await self._outbox.read(request)

    async def TrimOutbox(  # noqa: N802
        self, request: internal_pb2.TrimOutboxRequest, _context: "Context"
    ) -> internal_pb2.TrimOutboxResponse:
        self._check_shard(request.shard)
        for field in ("epoch", "applied_seq", "archived_seq"):
            _check_number(field, getattr(request, field))
        return internal_pb2.TrimOutboxResponse(length=await self._outbox.trim(request))

    async def InspectMoney(  # noqa: N802
        self, request: internal_pb2.InspectMoneyRequest, _context: "Context"
    ) -> internal_pb2.InspectMoneyResponse:
        self._check_shard(request.shard)
        shard = await self._store.shard(request.shard)
        if shard.state.shut:
            # Nothing to compare: what is there may be old, or half made anew.
            raise shard_closed(shard.reason)
        found = await self._store.inspect(request.shard)
        response = internal_pb2.InspectMoneyResponse(epoch=found.epoch, last_seq=found.last_seq)
        for table_id, stored in found.tables:
            money = self._money_of(stored.blob)
            if not money.sittings:
                continue
            table = response.tables.add(
                table_id=table_id, currency=money.currency, version=stored.version
            )
            for sitting_id, player_id, amount in money.sittings:
                table.sittings.add(sitting_id=sitting_id, player_id=player_id, amount=amount)
            for reservation_id, sitting_id, amount in money.held:
                table.held.add(reservation_id=reservation_id, sitting_id=sitting_id, amount=amount)
        response.entries.extend(entry_of(record).ledger for record in found.entries)
        return response

    async def ResolveReservation(  # noqa: N802
        self, request: internal_pb2.ResolveReservationRequest, _context: "Context"
    ) -> internal_pb2.ResolveReservationResponse:
        seated = await self._tables.resolve_reservation(
            check_uuid(request.table_id, "table_id"),
            check_uuid(request.reservation_id, "reservation_id"),
            check_uuid(request.sitting_id, "sitting_id"),
        )
        return internal_pb2.ResolveReservationResponse(seated=seated)

    async def PauseTable(  # noqa: N802
        self, request: internal_pb2.PauseTableRequest, _context: "Context"
    ) -> internal_pb2.PauseTableResponse:
        by = audit.instruction("pause_table", request.request_id, request.reason)
        version = await self._operators.pause(check_uuid(request.table_id, "table_id"), by)
        return internal_pb2.PauseTableResponse(version=version)

    def _check_shard(self, shard: int) -> None:
        if not 0 <= shard < self._store.shards:
            raise InvalidArgument.of_field("shard", f"must be 0 to {self._store.shards - 1}")


def _check_number(field: str, value: int) -> None:
    if not 0 <= value <= SEQ_MAX:
        raise InvalidArgument.of_field(field, f"must be 0 to {SEQ_MAX}")
