"""What operators do with a table: the hand goes on as the rules say, everything is on record."""

import pytest
from doorcard.history.v1 import history_pb2
from doorcard.table.v1 import table_pb2
from google.protobuf.message import Message

from services.game.cards import card_name
from services.game.events import EventKind
from services.runtime.errors import Aborted, AlreadyExists, FailedPrecondition, Unavailable
from services.table.hands.under_way import WITHIN_MS
from services.table.operators import inspection
from services.table.state import views
from services.table.state.state import SeatStatus, TableStatus
from services.table.store.stored import Commit
from services.table.tables.tables import CONFLICTS_MAX, OURS_MADE_MAX
from tests.unit.table.rooms import FakeRoom

CLOSING = table_pb2.TABLE_STATE_CLOSING
MAINTENANCE = table_pb2.TABLE_STATE_MAINTENANCE


async def playing(*players: str) -> FakeRoom:
    """A hand is running."""
    room = FakeRoom()
    await room.create()
    await room.seat(*(players or ("anna", "ben")))
    await room.start_hand()
    return room


def records(room: FakeRoom) -> list[history_pb2.AuditRecord]:
    """What is on record, in order."""
    return [entry.audit for entry in room.store.outbox if entry.HasField("audit")]


def states(room: FakeRoom) -> list[int]:
    """The states that players were told."""
    told = [event.state_changed for event in room.events()]
    return [each.state for each in told if each.state]


async def test_a_table_without_a_hand_is_closed_at_once_and_everybody_has_his_money() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna", "ben")
    version, closed = await room.operators.close(room.table_id, room.by("close_table"))
    assert (version, closed) == (room.table.version, True)
    assert room.table.blob.status is TableStatus.CLOSED
    assert not room.table.blob.seats
    paid = [e.ledger.cash_out for e in room.store.outbox if e.ledger.HasField("cash_out")]
    assert [(each.player_id, each.amount) for each in paid] == [("anna", 200), ("ben", 200)]
    assert room.table_id not in room.store.deadlines


async def test_a_table_that_closes_finishes_its_hand_first_and_takes_nobody() -> None:
    room = await playing("anna", "ben", "carl")
    hand_id = room.to_act()[2]
    _, closed = await room.operators.close(room.table_id, room.by("close_table"))
    assert not closed
    assert views.view(room.table, "").state == CLOSING
    with pytest.raises(FailedPrecondition) as refused:
        await room.take_seat("dora")
    assert refused.value.reason == "TABLE_CLOSING"
    await room.play_out()
    assert room.table.blob.status is TableStatus.CLOSED
    kinds = [entry.ledger.WhichOneof("entry") for entry in room.store.outbox]
    settled = max(i for i, e in enumerate(room.store.outbox) if e.hand.hand_id == hand_id)
    assert kinds[settled:] == ["hand", "cash_out", "cash_out", "cash_out"]
    cashed = [e.ledger.cash_out.amount for e in room.store.outbox if e.ledger.HasField("cash_out")]
    rake = sum(entry.ledger.hand.rake for entry in room.store.outbox)
    assert sum(cashed) + rake == 600
    assert states(room) == [CLOSING, table_pb2.TABLE_STATE_CLOSED]


