"""The rulebook's clocks to the millisecond: countdown, reconnection, time bank, protection."""

import asyncio
from datetime import datetime
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from doorcard.table.v1 import table_pb2

from services.game.events import EventKind
from services.game.wants import ActionKind
from services.runtime.clock import monotonic_s
from services.table.draft.clock import BANKS, DEPLOY, OUTAGE, RECONNECTED, RENEWED, RESUMED
from services.table.hands.hands import TIMEOUTS, Order
from services.table.hands.options import CALL_ANY, Wish
from services.table.state import views
from services.table.state.state import RunningHand, Seat, SeatStatus, Stage
from services.table.state.turn_times import GRACE_MS, OVERDUE_MS, RENEWALS_MAX
from services.table.store.allowances import Use
from tests.unit.table.rooms import FakeRoom, passive

BY_MS = 50
"""Real time between an action's arrival and its commit in these tests is less."""


async def playing(rulebook: str, *players: str, **fields: Any) -> FakeRoom:
    """A room with a hand on third street, under the rulebook's own clock."""
    room = FakeRoom(seed=4)
    await room.create(rulebook=rulebook, stake_name="1/2", action_ms=0, **fields)
    await room.seat(*players or ("anna", "ben"), buy_in=room.table.stake.buy_in_min)
    await room.start_hand()
    return room


async def tick(room: FakeRoom, at_ms: int) -> int:
    """The sweep looks at a time; the table's version before."""
    version = room.table.version
    room.store.ms = at_ms
    await room.tables.tick(room.table_id)
    return version


def running(room: FakeRoom) -> RunningHand:
    """The running hand as it is stored."""
    hand = room.table.blob.hand
    assert hand is not None
    return hand


def seat_of(room: FakeRoom, player_id: str) -> Seat:
    """The player's seat as it is stored."""
    number = room.table.seat_of(player_id)
    assert number is not None
    return room.table.blob.seats[number]


def turns(room: FakeRoom, after: int) -> list[table_pb2.Turn]:
    """What was told of turns after a version."""
    return [event.turn for event in room.events(version=after) if event.HasField("turn")]


def told(room: FakeRoom, after: int, kind: str) -> bool:
    """Whether something happened in the hand after a version."""
    return any(e.hand.WhichOneof("event") == kind for e in room.events(version=after))


async def disconnect(room: FakeRoom, player_id: str) -> None:
    """His last stream here closes."""
    room.tables.has_stream = lambda _table, _player: False
    await room.tables.connect(room.table_id, player_id)


def deadlines(room: FakeRoom) -> int:
    """When the sweep looks next."""
    return room.store.deadlines[room.table_id]


@pytest.mark.parametrize("rulebook", ["triopoker", "eight-or-better", "modern", "interpoker"])
async def test_every_event_that_asks_for_an_action_has_its_deadline(rulebook: str) -> None:
    room = await playing(rulebook, "anna", "ben", "carla")
    for hand in range(6):
        seen = room.table.version
        while room.table.hand is not None:
            _, want, _ = room.to_act()
            if room.rng.random() < 0.2:
                await tick(room, deadlines(room))
            else:
                room.store.ms += 3_600
                await room.act(*room.choose(want))
            if room.table.clock_runs:
                last = turns(room, seen)[-1]
                assert last == snapshot(room).hand.turn, hand
                assert last.deadline.ToMilliseconds() == room.table.blob.due_ms > room.store.ms
        assert all(turn.HasField("deadline") for turn in turns(room, seen))
        for player in ("anna", "ben", "carla"):
            await room.tables.sit_back(room.table_id, player)
        if len(room.table.ready()) < 2:
            break
        await room.start_hand()


# Countdown and reconnection


async def test_a_turn_is_silent_then_shown_then_over() -> None:
    room = await playing("eight-or-better")
    began_ms = room.store.ms
    (turn,) = turns(room, room.table.version - 1)
    assert turn.deadline.ToMilliseconds() == began_ms + 30_000
    assert turn.countdown_from.ToMilliseconds() == began_ms + 10_000
    assert not turn.renewed
    assert not turn.HasField("time_bank")
    assert deadlines(room) == began_ms + 10_000

    before = await tick(room, began_ms + 9_999)
    assert room.table.version == before
    before = await tick(room, began_ms + 10_000)
    (shown,) = turns(room, before)
    assert shown == turn
    assert running(room).stage is Stage.SHOWN
    # One tick for one mark: the next is due with the deadline.
    assert deadlines(room) == began_ms + 30_000 + GRACE_MS
    before = await tick(room, began_ms + 30_000 + GRACE_MS - 1)
    assert room.table.version == before
    before = await tick(room, began_ms + 30_000 + GRACE_MS)
    assert told(room, before, "timed_out")


