"""A service is away or wrong: nothing accepted is lost, nobody is folded, the hand goes on."""

from typing import Any

import grpc
import pytest
from doorcard.shuffler.v1 import shuffler_pb2
from doorcard.table.v1 import table_pb2

from services.game.hand import Deal, Rake, Showdown
from services.game.wants import ActionKind
from services.table.draft import clock
from services.table.state.state import TableStatus
from services.table.tables.tables import FAULTS_MAX
from tests.unit.table.rooms import FakeRoom, FakeService

AWAY = grpc.StatusCode.UNAVAILABLE
FAULT = grpc.StatusCode.INTERNAL


async def with_players(**fields: Any) -> FakeRoom:
    """A room whose table is about to deal."""
    room = FakeRoom(seed=6)
    await room.create(**fields)
    await room.seat("anna", "ben")
    return room


def clocks(room: FakeRoom, version: int = 0) -> list[tuple[bool, str]]:
    """What was told of the clock."""
    told = [event.clock for event in room.events(version=version) if event.HasField("clock")]
    return [(each.stopped, each.reason) for each in told]


async def ticks(room: FakeRoom, times: int) -> None:
    """The sweep finds the table due again and again."""
    for _ in range(times):
        room.pass_time()
        await room.tables.tick(room.table_id)


async def test_without_a_shuffler_the_hand_begins_later() -> None:
    room = await with_players()
    room.shuffler.failing = AWAY
    waits = []
    for _ in range(8):
        await ticks(room, 1)
        waits.append(room.store.deadlines[room.table_id] - room.store.ms)
    assert room.table.hand is None
    assert waits == [250, 500, 1000, 2000, 4000, 5000, 5000, 5000]
    assert clocks(room) == [(True, "waits for shuffler")]
    room.shuffler.failing = None
    await ticks(room, 1)
    assert room.table.hand is not None
    assert clocks(room)[-1] == (False, "")
    assert (room.table.blob.tries, room.table.blob.waits_for) == (0, "")


async def test_the_root_is_out_before_a_card_is_drawn() -> None:
    room = await with_players()
    drawn_at: list[int] = []
    draw = room.shuffler.on_Draw

    async def watched(request: shuffler_pb2.DrawRequest) -> shuffler_pb2.DrawResponse:
        drawn_at.append(room.store.tables[room.table_id].version)
        return await draw(request)

    room.shuffler.on_Draw = watched  # type: ignore[method-assign]
    before = room.table.version
    table = await room.start_hand()
    assert drawn_at == [before, before + 1]
    (version, frames), *_ = room.frames(before)
    assert version == before + 1
    events = room.events(version=before)
    assert events[0].HasField("hand_started")
    root = events[1].hand.deck_committed.root
    assert table.blob.hand is not None
    assert root == events[0].hand_started.deck_root == table.blob.hand.decks[0].root
    assert set(frames) == {""}


async def test_a_draw_that_fails_is_taken_up_by_any_replica_with_the_same_deck() -> None:
    room = await with_players()
    draw = room.shuffler.on_Draw
    calls = []

    async def fails_once(request: shuffler_pb2.DrawRequest) -> shuffler_pb2.DrawResponse:
        calls.append(request.sealed_deck)
        if len(calls) == 2:
            room.shuffler.failing = AWAY
            return await room.shuffler.Draw(request)  # type: ignore[no-any-return]
        return await draw(request)

    room.shuffler.on_Draw = fails_once  # type: ignore[method-assign]
    table = await room.start_hand()
    assert table.hand is not None
    assert isinstance(table.hand.want, Deal)
    assert clocks(room) == [(True, "waits for shuffler")]
    room.shuffler.failing = None
    other = room.replica("replica-2")
    room.pass_time()
    await other.tick(room.table_id)
    table = room.table
    assert table.hand is not None
    assert table.hand.street == 3
    assert calls[1] == calls[2]
    room.to_act()


async def test_an_action_is_taken_and_the_clock_stops_while_cards_cannot_be_drawn() -> None:
    room = await with_players()
    await room.start_hand()
    await room.act()
    room.shuffler.failing = AWAY
    version = await room.act()
    table = room.table
    assert table.version == version
    assert table.hand is not None
    assert isinstance(table.hand.want, Deal)
    assert not table.clock_runs
    assert clocks(room) == [(True, "waits for shuffler")]
    room.shuffler.failing = None
    await ticks(room, 1)
    assert room.table.clock_runs
    assert room.table.blob.due_ms == room.store.ms + 10_000
    await room.play_out()
    assert len(clocks(room)) == 2


@pytest.mark.parametrize("name", ["wallet", "showdown"])
@pytest.mark.parametrize("code", [AWAY, grpc.StatusCode.DEADLINE_EXCEEDED])
async def test_the_end_of_a_hand_waits_for_rake_and_showdown(
    name: str, code: grpc.StatusCode
) -> None:
    room = await with_players(rake_schedule_id="standard")
    await room.start_hand()
    service: FakeService = getattr(room, name)
    service.failing = code
    actions = 0
    while room.table.clock_runs:
        await room.act()
        actions += 1
    table = room.table
    assert table.hand is not None
    assert isinstance(table.hand.want, Rake | Showdown)
    assert sum(amount for _, _, amount in table.money()) == 400
    await ticks(room, 3)
    service.failing = None
    await ticks(room, 1)
    assert room.table.hand is None
    assert len([e for e in room.store.outbox if e.ledger.HasField("hand")]) == 1


