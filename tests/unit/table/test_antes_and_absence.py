"""Who is in for the next hand, who misses it, and how long a seat is kept for him."""

import pytest

from services.runtime.errors import DoorcardError
from services.table.hands.antes import UNCONFIRMED_MAX
from services.table.hands.options import Wish
from services.table.state.state import SeatStatus, Table
from services.table.state.times import STANDARD, SeatTimes
from services.table.state.turn_times import GRACE_MS
from tests.unit.table.rooms import FakeRoom


async def seated(*players: str, rulebook: str = "triopoker", **fields: object) -> FakeRoom:
    """Players between hands; the next is due in half a second."""
    room = FakeRoom(seed=6)
    await room.create(rulebook=rulebook, stake_name="5/10", **fields)
    await room.seat(*players, buy_in=room.table.stake.buy_in_min)
    return room


async def wish(
    room: FakeRoom,
    player: str,
    *,
    auto_ante: bool | None = True,
    sit_out_next: bool = False,
    confirm: bool = False,
) -> None:
    """The player sets his options."""
    wished = Wish(
        player_id=player,
        request_id=room.request_id(),
        auto_ante=auto_ante,
        show_beaten=False,
        sit_out_next=sit_out_next,
        confirm_ante=confirm,
    )
    await room.tables.set_options(room.table_id, wished, 0.0)


def asked(room: FakeRoom, player: str, version: int = 0) -> list[int]:
    """Until when he was asked, each time."""
    return [
        each.ante_asked.until.ToMilliseconds()
        for each in room.events(player, version)
        if each.HasField("ante_asked")
    ]


def dealt_in(room: FakeRoom) -> set[str]:
    """Players of the running hand."""
    table = room.table
    assert table.blob.hand is not None
    return {table.blob.seats[number].player_id for number in table.blob.hand.seats}


async def deal(room: FakeRoom) -> None:
    """Let the time pass until a hand runs."""
    for _ in range(10):
        if room.table.hand is not None:
            return
        await room.pass_to(room.store.deadlines[room.table_id])
    raise AssertionError("no hand begins")


async def test_antes_are_posted_without_asking_as_long_as_nobody_wishes_it() -> None:
    room = await seated("anna", "ben", "carla")
    await room.start_hand()
    assert dealt_in(room) == {"anna", "ben", "carla"}
    assert not asked(room, "anna")
    assert (await room.tables.view(room.table_id, "anna")).own_options.auto_ante


async def test_who_is_asked_and_confirms_is_dealt_in_after_the_ordinary_pause() -> None:
    room = await seated("anna", "ben", "carla")
    began = room.store.ms
    await wish(room, "carla", auto_ante=False)
    assert asked(room, "carla") == [began + STANDARD.ante_ms]
    view = await room.tables.view(room.table_id, "carla")
    assert view.own_ante_until.ToMilliseconds() == began + STANDARD.ante_ms
    assert not (await room.tables.view(room.table_id, "ben")).HasField("own_ante_until")
    assert not asked(room, "anna")
    assert room.store.deadlines[room.table_id] == began + STANDARD.ante_ms + GRACE_MS
    await room.pass_to(began + 500)
    assert room.table.hand is None
    await wish(room, "carla", auto_ante=False, confirm=True)
    assert not (await room.tables.view(room.table_id, "carla")).HasField("own_ante_until")
    await room.pass_to(room.store.ms)
    assert dealt_in(room) == {"anna", "ben", "carla"}


async def test_who_does_not_confirm_in_time_misses_the_hand_and_is_asked_again() -> None:
    room = await seated("anna", "ben", "carla")
    await wish(room, "carla", auto_ante=False)
    until = asked(room, "carla")[-1]
    await room.pass_to(until + GRACE_MS - 1)
    assert room.table.hand is None
    await room.pass_to(until + GRACE_MS)
    assert dealt_in(room) == {"anna", "ben"}
    assert room.seat_of("carla").missed == 1
    assert room.seat_of("carla").status is SeatStatus.PLAYING
    await room.play_out()
    assert len(asked(room, "carla")) == 2
    await wish(room, "carla", auto_ante=False, confirm=True)
    await deal(room)
    assert dealt_in(room) == {"anna", "ben", "carla"}
    assert room.seat_of("carla").missed == 0


async def test_a_confirmation_is_for_one_hand_and_may_come_during_the_one_before() -> None:
    room = await seated("anna", "ben")
    await room.start_hand()
    await wish(room, "anna", auto_ante=False, confirm=True)
    await room.play_out()
    assert not asked(room, "anna")
    await deal(room)
    await room.play_out()
    assert len(asked(room, "anna")) == 1


