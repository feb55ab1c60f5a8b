"""A replica dies in the middle of a move between tables: another goes on with it, by itself."""

from typing import cast

import pytest

from services.runtime.errors import DoorcardError, FailedPrecondition, Unavailable
from services.table.hands.under_way import WITHIN_MS
from services.table.state.state import TableStatus
from services.table.store.store import Store
from services.table.store.stored import Commit
from services.table.tables.moves import TAKEN_UP, Moves
from tests.unit.table.rooms import FakeRoom
from tests.unit.table.test_changing_tables import BUY_IN, Tables2, two
from tests.unit.table.test_club_games import FREEZE_OUT

PLAYERS = ("anna", "ben", "carla")


async def break_table(tables: Tables2) -> dict[str, str]:
    """What `BreakTable` does, step by step; always the same request."""
    by = tables.room.by("break_table", request_id="break-1")
    operators = tables.room.operators
    await operators.begin_moving(tables.first, by)
    found = await tables.moves.break_up(tables.first)
    await operators.close(tables.first, by)
    return found


def dies_after(room: FakeRoom, commits: int) -> None:
    """The replica makes so many commits and no more."""
    made = 0

    def commit(_commit: Commit) -> None:
        nonlocal made
        made += 1
        if made > commits:
            raise Unavailable("STORE_AWAY", "the process is gone")
        room.store.before_commit = commit

    room.store.before_commit = commit


async def another(tables: Tables2) -> Moves:
    """The first replica is gone, with all that it had begun; another serves the tables."""
    room = tables.room
    await tables.moves.finished()
    room.store.before_commit = None
    room.tables.moved = lambda _: None
    room.tables.unfinished = lambda _: None
    room.tables = room.replica("replica-2")
    return Moves(cast(Store, room.store), room.tables)


def cash_outs(room: FakeRoom) -> dict[str, list[int]]:
    """Player -> what he left with, each time."""
    paid: dict[str, list[int]] = {}
    for entry in room.store.outbox:
        if entry.ledger.HasField("cash_out"):
            paid.setdefault(entry.ledger.cash_out.player_id, []).append(
                entry.ledger.cash_out.amount
            )
    return paid


async def go_on(tables: Tables2, moves: Moves) -> None:
    """Time goes by at the first table, and what is due there happens."""
    room = tables.at(tables.first)
    for _ in range(3):
        await room.pass_to(room.store.ms + WITHIN_MS)
        await moves.finished()


def moved_whole(tables: Tables2) -> None:
    """Everybody left the first table with his money, and a seat is kept that he brings it to."""
    room = tables.at(tables.first)
    table = room.table
    assert table.blob.status is TableStatus.CLOSED
    assert not table.blob.seats
    assert not table.blob.telling
    assert room.table_id not in room.store.deadlines
    paid = cash_outs(room)
    assert sorted(paid) == sorted(PLAYERS)
    for player in PLAYERS:
        kept = tables.kept(player)
        assert kept is not None
        assert paid[player] == [kept.brings]
    assert sum(sum(each) for each in paid.values()) == 3 * BUY_IN


@pytest.mark.parametrize("commits", range(10))
async def test_a_table_is_broken_up_wherever_the_replica_dies_between_hands(commits: int) -> None:
    tables = await two(*PLAYERS)
    dies_after(tables.room, commits)
    done = True
    try:
        await break_table(tables)
    except DoorcardError:
        done = False
    moves = await another(tables)
    if not commits:
        # Not even begun: nobody knows of it.
        assert tables.table(tables.first).blob.after_hand is None
        return
    before = TAKEN_UP.labels("done")._value.get()
    await go_on(tables, moves)
    moved_whole(tables)
    if not done:
        assert TAKEN_UP.labels("done")._value.get() == before + 1
    # Whoever asks again learns who went where, also long after.
    tables.moves = moves
    tables.room.operators._tables = tables.room.tables
    assert await break_table(tables) == dict.fromkeys(PLAYERS, tables.second)


@pytest.mark.parametrize("commits", range(1, 10))
async def test_a_table_is_broken_up_wherever_the_replica_dies_in_a_hand(commits: int) -> None:
    tables = await two(*PLAYERS)
    room = tables.room
    await room.start_hand()
    dies_after(room, commits)
    try:
        await break_table(tables)
        await room.play_out()
    except DoorcardError:
        pass
    moves = await another(tables)
    # The hand may be over before anybody takes up the moving.
    if commits % 2 and room.table.hand is not None:
        await room.play_out()
    await go_on(tables, moves)
    if room.table.hand is not None:
        await room.play_out()
    await moves.finished()
    await go_on(tables, moves)
    moved_whole(tables)


async def test_who_changed_tables_in_a_hand_may_sit_down_though_the_one_who_would_tell_died() -> (
    None
):
    tables = await two(*PLAYERS)
    room = tables.room
    await room.start_hand()
    await tables.change("anna")
    room.tables.moved = lambda _: None
    await room.play_out()
    moves = await another(tables)
    await go_on(tables, moves)
    kept = tables.kept("anna")
    assert kept is not None
    assert [kept.brings] == cash_outs(room)["anna"]
    assert not room.table.blob.telling
    await tables.at(tables.second).take_seat("anna", buy_in=kept.brings)


async def test_what_cannot_be_told_yet_is_tried_again() -> None:
    tables = await two(*PLAYERS)
    room = tables.room
    await room.start_hand()
    await tables.change("anna")
    room.tables.moved = lambda _: None
    await room.play_out()
    moves = await another(tables)
    assert len(room.table.blob.telling) == 1
    before = TAKEN_UP.labels("failed")._value.get()

    def away(commit: Commit) -> None:
        room.store.before_commit = away
        if commit.table_id == tables.second:
            raise Unavailable("STORE_AWAY", "that shard does not answer")

    room.store.before_commit = away
    await room.pass_to(room.store.ms + WITHIN_MS)
    await moves.finished()
    assert TAKEN_UP.labels("failed")._value.get() == before + 1
    assert len(room.table.blob.telling) == 1
    room.store.before_commit = None
    await go_on(tables, moves)
    assert not room.table.blob.telling


async def test_a_club_game_is_not_begun_to_be_broken_up() -> None:
    room = FakeRoom()
    await room.create(format=FREEZE_OUT)
    await room.seat(*PLAYERS)
    with pytest.raises(FailedPrecondition) as refused:
        await room.operators.begin_moving(room.table_id, room.by("break_table"))
    assert refused.value.reason == "CLUB_GAME"
    assert room.table.blob.after_hand is None


async def test_what_is_left_of_a_move_costs_the_blob_next_to_nothing() -> None:
    tables = await two(*PLAYERS)
    blob = tables.room.table.blob
    assert (blob.moves_ms, blob.breaks, blob.broken, blob.telling) == (0, False, [], [])
    await break_table(tables)
    await tables.moves.finished()
    assert len(tables.table(tables.first).encode()) < 1024
