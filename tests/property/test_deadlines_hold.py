"""Whatever players, connections, replicas and operators do: nobody is out of time before the end of
what he was told he has, and nobody has more than the house gives.
"""

import random
from contextlib import suppress
from dataclasses import dataclass

import pytest
from doorcard.table.v1 import table_pb2

from services.game.hand import Act
from services.runtime.errors import FailedPrecondition
from services.table.state.state import Table
from services.table.state.turn_times import GRACE_MS, OVERDUE_MS, RENEWALS_MAX, times_of
from tests.unit.table.rooms import FakeRoom

PLAYERS = ("anna", "ben", "carla")
STEPS = 250


@dataclass
class Decision:
    """What was told of one decision."""

    began_ms: int
    deadline_ms: int
    marks: int = 0
    """Countdown, time bank and new deadlines that were told."""
    resumed: int = 0


class Watcher:
    """Reads every event that the room tells and holds the room to it."""

    def __init__(self, room: FakeRoom) -> None:
        self.room = room
        self.seen = room.table.version
        self.decision: Decision | None = None
        self.asked: tuple[str, int] = ("", -1)
        self.hand_id = ""
        self.bank_left: dict[str, int] = {}

    def look(self) -> None:
        """See what is new."""
        for version, frames in self.room.frames(self.seen):
            for frame in table_pb2.PlayResponse.FromString(frames[""]).frames:
                at_ms = frame.update.at.ToMilliseconds()
                for event in frame.update.events:
                    self.see(event, at_ms)
            self.seen = version
        self.check(self.room.table)

    def see(self, event: table_pb2.TableEvent, at_ms: int) -> None:
        """One event."""
        kind = event.WhichOneof("event")
        if kind == "hand_started":
            self.hand_id = event.hand_started.hand_id
        elif kind == "turn":
            self.turn(event.turn, at_ms)
        elif kind == "hand" and event.hand.HasField("timed_out"):
            assert self.decision is not None
            assert at_ms >= self.decision.deadline_ms + GRACE_MS
        elif kind == "seat_changed" and event.seat_changed.seat.HasField("time_bank"):
            seat = event.seat_changed.seat
            self.bank_left[seat.player_id] = seat.time_bank.ToMilliseconds()

    def turn(self, turn: table_pb2.Turn, at_ms: int) -> None:
        """Somebody is asked, or asked again."""
        deadline_ms = turn.deadline.ToMilliseconds()
        if not turn.HasField("deadline"):
            return
        asked = (self.hand_id, turn.turn)
        times = times_of(self.room.table)
        if self.decision is None or asked != self.asked:
            self.asked, self.decision = asked, Decision(at_ms, deadline_ms)
            assert not turn.renewed
            assert deadline_ms == at_ms + times.silent_ms + times.shown_ms
            return
        known = self.decision
        known.marks += 1
        bank_ms = 0
        if not turn.HasField("time_bank"):
            seat = self.room.table.blob.seats[turn.seat]
            bank_ms = times.bank_ms - seat.bank_used_ms
        known.resumed += turn.renewed == "resumed"
        # Whoever was told that he has until then has at least that.
        assert known.resumed or deadline_ms + bank_ms >= known.deadline_ms
        assert deadline_ms >= at_ms
        known.deadline_ms = deadline_ms

    def check(self, table: Table) -> None:
        """What is stored fits what was told."""
        times = times_of(table)
        for seat in table.blob.seats.values():
            assert 0 <= seat.bank_used_ms <= times.bank_ms
            if seat.player_id in self.bank_left:
                assert self.bank_left[seat.player_id] == times.bank_ms - seat.bank_used_ms
        running = table.blob.hand
        if running is None or not table.clock_runs or self.decision is None:
            return
        assert running.renewals <= RENEWALS_MAX
        assert table.blob.due_ms == self.decision.deadline_ms
        if not self.decision.resumed:
            longest_ms = (
                (RENEWALS_MAX + 1) * (times.silent_ms + times.shown_ms + times.bank_ms)
                + (RENEWALS_MAX + 2) * (times.reconnect_ms + OVERDUE_MS)
                + RENEWALS_MAX * 60_000
            )
            assert table.blob.due_ms - self.decision.began_ms <= longest_ms
            # One event for a mark: countdown and bank after every beginning, and nothing more.
            assert self.decision.marks <= 3 * (RENEWALS_MAX + 1) + 1


async def step(room: FakeRoom, rng: random.Random, other: int) -> None:
    """Anything that can happen to a clock."""
    table = room.table
    tables = room.replicas[other]
    what = rng.random()
    want = table.hand.want if table.hand is not None else None
    # Most of it concerns who is to act.
    player = table.blob.seats[want.seat].player_id if isinstance(want, Act) else "anna"
    if rng.random() < 0.2:
        player = rng.choice(PLAYERS)
    if what < 0.25 and isinstance(want, Act):
        room.tables = tables
        await room.act(*room.choose(want))
    elif what < 0.6:
        due_ms = room.store.deadlines.get(room.table_id)
        if due_ms is not None:
            late_ms = rng.choice((0, 0, 0, 0, 0, 0, 1, 99, OVERDUE_MS + 500))
            room.store.ms = max(room.store.ms, due_ms + late_ms - rng.choice((0, 0, 1, 5)))
        await tables.tick(room.table_id)
    elif what < 0.8:
        there = not tables.has_stream(room.table_id, player)
        tables.has_stream = lambda _table, _player: there
        await tables.connect(room.table_id, player)
    elif what < 0.88:
        room.store.ms += rng.randrange(12_000)
    elif what < 0.91:
        await tables.excuse(room.table_id, {player})
    elif what < 0.92:
        room.store.live = rng.choice((["replica-1", "replica-2"], ["replica-1"], ["replica-2"]))
    elif what < 0.93:
        await room.pause()
        room.store.ms += rng.randrange(30_000)
        await room.resume()
    if table.hand is None and rng.random() < 0.5:
        for each in PLAYERS:
            with suppress(FailedPrecondition):
                await room.tables.sit_back(room.table_id, each)


@pytest.mark.parametrize("rulebook", ["eight-or-better", "modern", "triopoker"])
@pytest.mark.parametrize("seed", range(3))
async def test_nobody_is_out_of_time_before_the_end_of_what_he_was_told(
    rulebook: str, seed: int
) -> None:
    room = FakeRoom(seed=seed)
    rng = random.Random(seed)
    await room.create(rulebook=rulebook, stake_name="1/2", action_ms=0)
    room.replica("replica-2")
    stake = room.table.stake
    await room.seat(*PLAYERS, buy_in=stake.buy_in_max or 20 * stake.buy_in_min)
    watcher = Watcher(room)
    for _ in range(STEPS):
        await step(room, rng, rng.randrange(2))
        watcher.look()
    assert watcher.asked[0]