async def test_who_never_confirms_sits_out_after_some_hands() -> None:
    room = await seated("anna", "ben", "carla")
    await wish(room, "carla", auto_ante=False)
    for missed in range(1, UNCONFIRMED_MAX + 1):
        await deal(room)
        assert room.seat_of("carla").missed == missed
        version = room.table.version
        await room.play_out()
        assert len(asked(room, "carla", version)) == (missed < UNCONFIRMED_MAX)
    assert room.seat_of("carla").status is SeatStatus.SITTING_OUT
    # "I am back" is "I am in".
    await room.tables.sit_back(room.table_id, "carla")
    await deal(room)
    assert dealt_in(room) == {"anna", "ben", "carla"}


async def test_where_no_hand_comes_of_it_who_was_silent_sits_out_and_nothing_is_due() -> None:
    room = await seated("anna", "ben")
    await wish(room, "ben", auto_ante=False)
    await room.pass_to(asked(room, "ben")[-1] + GRACE_MS)
    assert room.table.hand is None
    assert room.seat_of("ben").status is SeatStatus.SITTING_OUT
    assert not room.table.blob.due_ms
    assert not room.table.blob.asked_until_ms


async def test_switching_to_and_fro_does_not_keep_the_others_waiting() -> None:
    room = await seated("anna", "ben", "carla")
    await wish(room, "carla", auto_ante=False)
    room.store.ms += 400
    for _ in range(3):
        await wish(room, "carla")
        await wish(room, "carla", auto_ante=False)
    assert len(asked(room, "carla")) == 1
    await wish(room, "carla")
    assert room.store.deadlines[room.table_id] == room.table.blob.due_ms


async def test_where_the_house_asks_nobody_the_option_is_refused() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna")
    with pytest.raises(DoorcardError) as caught:
        await wish(room, "anna", auto_ante=False)
    assert caught.value.reason == "ANTES_AUTOMATIC"
    await wish(room, "anna", confirm=True)


async def test_a_wish_that_says_nothing_of_antes_leaves_them_as_they_are() -> None:
    club = FakeRoom()
    await club.create()
    await club.seat("anna")
    await wish(club, "anna", auto_ante=None)
    assert (await club.tables.view(club.table_id, "anna")).own_options.auto_ante
    room = await seated("anna", "ben")
    await wish(room, "anna", auto_ante=False)
    await wish(room, "anna", auto_ante=None, sit_out_next=True)
    options = (await room.tables.view(room.table_id, "anna")).own_options
    assert options.HasField("auto_ante")
    assert not options.auto_ante


async def test_who_sits_out_next_plays_his_hand_to_the_end() -> None:
    room = await seated("anna", "ben", "carla")
    await room.start_hand()
    await wish(room, "anna", sit_out_next=True)
    assert (await room.tables.view(room.table_id, "anna")).own_options.sit_out_next
    assert room.seat_of("anna").status is SeatStatus.PLAYING
    await room.play_out()
    assert room.seat_of("anna").status is SeatStatus.SITTING_OUT
    assert not (await room.tables.view(room.table_id, "anna")).own_options.sit_out_next
    await deal(room)
    assert dealt_in(room) == {"ben", "carla"}
    assert (await room.tables.view(room.table_id, "ben")).seats[0].missed_hands == 1


async def test_between_hands_sit_out_next_is_now_and_sitting_back_takes_it_back() -> None:
    room = await seated("anna", "ben", "carla")
    await wish(room, "anna", sit_out_next=True)
    assert room.seat_of("anna").status is SeatStatus.SITTING_OUT
    await room.tables.sit_back(room.table_id, "anna")
    await room.start_hand()
    await wish(room, "anna", sit_out_next=True)
    await room.tables.sit_back(room.table_id, "anna")
    await room.play_out()
    assert room.seat_of("anna").status is SeatStatus.PLAYING


async def test_missed_hands_are_counted_in_a_row_and_told() -> None:
    room = await seated("anna", "ben", "carla")
    await room.tables.sit_out(room.table_id, "carla")
    for missed in range(1, 6):
        await deal(room)
        assert room.seat_of("carla").missed == missed
        await room.play_out()
    told = [e.seat_changed.seat for e in room.events() if e.HasField("seat_changed")]
    assert max(seat.missed_hands for seat in told if seat.player_id == "carla") == 5
    await room.tables.sit_back(room.table_id, "carla")
    await deal(room)
    assert room.seat_of("carla").missed == 0


