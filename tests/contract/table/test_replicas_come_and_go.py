"""Table replicas as processes that are killed and restarted under tables in play."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from services.client import RoutedPlay, Routes
from services.runtime.channels import connect
from services.runtime.settings import ServiceSettings
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import SHARDS, Cluster, cluster
from tests.contract.table.routed_players import Player, dialler
from tests.processes import ServiceProcess

PLAYERS = ("anna", "ben", "carla")
MOVED_WITHIN_S = 2.0


class Replicas:
    """`python -m services.table`, several times."""

    def __init__(self, tables: Cluster) -> None:
        self._tables = tables
        self._started = 0
        self.addresses: dict[ServiceProcess, str] = {}
        seals = tables.room.folder / "seals.json"
        seals.write_text(tables.keys.to_json())
        self._settings = {
            "TABLE_REDIS_URL": tables.server.url,
            "TABLE_SEAL_KEYS_FILE": str(seals),
            "TOKEN_FILE": str(tables.room.token_file("table", ("service",))),
            "SHARDS": str(SHARDS),
            "DRAIN_SECONDS": "5",
            **{name.upper(): address for name, address in tables.addresses.items()},
        }

    async def add(self) -> ServiceProcess:
        """One more, when it serves."""
        self._started += 1
        name = f"table-{self._started}"
        process = ServiceProcess(
            self._tables.room, "table", label=name, REPLICA_ID=name, **self._settings
        )
        ready = await asyncio.to_thread(process.ready)
        self.addresses[process] = f"127.0.0.1:{ready.grpc}"
        return process

    async def gone(self, process: ServiceProcess, *, killed: bool) -> None:
        """End one, as it should or with kill -9."""
        if killed:
            await asyncio.to_thread(process.kill)
        else:
            assert await asyncio.to_thread(process.terminate) == 0
        del self.addresses[process]

    def close(self) -> None:
        for process in self.addresses:
            process.kill()


@asynccontextmanager
async def room_of(
    room: Room, server: valkey.Valkey, *, replicas: int, table_count: int
) -> AsyncIterator[tuple[Replicas, list[Player], list[str]]]:
    """Replicas, and players who have a seat at every table."""
    async with cluster(room, server) as tables, AsyncExitStack() as stack:
        running = Replicas(tables)
        stack.callback(running.close)
        for _ in range(replicas):
            await running.add()
        seeds = list(running.addresses.values())
        channel = connect(seeds[0], ServiceSettings())
        stack.push_async_callback(channel.close)
        stub = table_pb2_grpc.TableServiceStub(channel)
        tables.stub = lambda at=0: stub  # type: ignore[method-assign]
        table_ids = [await tables.create(action_ms=6_000) for _ in range(table_count)]
        players = []
        for name in PLAYERS:
            routes = await stack.enter_async_context(Routes(seeds, dialler(room, name)))
            play = await stack.enter_async_context(RoutedPlay(routes))
            player = Player(play)
            players.append(player)
            task = asyncio.create_task(player.run())
            stack.callback(task.cancel)
            for table_id in table_ids:
                await player.sit(table_id, await tables.take_seat(table_id, name))
        yield running, players, table_ids


async def all_went_on(players: list[Player], hands: int) -> None:
    """Every player saw so many more hands end at every table."""
    for player in players:
        before = {key: len(sight.ended) for key, sight in player.sights.items()}
        await player.until(
            lambda: all(len(s.ended) >= before[k] + hands for k, s in player.sights.items())  # noqa: B023
        )


def nobody_lost_anything(players: list[Player]) -> None:
    for player in players:
        assert not player.refused
        for sight in player.sights.values():
            assert sight.snapshots == 1
            assert sight.timed_out == sight.voided == 0
            # All that began have ended, but for the one in progress; the first may have begun
            # before he looked.
            ended = [hand for hand in sight.ended if hand in sight.begun]
            assert ended in (sight.begun, sight.begun[:-1])


async def test_the_shards_of_a_killed_replica_have_a_new_owner_in_two_seconds(
    room: Room, server: valkey.Valkey
) -> None:
    async with (
        asyncio.timeout(90),
        room_of(room, server, replicas=2, table_count=4) as (running, players, _),
    ):
        await all_went_on(players, 1)
        victim, survivor = running.addresses
        dead, alive = running.addresses.values()
        channel = connect(alive, ServiceSettings())
        watching = table_pb2_grpc.TableServiceStub(channel).WatchRouting(
            table_pb2.WatchRoutingRequest(), metadata=room.metadata("anna")
        )
        told = await watching.read()
        assert isinstance(told, table_pb2.WatchRoutingResponse)
        assert dead in [each.address for each in told.replicas]
        await running.gone(victim, killed=True)
        began_s = time.monotonic()
        while dead in [each.address for each in told.replicas]:
            told = await watching.read()
            assert isinstance(told, table_pb2.WatchRoutingResponse)
        took_s = time.monotonic() - began_s
        print(f"moved after {took_s:.2f} s")
        assert {told.replicas[at].address for at in told.owners} == {alive}
        assert took_s < MOVED_WITHIN_S
        await all_went_on(players, 1)
        nobody_lost_anything(players)
        watching.cancel()
        await channel.close()
        assert survivor.process.poll() is None


@pytest.mark.deep
async def test_a_rolling_restart_under_load_loses_no_hand_and_no_time(
    room: Room, server: valkey.Valkey
) -> None:
    async with (
        asyncio.timeout(110),
        room_of(room, server, replicas=3, table_count=6) as (running, players, _),
    ):
        for player in players:
            player.think_s = 0.05
        await all_went_on(players, 1)
        for process in list(running.addresses):
            await running.gone(process, killed=False)
            await running.add()
            await all_went_on(players, 1)
        await running.gone(next(iter(running.addresses)), killed=True)
        await all_went_on(players, 2)
        nobody_lost_anything(players)
        renewed = sum((s.renewed for p in players for s in p.sights.values()), start=Counter())
        print(f"clocks renewed: {renewed}")
        assert renewed.total() > 0
