"""Commits that Redis' replicas confirm: what was answered survives the primary."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.runtime.errors import Unavailable
from services.table.store import line
from services.table.store.cluster import ClusterWire
from services.table.store.store import Store
from services.table.store.stored import Stored
from tests import valkey_cluster
from tests.contract.table_store.stores import TABLE, change, committed, store_on
from tests.valkey_cluster import ValkeyCluster, until

TABLES = 40


@pytest.fixture
def pair() -> Iterator[ValkeyCluster]:
    """A primary and its replica."""
    with valkey_cluster.running(primaries=1, replicas=1) as cluster:
        yield cluster


async def test_every_answered_commit_is_at_the_replica_that_is_promoted(
    pair: ValkeyCluster,
) -> None:
    primary, replica = pair.nodes
    answered: dict[str, Stored] = {}
    async with store_on(pair, replicas_required=1, patience_s=0.3) as store:

        async def play(table_id: str) -> None:
            stored = answered[table_id] = await committed(
                store, change(None, b"0", table_id=table_id)
            )
            for number in range(1_000_000):
                try:
                    stored = await committed(
                        store, change(stored, b"%d" % number, table_id=table_id)
                    )
                except Unavailable:
                    return
                answered[table_id] = stored

        playing = [asyncio.create_task(play(f"t{number}")) for number in range(TABLES)]
        async with asyncio.timeout(30):
            while (
                len(answered) < TABLES or sum(e.version & 0xFFFF for e in answered.values()) < 400
            ):
                await asyncio.sleep(0.01)
        await asyncio.to_thread(primary.kill)
        await asyncio.gather(*playing)
        replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
        until(lambda: replica.ask("ROLE")[0] == "master")
        async with asyncio.timeout(20):
            for table_id, stored in answered.items():
                present = await _loaded(store, table_id)
                assert present is not None
                assert present.version >= stored.version, "an answered commit is lost"
                assert present.version > stored.version or present == stored


async def test_without_its_replica_a_commit_is_unconfirmed_and_found_once_it_is_back(
    pair: ValkeyCluster,
) -> None:
    _, replica = pair.nodes
    async with store_on(pair, replicas_required=1) as store:
        first = await committed(store, change(None, b"one"))
        await asyncio.to_thread(replica.kill)
        with pytest.raises(Unavailable) as refused:
            await store.commit(change(first, b"two"))
        assert refused.value.reason == "WRITE_UNCONFIRMED"
        assert refused.value.retriable
        second = await store.load(TABLE)
        assert second is not None
        assert second.blob == b"two"
        with pytest.raises(Unavailable) as unconfirmed:
            await store.confirm(TABLE)
        assert unconfirmed.value.reason == "WRITE_UNCONFIRMED"
        await asyncio.to_thread(replica.start)
        async with asyncio.timeout(20):
            while not await _confirmed(store):
                pass
        await committed(store, change(second, b"three"))


async def test_without_memory_what_was_written_before_is_confirmed(pair: ValkeyCluster) -> None:
    async with store_on(pair, replicas_required=1) as store:
        stored = await committed(store, change(None, b"one"))
        _fill(pair)
        await store.confirm(TABLE)
        assert await store.load(TABLE) == stored


async def test_without_memory_a_write_that_is_sent_again_is_confirmed(pair: ValkeyCluster) -> None:
    script, key = line.Script(Path(line.__file__).parent / "scripts" / "close.lua"), "{t1}:shard"
    wire = ClusterWire(pair.url, (script,), replicas_required=1)
    wire.start()
    try:
        loop = asyncio.get_running_loop()
        sent_again = line.Command(
            line.packed("EVALSHA", script.sha, 1, key, "REDIS_LOST", 0),
            key,
            loop.create_future(),
            loop.time() + 4,
            durable=True,
        )
        sent_again.tries = 1
        _fill(pair)
        wire.leave(sent_again)
        assert await sent_again.answer == 1
    finally:
        await wire.close()


def _fill(pair: ValkeyCluster) -> None:
    """As with noeviction when the primary's last byte is used."""
    pair.nodes[0].ask("CONFIG", "SET", "maxmemory", 1)


async def _confirmed(store: Store) -> bool:
    try:
        await store.confirm(TABLE)
    except Unavailable:
        return False
    return True


async def _loaded(store: Store, table_id: str) -> Stored | None:
    while True:
        try:
            return await store.load(table_id)
        except Unavailable:
            continue
