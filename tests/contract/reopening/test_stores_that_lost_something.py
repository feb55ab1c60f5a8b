"""A replica promoted behind, a file cut short, an empty server: the shard is rebuilt from the
ledger, no money is lost or made, and the players are told.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import grpc
import pytest

from services.table.store.stored import ShardState
from tests.conftest import Room
from tests.contract.reopening.rooms import Scene, released, scene
from tests.contract.reopening.stores import LossyStore, cut_file, emptied, failover
from tests.contract.table.replicas import Seated
from tests.contract.wallet.conftest import Start

Opened = Callable[[], AbstractAsyncContextManager[LossyStore]]


async def until_told(seated: Seated) -> str:
    """The hand that a player is told to be void, behind a snapshot of the table as it is now."""
    events: list[Any] = []

    def told() -> bool:
        events[:] = [
            event.rebuilt
            for frame in seated.frames
            for event in frame.update.events
            if event.HasField("rebuilt")
        ]
        return bool(events)

    await seated.until(told)
    shown = seated.snapshots[-1]
    assert shown.rebuilt == events[0]
    assert shown.rebuilt.reason
    return str(events[0].void_hand_id)


async def until_ended(seated: Seated) -> grpc.StatusCode:
    """The stream ends; how."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await seated.until(lambda: False)
    return caught.value.code()


async def goes_on(at: Scene, table_id: str, seated: Seated, before: int) -> None:
    """Another hand is played and settled, and who comes back with an old version sees it."""
    hand_id = await at.play_hand(table_id)
    await seated.until(lambda: hand_id in seated.hands_ended)
    await at.drain(table_id)
    assert hand_id in at.archive.hands
    again = Seated(at.tables.stub(), at.tables.room.metadata("anna"), table_id)
    await again.join(before)
    assert await until_told(again)
    assert again.snapshots[0].version >> 32 == 2


@pytest.mark.parametrize(
    ("opened", "ahead"),
    [
        pytest.param(failover, True, id="promoted behind, ledger ahead", marks=pytest.mark.deep),
        pytest.param(failover, False, id="promoted behind, entries survive"),
        pytest.param(cut_file, True, id="file cut, ledger ahead"),
        pytest.param(cut_file, False, id="file cut, entries survive", marks=pytest.mark.deep),
    ],
)
async def test_a_store_that_went_back_is_rebuilt(
    room: Room, start: Start, opened: Opened, ahead: bool
) -> None:
    async with opened() as store, scene(room, start, store) as at:
        table = await at.create()
        other = await at.create(beside=table)
        await at.seat(table, "anna", "ben")
        await at.seat(other, "dora")
        first = await at.play_hand(table)
        await at.drain(table)
        second = await at.play_hand(table)
        view = await at.act(table)
        # What comes now is confirmed and shown, and lost afterwards.
        await store.mark()
        anna = await at.watch(table, "anna", replica=1)
        await at.act(table)
        await at.seat(other, "erik")
        lost = await at.create(beside=table)
        await at.seat(lost, "gina")
        gina = await at.watch(lost, "gina")
        if ahead:
            await at.drain(table)
        await at.seat(other, "fred")
        pending = [await at.reserve(each, "ida") for each in (table, lost)]
        seen = (await at.view(table)).version
        await store.lose()

        shard = await at.reopened(table)
        assert await until_told(anna) == view.hand.hand_id
        assert await until_ended(gina) is grpc.StatusCode.NOT_FOUND
        await at.sound(shard)
        assert {first, second} <= set(at.archive.hands)
        # Whose seat was lost has his money back, from escrow or from his reservation.
        for player in ("erik", "fred", "gina"):
            assert await at.wallet.balance(player, "XTS") == (200, 0, 0)
        assert await at.wallet.balance("ida", "XTS") == (400, 0, 0)
        assert all([released(await at.wallet.reservation(each)) for each in pending])
        assert [seat.player_id for seat in (await at.view(other)).seats] == ["dora"]
        await goes_on(at, table, anna, seen)
        await at.sound(shard)


async def test_a_replica_that_has_everything_is_promoted_and_nobody_notices(
    room: Room, start: Start
) -> None:
    async with failover() as store, scene(room, start, store) as at:
        table = await at.create()
        await at.seat(table, "anna", "ben")
        await at.play_hand(table)
        await at.drain(table)
        anna = await at.watch(table, "anna", replica=1)
        view = await at.act(table)
        await store.catch_up()
        await store.lose()
        after = await at.act(table)
        assert after.hand.hand_id == view.hand.hand_id
        await at.play_hand(table)
        await anna.until(lambda: view.hand.hand_id in anna.hands_ended)
        assert len(anna.snapshots) == 1
        await at.drain(table)
        for replica in at.tables.replicas:
            await replica.tables.compare()
        shard = at.shard_of(table)
        assert (await at.store.shard(shard))[:2] == (ShardState.OPEN, 1)
        await at.sound(shard)


async def test_of_an_empty_store_all_escrow_goes_back(room: Room, start: Start) -> None:
    async with emptied() as store, scene(room, start, store) as at:
        table = await at.create()
        await at.seat(table, "anna", "ben")
        await at.play_hand(table)
        await at.drain(table)
        await at.play_hand(table)
        await at.act(table)
        anna = await at.watch(table, "anna", replica=1)
        await at.seat(await at.create(beside=table), "gina")
        pending = await at.reserve(table, "ida")
        posted = {each.player_id: each.amount for each in await at.escrow(table)}
        await store.lose()

        shard = await at.reopened(table)
        assert await until_ended(anna) is grpc.StatusCode.NOT_FOUND
        await at.sound(shard)
        assert await at.escrow(table) == []
        assert posted.keys() == {"anna", "ben"}
        for player, amount in {**posted, "gina": 200, "ida": 200}.items():
            assert await at.wallet.balance(player, "XTS") == (amount, 0, 0)
        assert released(await at.wallet.reservation(pending))
        # The same players at a new table of the same shard.
        anew = await at.create(beside=table)
        await at.seat(anew, "anna", "ben")
        await at.play_hand(anew)
        await at.drain(table)
        await at.sound(shard)
