"""Finding tables and seats over gRPC, over two replicas on a real store."""

import asyncio
from typing import Any
from uuid import uuid4

import grpc
import pytest
from doorcard.table.v1 import table_pb2

from services.runtime.errors import Code, DoorcardError
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, cluster


async def listed(tables: Cluster, at: int = 0, **wanted: Any) -> list[str]:
    """Names of the tables that a replica lists, page by page."""
    stub, found, token = tables.stub(at), [], ""
    while True:
        request = table_pb2.ListTablesRequest(
            page_size=2, page_token=token, filter=table_pb2.LobbyFilter(**wanted)
        )
        page = await stub.ListTables(request, metadata=tables.room.metadata("anna"))
        found += [each.config.name for each in page.tables]
        token = page.next_page_token
        if not token:
            return sorted(found)


async def test_tables_are_found_by_what_they_are_and_who_plays_there(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica()
        await tables.create(name="empty")
        busy = await tables.create(name="busy", seats=2)
        await tables.create(name="other", currency="EUR")
        for player in ("anna", "ben"):
            await tables.take_seat(busy, player)
        for at in (0, 1):
            assert await listed(tables, at) == ["busy", "empty", "other"]
            assert await listed(tables, at, currency="EUR") == ["other"]
            assert await listed(tables, at, players_min=1) == ["busy"]
            assert await listed(tables, at, free_seats_min=1) == ["empty", "other"]
            assert await listed(tables, at, seats=2, rulebook="club") == ["busy"]
        with pytest.raises(grpc.RpcError) as caught:
            await listed(tables, players_min=-1)
        error = DoorcardError.from_rpc(caught.value)
        assert (error.code, error.reason) == (Code.INVALID_ARGUMENT, "BAD_FILTER")


async def test_a_players_seats_are_listed_wherever_he_took_them(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica()
        created = [await tables.create(name=f"Table {n}") for n in range(5)]
        here, there = tables.stub(0), tables.stub(1)
        metadata = room.metadata("anna")
        for n, table_id in enumerate(created[:4]):
            request = table_pb2.TakeSeatRequest(
                request_id=str(uuid4()), table_id=table_id, buy_in=200, seat=n
            )
            await (here, there)[n % 2].TakeSeat(request, metadata=metadata)
            for stub in (here, there):
                # Just taken, at whatever replica.
                answer = await stub.ListSeats(table_pb2.ListSeatsRequest(), metadata=metadata)
                assert {each.table.config.table_id: each.seat.seat for each in answer.seats} == {
                    known: at for at, known in enumerate(created[: n + 1])
                }
        left = table_pb2.LeaveSeatRequest(request_id=str(uuid4()), table_id=created[0])
        await here.LeaveSeat(left, metadata=metadata)
        found: list[str] = []
        token = ""
        while True:
            answer = await there.ListSeats(
                table_pb2.ListSeatsRequest(page_size=1, page_token=token), metadata=metadata
            )
            found += [each.table.config.table_id for each in answer.seats]
            token = answer.next_page_token
            if not token:
                break
        assert sorted(found) == sorted(created[1:4])
        nobody = await here.ListSeats(table_pb2.ListSeatsRequest(), metadata=room.metadata("zoe"))
        assert not nobody.seats


async def test_whoever_is_to_act_is_told_so_among_his_seats(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        stub = await tables.add_replica()
        table_id = await tables.create()
        for player in ("anna", "ben"):
            await tables.take_seat(table_id, player)
        async with asyncio.timeout(10):
            while True:
                acts = [
                    seat.to_act
                    for player in ("anna", "ben")
                    for seat in (
                        await stub.ListSeats(
                            table_pb2.ListSeatsRequest(), metadata=room.metadata(player)
                        )
                    ).seats
                ]
                if any(acts):
                    break
        assert sorted(acts) == [False, True]


async def test_a_seat_is_found_where_most_play_and_he_may_sit(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        stub = await tables.add_replica()
        one, two, full = [
            await tables.create(name=name, seats=seats)
            for name, seats in (("one", 6), ("two", 6), ("full", 2))
        ]
        for player, table_id in (
            ("ben", one),
            ("ben", two),
            ("carl", two),
            ("ben", full),
            ("carl", full),
        ):
            await tables.take_seat(table_id, player)

        async def found(player: str, **wish: Any) -> list[tuple[str, list[int]]]:
            answer = await stub.FindSeat(
                table_pb2.FindSeatRequest(**wish), metadata=room.metadata(player)
            )
            return [(each.table.config.table_id, list(each.free_seats)) for each in answer.found]

        assert await found("anna") == [(two, [2, 3, 4, 5]), (one, [1, 2, 3, 4, 5])]
        assert await found("anna", limit=1, buy_in=200) == [(two, [2, 3, 4, 5])]
        assert await found("carl") == [(one, [1, 2, 3, 4, 5])]
        assert await found("anna", buy_in=201) == []
        wish = table_pb2.LobbyFilter(players_min=3)
        assert await found("anna", filter=wish) == []


async def test_no_seat_is_found_for_less_than_he_has_to_bring_back(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        stub = await tables.add_replica()
        his, other = [
            await tables.create(name=name, rulebook="triopoker", stake_name="5/10")
            for name in ("his", "other")
        ]
        await tables.take_seat(his, "anna", buy_in=5001)
        left = table_pb2.LeaveSeatRequest(request_id=str(uuid4()), table_id=his)
        await stub.LeaveSeat(left, metadata=room.metadata("anna"))

        async def found(player: str, buy_in: int) -> set[str]:
            answer = await stub.FindSeat(
                table_pb2.FindSeatRequest(buy_in=buy_in), metadata=room.metadata(player)
            )
            return {each.table.config.table_id for each in answer.found}

        assert await found("anna", 5000) == {other}
        assert await found("anna", 5001) == {his, other}
        assert await found("ben", 5000) == {his, other}
        # Who names no buy-in finds every seat, and is told at the table what it takes.
        assert await found("anna", 0) == {his, other}


async def test_the_lobby_is_watched_across_replicas(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica()
        first = await tables.create(name="first")
        watch = tables.stub(1).WatchLobby(
            table_pb2.WatchLobbyRequest(filter=table_pb2.LobbyFilter(free_seats_min=6)),
            metadata=room.metadata("anna"),
        )
        message = await next_of(watch)
        assert message.complete
        assert [each.config.table_id for each in message.tables] == [first]
        await tables.take_seat(first, "ben")
        message = await next_of(watch)
        assert (list(message.gone), message.complete) == ([first], False)
        second = await tables.create(name="second")
        message = await next_of(watch)
        assert [each.config.table_id for each in message.tables] == [second]
        watching = tables.replicas[1].lobby_watching
        other = tables.stub(1).WatchLobby(
            table_pb2.WatchLobbyRequest(), metadata=room.metadata("ben")
        )
        await next_of(other)
        assert watching.count == 2
        other.cancel()
        async with asyncio.timeout(10):
            while watching.count > 1:
                await asyncio.sleep(0.01)
        watching.drain()
        assert (await next_of(watch)).HasField("reconnect")
        assert await watch.read() is grpc.aio.EOF


async def next_of(watch: Any) -> table_pb2.WatchLobbyResponse:
    """The next message of a watch."""
    async with asyncio.timeout(10):
        message = await watch.read()
    assert isinstance(message, table_pb2.WatchLobbyResponse)
    return message
