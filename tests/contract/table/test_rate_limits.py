"""Token buckets on a real store: how many at once, how fast again, and what is left in Redis."""

import asyncio
from uuid import uuid4

import pytest
from doorcard.table.v1 import table_pb2
from grpc import aio

from services.runtime.errors import DoorcardError, ResourceExhausted
from services.table.store.buckets import Kind, Rate, Scope
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, cluster

SEATS = (Kind.SEATS, Scope.PLAYER)


async def test_a_bucket_gives_so_many_at_once_and_then_as_fast_as_it_fills(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica()
        one, two = (replica.store.buckets for replica in tables.replicas)
        rate = Rate(2, 5)
        waits = [await (one, two)[n % 2].take(SEATS, "anna", rate) for n in range(6)]
        assert waits[:5] == [0] * 5
        assert 0 < waits[5] <= 500
        assert await one.take(SEATS, "ben", rate) == 0
        await asyncio.sleep(waits[5] / 1000 + 0.005)
        assert await two.take(SEATS, "anna", rate) == 0


async def test_buckets_go_by_themselves_and_name_nobody(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        buckets = tables.replicas[0].store.buckets
        await buckets.take((Kind.CALLS, Scope.ADDRESS), "203.0.113.7", Rate(1, 10))
        with server.client() as client:
            (key,) = client.keys("*limit:*")
            left_ms = client.pttl(key)
        assert b"203" not in key
        assert 0 < left_ms <= 1000


async def test_nobody_is_kept_waiting_because_the_stores_clock_was_set_back(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        buckets, rate = tables.replicas[0].store.buckets, Rate(2, 5)
        assert await buckets.take(SEATS, "anna", rate) == 0
        with server.client() as client:
            (key,) = client.keys("*limit:*")
            # As it is when five minutes of the clock that it was written by are gone.
            client.incrby(key, 300_000_000)
        waits = [await buckets.take(SEATS, "anna", rate) for _ in range(6)]
        assert waits[:5] == [0] * 5
        assert 0 < waits[5] <= 500


async def refused(tables: Cluster, method: str, request: object) -> DoorcardError:
    """The error of a player's call."""
    with pytest.raises(aio.AioRpcError) as raised:
        await getattr(tables.stub(), method)(request, metadata=tables.room.metadata("anna"))
    return DoorcardError.from_rpc(raised.value)


async def test_a_player_who_asks_too_often_is_told_when_to_come_again(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica(rate_limits="seats.player=0.5/2, lobby.player=0.5/1")
        metadata = room.metadata("anna")
        stub = tables.stub()
        table_id = await tables.create()
        await stub.ListTables(table_pb2.ListTablesRequest(), metadata=metadata)
        error = await refused(tables, "ListTables", table_pb2.ListTablesRequest())
        assert isinstance(error, ResourceExhausted)
        assert (error.reason, error.metadata["limit"]) == ("RATE_LIMITED", "lobby.player")
        assert error.retry_after_ms is not None
        assert 0 < error.retry_after_ms <= 2000
        for number in range(2):
            request = table_pb2.TakeSeatRequest(
                request_id=str(uuid4()), table_id=table_id, buy_in=1, seat=number
            )
            assert (await refused(tables, "TakeSeat", request)).reason == "BUY_IN_TOO_SMALL"
        assert (await refused(tables, "TakeSeat", request)).reason == "RATE_LIMITED"
        leave = table_pb2.LeaveSeatRequest(request_id=str(uuid4()), table_id=table_id)
        assert (await stub.LeaveSeat(leave, metadata=metadata)).left


async def test_streams_are_counted_when_they_are_opened(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica(rate_limits="streams.player=0.1/1")
        metadata = room.metadata("anna")
        table_id = await tables.create()
        request = table_pb2.WatchTableRequest(table_id=table_id)
        first = tables.stub().WatchTable(request, metadata=metadata)
        assert await first.read()
        with pytest.raises(aio.AioRpcError) as raised:
            await tables.stub().WatchTable(request, metadata=metadata).read()
        assert DoorcardError.from_rpc(raised.value).metadata["limit"] == "streams.player"
        first.cancel()
