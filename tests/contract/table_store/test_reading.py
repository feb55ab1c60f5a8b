"""Events, lobby, versions, settings and clocks."""

import asyncio

import pytest

from services.table.store.store import SettingsDiffer
from services.table.store.stored import ShardState
from tests import valkey
from tests.contract.table_store.stores import TABLE, OpenStore, change, committed


async def test_events_after_a_version_come_without_a_gap(open_store: OpenStore) -> None:
    async with open_store() as store:
        stored = [await committed(store, change(None, b"0"))]
        for turn in range(1, 5):
            stored.append(await committed(store, change(stored[-1], b"%d" % turn)))
        first, last = stored[0].version, stored[-1].version
        assert await store.events_after(TABLE, last) == []
        assert await store.events_after(TABLE, first) == [
            (first + each, b"event of %d" % each) for each in range(1, 5)
        ]


async def test_a_replica_of_the_release_before_finds_a_gap(open_store: OpenStore) -> None:
    async with open_store(shards=1) as store:
        stored = [await committed(store, change(None, b"0"))]
        for turn in range(1, 4):
            stored.append(await committed(store, change(stored[-1], b"%d" % turn)))
        for at in stored[:-1]:
            key = f"{{t0}}:events:{TABLE}"
            records = await store._line.ask("XRANGE", key, f"{at.version + 1}-0", "+")
            # As that one reads them.
            assert any(
                int(name.partition(b"-")[0]) != at.version + number
                for number, (name, (_, _, _, _)) in enumerate(records, 1)
            )


async def test_events_that_were_dropped_are_a_gap(open_store: OpenStore) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"0"))
        second = await committed(store, change(first, b"1"))
        third = await committed(store, change(second, b"2", trim_events_below=second.version + 1))
        assert await store.events_after(TABLE, first.version) is None
        assert await store.events_after(TABLE, second.version) == [(third.version, b"event of 2")]
        fourth = await committed(store, change(third, b"3", trim_events_below=third.version + 2))
        assert await store.events_after(TABLE, third.version) is None
        assert await store.events_after(TABLE, fourth.version) == []
        assert await store.events_after("unknown", 0) is None


async def test_versions_of_a_shard_are_read_in_one_go(open_store: OpenStore) -> None:
    async with open_store(shards=1) as store:
        stored = [await committed(store, change(None, b"x", table_id=f"t{n}")) for n in range(3)]
        found = await store.versions(0, ["t2", "none", "t0"])
        assert found == (ShardState.OPEN, 1, [stored[2][:2], (0, b""), stored[0][:2]])


async def test_the_lobby_of_a_shard_is_read_whole(open_store: OpenStore) -> None:
    async with open_store(shards=1) as store:
        for number in (3, 1, 2):
            table_id = f"t{number}"
            line = b"line %d" % number
            await committed(store, change(None, b"x", table_id=table_id, lobby=line))
        await committed(store, change(None, b"tombstone", table_id="t0"))
        assert await store.lobby_of(0) == {f"t{n}": b"line %d" % n for n in (1, 2, 3)}


@pytest.mark.parametrize("differing", [{"shards": 8}, {"room": "another"}])
async def test_a_store_of_another_room_is_refused(
    open_store: OpenStore, differing: dict[str, object]
) -> None:
    if "room" in differing:
        from services.runtime.sealing import SealKeys, new_key

        differing = {**differing, "keys": SealKeys("another", {"k1": new_key()})}
    async with open_store():
        with pytest.raises(SettingsDiffer):
            async with open_store(**differing):
                pass


async def test_the_clock_is_that_of_redis_and_replicas_are_seen(open_store: OpenStore) -> None:
    async with open_store() as one, open_store(replica_id="replica-2") as other:
        seconds, micros = await one._line.ask_node("", "TIME")
        redis_ms = int(seconds) * 1000 + int(micros) // 1000
        assert abs(one.now_ms() - redis_ms) < 100
        assert abs(other.now_ms() - redis_ms) < 100
        await one.beat()
        await other.beat()
        assert await one.live_replicas() == ["replica-1", "replica-2"]


async def test_the_records_of_an_idle_table_go_and_those_of_a_table_in_play_stay(
    open_store: OpenStore,
) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"0", forget_events_ms=60_000))
        second = await committed(store, change(first, b"1"))
        key = f"{{t{store.shard_of(TABLE)}}}:events:{TABLE}"
        assert await store._line.ask("PTTL", key) == -1
        third = await committed(store, change(second, b"2", forget_events_ms=1))
        async with asyncio.timeout(5):
            while await store._line.ask("EXISTS", key):
                pass
        assert await store.events_after(TABLE, second.version) is None
        assert await store.events_after(TABLE, third.version) == []
        fourth = await committed(store, change(third, b"3"))
        assert await store.events_after(TABLE, third.version) == [(fourth.version, b"event of 3")]


async def test_a_replica_that_is_silent_is_dead_unless_the_store_was_away(
    open_store: OpenStore, server: valkey.Valkey
) -> None:
    async with open_store() as one, open_store(replica_id="replica-2") as other:
        for store in (one, other):
            assert store._beating is not None
            store._beating.cancel()
        await one.beat()
        assert set(one.heart.live) == {"replica-1", "replica-2"}
        with server.client() as client:
            client.zadd("{room}:replicas", {"replica-2": 1})
        # As if no beat of ours had been answered for a while either.
        one.heart._beat_ms -= 5000
        await one.beat()
        assert set(one.heart.live) == {"replica-1", "replica-2"}
        one.heart._everyone_until_ms = 0
        await one.beat()
        assert set(one.heart.live) == {"replica-1"}
        await other.heart.retire()
        with server.client() as client:
            assert client.hkeys("{room}:addresses") == [b"replica-1"]
