"""Club games: who gets in, who stays, how they end, and who gets what (docs/rules.md, 8)."""

from typing import Any

import msgspec
import pytest
from doorcard.table.v1 import table_pb2

from services.runtime.errors import FailedPrecondition, InvalidArgument
from services.table.hands.club_games import WORDS, How
from services.table.shards.rebuilding import Posted, rebuild
from services.table.state.state import SeatStatus, Table, TableStatus
from services.table.tables.moves import Moves
from tests.unit.table.rooms import FakeRoom, bold

FREEZE_OUT = table_pb2.TableFormat(kind=table_pb2.FORMAT_KIND_FREEZE_OUT, players=3)
PLAYERS = ("anna", "ben", "carl")


def timed(seconds: int, players: int = 3) -> table_pb2.TableFormat:
    """A timed game."""
    shown = table_pb2.TableFormat(kind=table_pb2.FORMAT_KIND_TIMED, players=players)
    shown.duration.FromSeconds(seconds)
    return shown


async def game(agreed: table_pb2.TableFormat = FREEZE_OUT, *players: str) -> FakeRoom:
    """A club game with everybody seated, before its first hand."""
    room = FakeRoom()
    await room.create(format=agreed)
    await room.seat(*(players or PLAYERS))
    return room


async def refused(call: Any) -> str:
    """Why a call was refused."""
    with pytest.raises(FailedPrecondition) as raised:
        await call
    return raised.value.reason


async def play_hand(room: FakeRoom, *, boldly: bool = False) -> None:
    """One hand, from its deal to its end."""
    await room.start_hand()
    await room.play_out(bold if boldly else room.choose)


async def play_to_the_end(room: FakeRoom) -> None:
    """Hands until the table closes."""
    for _ in range(500):
        if room.table.blob.status is TableStatus.CLOSED:
            return
        await play_hand(room, boldly=True)
    raise AssertionError("it does not end")


def paid_out(room: FakeRoom) -> dict[str, int]:
    """Player -> what his cash-outs gave him."""
    paid: dict[str, int] = {}
    for entry in room.store.outbox:
        if entry.ledger.WhichOneof("entry") == "cash_out":
            out = entry.ledger.cash_out
            paid[out.player_id] = paid.get(out.player_id, 0) + out.amount
    return paid


def ended(room: FakeRoom) -> table_pb2.TableEvent.GameEnded:
    """What everybody was told of the end."""
    (event,) = [each for each in room.events() if each.HasField("game_ended")]
    return event.game_ended


def put(room: FakeRoom, **stacks: int) -> None:
    """Other stacks before the players, as if hands had been played."""

    def change(table: Table) -> None:
        for seat in table.blob.seats.values():
            seat.stack = seat.brought = stacks.get(seat.player_id, seat.stack)

    room.write(change)


# Before it begins


async def test_who_leaves_before_it_begins_has_his_whole_buy_in_back() -> None:
    room = await game(FREEZE_OUT, "anna", "ben")
    assert room.table_id not in room.store.deadlines
    assert await room.tables.leave(room.table_id, "anna") == (room.table.version, True)
    assert paid_out(room) == {"anna": 200}
    await room.seat("carl", "dora")
    assert room.table_id in room.store.deadlines
    # All are there, and one goes before the first hand.
    await room.tables.leave(room.table_id, "carl")
    assert room.table_id not in room.store.deadlines
    assert room.table.blob.game is None


async def test_it_begins_with_the_first_hand_when_all_have_come() -> None:
    room = await game()
    assert await refused(room.take_seat("dora")) == "TABLE_FULL"
    await room.tables.sit_out(room.table_id, "carl")
    table = await room.start_hand()
    assert table.blob.hand is not None
    assert table.blob.hand.seats == [0, 1, 2]
    (event,) = [each for each in room.events() if each.HasField("game_started")]
    assert event.game_started.game.prize_pool == 600
    assert await refused(room.take_seat("dora")) == "GAME_STARTED"
    view = await room.tables.view(room.table_id, "")
    assert view.game.HasField("started")
    assert not view.game.HasField("until")
    assert view.config.format.players == 3


