"""Leaving a table for a seat at another: what is kept, what is brought, and what a crash costs."""

from typing import Any, NoReturn, cast
from uuid import uuid4

import pytest

from services.runtime.errors import DoorcardError, Unavailable
from services.table.state.buy_ins import AFTER_HAND, ANYTHING, offer_of
from services.table.state.lobby_lines import read_line
from services.table.state.state import SeatStatus, Table, Waiter
from services.table.state.times import STANDARD
from services.table.state.turn_times import GRACE_MS
from services.table.store.store import Store
from services.table.store.stored import Commit
from services.table.tables.moves import Change, Moves
from tests.unit.table.rooms import FakeRoom

BUY_IN = 2000


class Tables2:
    """Two tables that are alike, with anna, ben and carla at the first."""

    def __init__(self, room: FakeRoom, first: str, second: str) -> None:
        self.room, self.first, self.second = room, first, second
        self.moves = Moves(cast(Store, room.store), room.tables)

    async def change(self, player: str, to: str | None = None) -> Change:
        """He changes to the second table, or to any (empty)."""
        return await self.moves.change_table(self.first, player, self.second if to is None else to)

    def table(self, table_id: str) -> Table:
        """As it is stored."""
        return Table.load(table_id, self.room.store.tables[table_id])

    def kept(self, player: str, table_id: str = "") -> Waiter | None:
        """What is kept for him at the second table."""
        return offer_of(self.table(table_id or self.second), player)

    def at(self, table_id: str) -> FakeRoom:
        """The room, looking at one of the tables."""
        self.room.table_id = table_id
        return self.room


async def two(*players: str, **second: Any) -> Tables2:
    """The first table is the room's, between hands."""
    room = FakeRoom(seed=9)
    fields: dict[str, Any] = {"rulebook": "modern", "stake_name": "1/2", "hand_pause_ms": 1000}
    other = await room.create(**{**fields, "request_id": "create-2", **second})
    first = await room.create(**fields)
    tables = Tables2(room, first, other)
    for player in players:
        await room.take_seat(player, buy_in=BUY_IN)
    return tables


async def refused(call: Any) -> DoorcardError:
    """Why."""
    with pytest.raises(DoorcardError) as caught:
        await call
    return caught.value


async def test_between_hands_he_is_out_at_once_and_his_seat_is_kept_for_his_stack() -> None:
    tables = await two("anna")
    changed = await tables.change("anna")
    assert (changed.to_table_id, changed.left) == (tables.second, True)
    assert (changed.offer.buy_in_min, changed.offer.buy_in_max) == (BUY_IN, BUY_IN)
    assert changed.offer.until.ToMilliseconds() == tables.room.store.ms + STANDARD.move_ms
    assert tables.table(tables.first).seat_of("anna") is None
    assert tables.room.store.outbox[-1].ledger.cash_out.amount == BUY_IN
    room = tables.at(tables.second)
    assert (await refused(room.take_seat("anna", buy_in=BUY_IN - 1))).reason == "BUY_IN_TOO_SMALL"
    assert (await refused(room.take_seat("anna", buy_in=BUY_IN + 1))).reason == "BUY_IN_TOO_LARGE"
    seat, _, _ = await room.take_seat("anna", buy_in=BUY_IN)
    assert seat == changed.offer.seat
    assert tables.kept("anna") is None


async def test_a_stack_below_the_least_buy_in_goes_along_too() -> None:
    tables = await two("anna")
    tables.room.write(lambda table: _has(table, "anna", 3))
    changed = await tables.change("anna")
    assert (changed.offer.buy_in_min, changed.offer.buy_in_max) == (3, 3)
    await tables.at(tables.second).take_seat("anna", buy_in=3)


async def test_in_a_hand_he_plays_it_out_and_brings_what_he_has_then() -> None:
    tables = await two("anna", "ben", "carla")
    room = tables.room
    await room.start_hand()
    changed = await tables.change("anna")
    assert not changed.left
    assert (changed.offer.buy_in_min, changed.offer.buy_in_max) == (0, 0)
    hand = room.table.hand
    assert hand is not None
    assert room.table.seat_of("anna") not in hand.folded
    assert room.seat_of("anna").status is SeatStatus.PLAYING
    kept = tables.kept("anna")
    assert kept is not None
    assert kept.brings == AFTER_HAND
    tables.at(tables.second)
    assert (await refused(room.take_seat("anna", buy_in=BUY_IN))).reason == "STILL_PLAYING"
    tables.at(tables.first)
    await room.play_out()
    await tables.moves.finished()
    assert room.table.seat_of("anna") is None
    stack = room.store.outbox[-1].ledger.cash_out.amount
    kept = tables.kept("anna")
    assert kept is not None
    assert (kept.brings, kept.until_ms) == (stack, room.store.ms + STANDARD.move_ms)
    offers = [e for e in tables.at(tables.second).events("anna") if e.HasField("seat_offered")]
    assert offers[-1].seat_offered.offer.buy_in_min == stack
    await room.take_seat("anna", buy_in=stack)


