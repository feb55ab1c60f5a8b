"""Deadlines: who is out of time, when, and what our own delays may not cost a player."""

import asyncio
from itertools import pairwise

import pytest

from services.game.events import EventKind
from services.game.wants import ActionKind
from services.runtime.clock import monotonic_s
from services.runtime.errors import FailedPrecondition
from services.table.hands.hands import Order
from services.table.state.state import SeatStatus, Table, TableStatus
from services.table.state.turn_times import GRACE_MS, OVERDUE_MS, RENEWALS_MAX
from tests.unit.table.rooms import FakeRoom, passive


async def playing(rulebook: str = "club", stake_name: str = "5/10", buy_in: int = 200) -> FakeRoom:
    """A room with a hand of two on third street."""
    room = FakeRoom(seed=4)
    await room.create(rulebook=rulebook, stake_name=stake_name)
    await room.seat("anna", "ben", buy_in=buy_in)
    await room.start_hand()
    return room


def kinds(table: Table) -> list[int]:
    """Kinds of the events of the running hand."""
    return [each.event[0] for each in table.played]


async def tick(room: FakeRoom) -> None:
    """The sweep found the table due."""
    await room.tables.tick(room.table_id)


async def test_a_hand_begins_when_the_pause_is_over_and_not_before() -> None:
    room = FakeRoom()
    await room.create(hand_pause_ms=700)
    await room.seat("anna")
    assert room.table_id not in room.store.deadlines
    await room.seat("ben")
    assert room.store.deadlines[room.table_id] == room.store.ms + 700
    room.store.ms += 699
    await tick(room)
    assert room.table.hand is None
    room.store.ms += 1
    await tick(room)
    assert room.table.hand is not None


async def test_the_clock_of_a_turn_is_due_a_grace_after_its_deadline() -> None:
    room = await playing()
    assert room.table.blob.due_ms == room.store.ms + 10_000
    assert room.store.deadlines[room.table_id] == room.store.ms + 10_000 + GRACE_MS


async def test_a_time_out_waits_for_the_grace_and_then_brings_in() -> None:
    room = await playing()
    version = room.table.version
    room.store.ms = room.table.blob.due_ms + GRACE_MS - 1
    await tick(room)
    assert room.table.version == version
    room.store.ms += 1
    await tick(room)
    assert EventKind.BROUGHT_IN in kinds(room.table)
    assert EventKind.FOLDED not in kinds(room.table)
    assert room.store.commits[-1].not_before_ms == room.store.ms


async def test_who_is_out_of_time_checks_where_it_is_free_and_folds_where_it_is_not() -> None:
    room = await playing()
    await room.act()
    await room.act()
    assert room.table.hand is not None
    assert room.table.hand.street == 4
    room.pass_time()
    await tick(room)
    assert kinds(room.table)[-1] == EventKind.CHECKED
    await room.act(ActionKind.BET, 5)
    room.pass_time()
    await tick(room)
    assert room.table.hand is None
    assert len(room.store.outbox) == 3


async def test_an_action_that_waits_goes_before_the_time_out() -> None:
    room = await playing()
    player, want, hand_id = room.to_act()
    room.pass_time()
    order = Order(player, "late", hand_id, want.turn, passive(want), 0)
    acting = room.tables.act(room.table_id, order, monotonic_s())
    await asyncio.gather(acting, tick(room))
    assert EventKind.TIMED_OUT not in kinds(room.table)
    assert await acting == room.table.version


async def test_after_the_time_out_the_late_action_is_refused() -> None:
    room = await playing()
    player, want, hand_id = room.to_act()
    room.pass_time()
    await tick(room)
    order = Order(player, "late", hand_id, want.turn, passive(want), 0)
    with pytest.raises(FailedPrecondition) as caught:
        await room.tables.act(room.table_id, order, monotonic_s())
    assert caught.value.reason == "STALE_TURN"


async def test_the_timer_of_an_answered_turn_does_nothing() -> None:
    room = await playing()
    due = room.store.deadlines[room.table_id]
    await room.act()
    version = room.table.version
    room.store.ms = due - 1
    await tick(room)
    assert room.table.version == version


async def test_a_deadline_that_we_missed_by_far_gives_a_full_new_clock() -> None:
    room = await playing()
    for renewal in range(RENEWALS_MAX):
        room.store.ms = room.table.blob.due_ms + OVERDUE_MS + 1
        version = room.table.version
        await tick(room)
        assert room.table.blob.due_ms == room.store.ms + 10_000
        (turn,) = [e.turn for e in room.events(version=version) if e.HasField("turn")]
        assert turn.turn == 0
        assert turn.deadline.ToMilliseconds() == room.table.blob.due_ms
        assert room.table.blob.hand is not None
        assert room.table.blob.hand.renewals == renewal + 1
    # A room that is always late must not stop its tables for ever.
    room.store.ms = room.table.blob.due_ms + OVERDUE_MS + 1
    await tick(room)
    assert EventKind.TIMED_OUT in kinds(room.table)


async def test_who_is_away_sits_out_after_a_time_out_and_who_is_slow_does_not() -> None:
    room = await playing()
    player, _, _ = room.to_act()
    room.pass_time()
    await tick(room)
    seat = room.table.blob.seats[room.table.seat_of(player) or 0]
    assert seat.status is SeatStatus.SITTING_OUT
    slow, _, _ = room.to_act()
    await room.connect(slow)
    room.pass_time()
    await tick(room)
    seat = room.table.blob.seats[room.table.seat_of(slow) or 0]
    assert seat.status is SeatStatus.PLAYING


