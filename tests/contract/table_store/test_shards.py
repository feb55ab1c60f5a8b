"""Shards are opened by the ledger's epoch, and closed when Redis has lost them."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.errors import Unavailable
from services.table.shards.shards import Shards
from services.table.store.store import SettingsDiffer, Store
from services.table.store.stored import Committed, ShardClosed, ShardState
from tests import valkey
from tests.contract.table_store.stores import TABLE, OpenStore, change, committed


class Wallet:
    """Progress rows of a ledger."""

    def __init__(self, shards: int = 4) -> None:
        self.shards = shards
        self.rows: dict[int, wallet_pb2.Progress] = {}
        self.away = False
        self.opened: list[int] = []

    async def GetRoomSettings(  # noqa: N802
        self, request: Any, **_: Any
    ) -> wallet_pb2.GetRoomSettingsResponse:
        return wallet_pb2.GetRoomSettingsResponse(shards=self.shards)

    async def GetProgress(self, request: Any, **_: Any) -> wallet_pb2.GetProgressResponse:  # noqa: N802
        if self.away:
            raise Unavailable("AWAY", "away")
        await asyncio.sleep(0)
        row = self.rows.get(request.shard, wallet_pb2.Progress(shard=request.shard))
        return wallet_pb2.GetProgressResponse(progress=row)

    async def OpenEpoch(self, request: Any, **_: Any) -> wallet_pb2.OpenEpochResponse:  # noqa: N802
        await asyncio.sleep(0)
        self.opened.append(request.shard)
        assert request.expected_epoch == 0
        row = wallet_pb2.Progress(shard=request.shard, epoch=1)
        return wallet_pb2.OpenEpochResponse(progress=self.rows.setdefault(request.shard, row))


def shards_of(store: Store, wallet: Wallet) -> Shards:
    return Shards(store, wallet)  # type: ignore[arg-type]


async def test_the_first_commit_opens_a_new_shard(open_store: OpenStore) -> None:
    wallet = Wallet()
    async with open_store() as store:
        shards_of(store, wallet)
        assert await store.shard_state(store.shard_of(TABLE)) is ShardState.UNOPENED
        await committed(store, change(None, b"one"))
        shard = await store.shard(store.shard_of(TABLE))
        assert (shard.state, shard.epoch, shard.last_seq) == (ShardState.OPEN, 1, 0)


async def test_commits_at_once_on_a_shard_that_was_lost_all_open_it_anew(
    open_store: OpenStore, server: valkey.Valkey
) -> None:
    async with open_store(shards=1) as store:
        await committed(store, change(None, b"one"))
        server.flush()
        creations = [change(None, b"new", table_id=str(UUID(int=number))) for number in range(8)]
        outcomes = await asyncio.gather(*map(store.commit, creations))
        assert all(isinstance(each, Committed) for each in outcomes), outcomes


async def test_replicas_that_open_a_shard_together_both_commit(
    open_store: OpenStore, server: valkey.Valkey
) -> None:
    for turn in range(20):
        server.flush()
        wallet = Wallet()
        async with open_store() as one, open_store() as other:
            for store in (one, other):
                shards_of(store, wallet)
            outcomes = await asyncio.gather(
                *(
                    store.commit(change(None, b"x", table_id=f"{turn}-{name}"))
                    for name in ("a", "b", "c")
                    for store in (one, other)
                )
            )
            assert sum(isinstance(each, Committed) for each in outcomes) == 3
            assert await one.shard_state(one.shard_of(f"{turn}-a")) is ShardState.OPEN


async def test_a_ledger_with_an_epoch_and_no_key_closes_the_shard(
    open_store: OpenStore, server: valkey.Valkey
) -> None:
    wallet = Wallet()
    async with open_store() as store:
        shards_of(store, wallet)
        first = await committed(store, change(None, b"one"))
        server.flush()
        assert await store.commit(change(first, b"two")) == ShardClosed("REDIS_LOST")
        assert await store.commit(change(None, b"new")) == ShardClosed("REDIS_LOST")


async def test_an_opening_that_was_broken_off_is_finished_by_another(
    open_store: OpenStore,
) -> None:
    wallet = Wallet()
    async with open_store() as store:
        shard = store.shard_of(TABLE)
        await store.begin_opening(shard)
        wallet.rows[shard] = wallet_pb2.Progress(shard=shard, epoch=1)
        await shards_of(store, wallet).ensure_open(shard)
        assert await store.shard_state(shard) is ShardState.OPEN
        assert wallet.opened == []


async def test_without_wallet_a_new_shard_waits_and_an_open_one_goes_on(
    open_store: OpenStore,
) -> None:
    wallet = Wallet()
    async with open_store(shards=1) as store:
        shards_of(store, wallet)
        wallet.away = True
        with pytest.raises(Unavailable):
            await store.commit(change(None, b"one"))
        wallet.away = False
        first = await committed(store, change(None, b"one"))
        wallet.away = True
        await committed(store, change(first, b"two"))


async def test_another_number_of_shards_in_wallet_is_refused(open_store: OpenStore) -> None:
    async with open_store() as store:
        await shards_of(store, Wallet()).check_room()
        with pytest.raises(SettingsDiffer):
            await shards_of(store, Wallet(shards=8)).check_room()