@pytest.mark.parametrize("lost", [CONFLICTS_MAX + 20, OURS_MADE_MAX])
async def test_players_who_are_quicker_again_and_again_do_not_keep_an_operator_out(
    monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    monkeypatch.setattr("services.table.tables.tables.OURS_PAUSE_S", 0.0)
    room = await playing()
    races = 0

    def quicker(_commit: Commit) -> None:
        nonlocal races
        races += 1
        room.write(lambda _table: None)
        if races < lost:
            room.store.before_commit = quicker

    room.store.before_commit = quicker
    if lost < OURS_MADE_MAX:
        await room.operators.close(room.table_id, room.by("close_table"))
        assert views.view(room.table, "").state == CLOSING
    else:
        with pytest.raises(Aborted) as refused:
            await room.operators.close(room.table_id, room.by("close_table"))
        assert refused.value.reason == "TABLE_BUSY"
    assert races == lost


async def test_a_player_who_loses_every_race_is_told_so_soon() -> None:
    room = await playing()
    races = 0

    def quicker(_commit: Commit) -> None:
        nonlocal races
        races += 1
        room.write(lambda _table: None)
        room.store.before_commit = quicker

    room.store.before_commit = quicker
    with pytest.raises(Aborted) as refused:
        await room.tables.sit_out(room.table_id, "anna")
    assert (refused.value.reason, races) == ("TABLE_BUSY", CONFLICTS_MAX)


async def test_nothing_is_done_to_a_table_that_is_closed() -> None:
    room = FakeRoom()
    await room.create()
    await room.operators.close(room.table_id, room.by("close_table"))
    assert (await room.operators.close(room.table_id, room.by("close_table")))[1]
    for call in (room.pause, room.resume):
        with pytest.raises(FailedPrecondition) as refused:
            await call()
        assert refused.value.reason == "TABLE_CLOSED"
    with pytest.raises(FailedPrecondition):
        await room.operators.rest(room.table_id, room.by("set_maintenance"))
    assert [each.action for each in records(room)] == ["close_table"]


async def test_maintenance_begins_after_the_hand_and_ends_with_resume() -> None:
    room = await playing()
    _, begun = await room.operators.rest(room.table_id, room.by("set_maintenance"))
    assert not begun
    await room.play_out()
    assert views.view(room.table, "").state == MAINTENANCE
    assert room.table_id not in room.store.deadlines
    with pytest.raises(FailedPrecondition) as refused:
        await room.take_seat("dora")
    assert refused.value.reason == "TABLE_IN_MAINTENANCE"
    assert len(room.table.blob.seats) == 2
    await room.resume()
    assert views.view(room.table, "").state == table_pb2.TABLE_STATE_OPEN
    assert (await room.start_hand()).hand is not None


async def test_a_table_that_closes_can_be_paused_and_voided_and_is_closed_then() -> None:
    room = await playing()
    await room.operators.close(room.table_id, room.by("close_table"))
    await room.pause("look at it")
    assert views.view(room.table, "").state == table_pb2.TABLE_STATE_PAUSED
    await room.void()
    assert room.table.blob.status is TableStatus.CLOSED
    cashed = [e.ledger.cash_out.amount for e in room.store.outbox if e.ledger.HasField("cash_out")]
    assert cashed == [200, 200]


async def test_a_hand_is_voided_by_its_id_only() -> None:
    room = await playing()
    by = room.by("void_hand")
    with pytest.raises(FailedPrecondition) as refused:
        await room.operators.void(room.table_id, "00000000-0000-7000-8000-000000000000", by)
    assert refused.value.reason == "STALE_HAND"
    assert not records(room)
    hand_id = room.to_act()[2]
    version = await room.operators.void(room.table_id, hand_id, by)
    assert await room.operators.void(room.table_id, hand_id, by) == version
    assert [(each.action, each.reason) for each in records(room)] == [("void_hand", "why")]


async def test_a_removed_player_leaves_as_by_himself() -> None:
    room = await playing("anna", "ben", "carl")
    player_id, _, _ = room.to_act()
    by = room.by("remove_player")
    version, left = await room.operators.remove(room.table_id, player_id, by)
    assert not left
    number = room.table.seat_of(player_id)
    assert number is not None
    assert room.table.blob.seats[number].status is SeatStatus.LEAVING
    assert number in room.table.hand.folded if room.table.hand is not None else True
    again = await room.operators.remove(room.table_id, player_id, by)
    assert again[0] == version
    with pytest.raises(FailedPrecondition) as refused:
        await room.operators.remove(room.table_id, "nobody", room.by("remove_player"))
    assert refused.value.reason == "NOT_SEATED"


async def test_an_announcement_is_told_once_and_stays_in_the_view() -> None:
    room = FakeRoom()
    await room.create()
    by = room.by("announce")
    version = await room.operators.announce(room.table_id, "We close at ten.", by)
    assert await room.operators.announce(room.table_id, "We close at ten.", by) == version
    same = await room.operators.announce(room.table_id, "We close at ten.", room.by("announce"))
    assert same == version
    assert [e.announced.text for e in room.events() if e.HasField("announced")] == [
        "We close at ten."
    ]
    assert views.view(room.table, "").announcement == "We close at ten."
    assert len(records(room)) == 1


async def test_a_late_repeat_of_a_request_does_not_undo_what_came_after_it() -> None:
    room = FakeRoom()
    await room.create()
    by = room.by("pause_table")
    paused = await room.operators.pause(room.table_id, by)
    await room.resume()
    assert await room.operators.pause(room.table_id, by) == paused
    assert room.table.blob.status is TableStatus.OPEN
    with pytest.raises(AlreadyExists):
        await room.operators.announce(
            room.table_id, "x", room.by("announce", request_id=by.request_id)
        )


async def test_the_record_says_who_did_what_why_and_what_it_changed() -> None:
    room = await playing()
    by = room.by("pause_table", "the ledger differs")
    await room.operators.pause(room.table_id, by)
    (record,) = records(room)
    assert (record.operator, list(record.roles), record.action) == (
        "olga",
        ["operator"],
        "pause_table",
    )
    assert (record.table_id, record.reason, record.request_id) == (
        room.table_id,
        "the ledger differs",
        by.request_id,
    )
    changes = {each.field: (each.before, each.after) for each in record.changes}
    assert changes == {"state": ("OPEN", "PAUSED"), "reason": ("", "the ledger differs")}


async def test_effect_and_record_are_one_commit_also_after_a_lost_race() -> None:
    room = FakeRoom()
    await room.create()
    other = room.replica("replica-2")
    await room.tables.read(room.table_id)
    await room.take_seat("anna")
    room.tables = other
    await room.take_seat("ben")
    await room.pause("why")
    committed = [commit for commit in room.store.commits if commit.outbox]
    assert len(records(room)) == 1
    last = committed[-1]
    assert len(last.outbox) == 1
    assert room.store.outbox[-1].audit.record_id == records(room)[0].record_id


async def test_a_commit_that_fails_leaves_neither_effect_nor_record() -> None:
    room = FakeRoom()
    await room.create()
    room.store.closed = "TEST"
    with pytest.raises(Unavailable):
        await room.pause()
    room.store.closed = ""
    assert room.table.blob.status is TableStatus.OPEN
    assert not records(room)


def texts_of(message: Message) -> set[str]:
    """Every text in a message, at any depth."""
    found: set[str] = set()
    for field, value in message.ListFields():
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Message):
                found |= texts_of(each)
            elif isinstance(each, str):
                found.add(each)
    return found


