"""A reopening step by step: broken off anywhere, done twice, at once, too late or too early."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from unittest.mock import AsyncMock, patch
from uuid import uuid4

import pytest
import redis
from doorcard.table.v1 import internal_pb2, internal_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2
from grpc import aio

from services.runtime import failpoints
from services.runtime.channels import connect
from services.runtime.errors import DoorcardError, Unavailable
from services.runtime.settings import ServiceSettings
from services.table.shards.epochs import Epochs, ShardMoved
from services.table.shards.reopening import Reopening
from services.table.store.stored import ShardState
from tests.conftest import Room
from tests.contract.reopening.rooms import Scene, scene
from tests.contract.reopening.stores import emptied
from tests.contract.wallet.conftest import Start

POINTS: Final = (
    "reopen.drained",
    "reopen.noted",
    "reopen.ledger_opened",
    "reopen.epoch_begun",
    "reopen.some_tables_rebuilt",
    "reopen.tables_rebuilt",
    "reopen.some_paid_back",
    "reopen.paid_back",
)


class Killed(BaseException):
    """The process is gone."""


@asynccontextmanager
async def by_hand(room: Room, start: Start) -> AsyncIterator[Scene]:
    """A room whose replicas reopen nothing by themselves."""

    async def never(_self: Reopening) -> None:
        await asyncio.Event().wait()

    with patch.object(Reopening, "run", never):
        async with emptied() as store, scene(room, start, store) as at:
            yield at


def keys(at: Scene) -> "redis.Redis":
    """Behind the store's back."""
    return redis.Redis.from_url(at.tables.server.url)


async def close(at: Scene, shard: int) -> int:
    """Close it as if something had been lost; its epoch."""
    epoch = (await at.store.shard(shard)).epoch
    await at.store.close_shard(shard, "TABLE_ROLLED_BACK", epoch=epoch)
    assert (await at.store.shard(shard)).state is ShardState.CLOSED
    return epoch


async def closed_without(at: Scene, missing: int) -> tuple[str, int, list[str]]:
    """A table that has played three hands, its shard, closed, and the hands; of one of them the
    outbox has no entry any more.
    """
    table = await at.create()
    shard = at.shard_of(table)
    await at.seat(table, "anna", "ben")
    await at.drain(table)
    hands = [await at.play_hand(table) for _ in range(3)]
    with keys(at) as client:
        # The first entry that is still there is the last one that was drained.
        entry = client.xrange(f"{{t{shard}}}:outbox", "-", "+")[1 + missing][0]
        client.xdel(f"{{t{shard}}}:outbox", entry)
    await close(at, shard)
    return table, shard, hands


async def reopen(at: Scene, shard: int, replica: int = 0) -> bool:
    """One look of a replica at the shard."""
    return await at.tables.replicas[replica].reopening.reopen(shard)


async def reopen_at_last(at: Scene, shard: int, replica: int = 0) -> None:
    """Looks until it is open, with settlement at work."""
    settling = asyncio.create_task(at.settle())
    try:
        async with asyncio.timeout(30):
            while not await reopen(at, shard, replica):
                await asyncio.sleep(0.02)
    finally:
        settling.cancel()
        await asyncio.gather(settling, return_exceptions=True)


async def test_broken_off_between_any_two_steps_it_is_finished_by_another(
    room: Room, start: Start
) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.seat(table, "anna", "ben")
        for turn, point in enumerate(POINTS):
            await at.play_hand(table)
            await at.act(table)
            # His seat is lost with the table, for which there is no sitting any more.
            lost = await at.create(beside=table)
            player = f"gina{turn}"
            await at.seat(lost, player)
            await at.drain(table)
            at.lose_table(lost)
            epoch = await close(at, shard)

            def reach(name: str, point: str = point) -> None:
                if name == point:
                    raise Killed

            with patch.object(failpoints, "reach", reach), pytest.raises(Killed):
                await reopen(at, shard)
            await reopen_at_last(at, shard, replica=1)
            found = await at.store.shard(shard)
            assert (found.state, found.epoch, found.reason) == (ShardState.OPEN, epoch + 1, "")
            assert lost not in await at.store.ids_listed(shard)
            await at.sound(shard)
            assert await at.wallet.balance(player, "XTS") == (200, 0, 0), point
        assert len(at.archive.hands) >= len(POINTS)


async def test_replicas_that_reopen_at_once_do_it_once(room: Room, start: Start) -> None:
    async with by_hand(room, start) as at:
        tables = [await at.create()]
        shard = at.shard_of(tables[0])
        tables += [await at.create(beside=tables[0]) for _ in range(3)]
        for number, table in enumerate(tables):
            await at.seat(table, f"anna{number}", f"ben{number}")
        for _ in range(5):
            for table in tables:
                await at.act(table)
            await at.drain(tables[0])
            epoch = await close(at, shard)
            looks = [reopen(at, shard, replica) for replica in (0, 1, 0, 1)]
            assert any(await asyncio.gather(*looks))
            found = await at.store.shard(shard)
            assert (found.state, found.epoch) == (ShardState.OPEN, epoch + 1)
            await at.sound(shard)


async def test_entries_that_survived_wait_for_settlement(room: Room, start: Start) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.seat(table, "anna", "ben")
        hand_id = await at.play_hand(table)
        await close(at, shard)
        assert not await reopen(at, shard)
        assert (await at.store.shard(shard)).state is ShardState.CLOSED
        await at.drain(table)
        assert await reopen(at, shard)
        assert hand_id in at.archive.hands
        await at.sound(shard)