async def test_a_player_of_a_dead_replica_gets_one_new_clock_and_then_sits_out() -> None:
    room = await playing()
    player, want, _ = room.to_act()
    await room.connect(player, room.replica("replica-2"))
    room.store.live.remove("replica-2")
    room.pass_time()
    await tick(room)
    assert room.to_act()[1].turn == want.turn
    assert room.table.blob.due_ms == room.store.ms + room.table.blob.config.action_ms
    room.pass_time()
    await tick(room)
    seat = room.table.blob.seats[room.table.seat_of(player) or 0]
    assert seat.status is SeatStatus.SITTING_OUT


async def test_who_goes_just_before_his_time_is_over_has_no_new_clock() -> None:
    room = await playing()
    player, want, _ = room.to_act()
    await room.connect(player)
    room.pass_time()
    # His stream is closed, and the table has not been told yet.
    room.tables.has_stream = lambda _table, _player: False
    room.tables.is_telling = lambda table, who: (table, who) == (room.table_id, player)
    await tick(room)
    assert EventKind.TIMED_OUT in kinds(room.table)
    assert room.to_act()[1].turn != want.turn


async def test_a_protected_player_keeps_his_cards_and_sits_out() -> None:
    room = FakeRoom(seed=4)
    await room.create(rulebook="triopoker", stake_name="1/2")
    await room.seat("anna", "ben", "carla", buy_in=room.table.stake.buy_in_min)
    await room.start_hand()
    player, _, _ = room.to_act()
    await room.connect(player)
    await room.act(ActionKind.BRING_IN)
    await room.act(ActionKind.COMPLETE, 100)
    await room.act()
    assert room.to_act()[0] == player
    room.pass_time()
    await tick(room)
    assert EventKind.PROTECTED in kinds(room.table)
    number = room.table.seat_of(player) or 0
    assert room.table.blob.seats[number].status is SeatStatus.SITTING_OUT
    hand = room.table.hand
    assert hand is not None
    assert number in hand.all_in


async def test_a_paused_table_stands_still_and_goes_on_with_a_full_clock() -> None:
    room = await playing()
    room.store.ms += 9_000
    version = await room.pause("the ledger differs")
    assert await room.pause("again") == version
    assert room.table.blob.status is TableStatus.PAUSED
    assert room.table_id not in room.store.deadlines
    room.store.ms += 60_000
    await tick(room)
    assert room.table.version == version
    with pytest.raises(FailedPrecondition) as caught:
        await room.act()
    assert caught.value.reason == "TABLE_PAUSED"
    resumed = await room.resume()
    assert await room.resume() == resumed
    assert room.table.blob.due_ms == room.store.ms + 10_000
    await room.act()


async def test_a_paused_table_deals_no_new_hand() -> None:
    room = FakeRoom()
    await room.create()
    await room.pause("")
    await room.seat("anna", "ben")
    assert room.table_id not in room.store.deadlines
    await room.resume()
    assert room.store.deadlines[room.table_id] == room.store.ms + 500


async def test_who_leaves_a_paused_hand_leaves_it_when_it_goes_on() -> None:
    room = await playing()
    player, _, _ = room.to_act()
    await room.pause("")
    assert await room.tables.leave(room.table_id, player) == (room.table.version, False)
    assert room.table.hand is not None
    await room.resume()
    assert room.table.hand is None
    assert room.table.seat_of(player) is None


async def test_a_void_hand_gives_every_stake_back() -> None:
    room = await playing()
    await room.act()
    await room.act(ActionKind.COMPLETE, 5)
    await room.void("the deck was seen")
    assert [seat.stack for seat in room.table.blob.seats.values()] == [200, 200]
    entry, note = room.store.outbox[-2:]
    assert note.audit.action == "void_hand"
    assert entry.hand.void
    assert not entry.ledger.hand.nets
    assert not entry.ledger.hand.rake
    ended = [e.hand.ended for e in room.events() if e.hand.WhichOneof("event") == "ended"]
    assert len(ended) == 1
    assert ended[0].startswith("void")


async def test_the_button_moves_clockwise_past_who_is_not_dealt_in() -> None:
    room = FakeRoom(seed=8)
    await room.create()
    await room.seat("anna", "ben", "carla", "dan")
    buttons = []
    for hand in range(6):
        if hand == 3:
            await room.tables.sit_out(room.table_id, "carla")
        table = await room.start_hand()
        buttons.append(table.blob.button)
        await room.play_out()
    first = buttons[0]
    assert buttons[:3] == [(first + step) % 4 for step in range(3)]
    assert 2 not in buttons[3:]
    assert all((b - a) % 4 in (1, 2) for a, b in pairwise(buttons))


async def test_the_first_button_goes_to_the_highest_card_of_another_deck() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna", "ben", "carla")
    room.shuffler.stacked = [[4, 51, 50, *range(5, 50), 0, 1, 2, 3]]
    table = await room.start_hand()
    assert table.blob.button == 1
    assert room.shuffler.calls == ["CreateDeck", "Draw", "CreateDeck", "Draw"]
