"""The store's clock is set back or ahead: nobody waits for it, and nobody pays for it."""

from typing import cast

import grpc
import pytest

from services.runtime.clock import monotonic_s
from services.table.draft.clock import CLOCK_SET, RETRY_MAX_MS
from services.table.hands.options import Wish
from services.table.hands.set_back import FURTHER_MS
from services.table.state.state import Stage
from services.table.state.times import STANDARD
from services.table.state.turn_times import GRACE_MS
from services.table.store.clock_steps import STEP_MS, STEPS, ClockSteps
from services.table.store.heart import Sample
from services.table.store.store import Store
from services.table.tables.reviews import AGAIN_AFTER_S, FAR_MS, OVER_AFTER_S, Reviews
from tests.unit.table import test_countdowns_banks_and_protection
from tests.unit.table.rooms import FakeRoom
from tests.unit.table.test_clocks import playing, tick

BACK_MS = 20_000


def renewed(room: FakeRoom, version: int) -> list[str]:
    """Why the turns told after a version have another deadline."""
    return [event.turn.renewed for event in room.events(version=version) if event.HasField("turn")]


async def test_a_deadline_beyond_the_whole_clock_is_brought_back_to_a_full_new_one() -> None:
    room = await playing()
    room.store.ms -= BACK_MS
    before = room.table.version
    await tick(room)
    assert room.table.blob.due_ms == room.store.ms + 10_000
    assert room.store.deadlines[room.table_id] == room.store.ms + 10_000 + GRACE_MS
    assert renewed(room, before) == [CLOCK_SET]
    # Once, whoever looks again.
    before = room.table.version
    await tick(room)
    assert room.table.version == before


@pytest.mark.parametrize("within_ms", [0, FURTHER_MS])
async def test_a_deadline_within_the_whole_clock_stays_where_it_is(within_ms: int) -> None:
    room = await playing()
    room.store.ms -= within_ms
    version = room.table.version
    await tick(room)
    assert room.table.version == version


async def test_a_time_bank_that_would_last_longer_than_it_is_begins_anew_and_costs_nothing() -> (
    None
):
    room = await test_countdowns_banks_and_protection.playing("modern")
    player, _, _ = room.to_act()
    room.pass_time()
    await tick(room)
    running = room.table.blob.hand
    assert running is not None
    assert running.stage is Stage.BANK
    room.store.ms -= BACK_MS
    before = room.table.version
    await tick(room)
    assert room.table.blob.due_ms == room.store.ms + 15_000
    assert renewed(room, before) == [CLOCK_SET]
    assert room.seat_of(player).bank_used_ms == 0


async def test_the_next_hand_is_not_put_off_by_as_much() -> None:
    room = FakeRoom()
    await room.create(hand_pause_ms=700)
    await room.seat("anna", "ben")
    room.store.ms -= BACK_MS
    await tick(room)
    assert room.table.blob.due_ms == room.store.ms + 700
    room.store.ms += 700
    await tick(room)
    assert room.table.hand is not None


async def test_a_service_that_was_away_is_asked_at_once() -> None:
    room = await playing()
    room.shuffler.failing = grpc.StatusCode.UNAVAILABLE
    while not room.table.blob.waits_for:
        await room.act()
    assert room.table.blob.due_ms <= room.store.ms + RETRY_MAX_MS
    room.shuffler.failing = None
    room.store.ms -= BACK_MS
    await tick(room)
    assert not room.table.blob.waits_for
    assert room.table.clock_runs


async def test_antes_are_asked_for_again_with_another_time() -> None:
    room = FakeRoom(seed=4)
    await room.create(rulebook="triopoker", stake_name="0.10/0.20")
    await room.seat("anna", "ben", "carla", buy_in=200)
    await set_auto_ante(room, "anna")
    assert room.table.blob.asked_until_ms == room.store.ms + STANDARD.ante_ms
    room.store.ms -= BACK_MS
    before = room.table.version
    await tick(room)
    assert room.table.blob.asked_until_ms == room.store.ms + STANDARD.ante_ms
    asked = [each for each in room.events("anna", before) if each.HasField("ante_asked")]
    assert [each.ante_asked.until.ToMilliseconds() for each in asked] == [
        room.table.blob.asked_until_ms
    ]


async def set_auto_ante(room: FakeRoom, player_id: str) -> None:
    """He confirms each of his antes from now on."""
    wish = Wish(
        player_id=player_id,
        request_id=room.request_id(),
        auto_ante=False,
        show_beaten=False,
        sit_out_next=False,
        confirm_ante=False,
    )
    await room.tables.set_options(room.table_id, wish, monotonic_s())


