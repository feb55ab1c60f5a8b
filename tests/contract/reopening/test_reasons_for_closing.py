"""Everything that shows that the store lost something closes the shard, which is rebuilt then."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from grpc import aio

from services.runtime.errors import DoorcardError
from services.table.store.failover import Failovers
from services.table.store.stored import ShardState
from tests.conftest import Room
from tests.contract.reopening.rooms import Scene, scene
from tests.contract.reopening.stores import cut_file
from tests.contract.reopening.test_steps_of_a_reopening import (
    by_hand,
    close,
    keys,
    reopen_at_last,
)
from tests.contract.wallet.conftest import Start

Lose = Callable[["Kept"], Awaitable[None]]
deep = pytest.mark.deep


class Kept:
    """A shard's keys, which a test can put back as they were."""

    def __init__(self, at: Scene, table: str) -> None:
        self.at = at
        self.table = table
        self.shard = at.shard_of(table)
        self.client = keys(at)
        self._dumps: dict[bytes, Any] = {}

    def key(self, name: str) -> str:
        return f"{{t{self.shard}}}:{name}"

    def keep(self) -> None:
        """As they are now."""
        self._dumps = {
            key: self.client.dump(key) for key in self.client.scan_iter(f"{{t{self.shard}}}:*")
        }

    def forget(self, name: str) -> None:
        """What is kept of one key. Without deadlines nothing is due: a tick may find a table older
        than it is known before the drain finds the outbox so.
        """
        del self._dumps[self.key(name).encode()]

    def put_back(self) -> None:
        """As they were, and nothing else."""
        for key in self.client.scan_iter(f"{{t{self.shard}}}:*"):
            self.client.delete(key)
        for key, dump in self._dumps.items():
            self.client.restore(key, 0, dump)

    @property
    def last(self) -> Any:
        """The last entry of the outbox: its name and fields."""
        found: Any = self.client.xrevrange(self.key("outbox"), count=1)
        return found[0]


async def applied_is_missing(kept: Kept) -> None:
    await kept.at.drain(kept.table)
    kept.client.xdel(kept.key("outbox"), kept.last[0])
    await kept.at.drain(kept.table)


async def another_is_there(kept: Kept) -> None:
    await kept.at.drain(kept.table)
    name, fields = kept.last
    kept.client.delete(kept.key("outbox"))
    kept.client.xadd(kept.key("outbox"), {**fields, b"i": str(uuid4())}, id=name)
    await kept.at.drain(kept.table)


async def behind_the_ledger(kept: Kept) -> None:
    await kept.at.drain(kept.table)
    kept.keep()
    kept.forget("deadlines")
    await kept.at.play_hand(kept.table)
    await kept.at.drain(kept.table)
    await quiet(kept)
    kept.put_back()
    await kept.at.drain(kept.table)


async def an_earlier_epoch(kept: Kept) -> None:
    await kept.at.drain(kept.table)
    kept.keep()
    kept.forget("deadlines")
    await close(kept.at, kept.shard)
    await reopen_at_last(kept.at, kept.shard)
    await quiet(kept)
    kept.put_back()
    await kept.at.drain(kept.table)


async def quiet(kept: Kept) -> None:
    """Nothing is done at the table until a player acts."""
    await kept.at.until(kept.table, lambda view: view.hand.HasField("turn"))


async def a_lower_version(kept: Kept) -> None:
    kept.keep()
    await kept.at.act(kept.table)
    kept.put_back()
    await refused(kept)


async def another_tag(kept: Kept) -> None:
    kept.client.hset(kept.key(f"table:{kept.table}"), "g", "another!")
    await refused(kept)


async def an_outbox_without_its_end(kept: Kept) -> None:
    kept.client.xdel(kept.key("outbox"), kept.last[0])
    with pytest.raises(aio.AioRpcError):
        await kept.at.seat(kept.table, "carla")


async def no_room_for_events(kept: Kept) -> None:
    kept.client.set(kept.key(f"events:{kept.table}"), "no stream")
    with pytest.raises(aio.AioRpcError):
        await kept.at.seat(kept.table, "carla")


async def everything(kept: Kept) -> None:
    kept.put_back()
    await kept.at.drain(kept.table)


async def refused(kept: Kept) -> None:
    """Whoever reads the table is told."""
    with pytest.raises(aio.AioRpcError) as caught:
        await kept.at.view(kept.table)
    assert DoorcardError.from_rpc(caught.value).reason == "SHARD_CLOSED"


@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (applied_is_missing, "APPLIED_ENTRY_MISSING"),
        pytest.param(another_is_there, "APPLIED_ENTRY_MISSING", marks=deep),
        pytest.param(behind_the_ledger, "OUTBOX_BEHIND_LEDGER", marks=deep),
        (an_earlier_epoch, "EPOCH_DIFFERS"),
        (a_lower_version, "TABLE_ROLLED_BACK"),
        pytest.param(another_tag, "TABLE_ROLLED_BACK", marks=deep),
        pytest.param(an_outbox_without_its_end, "OUTBOX_BROKEN", marks=deep),
        pytest.param(no_room_for_events, "EVENTS_BROKEN", marks=deep),
        pytest.param(everything, "REDIS_LOST", marks=deep),
    ],
)
async def test_the_shard_is_closed_rebuilt_and_played_on(
    room: Room, start: Start, lose: Lose, reason: str
) -> None:
    async with by_hand(room, start) as at:
        table = await at.create()
        await at.seat(table, "anna", "ben")
        await at.drain(table)
        await at.play_hand(table)
        kept = Kept(at, table)
        await lose(kept)
        found = await at.store.shard(kept.shard)
        assert (found.state, found.reason) == (ShardState.CLOSED, reason)
        await reopen_at_last(at, kept.shard)
        await at.sound(kept.shard)
        if reason == "REDIS_LOST":
            table = await at.create(beside=table)
            await at.seat(table, "anna", "ben")
        hand_id = await at.play_hand(table)
        await at.drain(table)
        assert hand_id in at.archive.hands
        await at.sound(kept.shard)


async def test_what_nobody_watches_is_compared_when_the_store_is_another_process(
    room: Room, start: Start
) -> None:
    async with cut_file() as store, scene(room, start, store, replicas=1) as at:
        table = await at.create()
        await at.seat(table, "anna", "ben")
        await at.drain(table)
        await at.act(table)
        replica = at.tables.replicas[0]
        failovers = Failovers(replica.store, replica.tables.compare)
        await failovers.once()
        await store.mark()
        await at.act(table)
        await store.lose()
        await failovers.once()
        await at.reopened(table)
        await at.sound(at.shard_of(table))
        await at.play_hand(table)
