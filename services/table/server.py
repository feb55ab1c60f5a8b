"""TableService: gRPC in, domain out, nothing else."""

import asyncio
import time
from collections.abc import AsyncIterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import grpc
from doorcard.table.v1 import table_pb2
from google.protobuf.message import Message

from services.runtime.auth import acting_player, current_caller
from services.runtime.errors import OUR_FAULT, DoorcardError, PermissionDenied
from services.runtime.ids import check_uuid
from services.runtime.roles import Role
from services.table.draft import audit
from services.table.draft.draft import Wallet
from services.table.hands import shown
from services.table.lobby.lobby_server import UNARY as LOBBY_UNARY
from services.table.lobby.lobby_server import LobbyServer
from services.table.operators.creating import Creator
from services.table.state import views
from services.table.state.creation import new_table
from services.table.store.store import Store
from services.table.streams.budgets import Budgets
from services.table.streams.play_server import PlayServer, order_of, wish_of
from services.table.streams.routing import Routing
from services.table.streams.watchers import Watchers
from services.table.tables.seat_server import UNARY as SEATS_UNARY
from services.table.tables.seat_server import SeatServer, named
from services.table.tables.tables import Tables

if TYPE_CHECKING:
    from grpc.aio import Server, ServicerContext

    Context = ServicerContext[Any, Any]

SERVICE_NAME: Final = table_pb2.DESCRIPTOR.services_by_name["TableService"].full_name


class TableServer:
    """Tables for players, gateways and operators; `register` adds it to a server."""

    def __init__(self, store: Store, tables: Tables, watchers: Watchers, wallet: Wallet) -> None:
        self._tables = tables
        self._watchers = watchers
        self._creator = Creator(store, tables, wallet)
        self._playing = PlayServer(tables, watchers)
        self._refusals = Budgets()

    async def CreateTable(  # noqa: N802 (gRPC's names)
        self, request: table_pb2.CreateTableRequest, _context: "Context"
    ) -> table_pb2.CreateTableResponse:
        by = audit.instruction("create_table", request.request_id)
        table = await self._creator.create(new_table(request), by)
        return table_pb2.CreateTableResponse(table=views.view(table, views.PUBLIC))

    async def GetTable(  # noqa: N802
        self, request: table_pb2.GetTableRequest, _context: "Context"
    ) -> table_pb2.GetTableResponse:
        table_id = check_uuid(request.table_id, "table_id")
        return table_pb2.GetTableResponse(table=await self._tables.view(table_id, _viewer()))

    async def LeaveSeat(  # noqa: N802
        self, request: table_pb2.LeaveSeatRequest, _context: "Context"
    ) -> table_pb2.LeaveSeatResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        version, left = await self._tables.leave(table_id, player_id)
        return table_pb2.LeaveSeatResponse(version=version, left=left)

    async def SitOut(  # noqa: N802
        self, request: table_pb2.SitOutRequest, _context: "Context"
    ) -> table_pb2.SitOutResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        return table_pb2.SitOutResponse(version=await self._tables.sit_out(table_id, player_id))

    async def SitBack(  # noqa: N802
        self, request: table_pb2.SitBackRequest, _context: "Context"
    ) -> table_pb2.SitBackResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        return table_pb2.SitBackResponse(version=await self._tables.sit_back(table_id, player_id))

    async def Act(  # noqa: N802
        self, request: table_pb2.ActRequest, _context: "Context"
    ) -> table_pb2.ActResponse:
        arrived_s, caller = time.perf_counter(), current_caller()
        player_id = acting_player(caller)
        table_id = check_uuid(request.table_id, "table_id")
        order = order_of(player_id, request, request.request_id)
        # A refusal costs a look into the store; on a stream the reading is slowed for it.
        whose = (caller.subject if Role.SERVICE in caller.roles else "", player_id)
        self._refusals.check(whose)
        acting = self._tables.act(table_id, order, arrived_s)
        try:
            # Who stops waiting does not take back what may be committed already.
            version = await asyncio.shield(acting)
        except DoorcardError as error:
            if error.code not in OUR_FAULT:
                self._refusals.refused(whose)
            raise
        return table_pb2.ActResponse(version=version)

    async def SetSeatOptions(  # noqa: N802
        self, request: table_pb2.SetSeatOptionsRequest, _context: "Context"
    ) -> table_pb2.SetSeatOptionsResponse:
        arrived_s = time.perf_counter()
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        wish = wish_of(player_id, request, request.request_id)
        setting = self._tables.set_options(table_id, wish, arrived_s)
        return table_pb2.SetSeatOptionsResponse(version=await asyncio.shield(setting))

    async def ShowCards(  # noqa: N802
        self, request: table_pb2.ShowCardsRequest, _context: "Context"
    ) -> table_pb2.ShowCardsResponse:
        player_id = acting_player(current_caller())
        table_id = named(request.table_id, request.request_id)
        hand_id = check_uuid(request.hand_id, "hand_id")
        showing = partial(
            shown.show, player_id=player_id, request_id=request.request_id, hand_id=hand_id
        )
        version = await self._tables.change(table_id, player_id, "show_cards", showing)
        return table_pb2.ShowCardsResponse(version=version)

    async def Play(  # noqa: N802
        self, _requests: AsyncIterable[table_pb2.PlayRequest], context: "Context"
    ) -> None:
        await self._playing.play(context.read, context.write)

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


def register(
    server: "Server",
    service: TableServer,
    seats: SeatServer,
    lobby: LobbyServer,
    routing: Routing,
) -> str:
    """Add the service, which is in parts, to a server; the name that reflection and health know it
    by.

    All streams but the routing's write bytes that are encoded already.
    """
    handlers: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(
            getattr(part, name),
            request_deserializer=request.FromString,
            response_serializer=_serialized,
        )
        for part, methods in (
            (service, _UNARY),
            (seats, SEATS_UNARY),
            (lobby, LOBBY_UNARY),
        )
        for name, request in methods.items()
    }
    handlers["Play"] = grpc.stream_stream_rpc_method_handler(
        service.Play, request_deserializer=table_pb2.PlayRequest.FromString
    )
    handlers["WatchTable"] = grpc.unary_stream_rpc_method_handler(
        service.WatchTable, request_deserializer=table_pb2.WatchTableRequest.FromString
    )
    handlers["WatchLobby"] = grpc.unary_stream_rpc_method_handler(
        lobby.WatchLobby, request_deserializer=table_pb2.WatchLobbyRequest.FromString
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
    "GetTable": table_pb2.GetTableRequest,
    "LeaveSeat": table_pb2.LeaveSeatRequest,
    "SitOut": table_pb2.SitOutRequest,
    "SitBack": table_pb2.SitBackRequest,
    "SetSeatOptions": table_pb2.SetSeatOptionsRequest,
    "ShowCards": table_pb2.ShowCardsRequest,
    "Act": table_pb2.ActRequest,
}


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _viewer() -> str:
    """Whose view a caller gets: his own, or the public one. No role sees more."""
    caller = current_caller()
    try:
        return acting_player(caller)
    except PermissionDenied as error:
        if error.reason == "NOT_YOUR_PLAYER":
            raise
        return views.PUBLIC
