"""The store on a Redis Cluster of three nodes: every shard on one of them, and on the move."""

import asyncio
from collections.abc import Iterator

import pytest
from redis.crc import key_slot

from services.local.checks import State, nodes_of, tables_redis
from services.runtime.errors import Unavailable
from services.runtime.metrics import REGISTRY
from services.runtime.shards import shard_of
from services.table.store.cluster import ClusterUrl, ClusterWire
from services.table.store.stored import Stored
from services.table.streams import wakes as wakes_module
from services.table.tables.sweep import Sweep
from tests import valkey_cluster
from tests.contract.table_store.stores import change, committed, store_on
from tests.contract.table_store.test_wakes import watching
from tests.valkey_cluster import ValkeyCluster

SHARDS = 8


@pytest.fixture(scope="module")
def nodes() -> Iterator[ValkeyCluster]:
    """One cluster for this file; tests use tables of their own."""
    with valkey_cluster.running(primaries=3) as cluster:
        yield cluster


def on_shard(shard: int, name: str) -> str:
    """A table id on a shard."""
    return next(
        table_id
        for table_id in (f"{name}-{number}" for number in range(10_000))
        if shard_of(table_id, SHARDS) == shard
    )


def redirected(answer: str) -> float:
    """Commands that a node answered so."""
    name = "doorcard_store_redirections_total"
    return REGISTRY.get_sample_value(name, {"answer": answer}) or 0.0


async def test_tables_of_all_shards_are_kept_on_all_nodes(nodes: ValkeyCluster) -> None:
    async with store_on(nodes, shards=SHARDS) as store:
        used = {nodes.owner(f"{{t{shard}}}:shard").port for shard in range(SHARDS)}
        assert len(used) == 3
        made = {}
        for shard in range(SHARDS):
            table_id = on_shard(shard, "all")
            first = await committed(
                store, change(None, b"1", table_id=table_id, lobby=b"x", deadline_ms=1)
            )
            made[table_id] = await committed(
                store, change(first, b"2", (f"all{shard}", b"p"), table_id=table_id, deadline_ms=1)
            )
        for table_id, stored in made.items():
            shard = store.shard_of(table_id)
            assert await store.load(table_id) == stored
            assert await store.events_after(table_id, stored.version - 1) == [
                (stored.version, b"event of 2")
            ]
            inspection = await store.inspect(shard)
            assert table_id in [each for each, _ in inspection.tables]
            assert inspection.entries[-1].entry_id == f"all{shard}"
            read = await store.read_outbox(shard, after_seq=0, limit=10_000, epoch=1, applied_id="")
            assert not read.verdict
            assert read.entries == inspection.entries
        assert len(await store.server_reports()) == 3
        assert await store.live_replicas() == ["replica-1"]
        ticked = set()

        async def tick(table_id: str) -> None:
            ticked.add(table_id)

        sweep = Sweep(store, tick)
        await sweep.once()
        await sweep.stop()
        assert ticked == set(made)


async def test_a_shard_moves_to_another_node_while_its_table_goes_on(
    nodes: ValkeyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakes_module, "COMPARE_EVERY_S", 60.0)
    table_id = on_shard(3, "moved")
    async with (
        store_on(nodes, shards=SHARDS, patience_s=20.0) as one,
        store_on(nodes, shards=SHARDS, patience_s=20.0, replica_id="replica-2") as other,
        watching(other) as (wakes, heard),
    ):
        stored = await committed(one, change(None, b"0", ("e0", b"p"), table_id=table_id))
        seq = (await one.shard(3)).last_seq
        wakes.watch(table_id)
        await heard.wait_for(table_id, stored.version)
        stopped = asyncio.Event()
        last = stored

        async def play() -> None:
            nonlocal last
            number = 0
            while not stopped.is_set():
                number += 1
                last = await committed(
                    one,
                    change(last, b"%d" % number, (f"e{number}", b"p"), table_id=table_id),
                )

        playing = asyncio.create_task(play())
        source = nodes.owner("{t3}:shard")
        target = next(node for node in nodes.nodes if node is not source)
        before = {answer: redirected(answer) for answer in ("moved", "ask", "wait")}
        moved = await asyncio.to_thread(nodes.migrate, "{t3}:shard", target)
        assert moved >= 4
        after_move = last.version
        async with asyncio.timeout(20):
            while last.version < after_move + 20:
                await asyncio.sleep(0.005)
        stopped.set()
        await playing
        assert nodes.owner("{t3}:shard") is target
        told = {answer: redirected(answer) - count for answer, count in before.items()}
        print(f"redirected: {told}")
        assert told["wait"] + told["ask"] > 0
        assert await other.load(table_id) == last
        # Wake-ups come from the new node.
        final = await committed(one, change(last, b"end", table_id=table_id))
        await heard.wait_for(table_id, final.version)
        shard = await one.shard(3)
        assert shard.last_seq - seq == last.version - stored.version
        read = await one.read_outbox(3, after_seq=0, limit=10_000, epoch=1, applied_id="")
        assert [entry.seq for entry in read.entries] == list(range(1, shard.last_seq + 1))


