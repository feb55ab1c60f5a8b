"""What is stored of a table: small, checked, never overwritten by an older service."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.game.events import EventKind
from services.game.hand import ACTED
from services.game.wants import ActionKind
from services.runtime.errors import AlreadyExists, Internal, Unavailable
from services.table.state.packed_inputs import pack_input, unpack_input
from services.table.state.state import (
    SCHEMA,
    BrokenConservation,
    Seat,
    SeatStatus,
    Table,
    decode,
    digest,
    money_of,
)
from services.table.store.stored import Stored
from services.table.tables.tables import FAULTS_MAX
from tests.unit.table.rooms import FakeRoom


async def playing() -> FakeRoom:
    room = FakeRoom(seed=12)
    await room.create(rake_schedule_id="standard")
    await room.seat("anna", "ben", "carla", "dan", "eva", "fritz")
    await room.start_hand()
    return room


def changed(room: FakeRoom, change: object) -> Stored:
    """The stored table with its blob changed."""
    stored = room.store.tables[room.table_id]
    blob = decode(stored.blob)
    change(blob)  # type: ignore[operator]
    return stored._replace(blob=bytes((SCHEMA,)) + msgspec.msgpack.encode(blob))


async def test_a_table_comes_back_from_its_blob_with_hand_and_events() -> None:
    room = await playing()
    for _ in range(8):
        await room.act()
    kept = await room.tables.read(room.table_id)
    loaded = Table.load(room.table_id, room.store.tables[room.table_id])
    assert loaded.encode() == kept.encode() == room.store.tables[room.table_id].blob
    assert loaded.played == kept.played
    assert kept.hand is not None
    assert loaded.hand is not None
    assert loaded.hand.stacks == kept.hand.stacks


async def test_the_blob_of_a_table_in_play_is_at_most_two_kilobytes() -> None:
    room = await playing()
    largest = 0
    for _ in range(4):
        while room.table.hand is not None:
            await room.act()
            largest = max(largest, len(room.store.tables[room.table_id].blob))
        await room.start_hand()
    print(f"largest blob: {largest} bytes")
    assert largest <= 2048


async def test_requests_remembered_by_an_earlier_release_are_still_known() -> None:
    seat = Seat("anna", "Anna", b"", b"", 200, 200, SeatStatus.PLAYING)
    first, second, third = (digest(f"request-{number}", number) for number in range(3))
    seat.remember(first, (7 << 32) + 41)
    seat.remember(second, (7 << 32) + 42)
    packed = seat.recent
    seat.recent = [(first, 41), (second, 42)]
    old = msgspec.msgpack.decode(msgspec.msgpack.encode(seat), type=Seat)
    assert old.taken_at(second, (7 << 32) + 50) == (7 << 32) + 42
    assert old.taken_at(third, (7 << 32) + 50) == 0
    with pytest.raises(AlreadyExists):
        old.taken_at(digest("request-0", "something else"), (7 << 32) + 50)
    old.remember(third, (7 << 32) + 43)
    assert isinstance(old.recent, bytes)
    assert isinstance(packed, bytes)
    assert old.recent[: len(packed)] == packed


async def test_a_blob_of_a_newer_service_is_not_touched() -> None:
    room = await playing()
    stored = room.store.tables[room.table_id]
    newer = stored._replace(blob=bytes((SCHEMA + 1,)) + stored.blob[1:])
    with pytest.raises(Unavailable, match="TABLE_NEWER"):
        Table.load(room.table_id, newer)
    with pytest.raises(Unavailable, match="TABLE_NEWER"):
        money_of(newer.blob)
    room.store.tables[room.table_id] = newer
    old = room.replica("old")
    with pytest.raises(Unavailable, match="TABLE_NEWER") as refused:
        await old.sit_out(room.table_id, "anna")
    assert refused.value.metadata == {"schema": str(SCHEMA + 1), "known": str(SCHEMA)}
    for _ in range(FAULTS_MAX + 1):
        # It is not at fault either: it does not try to pause the table.
        await old.tick(room.table_id)
    assert room.store.tables[room.table_id] == newer


async def test_a_hand_stored_by_the_release_before_goes_on() -> None:
    room = await playing()
    for _ in range(8):
        await room.act()
    stored = room.store.tables[room.table_id]
    blob = decode(stored.blob)
    assert blob.hand is not None
    acts = [each for each in blob.hand.inputs if isinstance(each, int)]
    assert len(acts) == 8
    blob.hand.inputs = [list(unpack_input(each)) for each in blob.hand.inputs]
    before = stored._replace(blob=bytes((SCHEMA - 1,)) + msgspec.msgpack.encode(blob))
    loaded, again = Table.load(room.table_id, stored), Table.load(room.table_id, before)
    assert again.played == loaded.played
    room.store.tables[room.table_id] = before
    fresh = room.replica("fresh")
    await fresh.sit_out(room.table_id, "anna")
    kept = decode(room.store.tables[room.table_id].blob)
    assert kept.hand is not None
    assert kept.hand.inputs[: len(blob.hand.inputs)] == blob.hand.inputs


@given(st.integers(0, 20), st.sampled_from(ActionKind), st.integers(0, 2**63 - 1))
@example(15, ActionKind.RAISE, 2**55 - 1)
@example(15, ActionKind.RAISE, 2**55)
@example(16, ActionKind.CHECK, 0)
def test_an_action_is_read_as_it_was_stored(seat: int, kind: ActionKind, amount: int) -> None:
    item = [ACTED, seat, int(kind), amount]
    stored = msgspec.msgpack.encode(pack_input(item))
    assert [*unpack_input(msgspec.msgpack.decode(stored))] == item


async def test_chips_that_do_not_add_up_are_neither_loaded_nor_committed() -> None:
    room = await playing()
    for change in (
        lambda blob: setattr(blob.seats[0], "stack", 201),
        lambda blob: setattr(blob.seats[0], "brought", 199),
        lambda blob: blob.hand.stacks.__setitem__(0, 199),
        lambda blob: blob.seats.pop(1),
    ):
        with pytest.raises(BrokenConservation):
            Table.load(room.table_id, changed(room, change))
    before = room.store.tables[room.table_id]
    kept = await room.tables.read(room.table_id)
    kept.blob.seats[0].brought += 1
    with pytest.raises(Internal):
        await room.act()
    assert room.store.tables[room.table_id] == before
    # The broken copy is gone: the next action goes by the stored one.
    await room.act()


async def test_records_hold_every_event_and_card_of_the_hand() -> None:
    room = await playing()
    told = room.table.played
    while room.table.hand is not None:
        told = room.table.played
        await room.act()
    entry = room.store.outbox[-1]
    record = entry.hand
    dealt = [event.dealt.card for event in record.events if event.HasField("dealt")]
    assert all(dealt)
    assert sorted(dealt) == sorted(c for player in record.players for c in player.cards)
    assert not any(event.dealt.salt or event.dealt.path for event in record.events)
    assert len(record.events) > len(told)
    assert record.deck_root
    assert record.sealed_deck
    assert record.engine_version
    assert record.rulebook_sha256 == bytes.fromhex(room.table.rulebook.sha256())  # type: ignore[union-attr]
    assert record.rake_schedule_id == "standard"
    setup, inputs = msgspec.msgpack.decode(record.inputs)
    assert setup[0] == [0, 1, 2, 3, 4, 5]
    assert len(inputs) > 10
    assert record.started.ToMilliseconds() <= record.ended.ToMilliseconds()
    assert all(player.at_showdown for player in record.players)
    assert told[-1].event[0] in EventKind.__members__.values()


async def test_events_of_older_hands_are_not_kept() -> None:
    room = FakeRoom(seed=12)
    await room.create()
    await room.seat("anna", "ben")
    starts = []
    for _ in range(4):
        starts.append(room.table.version + 1)
        await room.start_hand()
        await room.play_out()
    assert room.frames()[0][0] == starts[2]
