"""A table made anew from the ledger: what stays, what goes, and what holds no longer."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from services.runtime.errors import FailedPrecondition, Unavailable
from services.table.hands.hands import Order
from services.table.shards.rebuilding import PARKED, Losses, Posted, rebuild
from services.table.state.state import Blob, Held, Remembered, SeatStatus, Table, TableStatus
from services.table.store.stored import EPOCH_BITS, Stored
from tests.unit.table.rooms import FakeRoom, passive

NOW_MS = 1_800_000_000_000
NOTHING = Posted({}, (), ())


async def playing(*more: str) -> FakeRoom:
    room = FakeRoom(seed=4)
    await room.create()
    await room.seat("anna", "ben", "carla", *more)
    await room.start_hand()
    return room


def sittings(blob: Blob) -> dict[str, str]:
    return {seat.player_id: seat.sitting_id for seat in blob.seats.values()}


def made_anew(room: FakeRoom, posted: Posted) -> tuple[Table, Losses]:
    """The room's table as it is written then, checked."""
    table = room.table
    losses = rebuild(room.table_id, table.blob, posted, NOW_MS)
    anew = Table(room.table_id, None, table.blob)
    anew.check()
    return anew, losses


async def test_seats_have_what_the_ledger_has_and_the_hand_is_void() -> None:
    room = await playing()
    await room.act()
    running = room.table.blob.hand
    assert running is not None
    ids = sittings(room.table.blob)
    table, losses = made_anew(room, replace(NOTHING, escrow={ids["anna"]: 230, ids["ben"]: 170}))
    assert losses == Losses(running.hand_id, kept=2, freed=1)
    assert {seat.player_id: (seat.stack, seat.brought) for seat in table.blob.seats.values()} == {
        "anna": (230, 230),
        "ben": (170, 170),
    }
    assert (table.blob.hand, table.hand) == (None, None)
    assert table.blob.rebuilt is not None
    assert (table.blob.rebuilt.at_ms, table.blob.rebuilt.hand_id) == (NOW_MS, running.hand_id)
    assert table.blob.due_ms == NOW_MS + table.blob.config.hand_pause_ms
    assert not any(seat.recent for seat in table.blob.seats.values())


async def test_who_was_leaving_has_left_and_goes_without_his_escrow() -> None:
    room = await playing()
    await room.tables.leave(room.table_id, "anna")
    blob = room.table.blob
    assert any(seat.status is SeatStatus.LEAVING for seat in blob.seats.values())
    table, _ = made_anew(room, replace(NOTHING, escrow=dict.fromkeys(sittings(blob).values(), 200)))
    assert sorted(sittings(table.blob)) == ["ben", "carla"]


async def test_a_table_with_parked_entries_stays_paused() -> None:
    room = await playing()
    escrow = dict.fromkeys(sittings(room.table.blob).values(), 200)
    table, _ = made_anew(room, Posted(escrow, (), {room.table_id}))
    assert (table.blob.status, table.blob.pause_reason) == (TableStatus.PAUSED, PARKED)
    assert table.blob.due_ms == 0
    assert len(table.blob.seats) == 3


async def test_a_table_that_was_to_close_after_the_hand_is_closed() -> None:
    room = await playing()
    table = room.table
    table.blob.after_hand = TableStatus.CLOSING
    escrow = dict.fromkeys(sittings(table.blob).values(), 200)
    losses = rebuild(room.table_id, table.blob, replace(NOTHING, escrow=escrow), NOW_MS)
    assert table.state is TableStatus.CLOSED
    assert table.blob.closed_ms == NOW_MS
    assert (losses.kept, losses.freed) == (0, 3)


async def test_chips_that_wait_for_the_deal_stay_only_while_their_reservation_is_pending() -> None:
    room = await playing()
    table = room.table
    held = {"anna": uuid4(), "ben": uuid4()}
    for seat in table.blob.seats.values():
        if seat.player_id in held:
            seat.held = Held(held[seat.player_id].bytes, 50)
    escrow = dict.fromkeys(sittings(table.blob).values(), 100)
    rebuild(room.table_id, table.blob, Posted(escrow, {str(held["anna"])}, ()), NOW_MS)
    waits = {seat.player_id: seat.held for seat in table.blob.seats.values()}
    assert waits == {"anna": Held(held["anna"].bytes, 50), "ben": None, "carla": None}


async def test_refused_reservations_are_forgotten_with_the_entries_that_gave_them_back() -> None:
    room = await playing()
    table = room.table
    table.blob.remembered[uuid4().bytes] = Remembered(1, seated=False)
    rebuild(room.table_id, table.blob, NOTHING, NOW_MS)
    assert table.blob.remembered == {}


def reopen(room: FakeRoom, posted: Posted) -> None:
    """The room's shard in its next epoch, its table made anew."""
    stored = room.store.tables[room.table_id]
    table = Table.load(room.table_id, stored)
    rebuild(room.table_id, table.blob, posted, room.store.ms)
    version = (2 << EPOCH_BITS) + 1
    room.store.tables[room.table_id] = Stored(version, b"newepoch", table.encode())
    room.store.events[room.table_id] = [(version, b"")]


async def test_money_asked_for_in_the_old_epoch_is_asked_for_again() -> None:
    room = await playing()
    escrow = dict.fromkeys(sittings(room.table.blob).values(), 200)

    async def reopened() -> None:
        room.wallet.after_reserve = None
        reopen(room, replace(NOTHING, escrow=escrow))

    room.wallet.after_reserve = reopened
    with pytest.raises(Unavailable) as caught:
        await room.take_seat("dora", "take-1")
    assert (caught.value.reason, caught.value.retriable) == ("SHARD_REBUILT", True)
    await room.take_seat("dora", "take-1")
    assert room.table.seat_of("dora") is not None


async def test_an_action_of_the_void_hand_is_not_remembered() -> None:
    room = await playing()
    player_id, want, hand_id = room.to_act()
    sent: dict[str, Any] = {
        "player_id": player_id,
        "request_id": "act-1",
        "hand_id": hand_id,
        "turn": want.turn,
        "kind": passive(want),
    }
    accepted = await room.act(**sent)
    assert await room.tables.act(room.table_id, Order(**sent, amount=0), 0.0) == accepted
    reopen(room, replace(NOTHING, escrow=dict.fromkeys(sittings(room.table.blob).values(), 200)))
    with pytest.raises(FailedPrecondition) as caught:
        await room.tables.act(room.table_id, Order(**sent, amount=0), 0.0)
    assert caught.value.reason == "STALE_TURN"