async def test_nobody_comes_back_with_less_than_he_left_with_by_way_of_another_table() -> None:
    tables = await two()
    room, least = tables.room, tables.room.table.stake.buy_in_min
    await room.take_seat("anna", buy_in=3 * least)
    await room.tables.leave(tables.first, "anna")
    tables.at(tables.second)
    await room.seat("anna", "ben", buy_in=least)
    back = tables.moves.change_table(tables.second, "anna", tables.first)
    assert (await refused(back)).reason == "REJOIN_MINIMUM"
    assert room.table.seat_of("anna") is not None
    # In a hand nobody knows yet what he will bring.
    await room.start_hand()
    assert not (await tables.moves.change_table(tables.second, "anna", tables.first)).left
    await room.play_out()
    await tables.moves.finished()
    stack = room.store.outbox[-1].ledger.cash_out.amount
    tables.at(tables.first)
    assert stack < 3 * least
    assert (await refused(room.take_seat("anna", buy_in=stack))).reason == "REJOIN_MINIMUM"
    offers = [e for e in room.events("anna") if e.HasField("seat_offered")]
    assert offers[-1].seat_offered.offer.buy_in_min == 3 * least
    await room.take_seat("anna", buy_in=3 * least)


async def test_a_repeat_finds_what_was_granted() -> None:
    tables = await two("anna", "ben", "carla")
    first = await tables.change("carla")
    assert await tables.change("carla") == first
    assert await tables.change("carla", "") == first
    await tables.room.start_hand()
    in_hand = await tables.change("anna")
    assert await tables.change("anna", "") == in_hand
    assert [each.player_id for each in tables.table(tables.second).blob.waiting] == [
        "carla",
        "anna",
    ]


async def test_who_has_no_seat_makes_nobody_look_through_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = await two("anna", "ben")
    await tables.change("ben")
    read: list[str] = []
    reading = tables.room.tables.read

    async def noted(table_id: str) -> Table:
        read.append(table_id)
        return await reading(table_id)

    def nowhere(*_: object) -> NoReturn:
        raise AssertionError("the lobby is looked through")

    monkeypatch.setattr(tables.room.tables, "read", noted)
    monkeypatch.setattr(tables.room.store, "lobby_of", nowhere)
    assert (await refused(tables.change("mallory", ""))).reason == "NOT_SEATED"
    assert read == [tables.first]
    assert (await tables.change("ben", "")).to_table_id == tables.second


async def test_a_table_remembers_the_last_who_left_for_another() -> None:
    tables = await two("anna")
    tables.room.write(lambda table: setattr(table.blob, "moved", [(b"x" * 8, b"y" * 16)] * 16))
    await tables.change("anna")
    assert len(tables.table(tables.first).blob.moved) == 16


async def test_without_a_wish_it_is_a_table_that_is_alike_and_has_a_seat() -> None:
    tables = await two("anna", "ben", seats=2)
    room = tables.at(tables.second)
    unlike = await room.create(rulebook="modern", stake_name="2/4", request_id="create-3")
    await tables.at(tables.second).take_seat("dan", buy_in=BUY_IN)
    assert (await tables.change("anna", "")).to_table_id == tables.second
    error = await refused(tables.change("ben", ""))
    assert error.reason in {"NO_TABLE", "TABLE_FULL"}
    assert tables.table(tables.first).seat_of("ben") is not None
    # Named, another stake will do; there he buys in as everybody does.
    changed = await tables.change("ben", unlike)
    kept = tables.kept("ben", unlike)
    assert kept is not None
    assert kept.brings == ANYTHING
    assert changed.offer.buy_in_min == tables.table(unlike).stake.buy_in_min


async def test_what_cannot_be_is_refused_and_he_keeps_his_seat() -> None:
    tables = await two("anna", "ben", seats=2)
    assert (await refused(tables.change("dan"))).reason == "NOT_SEATED"
    assert (await refused(tables.change("anna", tables.first))).violations[0][0] == "to_table_id"
    room = tables.at(tables.second)
    await room.take_seat("anna", buy_in=BUY_IN)
    assert (await refused(tables.change("anna"))).reason == "ALREADY_SEATED"
    await room.take_seat("dan", buy_in=BUY_IN)
    assert (await refused(tables.change("ben"))).reason == "TABLE_FULL"
    assert tables.table(tables.first).seat_of("ben") is not None
    await tables.at(tables.first).start_hand()
    idle = "ben" if room.to_act()[0] == "anna" else "anna"
    room.write(lambda table: _leaves(table, idle))
    assert (await refused(tables.change(idle))).reason == "LEAVING"


