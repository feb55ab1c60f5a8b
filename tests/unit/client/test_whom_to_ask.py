"""Where a table is played: at its owner, or at another while the owner is not to be had."""

import asyncio
import zlib

import grpc
import pytest
from doorcard.table.v1 import table_pb2

from services.client import routes as routes_module
from services.client.routes import Routes

TABLE = "3f1c8f5e-0000-4000-8000-000000000001"


def no_dialling(_address: str) -> grpc.aio.Channel:
    raise AssertionError("nobody is called")


def told(*addresses: str, owner: int) -> table_pb2.WatchRoutingResponse:
    shard = zlib.crc32(TABLE.encode()) % 4
    return table_pb2.WatchRoutingResponse(
        shards=4,
        replicas=[table_pb2.ReplicaRoute(replica_id=a, address=a) for a in addresses],
        owners=[owner if each == shard else -1 for each in range(4)],
    )


async def test_before_the_room_has_told_anything_a_seed_does() -> None:
    assert Routes(["room:1"], no_dialling).address_of(TABLE) == "room:1"


async def test_the_owner_comes_first_and_another_stands_in_for_it() -> None:
    routes = Routes(["room:1"], no_dialling)
    routes._take(told("a:1", "b:1", owner=1))
    assert routes.address_of(TABLE) == "b:1"
    routes.suspect("b:1")
    assert routes.address_of(TABLE) == "a:1"
    routes.suspect("a:1")
    assert routes.address_of(TABLE) == "room:1"


async def test_owners_that_advertise_no_address_are_reached_by_the_seeds() -> None:
    routes = Routes(["room:1"], no_dialling)
    routes._take(told("", owner=0))
    assert routes.address_of(TABLE) == "room:1"


async def test_an_address_that_leads_nowhere_is_tried_less_and_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes_module, "SUSPECT_S", 0.01)
    routes = Routes(["room:1"], no_dialling)
    routes._take(told("a:1", owner=0))
    loop = asyncio.get_running_loop()
    waits = []
    for _ in range(4):
        routes.suspect("a:1")
        routes.suspect("a:1")
        waits.append(routes._suspect_until.pop("a:1") - loop.time())
    assert waits == pytest.approx([0.01, 0.02, 0.04, 0.08], rel=0.2)
    routes.trust("a:1")
    routes.suspect("a:1")
    assert routes._suspect_until["a:1"] - loop.time() < 0.015


async def test_of_replicas_that_are_gone_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes_module, "GONE_S", 0.0)
    dialled = []

    def dial(address: str) -> grpc.aio.Channel:
        dialled.append(address)
        return grpc.aio.insecure_channel(address)

    routes = Routes(["room:1"], dial)
    async with asyncio.timeout(10):
        for number in range(50):
            address = f"localhost:{number + 1}"
            routes._take(told(address, owner=0))
            routes.channel(address)
            routes.suspect(address)
        routes.channel("room:1")
        routes._take(told("b:1", owner=0))
        assert list(routes._channels) == ["room:1"]
        assert not routes._failures
        assert not routes._suspect_until
        assert len(dialled) == 51
        await asyncio.gather(*routes._closing)


async def test_a_replica_that_goes_away_ends_its_streams_first() -> None:
    routes = Routes(["room:1"], grpc.aio.insecure_channel)
    routes._take(told("localhost:1", owner=0))
    channel = routes.channel("localhost:1")
    routes._take(told("localhost:2", owner=0))
    routes._take(told("localhost:2", owner=0))
    assert routes.channel("localhost:1") is channel
    await channel.close()
