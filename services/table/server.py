"""TableService: gRPC in, domain out, nothing else."""

import asyncio
import re
import time
from collections.abc import AsyncIterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import grpc
from doorcard.table.v1 import table_pb2
from google.protobuf.message import Message

from services.game.rulebook import UNITS_MAX
from services.game.wants import ActionKind
from services.runtime.auth import acting_player, current_caller
from services.runtime.errors import (
    DoorcardError,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    PermissionDenied,
    Unavailable,
)
from services.runtime.ids import check_request_id, check_uuid
from services.runtime.logs import bind, logger
from services.runtime.roles import Role
from services.table import audit, views
from services.table.creating import Creator
from services.table.creation import NAME_MAX, new_table
from services.table.draft import Wallet
from services.table.hands import Order
from services.table.routing import Routing
from services.table.store import Store
from services.table.streams import Stream
from services.table.tables import Tables
from services.table.watchers import Watchers

if TYPE_CHECKING:
    from grpc.aio import Server, ServicerContext

    Context = ServicerContext[Any, Any]

SERVICE_NAME: Final = table_pb2.DESCRIPTOR.services_by_name["TableService"].full_name
PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200
FRAMES_MAX: Final = 64
"""Frames in one message of a player."""
TURN_MAX: Final = 2**31

_PAGE_TOKEN: Final = re.compile(r"([0-9]{1,5}):(.+)")
"""Shard, and the last table's id."""


