"""A store that has lost something is noticed by whoever knows better; nothing is built on it."""

from typing import Any

import pytest

from services.runtime.errors import DoorcardError, NotFound
from services.runtime.ids import uuid7
from services.table.store.stored import ShardState
from tests.unit.table.rooms import FakeRoom


async def playing() -> FakeRoom:
    room = FakeRoom(seed=2)
    await room.create()
    await room.seat("anna", "ben", "carla")
    await room.start_hand()
    return room


async def closed_to(call: Any, room: FakeRoom) -> str:
    """Why the shard is closed to a call, which has no effect."""
    before = dict(room.store.tables)
    with pytest.raises(DoorcardError) as caught:
        await call
    assert (caught.value.retriable, caught.value.reason) == (True, "SHARD_CLOSED")
    assert caught.value.retry_after_ms
    assert room.store.tables == before
    assert room.store.closed == caught.value.metadata["why"]
    return room.store.closed


@pytest.mark.parametrize("reading", [True, False])
async def test_a_version_that_was_known_and_is_lost_closes_the_shard(reading: bool) -> None:
    room = await playing()
    before = room.store.tables[room.table_id]
    await room.act()
    room.store.tables[room.table_id] = before
    tables = room.tables
    call = tables.read(room.table_id) if reading else tables.sit_out(room.table_id, "dora")
    assert await closed_to(call, room) == "TABLE_ROLLED_BACK"


async def test_another_writing_of_the_same_version_closes_the_shard() -> None:
    room = await playing()
    stored = room.store.tables[room.table_id]
    room.store.tables[room.table_id] = stored._replace(tag=b"another!")
    call = room.tables.sit_out(room.table_id, "dora")
    assert await closed_to(call, room) == "TABLE_ROLLED_BACK"


async def test_a_store_that_was_emptied_has_lost_its_tables() -> None:
    room = await playing()
    room.store.tables.clear()
    room.store.state = ShardState.UNOPENED
    assert await closed_to(room.tables.read(room.table_id), room) == "REDIS_LOST"
    # A table that was not known here may have been lost as well.
    call = room.replica("replica-2").leave(uuid7(), "anna")
    assert await closed_to(call, room) == "REDIS_LOST"


async def test_a_table_that_never_was_is_unknown_in_an_open_shard() -> None:
    room = await playing()
    with pytest.raises(NotFound):
        await room.tables.read(uuid7())
