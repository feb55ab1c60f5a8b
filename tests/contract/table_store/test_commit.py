"""The atomic commit: one version, one winner, all or nothing."""

import asyncio
from itertools import pairwise

import pytest

from services.runtime.errors import Internal, Unavailable
from services.table.store.line import Line
from services.table.store.store import Store
from services.table.store.stored import (
    Committed,
    Conflict,
    ShardClosed,
    ShardState,
    Stored,
    TooEarly,
)
from tests import valkey
from tests.contract.table_store.stores import TABLE, OpenStore, change, committed, store_on


async def test_a_created_table_is_loaded_as_it_was_written(open_store: OpenStore) -> None:
    async with open_store() as store:
        assert await store.load(TABLE) is None
        first = await committed(store, change(None, b"one", lobby=b"line"))
        assert first.version == (1 << 32) + 1
        assert await store.load(TABLE) == first
        assert await store.version(TABLE) == (first.version, first.tag)
        assert await store.lobby_of(store.shard_of(TABLE)) == {TABLE: b"line"}


async def test_of_two_stores_racing_on_one_version_exactly_one_commits(
    open_store: OpenStore,
) -> None:
    async with open_store() as one, open_store() as other:
        present = await committed(one, change(None, b"start"))
        for turn in range(50):
            blobs = (b"one %d" % turn, b"other %d" % turn)
            outcomes = await asyncio.gather(
                one.commit(change(present, blobs[0])), other.commit(change(present, blobs[1]))
            )
            winners = [each for each in outcomes if isinstance(each, Committed)]
            losers = [each for each in outcomes if isinstance(each, Conflict)]
            assert (len(winners), len(losers)) == (1, 1)
            present = await one.load(TABLE) or present
            assert present.version == winners[0].version
            assert present.blob == blobs[outcomes.index(winners[0])]
            assert losers[0].present == present


async def test_a_stale_cache_is_answered_with_what_is_stored(open_store: OpenStore) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        second = await committed(store, change(first, b"two"))
        assert await store.commit(change(first, b"late")) == Conflict(second)
        assert await store.commit(change(None, b"again")) == Conflict(second)


@pytest.mark.parametrize(
    "known",
    [
        lambda stored: stored._replace(tag=b"othertag"),
        lambda stored: stored._replace(version=stored.version + 5),
    ],
    ids=["another tag at the same version", "a higher version"],
)
async def test_knowing_what_redis_has_lost_closes_the_shard(
    open_store: OpenStore, known: object
) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        outcome = await store.commit(change(known(first), b"two"))  # type: ignore[operator]
        assert outcome == ShardClosed("TABLE_ROLLED_BACK")
        assert await store.load(TABLE) == first
        assert await store.shard_state(store.shard_of(TABLE)) is ShardState.CLOSED


async def test_a_table_that_is_gone_closes_the_shard(
    open_store: OpenStore, server: valkey.Valkey
) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        with server.client() as client:
            client.delete(f"{{t{store.shard_of(TABLE)}}}:table:{TABLE}")
        assert await store.commit(change(first, b"two")) == ShardClosed("TABLE_ROLLED_BACK")


async def test_a_time_out_before_its_time_changes_nothing(open_store: OpenStore) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        outcome = await store.commit(
            change(first, b"two", ("e1", b"x"), not_before_ms=store.now_ms() + 60_000)
        )
        assert isinstance(outcome, TooEarly)
        told = outcome.error()
        assert (told.reason, told.retriable, told.retry_after_ms) == ("TOO_EARLY", True, 250)
        assert abs(outcome.now_ms - store.now_ms()) < 1000
        assert await store.load(TABLE) == first
        second = await store.commit(change(first, b"two", not_before_ms=store.now_ms() - 10))
        assert isinstance(second, Committed)


async def test_a_closed_shard_refuses_commits_and_claims_nothing(open_store: OpenStore) -> None:
    async with open_store() as store:
        shard = store.shard_of(TABLE)
        first = await committed(store, change(None, b"one", deadline_ms=1))
        await store.close_shard(shard, "BY_HAND", epoch=1)
        await store.close_shard(shard, "ANOTHER", epoch=1)
        outcome = await store.commit(change(first, b"two"))
        assert outcome == ShardClosed("BY_HAND")
        assert isinstance(outcome, ShardClosed)
        assert outcome.error().reason == "SHARD_CLOSED"
        assert outcome.error().retry_after_ms
        assert await store.claim_due(shard, 100) == []
        assert await store.load(TABLE) == first


