"""Who is connected and does nothing is not waited for in every hand (docs/rules.md, 5)."""

import pytest

from services.game.events import EventKind
from services.game.wants import ActionKind
from services.runtime.clock import monotonic_s
from services.table.hands.options import CALL_ANY, Wish
from services.table.state.state import SeatFlag, SeatStatus, Table
from services.table.state.times import STANDARD
from services.table.state.turn_times import GRACE_MS, OVERDUE_MS
from tests.unit.table.rooms import FakeRoom, passive
from tests.unit.table.test_clocks import kinds, tick
from tests.unit.table.test_club_games import FREEZE_OUT

IDLE = "ben"
SITTING_OUT = int(SeatStatus.SITTING_OUT)


async def playing(*players: str, **fields: object) -> FakeRoom:
    """A room with a hand of all of them, each with a `Play` stream."""
    room = FakeRoom(seed=4)
    await room.create(**fields)
    await room.seat(*players or ("anna", IDLE))
    for player in players or ("anna", IDLE):
        await room.connect(player)
    await room.start_hand()
    return room


async def until_idle(room: FakeRoom) -> None:
    """The others act, hand after hand, until he is to."""
    for _ in range(100):
        if room.table.hand is None:
            await room.start_hand()
            assert room.table.hand is not None
        if room.to_act()[0] == IDLE:
            return
        await room.act()
    raise AssertionError("his turn never came")


async def time_out(room: FakeRoom) -> Table:
    """His turn comes, and his time passes."""
    await until_idle(room)
    room.pass_time()
    await tick(room)
    return room.table


def status(room: FakeRoom) -> SeatStatus:
    """How he sits."""
    return room.seat_of(IDLE).status


async def test_after_a_second_time_out_in_a_row_he_sits_out_as_if_he_had_asked() -> None:
    room = await playing("anna", IDLE, "carla")
    await time_out(room)
    assert status(room) is SeatStatus.PLAYING
    before = room.table.version
    await time_out(room)
    assert status(room) is SeatStatus.SITTING_OUT
    told = [e.seat_changed.seat for e in room.events(version=before) if e.HasField("seat_changed")]
    assert [int(each.state) for each in told if each.player_id == IDLE][-1] == SITTING_OUT
    await finish(room)
    # What follows is what follows for everybody who sits out.
    freed_at_ms = room.seat_of(IDLE).freed_at_ms
    assert freed_at_ms
    await room.start_hand()
    assert room.table.blob.hand is not None
    assert room.table.seat_of(IDLE) not in room.table.blob.hand.seats
    assert room.seat_of(IDLE).missed == 1
    await finish(room)
    await room.pass_to(freed_at_ms + GRACE_MS)
    await finish(room)
    assert room.table.seat_of(IDLE) is None
    assert STANDARD.away_ms > 0


async def finish(room: FakeRoom) -> None:
    """The hand is played to its end, without him."""
    while room.table.hand is not None:
        if room.to_act()[0] == IDLE:
            room.pass_time()
            await tick(room)
        else:
            await room.act()


async def test_time_outs_of_one_hand_count_as_those_of_two() -> None:
    room = await playing()
    streets = []
    while status(room) is SeatStatus.PLAYING:
        table = room.table
        await until_idle(room)
        assert room.table.hand is not None
        streets.append((room.table.blob.hands, room.table.hand.street))
        await time_out(room)
        assert table.hand is not None
    assert len(streets) == 2


@pytest.mark.parametrize("sign", ["acts", "chooses", "sits_out_next", "sits_back"])
async def test_whatever_he_does_himself_begins_the_count_anew(sign: str) -> None:
    room = await playing("anna", IDLE, "carla")
    await time_out(room)
    assert room.seat_of(IDLE).flags & SeatFlag.TIMED_OUT
    if sign == "acts":
        await until_idle(room)
        await room.act()
    elif sign == "chooses":
        await until_other_on(room)
        await options(room, kind=CALL_ANY)
    elif sign == "sits_out_next":
        await options(room, sit_out_next=True)
    else:
        await room.tables.sit_back(room.table_id, IDLE)
    assert not room.seat_of(IDLE).flags & SeatFlag.TIMED_OUT