async def test_a_house_without_a_countdown_or_bank_has_no_tick_before_the_deadline() -> None:
    room = await playing("triopoker")
    assert deadlines(room) == room.store.ms + 10_000 + GRACE_MS
    (turn,) = turns(room, room.table.version - 1)
    assert not turn.HasField("countdown_from")
    assert not any(seat.HasField("time_bank") for seat in snapshot(room).seats)


async def test_the_operators_own_time_stands_for_the_whole_clock() -> None:
    for rulebook in ("eight-or-better", "modern"):
        room = FakeRoom(seed=4)
        await room.create(rulebook=rulebook, stake_name="1/2", action_ms=7_000)
        await room.seat("anna", "ben", buy_in=room.table.stake.buy_in_min)
        await room.start_hand()
        assert deadlines(room) == room.store.ms + 7_000 + GRACE_MS
        before = await tick(room, deadlines(room))
        assert told(room, before, "timed_out")


@pytest.mark.parametrize("back_ms", [10_001, 29_999, 30_000, 30_000 + GRACE_MS - 1])
async def test_a_connection_lost_in_the_countdown_and_back_in_time_has_its_time_anew_once(
    back_ms: int,
) -> None:
    room = await playing("eight-or-better")
    began_ms = room.store.ms
    player, want, _ = room.to_act()
    await room.connect(player)
    await tick(room, began_ms + 10_000)
    await disconnect(room, player)
    assert not seat_of(room, player).connection
    room.store.ms = began_ms + back_ms
    before = room.table.version
    await room.connect(player)
    (turn,) = turns(room, before)
    assert (turn.turn, turn.renewed) == (want.turn, RECONNECTED)
    assert turn.deadline.ToMilliseconds() == room.store.ms + 20_000
    assert turn.countdown_from.ToMilliseconds() == room.store.ms
    assert deadlines(room) == room.store.ms + 20_000 + GRACE_MS
    # Once for a decision.
    room.store.ms += 1_000
    await disconnect(room, player)
    room.store.ms += 1_000
    before = room.table.version
    await room.connect(player)
    assert not turns(room, before)
    before = await tick(room, room.table.blob.due_ms + GRACE_MS)
    assert told(room, before, "timed_out")


async def test_the_next_decision_may_be_lost_and_found_again() -> None:
    room = await playing("eight-or-better", "anna", "ben")
    for _ in range(3):
        player, _, _ = room.to_act()
        began_ms = room.store.ms
        await room.connect(player)
        room.store.ms = began_ms + 15_000
        await disconnect(room, player)
        room.store.ms += 5_000
        before = room.table.version
        await room.connect(player)
        assert [turn.renewed for turn in turns(room, before)] == [RECONNECTED]
        await room.act()
        assert running(room).renewed == ""


@pytest.mark.parametrize(
    ("lost_ms", "back_ms"), [(9_999, 15_000), (1_000, 2_000), (15_000, 30_000 + GRACE_MS)]
)
async def test_a_connection_lost_in_silence_or_back_too_late_gives_no_time(
    lost_ms: int, back_ms: int
) -> None:
    room = await playing("eight-or-better")
    began_ms = room.store.ms
    player, _, _ = room.to_act()
    await room.connect(player)
    room.store.ms = began_ms + lost_ms
    await disconnect(room, player)
    room.store.ms = began_ms + back_ms
    before = room.table.version
    await room.connect(player)
    assert not turns(room, before)
    assert room.table.blob.due_ms == began_ms + 30_000


async def test_another_players_connection_changes_nobodys_time() -> None:
    room = await playing("eight-or-better")
    player, _, _ = room.to_act()
    other = "ben" if player == "anna" else "anna"
    await room.connect(other)
    due_ms = room.table.blob.due_ms
    room.store.ms += 15_000
    await disconnect(room, other)
    room.store.ms += 1_000
    await room.connect(other)
    assert room.table.blob.due_ms == due_ms
    assert not running(room).lost


async def test_a_warning_that_comes_late_takes_nothing_from_the_player() -> None:
    room = await playing("eight-or-better")
    began_ms = room.store.ms
    before = await tick(room, began_ms + 30_000 + GRACE_MS - 1)
    assert not told(room, before, "timed_out")
    assert len(turns(room, before)) == 1
    before = await tick(room, began_ms + 30_000 + GRACE_MS)
    assert told(room, before, "timed_out")


