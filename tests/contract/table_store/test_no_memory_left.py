"""A Redis without memory takes what ends, frees or keeps the room going, and nothing new."""

from collections.abc import Iterator

import pytest

from services.runtime.errors import Unavailable
from services.table.shards.epochs import Epochs
from services.table.store.stored import Committed, ShardState
from tests import valkey
from tests.contract.table_store.stores import TABLE, OpenStore, change, committed


@pytest.fixture
def full(server: valkey.Valkey) -> Iterator[valkey.Valkey]:
    """`full.fill()` it in the test; afterwards it has memory again."""
    yield server
    server.unfill()


async def test_a_replica_starts_and_is_seen_by_the_others(
    full: valkey.Valkey, open_store: OpenStore
) -> None:
    async with open_store() as one:
        full.fill()
        async with open_store(replica_id="replica-2") as other:
            await one.heart.beat()
            assert set(await other.live_replicas()) == {"replica-1", "replica-2"}
            assert set(one.heart.live) == {"replica-1", "replica-2"}


async def test_one_replica_goes_on_to_do_what_one_is_enough_for(
    full: valkey.Valkey, open_store: OpenStore
) -> None:
    async with open_store() as one, open_store(replica_id="replica-2") as other:
        full.fill()
        assert await one.shelves.my_turn()
        assert not await other.shelves.my_turn()
        assert await one.shelves.my_turn()


async def test_a_hand_in_progress_ends_and_nothing_new_begins(
    full: valkey.Valkey, open_store: OpenStore
) -> None:
    async with open_store() as store:
        stored = await committed(store, change(None, b"hand", deadline_ms=1))
        full.fill()
        with pytest.raises(Unavailable) as refused:
            await store.commit(change(stored, b"another player"))
        assert refused.value.reason == "STORE_MEMORY"
        assert await store.load(TABLE) == stored
        shard = store.shard_of(TABLE)
        assert await store.claim_due(shard, 10) == [TABLE]
        ended = change(stored, b"ended", ("hand:1", b"result"), when_full=True)
        assert isinstance(await store.commit(ended), Committed)
        verdict, left = await store.trim_outbox(shard, epoch=1, applied_seq=1, archived_seq=1)
        assert (verdict, left) == ("", 1)


async def test_a_shard_is_closed_and_opened_again(
    full: valkey.Valkey, open_store: OpenStore
) -> None:
    async with open_store() as store:
        stored = await committed(store, change(None, b"one"))
        shard, epochs = store.shard_of(TABLE), Epochs(store)
        full.fill()
        await store.close_shard(shard, "EPOCH_DIFFERS", epoch=1)
        assert (await store.shard(shard)).state is ShardState.CLOSED
        assert await epochs.end(shard, 1, 0) == 1
        await epochs.begin(shard, 2)
        assert await epochs.write(2, TABLE, stored, b"anew", b"", b"line", 0)
        await epochs.open(shard, 2)
        assert (await store.shard(shard)).state is ShardState.OPEN