class TableServer:
    """Tables for players, gateways and operators; `register` adds it to a server."""

    def __init__(self, store: Store, tables: Tables, watchers: Watchers, wallet: Wallet) -> None:
        self._store = store
        self._tables = tables
        self._watchers = watchers
        self._creator = Creator(store, tables, wallet)

    async def CreateTable(  # noqa: N802 (gRPC's names)
        self, request: table_pb2.CreateTableRequest, _context: "Context"
    ) -> table_pb2.CreateTableResponse:
        by = audit.instruction("create_table", request.request_id)
        table = await self._creator.create(new_table(request), by)
        return table_pb2.CreateTableResponse(table=views.view(table, views.PUBLIC))

    async def ListTables(  # noqa: N802
        self, request: table_pb2.ListTablesRequest, _context: "Context"
    ) -> table_pb2.ListTablesResponse:
        size = request.page_size or PAGE_DEFAULT
        if not 1 <= size <= PAGE_MAX:
            raise InvalidArgument.of_field("page_size", f"must be 1 to {PAGE_MAX}")
        shard, after_id = self._page(request.page_token)
        response = table_pb2.ListTablesResponse()
        while shard < self._store.shards:
            left = size - len(response.tables)
            lines = await self._store.list_tables(shard, after_id, left)
            for _, line in lines:
                response.tables.append(table_pb2.TableSummary.FromString(line))
            if len(lines) == left:
                response.next_page_token = f"{shard}:{lines[-1][0]}"
                break
            shard, after_id = shard + 1, ""
        return response

    async def GetTable(  # noqa: N802
        self, request: table_pb2.GetTableRequest, _context: "Context"
    ) -> table_pb2.GetTableResponse:
        table_id = check_uuid(request.table_id, "table_id")
        return table_pb2.GetTableResponse(table=await self._tables.view(table_id, _viewer()))

    async def TakeSeat(  # noqa: N802
        self, request: table_pb2.TakeSeatRequest, _context: "Context"
    ) -> table_pb2.TakeSeatResponse:
        player_id = acting_player(current_caller())
        table_id = _named(request.table_id, request.request_id)
        if not 1 <= request.buy_in <= UNITS_MAX:
            raise InvalidArgument.of_field("buy_in", f"must be 1 to {UNITS_MAX}")
        number = request.seat if request.HasField("seat") else None
        if number is not None and not 0 <= number < 8:
            raise InvalidArgument.of_field("seat", "must be 0 to 7")
        taken, version, sitting_id = await self._tables.take_seat(
            table_id,
            player_id,
            _name_of(player_id),
            request.request_id,
            number=number,
            buy_in=request.buy_in,
        )
        return table_pb2.TakeSeatResponse(seat=taken, version=version, sitting_id=sitting_id)

    async def LeaveSeat(  # noqa: N802
        self, request: table_pb2.LeaveSeatRequest, _context: "Context"
    ) -> table_pb2.LeaveSeatResponse:
        player_id = acting_player(current_caller())
        table_id = _named(request.table_id, request.request_id)
        version, left = await self._tables.leave(table_id, player_id)
        return table_pb2.LeaveSeatResponse(version=version, left=left)

    async def SitOut(  # noqa: N802
        self, request: table_pb2.SitOutRequest, _context: "Context"
    ) -> table_pb2.SitOutResponse:
        player_id = acting_player(current_caller())
        table_id = _named(request.table_id, request.request_id)
        return table_pb2.SitOutResponse(version=await self._tables.sit_out(table_id, player_id))

    async def SitBack(  # noqa: N802
        self, request: table_pb2.SitBackRequest, _context: "Context"
    ) -> table_pb2.SitBackResponse:
        player_id = acting_player(current_caller())
        table_id = _named(request.table_id, request.request_id)
        return table_pb2.SitBackResponse(version=await self._tables.sit_back(table_id, player_id))

    async def Act(  # noqa: N802
        self, request: table_pb2.ActRequest, _context: "Context"
    ) -> table_pb2.ActResponse:
        arrived_s = time.perf_counter()
        player_id = acting_player(current_caller())
        table_id = check_uuid(request.table_id, "table_id")
        acting = self._tables.act(
            table_id, _order(player_id, request, request.request_id), arrived_s
        )
        # Who stops waiting does not take back what may be committed already.
        return table_pb2.ActResponse(version=await asyncio.shield(acting))

    async def Play(  # noqa: N802
        self, requests: AsyncIterable[table_pb2.PlayRequest], context: "Context"
    ) -> None:
        stream = self._watchers.open(acting_player(current_caller()))
        reading = asyncio.create_task(self._read(stream, requests))
        try:
            await stream.write_out(context.write)
        finally:
            reading.cancel()
            self._watchers.close(stream)

    async def WatchTable(  # noqa: N802
        self, request: table_pb2.WatchTableRequest, context: "Context"
    ) -> None:
        table_id = check_uuid(request.table_id, "table_id")
        caller = current_caller()
        gateway = Role.SERVICE in caller.roles
        stream = self._watchers.open(views.PUBLIC, "" if gateway else caller.subject)
        try:
            await self._watchers.join(stream, table_id, request.from_version)
            await stream.write_out(context.write)
        finally:
            self._watchers.close(stream)

    # A player's stream

    async def _read(self, stream: Stream, requests: AsyncIterable[table_pb2.PlayRequest]) -> None:
        table_id = ""
        try:
            async for request in requests:
                arrived_s = time.perf_counter()
                if len(request.frames) > FRAMES_MAX:
                    raise InvalidArgument.of_field("frames", f"at most {FRAMES_MAX} at once")
                for frame in request.frames:
                    table_id = frame.table_id or table_id
                    await self._take(stream, table_id, frame, arrived_s)
                await stream.room()
        except DoorcardError as error:
            stream.end(error)
        except Exception as error:
            logger.error("stream_failed", exc_info=error)
            stream.end(Internal("INTERNAL", "internal error"))
        else:
            stream.end()

    async def _take(
        self, stream: Stream, table_id: str, frame: table_pb2.PlayRequestFrame, arrived_s: float
    ) -> None:
        """One frame; what is wrong with it is its own answer and leaves the stream open."""
        result = table_pb2.RequestResult(request_id=frame.request_id)
        try:
            check_request_id(frame.request_id)
            named = check_uuid(table_id, "table_id")
            if frame.HasField("join"):
                result.version = await self._watchers.join(stream, named, frame.join.from_version)
            elif named not in stream.tables:
                raise FailedPrecondition("NOT_JOINED", "the first frame for a table is its join")
            elif frame.HasField("act"):
                order = _order(stream.player_id, frame.act, frame.request_id)
                acting = self._tables.act(named, order, arrived_s)
                stream.answers_due += 1
                acting.add_done_callback(partial(_answer, stream, named, result))
                return
            else:
                raise InvalidArgument.of_field("frame", "must be join or act")
        except DoorcardError as error:
            result.refusal.CopyFrom(_refusal(error))
        stream.answer(views.frame(table_id, result=result))

    def _page(self, token: str) -> tuple[int, str]:
        if not token:
            return 0, ""
        found = _PAGE_TOKEN.fullmatch(token)
        if found is None or int(found[1]) >= self._store.shards:
            raise InvalidArgument.of_field("page_token", "must be one that was given out")
        return int(found[1]), check_uuid(found[2], "page_token")