# The time bank


async def test_when_the_ordinary_time_is_over_the_bank_begins_and_then_he_is_out() -> None:
    room = await playing("modern")
    began_ms = room.store.ms
    player, want, _ = room.to_act()
    assert deadlines(room) == began_ms + 15_000
    begun = BANKS._value.get()
    before = await tick(room, began_ms + 15_000)
    (turn,) = turns(room, before)
    assert turn.turn == want.turn
    assert turn.time_bank.ToMilliseconds() == 60_000
    assert turn.deadline.ToMilliseconds() == began_ms + 75_000
    assert BANKS._value.get() == begun + 1
    assert deadlines(room) == began_ms + 75_000 + GRACE_MS
    assert snapshot(room).hand.turn == turn
    before = await tick(room, began_ms + 75_000 + GRACE_MS - 1)
    assert room.table.version == before
    before = await tick(room, began_ms + 75_000 + GRACE_MS)
    assert told(room, before, "timed_out")
    assert seat_of(room, player).bank_used_ms == 60_000
    left = [s.time_bank.ToMilliseconds() for s in snapshot(room).seats if s.player_id == player]
    assert left == [0]


async def test_what_a_decision_used_of_the_bank_is_taken_off_and_told() -> None:
    room = await playing("modern")
    player, _, _ = room.to_act()
    await tick(room, room.table.blob.due_ms)
    room.store.ms += 12_000
    before = room.table.version
    await room.act()
    used = seat_of(room, player).bank_used_ms
    assert 12_000 - BY_MS <= used <= 12_000
    seats = [e.seat_changed.seat for e in room.events(version=before) if e.HasField("seat_changed")]
    assert [(s.player_id, s.time_bank.ToMilliseconds()) for s in seats] == [(player, 60_000 - used)]
    # The next decision has its ordinary time, and the other player his whole bank.
    assert running(room).stage is Stage.SILENT
    assert room.table.blob.due_ms == room.store.ms + 15_000
    other, _, _ = room.to_act()
    assert seat_of(room, other).bank_used_ms == 0


async def test_an_action_chosen_in_the_bank_is_charged_like_any_other() -> None:
    room = await playing("modern")
    await room.act()
    player, _, hand_id = room.to_act()
    await tick(room, room.table.blob.due_ms)
    room.store.ms += 12_000
    wish = Wish(
        player,
        room.request_id(),
        auto_ante=True,
        show_beaten=False,
        sit_out_next=False,
        confirm_ante=False,
        kind=CALL_ANY,
        hand_id=hand_id,
        street=3,
    )
    await room.tables.set_options(room.table_id, wish, monotonic_s())
    assert 12_000 - BY_MS <= seat_of(room, player).bank_used_ms <= 12_000
    assert running(room).stage is Stage.SILENT


@pytest.mark.parametrize("late_ms", [0, GRACE_MS])
async def test_an_action_that_meets_the_beginning_of_the_bank_costs_nothing(late_ms: int) -> None:
    room = await playing("modern")
    player, _, _ = room.to_act()
    await tick(room, room.table.blob.due_ms)
    room.store.ms += late_ms
    await room.act()
    assert seat_of(room, player).bank_used_ms == 0


async def test_an_action_that_waits_goes_before_the_bank_begins() -> None:
    room = await playing("modern")
    player, want, hand_id = room.to_act()
    room.store.ms = room.table.blob.due_ms
    order = Order(player, "late", hand_id, want.turn, passive(want), 0)
    acting = room.tables.act(room.table_id, order, monotonic_s())
    await asyncio.gather(acting, room.tables.tick(room.table_id))
    assert seat_of(room, player).bank_used_ms == 0
    assert running(room).stage is Stage.SILENT


async def test_an_empty_bank_is_none() -> None:
    room = await playing("modern")
    player, _, _ = room.to_act()
    await room.connect(player)
    await tick(room, room.table.blob.due_ms)
    await tick(room, deadlines(room))
    while room.table.hand is not None:
        await room.act()
    await room.start_hand()
    while room.to_act()[0] != player:
        await room.act()
    assert deadlines(room) == room.table.blob.due_ms + GRACE_MS