async def test_cut_off_after_the_first_commit_the_offer_lapses_and_he_still_sits() -> None:
    tables = await two("anna", "ben")
    room = tables.room

    def crash(_commit: Commit) -> None:
        room.store.before_commit = fail

    def fail(_commit: Commit) -> None:
        raise Unavailable("STORE_AWAY", "the process is gone")

    room.store.before_commit = crash
    await refused(tables.change("anna"))
    assert tables.table(tables.first).seat_of("anna") is not None
    assert tables.kept("anna") is not None
    tables.at(tables.second)
    await room.pass_to(room.store.ms + STANDARD.move_ms + GRACE_MS)
    assert tables.kept("anna") is None
    assert not [e for e in room.store.outbox if e.ledger.HasField("cash_out")]
    assert (await tables.change("anna")).left


async def test_cut_off_after_the_second_he_has_left_with_his_money_and_the_offer_lapses() -> None:
    tables = await two("anna", "ben", "carla")
    room = tables.room
    await room.start_hand()
    await tables.change("anna")
    # Nobody tells the other table: the process that would have is gone.
    room.tables.moved = lambda _: None
    await room.play_out()
    assert room.store.outbox[-1].ledger.cash_out.player_id == "anna"
    tables.at(tables.second)
    assert (await refused(room.take_seat("anna", buy_in=BUY_IN))).reason == "STILL_PLAYING"
    await room.pass_to(room.store.ms + STANDARD.hand_elsewhere_ms + GRACE_MS)
    await room.take_seat("anna", buy_in=BUY_IN)


async def test_another_replica_may_play_the_hand_to_its_end() -> None:
    tables = await two("anna", "ben", "carla")
    room = tables.room
    await room.start_hand()
    await tables.change("anna")
    other = room.replica("replica-2")
    moves = Moves(cast(Store, room.store), other)
    room.tables = other
    await room.play_out()
    await moves.finished()
    kept = tables.kept("anna")
    assert kept is not None
    assert kept.brings == room.store.outbox[-1].ledger.cash_out.amount


async def test_a_table_is_broken_up_between_hands() -> None:
    tables = await two("anna", "ben", "carla", seats=2)
    found = await tables.moves.break_up(tables.first)
    assert sorted(found) == ["anna", "ben", "carla"]
    assert sorted(found.values()) == ["", tables.second, tables.second]
    left = next(player for player, target in found.items() if not target)
    assert [s.player_id for s in tables.table(tables.first).blob.seats.values()] == [left]
    room = tables.at(tables.second)
    assert (await refused(room.take_seat("dan", buy_in=BUY_IN))).reason == "TABLE_FULL"
    for player in found.keys() - {left}:
        await room.take_seat(player, buy_in=BUY_IN)


async def test_a_table_is_broken_up_in_the_middle_of_a_hand_that_is_played_out() -> None:
    tables = await two("anna", "ben", "carla")
    room = tables.room
    await room.start_hand()
    found = await tables.moves.break_up(tables.first)
    assert set(found.values()) == {tables.second}
    assert await tables.moves.break_up(tables.first) == found
    await room.play_out()
    await tables.moves.finished()
    assert not room.table.blob.seats
    assert room.table_id not in room.store.deadlines
    stacks = {
        entry.ledger.cash_out.player_id: entry.ledger.cash_out.amount
        for entry in room.store.outbox[-3:]
    }
    assert {w.player_id: w.brings for w in tables.table(tables.second).blob.waiting} == stacks
    assert sum(stacks.values()) == 3 * BUY_IN


def _has(table: Table, player: str, stack: int) -> None:
    number = table.seat_of(player)
    assert number is not None
    seat = table.blob.seats[number]
    seat.stack = seat.brought = stack


def _leaves(table: Table, player: str) -> None:
    number = table.seat_of(player)
    assert number is not None
    table.blob.seats[number].status = SeatStatus.LEAVING


async def test_a_table_is_broken_up_also_where_no_other_turns_out_to_have_a_seat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.table.tables.moves.TRIED_MAX", 1)
    tables = await two("anna", "ben", seats=2)
    line = tables.room.store.lobby[tables.second]
    room = tables.at(tables.second)
    await room.take_seat("dan", buy_in=BUY_IN)
    await room.take_seat("eva", buy_in=BUY_IN)
    # The lobby was read before they came.
    room.store.lobby[tables.second] = line
    assert await tables.moves.break_up(tables.first) == {"anna": "", "ben": ""}
    assert (await refused(tables.change("anna", ""))).reason == "NO_TABLE"


async def test_a_table_that_was_lost_and_is_still_listed_is_passed_over() -> None:
    tables = await two("anna", seats=2)
    store = tables.room.store
    listed = read_line(store.lobby[tables.second]).summary
    listed.config.table_id = str(uuid4())
    store.lobby = {listed.config.table_id: b"\0" + listed.SerializeToString(), **store.lobby}
    del store.lobby[tables.second]
    assert (await refused(tables.change("anna", ""))).reason == "NO_TABLE"