def register(server: "Server", service: TableServer, routing: Routing) -> str:
    """Add the service to a server; the name that reflection and health know it by.

    The two streams write bytes that are encoded already.
    """
    handlers: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(
            getattr(service, name),
            request_deserializer=request.FromString,
            response_serializer=_serialized,
        )
        for name, request in _UNARY.items()
    }
    handlers["Play"] = grpc.stream_stream_rpc_method_handler(
        service.Play, request_deserializer=table_pb2.PlayRequest.FromString
    )
    handlers["WatchTable"] = grpc.unary_stream_rpc_method_handler(
        service.WatchTable, request_deserializer=table_pb2.WatchTableRequest.FromString
    )
    handlers["WatchRouting"] = grpc.unary_stream_rpc_method_handler(
        routing.WatchRouting,
        request_deserializer=table_pb2.WatchRoutingRequest.FromString,
        response_serializer=_serialized,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE_NAME, handlers),))
    return SERVICE_NAME


_UNARY: Final[dict[str, type[Message]]] = {
    "CreateTable": table_pb2.CreateTableRequest,
    "ListTables": table_pb2.ListTablesRequest,
    "GetTable": table_pb2.GetTableRequest,
    "TakeSeat": table_pb2.TakeSeatRequest,
    "LeaveSeat": table_pb2.LeaveSeatRequest,
    "SitOut": table_pb2.SitOutRequest,
    "SitBack": table_pb2.SitBackRequest,
    "Act": table_pb2.ActRequest,
}


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _answer(
    stream: Stream,
    table_id: str,
    result: table_pb2.RequestResult,
    acting: "asyncio.Future[int]",
) -> None:
    """Send what became of an action."""
    stream.answers_due -= 1
    cut = Unavailable("SERVER_STOPS", "the server goes away") if acting.cancelled() else None
    failure = cut or acting.exception()
    if failure is None:
        result.version = acting.result()
    elif isinstance(failure, DoorcardError):
        result.refusal.CopyFrom(_refusal(failure))
    else:
        result.refusal.CopyFrom(_refusal(Internal("INTERNAL", "internal error")))
    stream.answer(views.frame(table_id, result=result))


def _refusal(error: DoorcardError) -> table_pb2.Refusal:
    """An error in the words of a stream."""
    metadata = dict(error.metadata)
    if error.retry_after_ms is not None:
        metadata["retry_after_ms"] = str(error.retry_after_ms)
    return table_pb2.Refusal(
        code=error.code.value[0], reason=error.reason, message=error.message, metadata=metadata
    )


def _order(
    player_id: str, act: table_pb2.ActRequest | table_pb2.PlayAction, request_id: str
) -> Order:
    """What a player wants to do. Raises InvalidArgument."""
    bind(request=check_request_id(request_id))
    hand_id = check_uuid(act.hand_id, "hand_id")
    if not 0 <= act.turn <= TURN_MAX:
        raise InvalidArgument.of_field("turn", f"must be 0 to {TURN_MAX}")
    try:
        kind = ActionKind(act.action.kind)
    except ValueError:
        raise InvalidArgument.of_field("action.kind", "must be one of the actions") from None
    if not 0 <= act.action.amount <= UNITS_MAX:
        raise InvalidArgument.of_field("action.amount", f"must be 0 to {UNITS_MAX}")
    return Order(player_id, request_id, hand_id, act.turn, kind, act.action.amount)


def _named(table_id: str, request_id: str) -> str:
    """The table of a mutating call, its request id checked."""
    bind(request=check_request_id(request_id))
    return check_uuid(table_id, "table_id")


def _viewer() -> str:
    """Whose view a caller gets: his own, or the public one. No role sees more."""
    caller = current_caller()
    try:
        return acting_player(caller)
    except PermissionDenied as error:
        if error.reason == "NOT_YOUR_PLAYER":
            raise
        return views.PUBLIC


def _name_of(player_id: str) -> str:
    """The name at the table: the token's, if it is the player's own token."""
    caller = current_caller()
    own = caller.subject == player_id and caller.name
    return caller.name[:NAME_MAX] if own else player_id
