"""The part of TableService that is about seats and their money: gRPC in, domain out."""

from typing import TYPE_CHECKING, Any, Final

from doorcard.table.v1 import table_pb2
from google.protobuf.message import Message

from services.game.rulebook import UNITS_MAX
from services.game.setup import SEATS_MAX
from services.runtime.auth import acting_player, current_caller
from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_request_id, check_uuid
from services.runtime.logs import bind
from services.table.state.creation import NAME_MAX
from services.table.tables.moves import Moves
from services.table.tables.seating import Seating

if TYPE_CHECKING:
    from grpc.aio import ServicerContext

    Context = ServicerContext[Any, Any]

UNARY: Final[dict[str, type[Message]]] = {
    "TakeSeat": table_pb2.TakeSeatRequest,
    "TopUp": table_pb2.TopUpRequest,
    "JoinWaitingList": table_pb2.JoinWaitingListRequest,
    "LeaveWaitingList": table_pb2.LeaveWaitingListRequest,
    "ChangeTable": table_pb2.ChangeTableRequest,
}
"""The methods that `SeatServer` has, and what they are asked with."""


class SeatServer:
    """Taking a seat, adding to it, waiting for one, changing it for another table's."""

    def __init__(self, seating: Seating, moves: Moves) -> None:
        self._seating = seating
        self._moves = moves

    async def TakeSeat(  # noqa: N802 (gRPC's names)
        self, request: table_pb2.TakeSeatRequest, _context: "Context"
    ) -> table_pb2.TakeSeatResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        _check_amount("buy_in", request.buy_in)
        number = request.seat if request.HasField("seat") else None
        if number is not None and not 0 <= number < SEATS_MAX:
            raise InvalidArgument.of_field("seat", f"must be 0 to {SEATS_MAX - 1}")
        taken, version, sitting_id = await self._seating.take_seat(
            table_id,
            player_id,
            _name_of(player_id),
            request.request_id,
            number=number,
            buy_in=request.buy_in,
        )
        return table_pb2.TakeSeatResponse(seat=taken, version=version, sitting_id=sitting_id)

    async def TopUp(  # noqa: N802
        self, request: table_pb2.TopUpRequest, _context: "Context"
    ) -> table_pb2.TopUpResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        _check_amount("amount", request.amount)
        version, held = await self._seating.top_up(
            table_id, player_id, request.request_id, request.amount
        )
        return table_pb2.TopUpResponse(version=version, held=held)

    async def JoinWaitingList(  # noqa: N802
        self, request: table_pb2.JoinWaitingListRequest, _context: "Context"
    ) -> table_pb2.JoinWaitingListResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        version, place = await self._seating.join_waiting_list(
            table_id, player_id, _name_of(player_id)
        )
        return table_pb2.JoinWaitingListResponse(version=version, place=place)

    async def LeaveWaitingList(  # noqa: N802
        self, request: table_pb2.LeaveWaitingListRequest, _context: "Context"
    ) -> table_pb2.LeaveWaitingListResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        version = await self._seating.leave_waiting_list(table_id, player_id)
        return table_pb2.LeaveWaitingListResponse(version=version)

    async def ChangeTable(  # noqa: N802
        self, request: table_pb2.ChangeTableRequest, _context: "Context"
    ) -> table_pb2.ChangeTableResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        target = check_uuid(request.to_table_id, "to_table_id") if request.to_table_id else ""
        changed = await self._moves.change_table(table_id, player_id, target)
        return table_pb2.ChangeTableResponse(
            to_table_id=changed.to_table_id, offer=changed.offer, left=changed.left
        )


def named(table_id: str, request_id: str) -> str:
    """The table of a mutating call, its request id checked."""
    bind(request=check_request_id(request_id))
    return check_uuid(table_id, "table_id")


def _check_amount(field: str, amount: int) -> None:
    if not 1 <= amount <= UNITS_MAX:
        raise InvalidArgument.of_field(field, f"must be 1 to {UNITS_MAX}")


def _name_of(player_id: str) -> str:
    """The name at the table: the token's, if it is the player's own token."""
    caller = current_caller()
    own = caller.subject == player_id and caller.name
    return caller.name[:NAME_MAX] if own else player_id
