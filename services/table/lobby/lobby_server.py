"""The part of TableService that is about the lobby: gRPC in, domain out."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from doorcard.table.v1 import table_pb2
from google.protobuf.message import Message

from services.game.rulebook import UNITS_MAX
from services.game.wants import Act
from services.runtime.auth import acting_player, current_caller
from services.runtime.errors import DoorcardError, InvalidArgument, NotFound
from services.runtime.ids import check_uuid
from services.runtime.pages import page_size
from services.table.hands import waiting
from services.table.lobby.lobby import FIRST, Lobby, Place
from services.table.lobby.lobby_filters import Fits, everything, fits_of
from services.table.lobby.lobby_watching import LobbyWatching
from services.table.state import buy_ins, views
from services.table.state.state import Table, TableStatus
from services.table.store.store import Store
from services.table.streams.per_caller import opener
from services.table.tables.tables import Tables

if TYPE_CHECKING:
    from grpc.aio import ServicerContext

    Context = ServicerContext[Any, Any]

UNARY: Final[dict[str, type[Message]]] = {
    "ListTables": table_pb2.ListTablesRequest,
    "ListSeats": table_pb2.ListSeatsRequest,
    "FindSeat": table_pb2.FindSeatRequest,
}
"""The methods that `LobbyServer` has, and what they are asked with."""
PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200
FOUND_DEFAULT: Final = 5
FOUND_MAX: Final = 50
LOOKED_AT_MORE: Final = 8
"""Tables that are looked at for a seat, beyond as many as are wanted."""
TABLES_AT_ONCE: Final = 16

_PAGE_TOKEN: Final = re.compile(r"([0-9]{1,5}):(.+)")
"""Shard, and the last table's id."""


class LobbyServer:
    """Finding tables and seats."""

    def __init__(self, store: Store, tables: Tables, lobby: Lobby, watching: LobbyWatching) -> None:
        self._store = store
        self._tables = tables
        self._lobby = lobby
        self._watching = watching

    async def ListTables(  # noqa: N802 (gRPC's names)
        self, request: table_pb2.ListTablesRequest, _context: "Context"
    ) -> table_pb2.ListTablesResponse:
        size = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)
        after = self._after(request.page_token)
        fits = _fits(request)
        await self._lobby.fresh()
        found = await self._lobby.found(fits, after, size + 1)
        return table_pb2.ListTablesResponse(
            tables=[line.summary for _, line in found[:size]],
            next_page_token=_token(found[size - 1][0]) if len(found) > size else "",
        )

    async def WatchLobby(  # noqa: N802
        self, request: table_pb2.WatchLobbyRequest, _context: "Context"
    ) -> AsyncIterator[bytes]:
        wanted = request.filter if request.HasField("filter") else None
        async for message in self._watching.watch(wanted, opener(current_caller())):
            yield message

    async def ListSeats(  # noqa: N802
        self, request: table_pb2.ListSeatsRequest, _context: "Context"
    ) -> table_pb2.ListSeatsResponse:
        player_id = acting_player(current_caller())
        size = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)
        after = self._after(request.page_token)
        await self._lobby.fresh()
        places = [place for place in self._lobby.seats_of(player_id) if place > after]
        page = places[:size]
        response = table_pb2.ListSeatsResponse(
            next_page_token=_token(page[-1]) if len(places) > size else ""
        )
        for start in range(0, len(page), TABLES_AT_ONCE):
            part = page[start : start + TABLES_AT_ONCE]
            seats = await asyncio.gather(*(self._own_seat(each, player_id) for each in part))
            response.seats.extend(seat for seat in seats if seat is not None)
        return response

    async def FindSeat(  # noqa: N802
        self, request: table_pb2.FindSeatRequest, _context: "Context"
    ) -> table_pb2.FindSeatResponse:
        player_id = acting_player(current_caller())
        limit = request.limit or FOUND_DEFAULT
        if not 1 <= limit <= FOUND_MAX:
            raise InvalidArgument.of_field("limit", f"must be 1 to {FOUND_MAX}")
        if not 0 <= request.buy_in <= UNITS_MAX:
            raise InvalidArgument.of_field("buy_in", f"must be 0 to {UNITS_MAX}")
        fits = _fits(request)
        await self._lobby.fresh()
        response = table_pb2.FindSeatResponse()
        for place in await self._likely(fits, request.buy_in, limit + LOOKED_AT_MORE):
            found = await self._seat_for(place, player_id, request.buy_in)
            if found is not None and fits(found.table):
                response.found.append(found)
                if len(response.found) == limit:
                    break
        return response

    async def _likely(self, fits: Fits, buy_in: int, limit: int) -> list[Place]:
        """Open tables with a free seat, the best first.

        Where the stake does not allow the buy-in only those come who must bring what they left
        with: last.
        """

        def worth(summary: table_pb2.TableSummary) -> tuple[int, ...]:
            stake = summary.config.stake
            most = stake.buy_in_max or UNITS_MAX
            allowed = not buy_in or stake.buy_in_min <= buy_in <= most
            return not allowed, -summary.players, -summary.hands_per_hour

        def may_do(summary: table_pb2.TableSummary) -> bool:
            is_open = summary.state == int(TableStatus.OPEN) and not summary.game_started
            return is_open and summary.players < summary.config.seats and fits(summary)

        return await self._lobby.best(may_do, worth, limit)

    async def _seat_for(
        self, place: Place, player_id: str, buy_in: int
    ) -> table_pb2.FoundSeat | None:
        """The table, if it has a seat that the player can take now."""
        table = await self._read(place)
        if table is None or table.blob.status is not TableStatus.OPEN:
            return None
        try:
            waiting.check_open(table)
            if buy_in:
                buy_ins.check(table, player_id, buy_in, self._store.now_ms(place.shard))
        except DoorcardError:
            return None
        free = waiting.open_to(table, player_id)
        if not free or table.seat_of(player_id) is not None:
            return None
        return table_pb2.FoundSeat(table=views.summary(table), free_seats=free)

    async def _own_seat(self, place: Place, player_id: str) -> table_pb2.OwnSeat | None:
        table = await self._read(place)
        number = table.seat_of(player_id) if table is not None else None
        if table is None or number is None:
            return None
        want = table.hand.want if table.hand is not None else None
        return table_pb2.OwnSeat(
            table=views.summary(table),
            seat=views.seat(table, number),
            to_act=isinstance(want, Act) and want.seat == number,
        )

    async def _read(self, place: Place) -> Table | None:
        try:
            return await self._tables.read(place.table_id)
        except NotFound:
            return None

    def _after(self, token: str) -> Place:
        if not token:
            return FIRST
        found = _PAGE_TOKEN.fullmatch(token)
        if found is None or int(found[1]) >= self._store.shards:
            raise InvalidArgument.of_field("page_token", "must be one that was given out")
        return Place(int(found[1]), check_uuid(found[2], "page_token"))


def _fits(request: table_pb2.ListTablesRequest | table_pb2.FindSeatRequest) -> Fits:
    return fits_of(request.filter) if request.HasField("filter") else everything


def _token(last: Place) -> str:
    return f"{last.shard}:{last.table_id}"
