"""Tables in play on a Redis Cluster: their slots move, their primary is killed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from doorcard.table.v1 import table_pb2

from services.client import RoutedPlay, Routes
from services.runtime.channels import call
from services.runtime.errors import Unavailable
from tests import valkey_cluster
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.replicas import SHARDS, Cluster, cluster
from tests.contract.table.routed_players import Player, dialler
from tests.valkey_cluster import ValkeyCluster

PLAYERS = ("anna", "ben", "carla")


@asynccontextmanager
async def playing(
    room: Room, nodes: ValkeyCluster, *, table_count: int, **settings: int
) -> AsyncIterator[tuple[Cluster, list[Player], list[str]]]:
    """Two replicas, and a gateway whose players have a seat at every table."""
    async with cluster(room, nodes) as tables, AsyncExitStack() as stack:
        for _ in range(2):
            await tables.add_replica(**settings)
        seeds = [running.address for running in tables.running]
        table_ids = [await tables.create() for _ in range(table_count)]
        dial = dialler(room, "gateway-1", ("service",), act_for=PLAYERS)
        routes = await stack.enter_async_context(Routes(seeds, dial))
        play = await stack.enter_async_context(RoutedPlay(routes, gateway=True))
        player = Player(play)
        task = asyncio.create_task(player.run())
        stack.callback(task.cancel)
        for table_id in table_ids:
            for name in PLAYERS:
                await player.sit(table_id, await tables.take_seat(table_id, name), name)
        yield tables, [player], table_ids


async def all_went_on(player: Player, hands: int) -> None:
    before = {key: len(sight.ended) for key, sight in player.sights.items()}
    await player.until(
        lambda: all(len(s.ended) >= before[k] + hands for k, s in player.sights.items()), 60.0
    )


@pytest.mark.deep
async def test_tables_play_through_a_gateway_while_their_slots_move(room: Room) -> None:
    with valkey_cluster.running(primaries=3) as nodes:
        async with (
            asyncio.timeout(100),
            playing(room, nodes, table_count=3) as (tables, (player,), table_ids),
        ):
            await all_went_on(player, 1)
            for table_id in table_ids:
                key = f"{{t{tables.replicas[0].store.shard_of(table_id)}}}:shard"
                source = nodes.owner(key)
                target = next(node for node in nodes.nodes if node is not source)
                assert await asyncio.to_thread(nodes.migrate, key, target) >= 4
                assert nodes.owner(key) is target
            room_source = nodes.owner("{room}:replicas")
            target = next(node for node in nodes.nodes if node is not room_source)
            await asyncio.to_thread(nodes.migrate, "{room}:replicas", target)
            await all_went_on(player, 2)
            assert not player.refused
            for sight in player.sights.values():
                assert sight.snapshots == 1
                assert sight.timed_out == sight.voided == 0
            for shard in range(SHARDS):
                assert (await tables.replicas[0].store.shard(shard)).reason == ""


@pytest.mark.deep
async def test_an_action_that_no_replica_confirmed_is_found_by_its_retry(room: Room) -> None:
    with valkey_cluster.running(primaries=1, replicas=1) as nodes:
        _, replica = nodes.nodes
        async with (
            asyncio.timeout(100),
            playing(room, nodes, table_count=1, replicas_required=1) as (tables, (player,), ids),
        ):
            await all_went_on(player, 1)
            player.think_s = 3600.0
            view = await _stands_still(tables, ids[0])
            await asyncio.to_thread(replica.kill)
            (name,) = (each.player_id for each in view.seats if each.seat == view.hand.turn.seat)
            request = table_pb2.ActRequest(
                request_id=str(uuid4()),
                table_id=ids[0],
                hand_id=view.hand.hand_id,
                turn=view.hand.turn.turn,
                action=passive(view.hand.turn),
            )
            stub = tables.stub()
            for _ in range(2):
                with pytest.raises(Unavailable) as refused:
                    await _once(stub.Act, request, room.metadata(name))
                assert refused.value.reason == "WRITE_UNCONFIRMED"
            await asyncio.to_thread(replica.start)
            answer = await call(
                stub.Act, request, timeout_s=5.0, attempts=40, metadata=room.metadata(name)
            )
            # The first of them was taken, and no other.
            assert answer.version == view.version + 1


async def _stands_still(tables: Cluster, table_id: str) -> table_pb2.TableView:
    """The table as soon as it waits for a player who does nothing."""
    while True:
        before = await tables.replicas[0].tables.view(table_id, "")
        await asyncio.sleep(0.5)
        after = await tables.replicas[0].tables.view(table_id, "")
        if after.version == before.version and after.hand.HasField("turn"):
            return after


async def _once(method: Any, request: Any, metadata: Any) -> Any:
    return await call(method, request, timeout_s=5.0, attempts=1, metadata=metadata)
