"""One stream to each owner: tables move with their shards, and nobody misses anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from doorcard.table.v1 import table_pb2

from services.client import RoutedPlay, Routes
from services.runtime.errors import FailedPrecondition, NotFound
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, cluster
from tests.contract.table.routed_players import Player, dialler

PLAYERS = ("anna", "ben", "carla")


@asynccontextmanager
async def players_at(tables: Cluster, table_ids: list[str]) -> AsyncIterator[list[Player]]:
    """Players with a seat at every table, each on a `RoutedPlay` of his own."""
    async with AsyncExitStack() as stack:
        players = []
        for name in PLAYERS:
            seeds = [running.address for running in tables.running]
            routes = await stack.enter_async_context(Routes(seeds, dialler(tables.room, name)))
            play = await stack.enter_async_context(RoutedPlay(routes))
            player = Player(play)
            players.append(player)
            running = asyncio.create_task(player.run())
            stack.callback(running.cancel)
            for table_id in table_ids:
                await player.sit(table_id, await tables.take_seat(table_id, name))
        yield players


def owner_of(tables: Cluster, table_id: str) -> int:
    """The number of the replica that owns a table."""
    first = tables.replicas[0]
    owner = first.ownership.owners[first.store.shard_of(table_id)]
    return next(at for at, each in enumerate(tables.replicas) if each.id == owner)


async def two_owners(tables: Cluster) -> list[str]:
    """A table at each of two replicas."""
    found: dict[int, str] = {}
    async with asyncio.timeout(30):
        while len(found) < 2:
            table_id = await tables.create(hand_pause_ms=20)
            found.setdefault(owner_of(tables, table_id), table_id)
    return list(found.values())


async def agreed(tables: Cluster) -> None:
    """All replicas have seen all others, with their addresses."""
    async with asyncio.timeout(10):
        while any(
            len([a for a in each.ownership.addresses.values() if a]) < len(tables.replicas)
            for each in tables.replicas
        ):
            await asyncio.sleep(0.02)


async def test_each_table_is_played_where_its_shard_is(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        for _ in range(2):
            await tables.add_replica()
        await agreed(tables)
        table_ids = await two_owners(tables)
        async with players_at(tables, table_ids) as players:
            for player in players:
                await player.until(lambda: all(s.ended for s in player.sights.values()))  # noqa: B023
                assert player.play.streams_opened == 2
                assert not player.refused
            for at, name in enumerate(PLAYERS):
                del at
                for table_id in table_ids:
                    owner = owner_of(tables, table_id)
                    for number, replica in enumerate(tables.replicas):
                        here = replica.watchers.has_stream(table_id, name)
                        assert here == (number == owner)


async def test_a_drained_owner_gives_its_tables_up_and_no_version_is_lost(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        for _ in range(2):
            await tables.add_replica()
        await agreed(tables)
        table_ids = await two_owners(tables)
        async with players_at(tables, table_ids) as players:
            for player in players:
                await player.until(lambda: all(s.begun for s in player.sights.values()))  # noqa: B023
            await tables.replicas[0].drain()
            hands = {key: len(s.ended) for key, s in players[0].sights.items()}
            await players[0].until(
                lambda: all(len(s.ended) > hands[k] + 1 for k, s in players[0].sights.items())
            )
            for player, name in zip(players, PLAYERS, strict=True):
                assert [s.snapshots for s in player.sights.values()] == [1, 1]
                assert not player.refused
                assert all(tables.replicas[1].watchers.has_stream(t, name) for t in table_ids)


async def test_a_new_replica_gets_its_shards_and_their_tables(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        table_ids = [await tables.create(hand_pause_ms=20) for _ in range(4)]
        async with players_at(tables, table_ids) as players:
            await tables.add_replica()
            await agreed(tables)
            for player, name in zip(players, PLAYERS, strict=True):
                async with asyncio.timeout(10):
                    while not all(
                        tables.replicas[owner_of(tables, t)].watchers.has_stream(t, name)
                        for t in table_ids
                    ):
                        await asyncio.sleep(0.02)
                hands = {key: len(s.ended) for key, s in player.sights.items()}
                await player.until(
                    lambda: all(len(s.ended) > hands[k] for k, s in player.sights.items())  # noqa: B023
                )
                assert {s.snapshots for s in player.sights.values()} == {1}
                assert not player.refused


async def test_what_is_refused_for_good_is_told_at_once(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(30):
        await tables.add_replica()
        seeds = [tables.running[0].address]
        async with Routes(seeds, dialler(room, "anna")) as routes, RoutedPlay(routes) as play:
            nowhere = "3f1c8f5e-0000-4000-8000-00000000dead"
            with pytest.raises(NotFound):
                await play.join(nowhere)
            with pytest.raises(FailedPrecondition, match="NOT_JOINED"):
                await play.request(
                    table_pb2.PlayRequestFrame(table_id=nowhere, options=table_pb2.PlayOptions())
                )
            table_id = await tables.create()
            await play.join(table_id)
            with pytest.raises(FailedPrecondition):
                await play.request(
                    table_pb2.PlayRequestFrame(table_id=table_id, options=table_pb2.PlayOptions())
                )


async def test_watching_the_routing_ends_with_a_reconnect(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(30):
        stub = await tables.add_replica()
        await agreed(tables)
        watching = stub.WatchRouting(
            table_pb2.WatchRoutingRequest(), metadata=room.metadata("anna")
        )
        first = await watching.read()
        assert isinstance(first, table_pb2.WatchRoutingResponse)
        assert [each.address for each in first.replicas] == [tables.running[0].address]
        assert set(first.owners) == {0}
        await tables.add_replica()
        told = await watching.read()
        while isinstance(told, table_pb2.WatchRoutingResponse) and len(told.replicas) < 2:
            told = await watching.read()
        await tables.replicas[0].drain()
        while isinstance(told, table_pb2.WatchRoutingResponse) and not told.HasField("reconnect"):
            told = await watching.read()
        assert isinstance(told, table_pb2.WatchRoutingResponse)
        assert told.reconnect.retry_after_ms