async def test_after_some_hands_something_comes_back_but_never_more_than_there_was() -> None:
    room = await playing("modern")
    player, _, _ = room.to_act()
    other = "ben" if player == "anna" else "anna"
    await tick(room, room.table.blob.due_ms)
    room.store.ms += 8_000
    await room.act()
    used = seat_of(room, player).bank_used_ms
    for hand in range(2, 22):
        await room.play_out()
        before = room.table.version
        await room.start_hand()
        back = 5_000 * (hand // 10)
        assert seat_of(room, player).bank_used_ms == max(0, used - back), hand
        changed = [
            e.seat_changed.seat.player_id
            for e in room.events(version=before)
            if e.HasField("seat_changed")
        ]
        assert changed == ([player] if hand in (10, 20) else [])
        assert seat_of(room, other).bank_used_ms == 0


async def test_a_bank_that_we_begin_late_is_our_fault() -> None:
    room = await playing("modern")
    for renewal in range(RENEWALS_MAX):
        before = await tick(room, room.table.blob.due_ms + OVERDUE_MS + 1)
        assert [turn.renewed for turn in turns(room, before)] == [OUTAGE]
        assert running(room).renewals == renewal + 1
        assert room.table.blob.due_ms == room.store.ms + 15_000
    # Then the bank, and from when it is told.
    await tick(room, room.table.blob.due_ms + 60_000)
    assert running(room).stage is Stage.BANK
    assert room.table.blob.due_ms == room.store.ms + 60_000


async def test_our_fault_in_the_middle_of_a_bank_costs_none_of_it() -> None:
    room = await playing("modern")
    player, _, _ = room.to_act()
    await tick(room, room.table.blob.due_ms)
    room.store.ms += 30_000
    await room.tables.excuse(room.table_id, {player})
    assert running(room).renewed == DEPLOY
    assert running(room).stage is Stage.SILENT
    assert seat_of(room, player).bank_used_ms == 0
    await room.act()
    assert seat_of(room, player).bank_used_ms == 0


async def test_a_pause_in_the_middle_of_a_bank_costs_none_of_it() -> None:
    room = await playing("modern")
    player, _, _ = room.to_act()
    await tick(room, room.table.blob.due_ms)
    await room.pause()
    # The other has left by the time that it goes on, and the hand is over.
    await room.tables.leave(room.table_id, "ben" if player == "anna" else "anna")
    room.store.ms += 30_000
    await room.resume()
    assert room.table.hand is None
    assert seat_of(room, player).bank_used_ms == 0


async def test_who_leaves_while_another_uses_his_bank_takes_no_time_from_him() -> None:
    room = await playing("modern", "anna", "ben", "carla")
    player, _, _ = room.to_act()
    await tick(room, room.table.blob.due_ms)
    due_ms = room.table.blob.due_ms
    room.store.ms += 1_000
    leaver = next(each for each in ("anna", "ben", "carla") if each != player)
    await room.tables.leave(room.table_id, leaver)
    assert room.to_act()[0] == player
    assert running(room).stage is Stage.BANK
    assert room.table.blob.due_ms == due_ms


# What is given back


async def test_every_renewal_says_why_in_event_and_snapshot() -> None:
    room = await playing("triopoker")
    player, _, _ = room.to_act()
    counts = {why: RENEWED.labels(why)._value.get() for why in (DEPLOY, OUTAGE, RESUMED)}
    await room.connect(player, room.replica("replica-2"))
    room.store.live.remove("replica-2")
    before = await tick(room, room.table.blob.due_ms + GRACE_MS)
    assert [turn.renewed for turn in turns(room, before)] == [OUTAGE]
    before = room.table.version
    await room.tables.excuse(room.table_id, {player})
    assert [turn.renewed for turn in turns(room, before)] == [DEPLOY]
    assert snapshot(room).hand.turn.renewed == DEPLOY
    await room.pause()
    before = room.table.version
    await room.resume()
    assert [turn.renewed for turn in turns(room, before)] == [RESUMED]
    for why, count in counts.items():
        assert RENEWED.labels(why)._value.get() == count + 1


# Protection


async def invested(room: FakeRoom) -> str:
    """The bring-in's player is to act again, with more than the ante in; who he is."""
    player, _, _ = room.to_act()
    await room.act(ActionKind.BRING_IN)
    _, want, _ = room.to_act()
    await room.act(ActionKind.COMPLETE, want.legal.wagers[0])
    while room.to_act()[0] != player:
        await room.act()
    return player


async def out_of_time(room: FakeRoom) -> tuple[str, str]:
    """The next hand's bring-in player is out of time with more than the ante in: who, what came."""
    while room.table.hand is not None:
        await room.act()
    for player in ("anna", "ben", "carla"):
        await room.tables.sit_back(room.table_id, player)
    await room.start_hand()
    player = await invested(room)
    before = await tick(room, deadlines(room))
    for kind in ("protected", "folded", "checked"):
        if told(room, before, kind):
            return player, kind
    raise AssertionError("nothing came of it")


async def test_a_player_is_protected_so_often_a_day_and_then_checks_or_folds() -> None:
    room = await playing("triopoker", "anna", "ben", "carla")
    protected = TIMEOUTS.labels("protected")._value.get()
    outcomes: dict[str, list[str]] = {}
    for _ in range(20):
        player, came = await out_of_time(room)
        outcomes.setdefault(player, []).append(came)
        if len(outcomes[player]) > 5:
            break
    for each in outcomes.values():
        assert each == ["protected"] * min(4, len(each)) + ["folded"] * (len(each) - 4)
    total = sum(each.count("protected") for each in outcomes.values())
    assert TIMEOUTS.labels("protected")._value.get() == protected + total
    assert sum(map(len, room.store.allowances.used.values())) == total
    # The next day he is protected again.
    room.store.ms += 86_400_000
    while (await out_of_time(room))[1] != "protected":
        pass


async def test_the_day_is_that_of_the_rooms_zone() -> None:
    zone = ZoneInfo("Pacific/Kiritimati")
    room = FakeRoom(seed=4)
    room.tables._zone = zone
    await room.create(rulebook="triopoker", stake_name="1/2", action_ms=0)
    await room.seat("anna", "ben", "carla", buy_in=room.table.stake.buy_in_min)
    await room.start_hand()
    player = await invested(room)
    await tick(room, deadlines(room))
    day = datetime.fromtimestamp(room.store.ms / 1000, zone).date().isoformat()
    assert list(room.store.allowances.used) == [Use(player, day, "").key]


async def test_who_cannot_be_counted_is_protected() -> None:
    room = await playing("triopoker", "anna", "ben", "carla")
    room.store.allowances.away = True
    for _ in range(6):
        assert (await out_of_time(room))[1] == "protected"


async def test_a_protection_counts_once_and_not_where_he_acted_after_all() -> None:
    room = await playing("triopoker", "anna", "ben", "carla")
    player = await invested(room)
    _, want, hand_id = room.to_act()
    other = room.replica("replica-2")

    async def acts() -> None:
        order = Order(player, "just in time", hand_id, want.turn, ActionKind.CALL, 0)
        await other.act(room.table_id, order, monotonic_s())

    take = room.store.allowances.take

    async def take_while_he_acts(use: Use, per_day: int) -> bool:
        taken = await take(use, per_day)
        await acts()
        return taken

    room.store.allowances.take = take_while_he_acts  # type: ignore[method-assign]
    before = await tick(room, deadlines(room))
    assert not told(room, before, "timed_out")
    assert told(room, before, "called")
    assert not any(room.store.allowances.used.values())


async def test_nothing_is_counted_where_nothing_would_be_protected() -> None:
    room = await playing("triopoker", "anna", "ben", "carla")
    # The bring-in is posted for him; with the ante alone he is folded.
    await tick(room, deadlines(room))
    await tick(room, deadlines(room))
    assert [each.event[0] for each in room.table.played][-1] == EventKind.FOLDED
    assert not room.store.allowances.used


async def test_a_house_without_a_number_protects_without_counting() -> None:
    house = resources.files("services.game") / "rulebooks" / "triopoker.toml"
    toml = house.read_text().replace("protection_per_day = 4", "protection_per_day = 0")
    room = await playing("", "anna", "ben", "carla", rulebook_toml=toml)
    for _ in range(6):
        assert (await out_of_time(room))[1] == "protected"
    assert not room.store.allowances.used


async def test_with_nobody_there_the_hand_ends_and_the_table_falls_silent() -> None:
    room = await playing("eight-or-better", "anna", "ben", "carla")
    for _ in range(200):
        if room.table_id not in room.store.deadlines:
            break
        await tick(room, deadlines(room))
    assert room.table.hand is None
    assert room.table_id not in room.store.deadlines
    assert {s.status for s in room.table.blob.seats.values()} <= {
        SeatStatus.SITTING_OUT,
        SeatStatus.PLAYING,
    }
    assert len(room.table.ready()) < 2


def snapshot(room: FakeRoom) -> table_pb2.TableView:
    """The table as everybody sees it."""
    return views.view(room.table, views.PUBLIC)