async def test_after_ten_minutes_the_table_is_paused_until_an_operator_resumes_it() -> None:
    room = await with_players()
    room.shuffler.failing = AWAY
    times = 0
    while room.table.blob.status is TableStatus.OPEN:
        await ticks(room, 1)
        times += 1
        assert times < 200
    assert room.store.ms - room.table.blob.waits_since_ms > clock.GIVE_UP_AFTER_MS
    room.shuffler.failing = None
    await room.resume()
    await ticks(room, 1)
    assert room.table.hand is not None


async def test_five_ticks_that_fail_by_our_own_fault_pause_the_table() -> None:
    room = await with_players()
    room.shuffler.failing = FAULT
    await ticks(room, FAULTS_MAX - 1)
    assert not paused(room)
    await ticks(room, 1)
    assert paused(room)
    assert room.table.hand is None
    assert room.events()[-1].state_changed.reason


async def test_faults_are_counted_of_so_many_tables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.table.tables.tables.FAULTY_MAX", 1)
    room = await with_players()
    room.shuffler.failing = FAULT
    await ticks(room, FAULTS_MAX - 1)
    await room.tables._count_fault("another table", ValueError())
    await ticks(room, 1)
    assert not paused(room)
    await ticks(room, FAULTS_MAX - 1)
    assert paused(room)


async def test_an_action_survives_a_fault_of_a_service_and_ticks_try_again() -> None:
    room = await with_players()
    await room.start_hand()
    await room.act()
    room.shuffler.failing = FAULT
    version = await room.act()
    assert room.table.version == version
    await ticks(room, 2)
    room.shuffler.failing = None
    await ticks(room, 1)
    assert room.table.clock_runs


async def test_an_answer_that_does_not_fit_is_not_taken() -> None:
    room = await with_players()
    await room.start_hand()
    await room.act()
    draw = room.shuffler.on_Draw

    async def wrong(request: shuffler_pb2.DrawRequest) -> shuffler_pb2.DrawResponse:
        answer = await draw(request)
        answer.cards[0].position += 1
        return answer

    room.shuffler.on_Draw = wrong  # type: ignore[method-assign]
    await room.act()
    assert room.table.blob.waits_for == "shuffler"
    room.shuffler.on_Draw = draw  # type: ignore[method-assign]
    await ticks(room, 1)
    assert room.table.clock_runs


async def test_a_scripted_deck_is_for_play_money_only() -> None:
    for currency, dealt in (("XTS", True), ("EUR", False)):
        room = await with_players(currency=currency)
        room.shuffler.source = shuffler_pb2.DECK_SOURCE_SCRIPTED
        await ticks(room, 1)
        assert (room.table.hand is not None) == dealt


async def test_no_hand_begins_while_the_ledger_is_behind() -> None:
    room = await with_players()
    room.store.undrained_ms = 60_001
    await ticks(room, 2)
    assert room.table.hand is None
    room.store.undrained_ms = 0
    await ticks(room, 1)
    assert room.table.hand is not None


async def test_a_reshuffle_is_committed_and_out_before_a_card_of_it_is_dealt() -> None:
    room = FakeRoom(seed=9)
    await room.create(rulebook="triopoker", stake_name="1/2", seats=8)
    players = [f"player-{n}" for n in range(8)]
    await room.seat(*players, buy_in=room.table.stake.buy_in_min)
    await room.start_hand()
    # 8-8-8-6-6: three left in the stub and three burned, for six players.
    folds = 0
    while room.table.hand is not None:
        _, want, _ = room.to_act()
        street = room.table.hand.street
        if street == 6 and folds < 2 and want.legal.fold:
            folds += 1
            await room.act(ActionKind.FOLD)
        else:
            await room.act()
    record = room.store.outbox[-1].hand
    decks = [e.deck_committed for e in record.events if e.HasField("deck_committed")]
    assert [deck.reshuffled for deck in decks] == [False, True]
    assert "Reshuffle" in room.shuffler.calls
    updates = [
        frame.update
        for _, frames in room.frames()
        for frame in table_pb2.PlayResponse.FromString(frames.get("", b"")).frames
    ]
    (new_deck,) = [u.version for u in updates for e in u.events if reshuffled(e)]
    dealt = [u.version for u in updates for e in u.events if e.hand.HasField("dealt")]
    assert dealt[-1] == new_deck + 1


def paused(room: FakeRoom) -> bool:
    """Whether the table is paused."""
    return room.table.blob.status is TableStatus.PAUSED


def reshuffled(event: table_pb2.TableEvent) -> bool:
    """Whether the root of a reshuffled deck was told."""
    return event.hand.HasField("deck_committed") and event.hand.deck_committed.reshuffled
