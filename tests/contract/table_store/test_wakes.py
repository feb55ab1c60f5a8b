"""Watchers learn of new versions, by wake-ups and by comparing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.table.store.store import Store
from services.table.store.stored import ShardState
from services.table.streams import wakes as wakes_module
from services.table.streams.wakes import Wakes
from tests import valkey
from tests.contract.table_store.stores import TABLE, OpenStore, change, committed, store_on


class Heard:
    """The last version told of each table."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.gone: list[str] = []
        self.changed = asyncio.Event()

    def woken(self, table_id: str, version: int) -> None:
        assert version > self.versions.get(table_id, 0)
        self.versions[table_id] = version
        self.changed.set()

    async def wait_for(self, table_id: str, version: int) -> None:
        async with asyncio.timeout(10):
            while self.versions.get(table_id) != version:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def watching(store: Store) -> AsyncIterator[tuple[Wakes, Heard]]:
    heard = Heard()
    wakes = Wakes(store, heard.woken, heard.gone.append)
    running = asyncio.create_task(wakes.run())
    try:
        yield wakes, heard
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_commit_of_another_replica_wakes_the_watcher(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakes_module, "COMPARE_EVERY_S", 60.0)
    async with open_store() as one, open_store() as other, watching(one) as (wakes, heard):
        first = await committed(other, change(None, b"one"))
        wakes.watch(TABLE)
        await heard.wait_for(TABLE, first.version)
        second = await committed(other, change(first, b"two"))
        await heard.wait_for(TABLE, second.version)
        await committed(other, change(None, b"x", table_id="unwatched"))
        third = await committed(other, change(second, b"three"))
        await heard.wait_for(TABLE, third.version)
        assert list(heard.versions) == [TABLE]


async def test_a_lost_wake_up_is_made_good_by_comparing(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakes_module, "COMPARE_EVERY_S", 0.05)
    async with open_store() as store, watching(store) as (wakes, heard):
        first = await committed(store, change(None, b"one"))
        wakes.watch(TABLE)
        await heard.wait_for(TABLE, first.version)
        monkeypatch.setattr(wakes, "_heard", lambda *_: None)
        wakes._subscription._on_wake = lambda *_: None
        second = await committed(store, change(first, b"two"))
        await heard.wait_for(TABLE, second.version)


async def test_subscriptions_come_back_after_the_store_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wakes_module, "COMPARE_EVERY_S", 60.0)
    with valkey.running() as server:
        async with (
            store_on(server, patience_s=10.0) as store,
            store_on(server, patience_s=10.0) as other,
            watching(store) as (wakes, heard),
        ):
            first = await committed(other, change(None, b"one"))
            wakes.watch(TABLE)
            await heard.wait_for(TABLE, first.version)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            second = await committed(other, change(first, b"two"))
            await heard.wait_for(TABLE, second.version)


async def listening(wakes: Wakes, shard: int) -> None:
    """Return when the server counts him among those who listen."""
    async with asyncio.timeout(10):
        while not wakes._subscription.listens(shard):
            await asyncio.sleep(0)


async def test_who_listens_alone_is_not_told_of_his_own_commits(
    open_store: OpenStore, server: valkey.Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakes_module, "COMPARE_EVERY_S", 60.0)

    def published() -> int:
        with server.client() as client:
            stats = client.info("commandstats").get("cmdstat_spublish", {})
            return int(stats.get("calls", 0))

    one_shard = {"shards": 1}
    async with (
        open_store(**one_shard) as one,
        open_store(**one_shard) as other,
        watching(one) as (wakes, heard),
    ):
        first = await committed(other, change(None, b"one"))
        wakes.watch(TABLE)
        await listening(wakes, 0)
        await heard.wait_for(TABLE, first.version)
        before = published()
        second = await committed(one, change(first, b"two"))
        assert published() == before
        wakes.committed(TABLE, second.version)
        # The other does not listen: who does is told.
        third = await committed(other, change(second, b"three"))
        await heard.wait_for(TABLE, third.version)
        async with watching(other) as (wakes_there, heard_there):
            wakes_there.watch(TABLE)
            await listening(wakes_there, 0)
            await heard_there.wait_for(TABLE, third.version)
            fourth = await committed(one, change(third, b"four"))
            await heard_there.wait_for(TABLE, fourth.version)
            assert published() == before + 2
        # He does not listen any more, and nobody takes him for one who does.
        fifth = await committed(other, change(fourth, b"five"))
        await heard.wait_for(TABLE, fifth.version)


async def test_a_forgotten_table_is_silent(open_store: OpenStore) -> None:
    async with (
        open_store(shards=1) as store,
        open_store(shards=1) as player,
        watching(store) as (wakes, heard),
    ):
        first = await committed(player, change(None, b"one"))
        wakes.watch(TABLE)
        wakes.watch("other")
        await heard.wait_for(TABLE, first.version)
        wakes.forget(TABLE)
        await committed(player, change(first, b"two"))
        other = await committed(player, change(None, b"x", table_id="other"))
        await heard.wait_for("other", other.version)
        assert heard.versions[TABLE] == first.version


async def test_a_version_that_goes_back_closes_the_shard(
    open_store: OpenStore, server: valkey.Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakes_module, "COMPARE_EVERY_S", 0.02)
    async with open_store(shards=1) as store, watching(store) as (wakes, heard):
        first = await committed(store, change(None, b"one"))
        wakes.watch(TABLE)
        with server.client() as client:
            before = client.hgetall(f"{{t0}}:table:{TABLE}")
        second = await committed(store, change(first, b"two"))
        await heard.wait_for(TABLE, second.version)
        with server.client() as client:
            client.hset(f"{{t0}}:table:{TABLE}", mapping=before)
        async with asyncio.timeout(10):
            while await store.shard_state(0) is not ShardState.CLOSED:
                await asyncio.sleep(0)
        assert (await store.shard(0)).reason == "TABLE_ROLLED_BACK"