async def test_no_inspection_and_no_record_holds_a_hidden_card() -> None:
    for seed in range(12):
        room = FakeRoom(seed)
        await room.create()
        await room.seat("anna", "ben", "carl")
        await room.start_hand()
        while (table := room.table).hand is not None:
            hand = table.hand
            public = views.view(table, views.PUBLIC)
            shown = inspection.inspect(table, 0, 0)
            assert shown.table == public
            hidden = {
                card_name(event[2])
                for event, _ in table.played
                if event[0] == EventKind.DEALT and not event[3]
            } - {name for seat in public.hand.seats for name in seat.down_cards}
            assert hidden, f"seed {seed}"
            assert hidden.isdisjoint(texts_of(shown)), f"seed {seed}"
            shown.ClearField("table")
            text = shown.SerializeToString()
            for deck in table.blob.hand.decks if table.blob.hand is not None else ():
                assert deck.sealed not in text
            assert all(not seat.down_cards for seat in public.hand.seats), f"seed {seed}"
            assert hand.seats
            try:
                _, want, _ = room.to_act()
            except AssertionError:
                break
            kind, amount = room.choose(want)
            await room.act(kind, amount)
            await room.operators.announce(room.table_id, f"turn {want.turn}", room.by("announce"))
        for record in records(room):
            assert {each.field for each in record.changes} <= {"announcement"}, f"seed {seed}"


async def test_inspection_says_what_the_table_waits_for() -> None:
    room = await playing()
    await room.operators.close(room.table_id, room.by("close_table", "the night is over"))
    shown = inspection.inspect(room.table, 3, 1500)
    assert (shown.shard, shown.undrained_ms, shown.after_hand) == (3, 1500, CLOSING)
    assert shown.reason == "the night is over"
    assert [seat.player_id for seat in shown.seats] == ["anna", "ben"]
    assert shown.HasField("due")


async def test_the_newest_requests_only_are_remembered() -> None:
    room = FakeRoom()
    await room.create()
    for n in range(12):
        await room.operators.announce(room.table_id, str(n), room.by("announce"))
    assert len(room.table.blob.commanded) == 4
    assert len(records(room)) == 12
    assert len({each.record_id for each in records(room)}) == 12


async def test_a_table_that_is_broken_up_is_on_record_before_anybody_is_moved() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna", "ben")
    by = room.by("break_table")
    await room.operators.begin_moving(room.table_id, by)
    assert len(room.table.blob.seats) == 2
    assert views.view(room.table, "").state == CLOSING
    assert room.store.deadlines[room.table_id] == room.store.ms + WITHIN_MS
    assert [each.action for each in records(room)] == ["break_table"]
    await room.operators.begin_moving(room.table_id, by)
    assert (await room.operators.close(room.table_id, by))[1]
    assert room.table_id not in room.store.deadlines
    assert [len(each.changes) > 0 for each in records(room)] == [True, True]