async def test_a_shard_that_has_moved_meanwhile_is_found_by_one_redirection(
    nodes: ValkeyCluster,
) -> None:
    table_id = on_shard(6, "meanwhile")
    async with store_on(nodes, shards=SHARDS) as store:
        stored = await committed(store, change(None, b"1", table_id=table_id))
        source = nodes.owner("{t6}:shard")
        target = next(node for node in nodes.nodes if node is not source)
        await asyncio.to_thread(nodes.migrate, "{t6}:shard", target)
        moved, asked = redirected("moved"), redirected("ask")
        assert await store.load(table_id) == stored
        assert await store.load(table_id) == stored
        assert redirected("moved") == moved + 1
        assert redirected("ask") == asked


async def test_a_slot_that_nobody_has_is_unavailable_until_somebody_has_it(
    nodes: ValkeyCluster,
) -> None:
    table_id = on_shard(5, "nobody")
    async with store_on(nodes, shards=SHARDS, patience_s=0.5) as store:
        stored = await committed(store, change(None, b"1", table_id=table_id))
        slot = key_slot(b"{t5}:shard")
        owner = nodes.owner("{t5}:shard")
        for node in nodes.nodes:
            node.ask("CLUSTER", "DELSLOTS", slot)
        with pytest.raises(Unavailable) as refused:
            await store.load(table_id)
        assert refused.value.reason == "STORE_AWAY"
        assert await store.shard(0)
        owner.ask("CLUSTER", "ADDSLOTS", slot)
        async with asyncio.timeout(20):
            found: Stored | None = None
            while found is None:
                try:
                    found = await store.load(table_id)
                except Unavailable:
                    continue
        assert found == stored
    await asyncio.to_thread(nodes.until_whole)


def test_the_doctor_looks_at_every_node(nodes: ValkeyCluster) -> None:
    found = nodes_of(nodes.url)
    assert {at.strip() for at in found} == {node.address for node in nodes.nodes}
    for at, url in found.items():
        findings = {each.check: each.state for each in tables_redis(url, at)}
        assert findings[f"Redis{at} appendfsync"] is State.WELL


def test_urls_of_clusters() -> None:
    url = ClusterUrl.of("rediss+cluster://user:secret@one:7001,two:7002/?ssl_ca_certs=/ca.pem")
    assert url.seeds == ("one:7001", "two:7002")
    assert url.node("[::1]:7003") == "rediss://user:secret@[::1]:7003?ssl_ca_certs=/ca.pem"
    for wrong in (
        "redis://one:7001",
        "redis+cluster://",
        "redis+cluster://one",
        "redis+cluster://one:7001/3",
    ):
        with pytest.raises(ValueError, match=r"host:port|cluster's URL"):
            ClusterUrl.of(wrong)


async def test_rate_limits_leave_nothing_behind_in_memory(nodes: ValkeyCluster) -> None:
    async with store_on(nodes, shards=SHARDS) as store:
        wire = store._line
        assert isinstance(wire, ClusterWire)
        for number in range(100):
            assert wire.node_of(f"{{limit:{number}}}")
            assert wire.node_of(f"{{t{number % SHARDS}}}:shard")
        assert len(wire._slots) == SHARDS