async def until_other_on(room: FakeRoom) -> None:
    """A hand in which he is dealt in and somebody else is to act."""
    if room.table.hand is None:
        await room.start_hand()
    while room.to_act()[0] == IDLE:
        await room.act()


async def options(room: FakeRoom, **fields: object) -> None:
    """He sets his options."""
    table = room.table
    running, hand = table.blob.hand, table.hand
    wish = {
        "player_id": IDLE,
        "request_id": room.request_id(),
        "auto_ante": None,
        "show_beaten": False,
        "sit_out_next": False,
        "confirm_ante": False,
        "hand_id": running.hand_id if running is not None else "",
        "street": hand.street if hand is not None else 0,
        **fields,
    }
    await room.tables.set_options(room.table_id, Wish(**wish), monotonic_s())  # type: ignore[arg-type]


async def test_setting_what_his_client_may_set_by_itself_is_no_sign_of_him() -> None:
    room = await playing("anna", IDLE, "carla")
    await time_out(room)
    await options(room, show_beaten=True)
    assert room.seat_of(IDLE).flags & SeatFlag.TIMED_OUT


async def test_what_is_our_fault_is_not_counted() -> None:
    room = await playing("anna", IDLE, "carla")
    await time_out(room)
    await until_idle(room)
    # Found too late, his clock is renewed; what comes of that one neither counts nor is forgotten.
    room.pass_time(OVERDUE_MS + 1)
    await tick(room)
    await time_out(room)
    assert status(room) is SeatStatus.PLAYING
    await time_out(room)
    assert status(room) is SeatStatus.SITTING_OUT


async def test_who_is_not_connected_is_away_at_once_as_ever() -> None:
    room = FakeRoom(seed=4)
    await room.create()
    await room.seat("anna", IDLE)
    await room.start_hand()
    await time_out(room)
    assert status(room) is SeatStatus.SITTING_OUT


async def test_a_player_who_is_back_has_two_again() -> None:
    room = await playing("anna", IDLE, "carla")
    await time_out(room)
    await time_out(room)
    await finish(room)
    await room.tables.sit_back(room.table_id, IDLE)
    await time_out(room)
    assert status(room) is SeatStatus.PLAYING


async def test_in_a_club_game_he_is_away_and_checks_or_folds_at_once() -> None:
    room = await playing("anna", IDLE, "carla", format=FREEZE_OUT)
    await time_out(room)
    assert status(room) is SeatStatus.PLAYING
    await time_out(room)
    assert status(room) is SeatStatus.SITTING_OUT
    for _ in range(2):
        while room.table.hand is not None:
            assert room.to_act()[0] != IDLE
            await room.act()
        await room.start_hand()
        running = room.table.blob.hand
        assert running is not None
        assert room.table.seat_of(IDLE) in running.seats
    assert not room.seat_of(IDLE).freed_at_ms


async def test_the_flag_costs_the_blob_nothing() -> None:
    room = await playing("anna", IDLE, "carla")
    seat = room.seat_of(IDLE)
    before = len(room.table.encode())
    room.write(lambda table: setattr(table.blob.seats[table.seat_of(IDLE) or 0], "flags", 63))
    assert seat.flags == 0
    assert len(room.table.encode()) == before


async def test_protection_is_as_it_was() -> None:
    room = await playing(rulebook="triopoker", stake_name="0.10/0.20", seats=6)
    player, want, _ = room.to_act()
    await room.act(ActionKind.BRING_IN if want.legal.bring_in else passive(want))
    other = room.to_act()[0]
    assert other != player
    room.pass_time()
    await tick(room)
    assert EventKind.TIMED_OUT in kinds(room.table) or room.table.hand is None
    assert room.seat_of(other).status is SeatStatus.SITTING_OUT
