"""What is due is ticked, by one replica at a time."""

import asyncio
from collections import Counter

import pytest

from services.runtime.errors import Internal
from services.table.store.store import LEASE_MS
from services.table.tables import sweep as sweep_module
from services.table.tables.sweep import Sweep
from tests import valkey
from tests.contract.table_store.stores import OpenStore, change, committed


async def test_within_a_lease_each_due_table_is_claimed_once_by_two_replicas(
    open_store: OpenStore,
) -> None:
    async with open_store() as one, open_store() as other:
        now = one.now_ms()
        due = [f"due-{number}" for number in range(300)]
        for table_id in due:
            await committed(one, change(None, b"x", table_id=table_id, deadline_ms=now - 5))
        await committed(one, change(None, b"x", table_id="later", deadline_ms=now + 60_000))
        await committed(one, change(None, b"x", table_id="never", deadline_ms=None))
        began_ms = one.now_ms()
        claims = await asyncio.gather(
            *(
                store.claim_due(shard, 40)
                for _ in range(10)
                for shard in range(4)
                for store in (one, other)
            )
        )
        claimed = Counter(table_id for claim in claims for table_id in claim)
        leases = (
            one.now_ms() - began_ms
        ) // LEASE_MS  # none have run out on any but a slow machine
        assert claimed.keys() == set(due)
        assert max(claimed.values()) <= 1 + leases


async def test_a_claim_moves_the_deadline_a_lease_ahead(open_store: OpenStore) -> None:
    async with open_store(shards=1) as store:
        now = store.now_ms()
        await committed(store, change(None, b"x", deadline_ms=now - 5_000))
        assert len(await store.claim_due(0, 10)) == 1
        scores = await store._line.ask("ZRANGE", "{t0}:deadlines", 0, -1, "WITHSCORES")
        assert now + LEASE_MS <= int(scores[1]) <= store.now_ms() + LEASE_MS + 5


async def test_the_longest_overdue_comes_first_and_a_commit_sets_the_next_time(
    open_store: OpenStore,
) -> None:
    async with open_store(shards=1) as store:
        for number in (3, 1, 2):
            made = change(None, b"x", table_id=f"t{number}", deadline_ms=number)
            await committed(store, made)
        assert await store.claim_due(0, 2) == ["t1", "t2"]
        stored = await store.load("t3")
        await committed(store, change(stored, b"y", table_id="t3", deadline_ms=None))
        assert await store.claim_due(0, 2) == []


async def test_a_sweep_ticks_what_is_due_and_survives_ticks_that_fail(
    open_store: OpenStore,
) -> None:
    async with open_store() as store:
        now = store.now_ms()
        for number in range(200):
            made = change(None, b"x", table_id=f"t{number}", deadline_ms=now)
            await committed(store, made)
        ticked: Counter[str] = Counter()

        async def tick(table_id: str) -> None:
            ticked[table_id] += 1
            await asyncio.sleep(0)
            if table_id == "t7":
                raise Internal("SEAL_BROKEN", "broken")
            if table_id == "t8":
                raise ValueError("broken")

        sweep = Sweep(store, tick)
        while await sweep.once():
            pass
        await sweep.stop()
        assert ticked == Counter(f"t{number}" for number in range(200))
        assert not await sweep.once()


async def test_a_table_whose_tick_is_under_way_is_not_ticked_again(open_store: OpenStore) -> None:
    async with open_store(shards=1) as store:
        first = await committed(store, change(None, b"x", deadline_ms=1))
        begun = asyncio.Semaphore(0)
        done = asyncio.Event()

        async def tick(_table_id: str) -> None:
            begun.release()
            await done.wait()

        sweep = Sweep(store, tick)
        await sweep.once()
        await begun.acquire()
        await committed(store, change(first, b"y", deadline_ms=1))
        await sweep.once()
        assert begun.locked()
        done.set()
        await sweep.stop()


async def test_a_running_sweep_ticks_and_ends_when_it_is_cancelled(open_store: OpenStore) -> None:
    async with open_store(shards=1) as store:
        await committed(store, change(None, b"x", deadline_ms=1))
        ticked = asyncio.Event()

        async def tick(_table_id: str) -> None:
            ticked.set()

        running = asyncio.create_task(Sweep(store, tick, interval_s=0.01).run())
        await asyncio.wait_for(ticked.wait(), 5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled()


async def test_a_replica_leaves_the_shards_of_others_alone_unless_they_are_late(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "OTHERS_EVERY_S", 0.0)
    async with open_store() as store:
        now = store.now_ms()
        ids = [f"t{number}" for number in range(40)]
        for number, table_id in enumerate(ids):
            overdue_ms = 5000 if number % 2 else 0
            made = change(None, b"x", table_id=table_id, deadline_ms=now - overdue_ms)
            await committed(store, made)
        ticked: set[str] = set()

        async def tick(table_id: str) -> None:
            ticked.add(table_id)

        sweep = Sweep(store, tick, owns=lambda shard: shard == 0)
        # What is due only now must not become late while this runs.
        monkeypatch.setattr(sweep_module, "LATE_MS", 4000)
        await sweep.once()
        await sweep.stop()
        late = {table_id for number, table_id in enumerate(ids) if number % 2}
        own = {table_id for table_id in ids if store.shard_of(table_id) == 0}
        assert own - late
        assert ticked == late | own


async def test_the_turn_of_one_replica_is_over_when_it_no_longer_asks(
    server: valkey.Valkey, open_store: OpenStore
) -> None:
    async with open_store() as one, open_store(replica_id="replica-2") as other:
        assert await one.shelves.my_turn()
        with server.client() as client:
            client.pexpire("{room}:turn", 1000)
            assert await one.shelves.my_turn()
            assert client.pttl("{room}:turn") > 1000
            client.delete("{room}:turn")
        assert await other.shelves.my_turn()
        assert not await one.shelves.my_turn()
