"""The clock of the tables' Redis is set back, or ahead, while two replicas play: nothing waits for
as long as it was set, and nobody is out of time for it.
"""

import asyncio

from doorcard.table.v1 import table_pb2

from services.table.store.clock_steps import STEPS
from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.gates import SetClock
from tests.contract.table.replicas import Cluster, Seated, cluster
from tests.contract.table.test_clocks_of_two_replicas import kinds, seated

ACTION_MS = 10_000
STEP_MS = 300_000


async def next_turn(streams: dict[int, Seated], watcher: Seated) -> table_pb2.Turn:
    """Who is to act acts; the turn after that."""
    turn = watcher.turn
    assert turn is not None
    actor = streams[turn.seat]
    await actor.until_turn(watcher.hand_id, turn.turn)
    result = await actor.act(passive(turn))
    assert result.version, result
    await watcher.until(lambda: watcher.turn is not None and watcher.turn.turn > turn.turn)
    assert watcher.turn is not None
    return watcher.turn


async def two_replicas(tables: Cluster) -> SetClock:
    """Two replicas, and the clock that both go by."""
    await tables.add_replica()
    await tables.add_replica()
    return SetClock(*tables.replicas)


async def test_a_clock_set_back_by_minutes_leaves_nobody_more_than_a_full_new_clock(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        clock = await two_replicas(tables)
        table_id = await tables.create(action_ms=ACTION_MS)
        streams = await seated(tables, table_id, "anna", "ben")
        watcher = streams[0]
        await watcher.until(lambda: watcher.turn is not None)
        await clock.set(STEP_MS)
        # Promised by the clock as it was before it is set back.
        far = await next_turn(streams, watcher)
        store = tables.replicas[0].store
        assert far.deadline.ToMilliseconds() - store.now_ms() > ACTION_MS - 5_000
        before = STEPS.labels("back")._value.get()
        await clock.set(0)
        assert STEPS.labels("back")._value.get() == before + 2
        await watcher.until(lambda: watcher.turn is not None and watcher.turn.renewed)
        assert watcher.turn is not None
        assert watcher.turn.renewed == "clock_set"
        assert watcher.turn.turn == far.turn
        assert 0 < watcher.turn.deadline.ToMilliseconds() - store.now_ms() <= ACTION_MS
        # Once, by whichever replica it was, and he acts as ever.
        again = await next_turn(streams, watcher)
        assert not again.renewed
        assert "timed_out" not in kinds(watcher)
        for stream in streams.values():
            stream.call.cancel()


async def test_the_next_hand_begins_though_it_was_to_begin_minutes_from_now(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        clock = await two_replicas(tables)
        table_id = await tables.create(action_ms=ACTION_MS)
        await clock.set(STEP_MS)
        streams = await seated(tables, table_id, "anna", "ben")
        assert (await tables.replicas[0].tables.read(table_id)).hand is None
        await clock.set(0)
        await streams[0].until(lambda: streams[0].turn is not None)
        for stream in streams.values():
            stream.call.cancel()


async def test_a_clock_set_ahead_puts_nobody_out_of_time(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        clock = await two_replicas(tables)
        table_id = await tables.create(action_ms=ACTION_MS)
        streams = await seated(tables, table_id, "anna", "ben")
        watcher = streams[0]
        await watcher.until(lambda: watcher.turn is not None)
        assert watcher.turn is not None
        turn = watcher.turn
        # Little more than his time is gone at once: not so late that it were our fault anyway.
        await clock.set(ACTION_MS + 1_000)
        for replica in tables.replicas:
            await replica.tables.tick(table_id)
        await watcher.until(lambda: watcher.turn is not None and watcher.turn.renewed)
        assert watcher.turn.renewed == "clock_set"
        assert watcher.turn.turn == turn.turn
        left_ms = watcher.turn.deadline.ToMilliseconds() - tables.replicas[1].store.now_ms()
        assert ACTION_MS - 5_000 < left_ms <= ACTION_MS
        assert "timed_out" not in kinds(watcher)
        for stream in streams.values():
            stream.call.cancel()


async def test_a_replica_that_beat_before_the_clock_was_set_back_and_died_is_dead_as_soon_as_ever(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        store = tables.replicas[0].store
        with server.client() as client:
            client.zadd("{room}:replicas", {"replica-9": store.now_ms() + STEP_MS})
        await store.beat()
        assert "replica-9" in store.heart.live
        with server.client() as client:
            score = client.zscore("{room}:replicas", "replica-9")
        assert isinstance(score, float)
        assert score <= store.now_ms() + 1_000