async def test_nobody_waits_adds_chips_or_changes_tables() -> None:
    room = await game()
    moves = Moves(room.store, room.tables)  # type: ignore[arg-type]
    line = room.seating().join_waiting_list(room.table_id, "dora", "Dora")
    assert await refused(line) == "CLUB_GAME"
    assert await refused(room.top_up("anna", 50)) == "NO_TOP_UPS"
    assert await refused(moves.change_table(room.table_id, "anna")) == "CLUB_GAME"
    assert await refused(moves.break_up(room.table_id)) == "CLUB_GAME"
    await room.start_hand()
    assert await refused(room.top_up("anna", 50)) == "GAME_STARTED"


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("format.kind", {"kind": 99}),
        ("format", {"players": 3}),
        ("format.players", {"kind": 2, "players": 7}),
        ("format.duration", {"kind": 3}),
        ("format.prizes", {"kind": 2, "prizes": [60, 30]}),
        ("format.prizes", {"kind": 2, "prizes": [40, 60]}),
        ("format.prizes", {"kind": 2, "players": 2, "prizes": [50, 30, 20]}),
    ],
)
async def test_a_format_says_what_is_wrong_with_it(field: str, fault: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as raised:
        await FakeRoom().create(format=table_pb2.TableFormat(**fault))
    assert [name for name, _ in raised.value.violations] == [field]


async def test_a_club_game_has_equal_stacks_and_no_rake() -> None:
    with pytest.raises(InvalidArgument) as raised:
        await FakeRoom().create(
            format=FREEZE_OUT, rulebook="triopoker", rake_schedule_id="standard"
        )
    fields = {name for name, _ in raised.value.violations}
    assert fields == {"format.kind", "rake_schedule_id"}


# While it goes on


async def test_who_is_away_is_dealt_in_and_acts_at_once() -> None:
    room = await game()
    await room.tables.sit_out(room.table_id, "ben")
    await room.start_hand()
    before_ms = room.store.ms
    while room.table.hand is not None:
        player, _, _ = room.to_act()
        assert player != "ben"
        await room.act()
    assert room.store.ms == before_ms
    assert room.seat_of("ben").stack < 200
    assert not room.seat_of("ben").freed_at_ms


async def test_who_leaves_keeps_his_place_and_may_come_back() -> None:
    room = await game()
    await room.start_hand()
    leaver, _, _ = room.to_act()
    version, left = await room.tables.leave(room.table_id, leaver)
    assert not left
    assert room.to_act()[0] != leaver
    assert room.seat_of(leaver).status is SeatStatus.SITTING_OUT
    # Again, it is the same.
    assert await room.tables.leave(room.table_id, leaver) == (version, False)
    await room.play_out()
    await room.tables.sit_back(room.table_id, leaver)
    await room.start_hand()
    acted = set()
    while room.table.hand is not None:
        acted.add(room.to_act()[0])
        await room.act()
    assert leaver in acted


async def test_who_sits_out_at_his_turn_is_not_waited_for() -> None:
    room = await game()
    await room.start_hand()
    player, _, _ = room.to_act()
    before_ms = room.store.ms
    await room.tables.sit_out(room.table_id, player)
    assert room.to_act()[0] != player
    assert room.store.ms == before_ms


async def test_who_has_no_chips_is_out_keeps_his_seat_and_is_dealt_no_more() -> None:
    room = await game()
    put(room, anna=1, ben=399)
    while room.seat_of("anna").stack:
        await play_hand(room)
        if room.seat_of("anna").stack > 1:
            put(room, anna=1, ben=room.seat_of("ben").stack + room.seat_of("anna").stack - 1)
    (event,) = [each for each in room.events() if each.HasField("eliminated")]
    assert [(each.rank, each.player_id) for each in event.eliminated.places] == [(3, "anna")]
    view = await room.tables.view(room.table_id, "")
    assert [(each.rank, each.player_id) for each in view.game.ranking] == [(3, "anna")]
    await room.pass_to(room.store.ms + 1)
    table = await room.start_hand()
    assert table.blob.hand is not None
    assert table.blob.hand.seats == [1, 2]
    room.store.ms += 10 * 60_000
    await room.tables.tick(room.table_id)
    assert room.table.seat_of("anna") == 0
    assert await refused(room.tables.sit_back(room.table_id, "anna")) == "NO_CHIPS"
    assert await room.tables.leave(room.table_id, "anna") == (room.table.version, False)


# How it ends


async def test_a_freeze_out_ends_when_one_has_all_and_pays_every_place() -> None:
    agreed = table_pb2.TableFormat()
    agreed.CopyFrom(FREEZE_OUT)
    agreed.prizes.extend((50, 30, 20))
    room = await game(agreed)
    await play_to_the_end(room)
    told = ended(room)
    assert told.reason == WORDS[How.WON]
    ranking = list(told.game.ranking)
    assert [each.rank for each in ranking] in ([1, 2, 3], [1, 2, 2])
    assert ranking[0].stack == 600
    assert sum(each.prize for each in ranking) == 600
    assert paid_out(room) == {each.player_id: each.prize for each in ranking}
    nets = [e.ledger.hand for e in room.store.outbox if e.ledger.HasField("hand")][-1]
    assert sum(net.amount for net in nets.nets) == 0
    assert not [e for e in room.store.outbox if e.ledger.hand is nets and e.HasField("hand")]
    table = room.table
    assert (table.blob.status, table.blob.seats) == (TableStatus.CLOSED, {})
    view = await room.tables.view(room.table_id, "")
    assert view.game == told.game
    assert (view.game.over, view.game.prize_pool) == (True, 600)


async def test_the_winner_takes_all_unless_agreed_otherwise() -> None:
    room = await game()
    await play_to_the_end(room)
    assert sorted(paid_out(room).values()) == [0, 0, 600]
    # All chips are before him already: there is nothing to move.
    settled = [e for e in room.store.outbox if e.ledger.HasField("hand")]
    assert all(entry.HasField("hand") for entry in settled)


async def test_what_is_stored_of_a_club_game_of_eight_stays_small() -> None:
    players = [f"player-{n}" for n in range(8)]
    room = FakeRoom()
    agreed = table_pb2.TableFormat(kind=table_pb2.FORMAT_KIND_FREEZE_OUT, prizes=[50, 30, 20])
    await room.create(format=agreed, seats=8)
    await room.seat(*players)
    largest = 0
    for _ in range(500):
        if room.table.blob.status is TableStatus.CLOSED:
            break
        await room.start_hand()
        while room.table.hand is not None:
            _, want, _ = room.to_act()
            await room.act(*bold(want))
        blob = room.table.blob
        if blob.status is not TableStatus.CLOSED:
            parts = (blob.config.format, blob.game, blob.recent)
            largest = max(largest, sum(len(msgspec.msgpack.encode(part)) for part in parts))
    assert room.table.blob.status is TableStatus.CLOSED
    print(f"at most {largest} bytes in play, the whole {len(room.table.encode())} when it is over")
    # Of the two kilobytes that a table has.
    assert largest <= 64
    assert len(room.table.encode()) <= 1024


async def test_a_timed_game_ends_between_hands_and_a_running_hand_is_finished() -> None:
    room = await game(timed(60))
    table = await room.start_hand()
    assert table.blob.game is not None
    assert table.blob.game.until_ms == room.store.ms + 60_000
    room.store.ms += 61_000
    assert room.table.hand is not None
    player, _, _ = room.to_act()
    # His time is his: the game goes on to the end of the hand.
    while room.table.hand is not None:
        await room.act()
    assert player
    told = ended(room)
    assert told.reason == WORDS[How.TIME_UP]
    assert sum(paid_out(room).values()) == 600
    assert room.table.blob.status is TableStatus.CLOSED


async def test_the_agreed_time_comes_between_two_hands() -> None:
    room = await game(timed(60))
    await play_hand(room)
    until_ms = room.table.blob.game.until_ms if room.table.blob.game else 0
    put(room, anna=250, ben=250, carl=100)
    for player in PLAYERS:
        await room.tables.sit_out(room.table_id, player)
    assert room.store.deadlines[room.table_id] == until_ms
    room.store.ms = until_ms - 1
    await room.tables.tick(room.table_id)
    assert room.table.blob.status is TableStatus.OPEN
    room.store.ms = until_ms
    await room.tables.tick(room.table_id)
    # Equal largest stacks share.
    assert paid_out(room) == {"anna": 300, "ben": 300, "carl": 0}
    assert [each.rank for each in ended(room).game.ranking] == [1, 1, 3]


async def test_a_paused_game_ends_when_it_goes_on() -> None:
    room = await game(timed(60))
    await play_hand(room)
    await room.pause("a power cut")
    room.store.ms += 120_000
    await room.tables.tick(room.table_id)
    assert room.table.blob.status is TableStatus.PAUSED
    await room.resume()
    await room.tables.tick(room.table_id)
    assert ended(room).reason == WORDS[How.TIME_UP]


async def test_a_game_that_nobody_plays_any_more_ends_by_the_stacks_held() -> None:
    room = await game()
    await play_hand(room)
    stacks = {seat.player_id: seat.stack for seat in room.table.blob.seats.values()}
    for player in PLAYERS:
        await room.tables.sit_out(room.table_id, player)
    due_ms = room.store.deadlines[room.table_id]
    assert due_ms == room.store.ms + room.times.away_ms
    # One is back for a while, and goes again.
    await room.tables.sit_back(room.table_id, "ben")
    assert room.store.deadlines[room.table_id] < due_ms
    room.store.ms += 1
    await room.tables.sit_out(room.table_id, "ben")
    room.store.ms += room.times.away_ms
    await room.tables.tick(room.table_id)
    assert ended(room).reason == WORDS[How.DESERTED]
    assert paid_out(room) == stacks


async def test_an_operator_who_closes_it_gives_everybody_the_stack_he_holds() -> None:
    room = await game(FREEZE_OUT)
    await play_hand(room)
    put(room, anna=0, ben=350, carl=250)

    def out(table: Table) -> None:
        assert table.blob.game is not None
        table.blob.game.out = [[[0]]]

    room.write(out)
    await room.start_hand()
    await room.operators.close(room.table_id, room.by("close_table", "fire in the kitchen"))
    await room.play_out()
    told = ended(room)
    assert told.reason == "fire in the kitchen"
    assert paid_out(room) == {each.player_id: each.stack for each in told.game.ranking}
    assert sum(paid_out(room).values()) == 600
    assert told.game.ranking[-1].player_id == "anna"
    assert room.table.blob.status is TableStatus.CLOSED
    assert (await room.tables.view(room.table_id, "")).game.over


async def test_a_void_hand_puts_nobody_out() -> None:
    room = await game()
    await room.start_hand()
    await room.void()
    assert {seat.stack for seat in room.table.blob.seats.values()} == {200}
    assert room.table.blob.game is not None
    assert not room.table.blob.game.out


async def test_a_cash_table_is_what_it_was() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna", "ben")
    await play_hand(room)
    view = await room.tables.view(room.table_id, "")
    assert not view.HasField("game")
    assert view.config.format.kind == table_pb2.FORMAT_KIND_CASH
    assert room.table.blob.game is None


# Made anew from the ledger


async def test_made_anew_it_goes_on_with_the_places_of_those_who_are_out() -> None:
    room = await game()
    await room.start_hand()
    table = room.table
    seats = {seat.player_id: seat for seat in table.blob.seats.values()}
    assert table.blob.game is not None
    table.blob.game.out = [[[0], [2]]]
    # Carl is not out as the ledger has it, and Ben is, which the table does not know.
    escrow = {seats["carl"].sitting_id: 600}
    rebuild(room.table_id, table.blob, Posted(escrow, (), ()), room.store.ms)
    assert {n: seat.stack for n, seat in table.blob.seats.items()} == {0: 0, 1: 0, 2: 600}
    assert table.blob.game.out == [[[0]], [[1]]]
    Table(room.table_id, None, table.blob).check()


async def test_made_anew_without_a_chip_it_is_closed() -> None:
    room = await game()
    await room.start_hand()
    table = room.table
    rebuild(room.table_id, table.blob, Posted({}, (), ()), room.store.ms)
    assert (table.blob.status, table.blob.seats) == (TableStatus.CLOSED, {})
    room.write(lambda stored: setattr(stored, "blob", table.blob))
    assert not (await room.tables.view(room.table_id, "")).game.ranking


async def test_made_anew_a_seat_that_was_never_paid_for_is_freed() -> None:
    room = await game()
    await room.start_hand()
    table = room.table
    seats = {seat.player_id: seat for seat in table.blob.seats.values()}
    escrow = {seats[player].sitting_id: 200 for player in ("anna", "ben")}
    pending = {seats["carl"].reservation_id}
    rebuild(room.table_id, table.blob, Posted(escrow, pending, ()), room.store.ms)
    assert sorted(table.blob.seats) == [0, 1]
    room.write(lambda stored: setattr(stored, "blob", table.blob))
    await room.tables.tick(room.table_id)


async def test_those_who_are_all_away_play_no_endless_game() -> None:
    room = await game(FREEZE_OUT)
    await room.start_hand()
    for player in PLAYERS:
        await room.tables.leave(room.table_id, player)
    # What runs is finished without them, and no other hand begins.
    assert room.table.hand is None
    hands = room.table.blob.hands
    room.store.ms += 60_000
    await room.tables.tick(room.table_id)
    assert room.table.blob.hands == hands