async def test_offers_and_seats_that_are_kept_have_their_whole_time_and_no_more() -> None:
    room = FakeRoom()
    await room.create(seats=2)
    await room.seat("anna", "ben")
    await room.seating().join_waiting_list(room.table_id, "carla", "Carla")
    await room.tables.sit_out(room.table_id, "anna")
    await room.tables.leave(room.table_id, "ben")
    room.store.ms -= BACK_MS
    await tick(room)
    assert [each.until_ms for each in room.table.blob.waiting] == [
        # Within what a seat is kept for who comes from another table, which it is not told from.
        room.store.ms + BACK_MS + STANDARD.offer_ms
    ]
    assert room.seat_of("anna").freed_at_ms == room.store.ms + STANDARD.away_ms
    room.store.ms -= BACK_MS
    before = room.table.version
    await tick(room)
    until_ms = room.store.ms + STANDARD.move_ms
    assert [each.until_ms for each in room.table.blob.waiting] == [until_ms]
    told = [each for each in room.events("carla", before) if each.HasField("seat_offered")]
    assert [each.seat_offered.offer.until.ToMilliseconds() for each in told] == [until_ms]


# Ahead


@pytest.mark.parametrize("beyond_ms", [GRACE_MS, 1_000, 20_000])
async def test_who_lost_time_to_a_step_ahead_has_a_full_new_clock(beyond_ms: int) -> None:
    room = await playing()
    room.store.ms = room.table.blob.due_ms + beyond_ms
    room.store.ahead_seen_ms = room.store.ms
    before = room.table.version
    await tick(room)
    assert renewed(room, before) == [CLOCK_SET]
    assert room.table.blob.due_ms == room.store.ms + 10_000
    # Then he is out of time, as ever.
    room.pass_time()
    await tick(room)
    assert room.to_act()[1].turn == 1


async def test_a_decision_that_began_after_the_step_is_as_any_other() -> None:
    room = await playing()
    room.store.ahead_seen_ms = room.store.ms
    room.pass_time()
    await tick(room)
    assert room.to_act()[1].turn == 1


# What is noticed


class Clock:
    """A store of two shards, its clock as it is read, and what waits in it."""

    shards = 2

    def __init__(self) -> None:
        self.sample: Sample | None = Sample(200, 5_000_000_000)
        self.clock_steps = ClockSteps(self.shards, lambda _: self.sample)
        self.asked: list[tuple[int, int]] = []

    def set(self, by_ms: int, took_us: int = 200) -> None:
        """The clock is set, and compared again."""
        assert self.sample is not None
        self.sample = Sample(took_us, self.sample.offset_us + by_ms * 1000)
        self.clock_steps.look()

    async def waiting(self, shard: int, beyond_ms: int) -> list[str]:
        self.asked.append((shard, beyond_ms))
        return [f"table {shard} {number}" for number in range(100)]


def counted() -> tuple[float, float]:
    """Steps seen: (back, ahead)."""
    return STEPS.labels("back")._value.get(), STEPS.labels("ahead")._value.get()


@pytest.mark.parametrize(
    ("by_ms", "took_us", "seen"),
    [
        (-BACK_MS, 200, (1, 0)),
        (BACK_MS, 200, (0, 1)),
        (-STEP_MS // 2, 200, (0, 0)),
        (STEP_MS // 2, 200, (0, 0)),
        # The comparison itself may be off by as much.
        (-2 * STEP_MS, 2_200_000, (0, 0)),
        (-2 * STEP_MS, 1_000_000, (1, 0)),
    ],
)
def test_a_step_is_told_from_what_a_comparison_may_be_wrong_by(
    by_ms: int, took_us: int, seen: tuple[int, int]
) -> None:
    store, before = Clock(), counted()
    store.clock_steps.look()
    assert counted() == before
    store.set(by_ms, took_us)
    assert counted() == (before[0] + seen[0], before[1] + seen[1])
    assert bool(store.clock_steps.ahead_ms) == bool(seen[1])
    # Compared again it is none.
    store.set(0)
    assert counted() == (before[0] + seen[0], before[1] + seen[1])


async def test_a_new_shard_is_reviewed_for_what_is_far_and_after_each_step_back_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 1000.0
    for module in ("store.clock_steps", "tables.reviews"):
        monkeypatch.setattr(f"services.table.{module}.monotonic_s", lambda: now_s)
    store = Clock()
    ticked: list[str] = []

    async def tick_of(table_id: str) -> None:
        ticked.append(table_id)

    reviews = Reviews(cast(Store, store), tick_of, owns=lambda shard: shard == 1)
    await reviews.once()
    assert not store.asked, "nothing is known of the clock"
    store.clock_steps.look()
    for _ in range(3):
        await reviews.once()
        now_s += OVER_AFTER_S
    far = [(1, FAR_MS)]
    assert store.asked == far
    for began in range(2):
        store.set(BACK_MS)
        await reviews.once()
        assert store.asked == far + [(1, 0)] * (began * len(AGAIN_AFTER_S)), "ahead is not back"
        store.set(-BACK_MS)
        seen_s = now_s
        for again in range(1, len(AGAIN_AFTER_S) + 1):
            now_s = seen_s + AGAIN_AFTER_S[again - 1]
            for _ in range(3):
                await reviews.once()
            assert store.asked == far + [(1, 0)] * (began * len(AGAIN_AFTER_S) + again)
        assert len(ticked) == 100 * len(store.asked)
        now_s += OVER_AFTER_S