async def test_who_sits_out_too_long_is_cashed_out() -> None:
    room = await seated("anna", "ben")
    await room.tables.sit_out(room.table_id, "ben")
    stack, due = room.seat_of("ben").stack, room.store.ms + STANDARD.away_ms + GRACE_MS
    assert room.store.deadlines[room.table_id] == due
    await room.pass_to(due - 1)
    assert room.table.seat_of("ben") is not None
    await room.pass_to(due)
    assert room.table.seat_of("ben") is None
    assert room.store.outbox[-1].ledger.cash_out.amount == stack
    assert room.table_id not in room.store.deadlines


async def test_who_is_back_in_time_keeps_his_seat_and_has_the_whole_time_again() -> None:
    room = await seated("anna", "ben")
    await room.tables.sit_out(room.table_id, "ben")
    room.store.ms += STANDARD.away_ms - 1
    await room.tables.sit_back(room.table_id, "ben")
    assert room.seat_of("ben").freed_at_ms == 0
    await room.tables.sit_out(room.table_id, "ben")
    assert room.seat_of("ben").freed_at_ms == room.store.ms + STANDARD.away_ms


async def test_a_seat_in_a_running_hand_is_not_taken_away() -> None:
    room = await seated("anna", "ben", action_ms=300_000)
    await room.start_hand()
    idle = "ben" if room.to_act()[0] == "anna" else "anna"
    await room.tables.sit_out(room.table_id, idle)
    room.write(lambda table: None)
    freed = room.seat_of(idle).freed_at_ms
    assert freed
    room.write(lambda table: setattr(table.blob, "due_ms", freed + 10 * STANDARD.away_ms))
    room.store.ms = freed + GRACE_MS
    await room.tables.tick(room.table_id)
    assert room.table.seat_of(idle) is not None
    await room.play_out()
    await room.pass_to(room.store.ms + GRACE_MS)
    assert room.table.seat_of(idle) is None


async def test_who_has_no_chips_and_brings_none_loses_his_seat_sooner() -> None:
    room = await seated("anna", "ben", "carla")

    def lose(table: object) -> None:
        seat = table.blob.seats[2]  # type: ignore[attr-defined]
        seat.stack, seat.brought, seat.status = 0, 0, SeatStatus.PLAYING

    room.write(lose)
    await room.tables.sit_out(room.table_id, "carla")
    due = room.store.ms + STANDARD.broke_ms
    assert room.seat_of("carla").freed_at_ms == due
    await room.top_up("carla", room.table.stake.buy_in_min)
    assert room.seat_of("carla").freed_at_ms == 0
    room.write(lose)
    await room.tables.sit_out(room.table_id, "carla")
    await room.tables.sit_out(room.table_id, "ben")
    await room.pass_to(due + GRACE_MS)
    assert room.table.seat_of("carla") is None


async def test_a_house_may_count_missed_hands_instead() -> None:
    room = FakeRoom(seed=6, times=SeatTimes(away_ms=0, missed_max=3))
    await room.create(rulebook="triopoker", stake_name="5/10")
    await room.seat("anna", "ben", "carla", buy_in=room.table.stake.buy_in_min)
    await room.tables.sit_out(room.table_id, "carla")
    assert room.seat_of("carla").freed_at_ms == 0
    for _ in range(3):
        await deal(room)
        assert room.table.seat_of("carla") is not None
        await room.play_out()
    await room.pass_to(room.store.ms + GRACE_MS)
    assert room.table.seat_of("carla") is None


async def test_what_would_have_been_given_up_in_a_pause_is_kept_for_its_time_again() -> None:
    room = await seated("anna", "ben")
    await room.tables.sit_out(room.table_id, "ben")
    await room.pause("a test")
    room.store.ms += 3 * STANDARD.away_ms
    await room.tables.tick(room.table_id)
    await room.resume()
    assert room.seat_of("ben").freed_at_ms == room.store.ms + STANDARD.away_ms
    await room.pass_to(room.store.ms + STANDARD.away_ms - 1)
    assert room.table.seat_of("ben") is not None


async def test_who_loses_his_chips_while_he_is_away_has_the_shorter_time() -> None:
    room = await seated("anna", "ben", "carla")
    await room.tables.sit_out(room.table_id, "carla")
    away = room.seat_of("carla").freed_at_ms

    def lose(table: Table) -> None:
        table.blob.seats[2].stack = table.blob.seats[2].brought = 0

    room.write(lose)
    room.store.ms += 1000
    room.write(lambda table: setattr(table.blob.seats[2], "status", SeatStatus.PLAYING))
    await room.tables.sit_out(room.table_id, "carla")
    assert room.seat_of("carla").freed_at_ms == room.store.ms + STANDARD.broke_ms < away