async def test_outbox_numbers_and_links_have_no_gap_over_conflicts(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as other:
        shard = one.shard_of(TABLE)
        present = await committed(one, change(None, b"start"))
        for turn in range(20):
            outcomes = await asyncio.gather(
                one.commit(change(present, b"1", (f"a{turn}", b"x"), (f"b{turn}", b"y"))),
                other.commit(change(present, b"2", (f"c{turn}", b"z"))),
            )
            assert sorted(type(each).__name__ for each in outcomes) == ["Committed", "Conflict"]
            present = await one.load(TABLE) or present
        read = await one.read_outbox(shard, after_seq=0, limit=500, epoch=1, applied_id="")
        assert read.verdict == ""
        assert [each.seq for each in read.entries] == list(range(1, read.last_seq + 1))
        assert read.entries[0].previous_entry_id == ""
        for before, after in pairwise(read.entries):
            assert after.previous_entry_id == before.entry_id
        shard_key = await one.shard(shard)
        assert (shard_key.epoch, shard_key.last_seq) == (1, read.last_seq)


async def test_a_cancelled_callers_commit_still_lands(open_store: OpenStore) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        others = [
            asyncio.create_task(store.commit(change(None, b"%d" % each, table_id=f"t{each}")))
            for each in range(20)
        ]
        caller = asyncio.create_task(store.commit(change(first, b"two")))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        assert caller.cancelled()
        assert all(isinstance(each, Committed) for each in await asyncio.gather(*others))
        stored = await store.load(TABLE)
        assert stored is not None
        assert (stored.version, stored.blob) == (first.version + 1, b"two")


async def test_no_reply_reaches_another_waiter_while_callers_come_and_go(
    open_store: OpenStore,
) -> None:
    async with open_store() as store:
        for each in range(30):
            await committed(store, change(None, b"blob %d" % each, table_id=f"t{each}"))
        for turn in range(30):
            loads = {each: asyncio.create_task(store.load(f"t{each}")) for each in range(30)}
            await asyncio.sleep(0)
            for each in range(turn % 3, 30, 3):
                loads.pop(each).cancel()
            for each, load in loads.items():
                stored = await load
                assert stored is not None
                assert stored.blob == b"blob %d" % each


async def test_a_commit_sent_twice_is_done_once(
    open_store: OpenStore, server: valkey.Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        line = store._line
        assert isinstance(line, Line)
        exchange = line._exchange
        lost: list[bool] = []

        async def lose_replies_once(batch: list[object]) -> None:
            if not lost:
                lost.append(True)
                connection = line._connection or await line._open()
                await connection.send_packed_command(
                    b"".join(each.packed for each in batch)  # type: ignore[attr-defined]
                )
                await connection.read_response()
                raise ConnectionResetError
            await exchange(batch)  # type: ignore[arg-type]

        monkeypatch.setattr(line, "_exchange", lose_replies_once)
        second = await committed(store, change(first, b"two", ("e1", b"x")))
        assert lost
        assert second.version == first.version + 1
        assert await store.load(TABLE) == second
        assert (await store.shard(store.shard_of(TABLE))).last_seq == 1


async def test_a_commit_sent_twice_is_known_as_ours_after_others_went_on(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = b"same tag"
    monkeypatch.setattr("services.table.store.store.random_bytes", lambda _: tag)
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        await committed(store, change(first, b"two"))
        third = await committed(store, change(Stored(first.version + 1, tag, b""), b"three"))
        outcome = await store.commit(change(first, b"two"))
        assert outcome == Committed(first.version + 1, tag)
        assert await store.load(TABLE) == third


async def test_forgotten_scripts_are_loaded_again(
    open_store: OpenStore, server: valkey.Valkey
) -> None:
    async with open_store() as store:
        first = await committed(store, change(None, b"one"))
        with server.client() as client:
            client.script_flush()
        await committed(store, change(first, b"two"))


async def test_killing_valkey_loses_nothing_that_was_answered() -> None:
    with valkey.running() as server:
        async with store_on(server, patience_s=10.0) as store:
            present = await committed(store, change(None, b"0"))
            for turn in range(1, 31):
                present = await committed(store, change(present, b"%d" % turn, (f"e{turn}", b"x")))
                if turn % 10 == 0:
                    server.kill()
                    server.start()
                    assert await store.load(TABLE) == present
            key = await store.shard(store.shard_of(TABLE))
            assert (key.state, key.last_seq) == (ShardState.OPEN, 30)


async def test_commits_under_way_when_valkey_is_killed_are_done_once_or_known_as_lost() -> None:
    with valkey.running() as server:
        async with store_on(server, patience_s=10.0) as store:
            chains = [asyncio.create_task(_chain(store, f"t{each}")) for each in range(8)]
            await asyncio.sleep(0)
            for _ in range(3):
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            for each, last in enumerate(await asyncio.gather(*chains)):
                assert await store.version(f"t{each}") == (last.version, last.tag)
                assert last.version & 0xFFFFFFFF == 200


async def _chain(store: Store, table_id: str) -> Stored:
    present = None
    for turn in range(200):
        present = await committed(store, change(present, b"%d" % turn, table_id=table_id))
    assert present is not None
    return present


async def test_a_store_that_is_away_is_a_typed_error_with_a_time_to_retry() -> None:
    with valkey.running() as server:
        async with store_on(server, patience_s=1.0) as store:
            first = await committed(store, change(None, b"one"))
            server.kill()
            with pytest.raises(Unavailable) as raised:
                await store.commit(change(first, b"two"))
            assert raised.value.reason == "STORE_AWAY"
            assert raised.value.retry_after_ms
            server.start()
            assert await store.load(TABLE) == first


async def test_a_changed_blob_does_not_open(open_store: OpenStore, server: valkey.Valkey) -> None:
    async with open_store() as store:
        await committed(store, change(None, b"one"))
        await committed(store, change(None, b"two", table_id="other"))
        with server.client() as client:
            taken = client.hget(f"{{t{store.shard_of('other')}}}:table:other", "b")
            client.hset(f"{{t{store.shard_of(TABLE)}}}:table:{TABLE}", "b", taken)
        with pytest.raises(Internal) as raised:
            await store.load(TABLE)
        assert raised.value.reason == "SEAL_BROKEN"


async def test_nothing_stored_is_readable(open_store: OpenStore, server: valkey.Valkey) -> None:
    async with open_store() as store:
        await committed(store, change(None, b"plain words", ("e1", b"plain words")))
        with server.client() as client:
            shard = store.shard_of(TABLE)
            table = client.hgetall(f"{{t{shard}}}:table:{TABLE}")
            events = client.xrange(f"{{t{shard}}}:events:{TABLE}")
            outbox = client.xrange(f"{{t{shard}}}:outbox")
        assert events
        assert outbox
        assert b"plain words" not in repr((table, events, outbox)).encode()