async def test_hands_that_are_booked_wait_for_the_archive_but_not_for_ever(
    room: Room, start: Start
) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.seat(table, "anna", "ben")
        await at.play_hand(table)
        at.archive.away = True
        with pytest.raises(DoorcardError):
            await at.drain(table)
        await close(at, shard)
        assert not await reopen(at, shard)
        assert (await at.store.shard(shard)).state is ShardState.CLOSED
        with patch.object(at.tables.replicas[0].reopening, "_archive_wait_ms", 0):
            assert await reopen(at, shard)
        at.archive.away = False
        await at.sound(shard)


async def test_entries_that_do_not_continue_the_ledger_are_never_applied(
    room: Room, start: Start
) -> None:
    async with by_hand(room, start) as at:
        # Without the first of them the others follow nothing.
        table, shard, hands = await closed_without(at, 0)
        assert await reopen(at, shard)
        await at.sound(shard)
        assert not set(hands) & set(at.archive.hands)
        assert {each.amount for each in await at.escrow(table)} == {200}


async def test_a_reservation_refused_by_an_entry_that_was_lost_is_released_all_the_same(
    room: Room, start: Start
) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.drain(table)
        missing = next(name for name in map(str, iter(uuid4, None)) if at.shard_of(name) == shard)
        reservation = await at.reserve(missing, "ida")
        request = internal_pb2.ResolveReservationRequest(
            table_id=missing,
            reservation_id=reservation,
            sitting_id=(await at.wallet.reservation(reservation)).sitting_id,
        )
        answer = await asyncio.to_thread(at.peers.call, at.peers.tables.ResolveReservation, request)
        assert not answer.seated
        # The table that never was is there, and the entry that gives the money back is not.
        with keys(at) as client:
            client.xtrim(f"{{t{shard}}}:outbox", maxlen=0)
        await close(at, shard)
        assert await reopen(at, shard)
        assert await at.store.load(missing) is not None
        assert await at.wallet.balance("ida", "XTS") == (0, 200, 0)
        await at.sound(shard)
        assert await at.wallet.balance("ida", "XTS") == (200, 0, 0)


async def test_a_hole_in_the_outbox_loses_only_what_comes_after_it(
    room: Room, start: Start
) -> None:
    async with by_hand(room, start) as at:
        _, shard, hands = await closed_without(at, 1)
        await reopen_at_last(at, shard)
        await at.sound(shard)
        assert set(hands) & set(at.archive.hands) == {hands[0]}


async def test_without_its_ledger_a_shard_stays_closed(room: Room, start: Start) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.seat(table, "anna", "ben")
        await at.drain(table)
        epoch = await close(at, shard)
        part = at.tables.replicas[0].reopening
        for method in ("GetProgress", "OpenEpoch", "InspectEscrow"):
            away = Unavailable("DATABASE_AWAY", "the database is away")
            with patch.object(part._wallet, method, side_effect=away):
                assert not await reopen(at, shard)
            assert (await at.store.shard(shard)).state.shut
        with pytest.raises(aio.AioRpcError) as caught:
            await at.seat(table, "carla")
        assert DoorcardError.from_rpc(caught.value).reason == "SHARD_CLOSED"
        assert await reopen(at, shard)
        assert (await at.store.shard(shard)).epoch == epoch + 1
        await at.sound(shard)


async def test_what_was_lost_in_an_earlier_epoch_closes_no_later_one(
    room: Room, start: Start
) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.seat(table, "anna", "ben")
        await at.drain(table)
        epoch = await close(at, shard)
        assert await reopen(at, shard)
        # A replica and a drain that looked before it was reopened, and act on it now.
        await at.store.close_shard(shard, "TABLE_ROLLED_BACK", epoch=epoch)
        channel = connect(at.tables.running[0].address, ServiceSettings())
        internal = internal_pb2_grpc.TableInternalServiceStub(channel)
        metadata = at.tables.room.metadata("settlement", ("service",))
        read = await internal.ReadOutbox(
            internal_pb2.ReadOutboxRequest(
                shard=shard, after_seq=2, limit=10, epoch=epoch, applied_id="gone"
            ),
            metadata=metadata,
        )
        assert (read.epoch, len(read.entries)) == (epoch + 1, 0)
        await internal.TrimOutbox(
            internal_pb2.TrimOutboxRequest(shard=shard, epoch=epoch, applied_seq=2, archived_seq=2),
            metadata=metadata,
        )
        await channel.close()
        assert (await at.store.shard(shard)).state is ShardState.OPEN


async def test_steps_of_a_reopening_that_is_over_are_refused(room: Room, start: Start) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        await at.drain(table)
        shard = at.shard_of(table)
        epochs = Epochs(at.store)
        for step in (
            epochs.end(shard, 1, 0),
            epochs.begin(shard, 2),
        ):
            with pytest.raises(ShardMoved):
                await step
        await close(at, shard)
        assert await epochs.end(shard, 1, 0) == 1
        assert await reopen(at, shard)
        await at.drain(table)
        await close(at, shard)
        with pytest.raises(ShardMoved):
            await epochs.begin(shard, 2)
        # What was noted for the epoch before is no longer what must end.
        assert await epochs.end(shard, 1, 0) == 1
        assert await epochs.end(shard, 2, 0) == 2
        assert await reopen(at, shard)
        assert (await at.store.shard(shard)).epoch == 3


async def test_a_ledger_older_than_the_tables_is_left_to_an_operator(
    room: Room, start: Start
) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await close(at, shard)
        await reopen_at_last(at, shard)
        await close(at, shard)
        older = wallet_pb2.GetProgressResponse(progress=wallet_pb2.Progress(shard=shard, epoch=1))
        part = at.tables.replicas[0].reopening
        with patch.object(part._wallet, "GetProgress", AsyncMock(return_value=older)):
            assert not await reopen(at, shard)
        assert (await at.store.shard(shard)).state is ShardState.CLOSED
        assert (await at.wallet.inspect(shard)).progress.epoch == 2
