"""Leaving in the middle of a hand, and coming back to a table that one left with more."""

import pytest

from services.game.wants import ActionKind
from services.runtime.errors import DoorcardError
from services.table.state.buy_ins import LEFT_MAX
from services.table.state.state import SeatStatus, Table
from services.table.state.times import STANDARD
from tests.unit.table.rooms import FakeRoom, bold


async def three(**fields: object) -> FakeRoom:
    """A hand of three on third street."""
    room = FakeRoom(seed=4)
    await room.create(**fields)
    await room.seat("anna", "ben", "carla")
    await room.start_hand()
    return room


async def leave(room: FakeRoom, player: str) -> bool:
    """Whether he is out at once."""
    return (await room.tables.leave(room.table_id, player))[1]


def folded(room: FakeRoom, player: str) -> bool:
    """Whether he is folded in the running hand."""
    table = room.table
    assert table.hand is not None
    return table.seat_of(player) in table.hand.folded


async def test_who_is_to_act_and_leaves_is_folded_and_the_next_acts() -> None:
    room = await three()
    await room.act()
    actor, want, _ = room.to_act()
    assert not await leave(room, actor)
    assert folded(room, actor)
    assert room.to_act()[0] != actor
    assert room.to_act()[1].turn == want.turn + 1


async def test_who_is_not_to_act_and_leaves_is_folded_at_once_and_the_turn_stays() -> None:
    room = await three()
    actor, want, _ = room.to_act()
    idle = next(each for each in ("anna", "ben", "carla") if each != actor)
    assert not await leave(room, idle)
    assert folded(room, idle)
    assert (room.to_act()[0], room.to_act()[1].turn) == (actor, want.turn)


async def test_what_he_put_in_stays_and_the_rest_goes_back_behind_the_hands_entry() -> None:
    room = await three()
    await room.act()
    await room.act(ActionKind.COMPLETE, 5)
    await room.act()
    actor = room.to_act()[0]
    table = room.table
    assert table.hand is not None
    number = table.seat_of(actor)
    assert number is not None
    put_in = table.hand.put_in[number]
    await leave(room, actor)
    await room.play_out()
    last, before = room.store.outbox[-1].ledger, room.store.outbox[-2].ledger
    assert before.WhichOneof("entry") == "hand"
    assert (last.cash_out.player_id, last.cash_out.amount) == (actor, 200 - put_in)


async def test_who_is_all_in_and_leaves_plays_on_and_may_win() -> None:
    room = FakeRoom(seed=4)
    await room.create()
    await room.seat("anna", "ben", "carla")

    def shorten(table: object) -> None:
        seat = table.blob.seats[0]  # type: ignore[attr-defined]
        seat.stack = seat.brought = 1

    room.write(shorten)
    await room.start_hand()
    table = room.table
    assert table.hand is not None
    assert 0 in table.hand.all_in
    assert not await leave(room, "anna")
    assert not folded(room, "anna")
    assert room.seat_of("anna").status is SeatStatus.LEAVING
    await room.play_out()
    assert room.table.seat_of("anna") is None
    record = room.store.outbox[-2].hand
    anna = next(each for each in record.players if each.player_id == "anna")
    assert anna.at_showdown
    assert room.store.outbox[-1].ledger.cash_out.amount == anna.finishing_stack


async def test_the_only_one_who_can_claim_a_layer_is_not_folded_out_of_it() -> None:
    room = FakeRoom(seed=4)
    await room.create()
    await room.seat("anna", "ben", "carla")

    def shorten(table: object) -> None:
        for number in (0, 1):
            seat = table.blob.seats[number]  # type: ignore[attr-defined]
            seat.stack = seat.brought = 12

    room.write(shorten)
    await room.start_hand()
    while True:
        table = room.table
        assert table.hand is not None
        if table.hand.all_in >= {0, 1}:
            break
        await room.act(*bold(room.to_act()[1]))
        if room.table.hand is None:
            raise AssertionError("the hand was over before it came to that")
    await leave(room, "carla")
    if room.table.hand is not None:
        await room.play_out()
    record = room.store.outbox[-2].hand
    carla = next(each for each in record.players if each.player_id == "carla")
    table_chips = sum(each.finishing_stack for each in record.players)
    assert table_chips == 12 + 12 + 200
    assert room.store.outbox[-1].ledger.cash_out.amount == carla.finishing_stack


async def test_all_leave_and_the_last_one_takes_what_is_in_the_middle() -> None:
    room = await three()
    await leave(room, "anna")
    await leave(room, "ben")
    assert room.table.hand is None
    assert room.seat_of("carla").stack > 200
    assert await leave(room, "carla")
    assert not room.table.blob.seats
    assert sum(e.ledger.cash_out.amount for e in room.store.outbox) == 600


# Coming back


async def modern() -> FakeRoom:
    """A table for 10 to 40 big bets with anna, who has twice the least buy-in."""
    room = FakeRoom()
    await room.create(rulebook="modern", stake_name="1/2")
    await room.seat("anna", buy_in=2 * room.table.stake.buy_in_min)
    return room


async def refused(room: FakeRoom, player: str, buy_in: int) -> DoorcardError:
    """Why he is not seated."""
    with pytest.raises(DoorcardError) as caught:
        await room.take_seat(player, buy_in=buy_in)
    return caught.value


async def test_who_left_with_more_than_the_least_brings_it_back_for_a_time() -> None:
    room = await modern()
    least = room.table.stake.buy_in_min
    left_at = room.store.ms
    await leave(room, "anna")
    error = await refused(room, "anna", 2 * least - 1)
    assert error.reason == "REJOIN_MINIMUM"
    assert error.metadata["buy_in_min"] == str(2 * least)
    assert int(error.metadata["until"]) == (left_at + STANDARD.rejoin_ms) // 1000
    assert len(room.wallet.reservations) == 1
    await room.take_seat("ben", buy_in=least)
    room.store.ms = left_at + STANDARD.rejoin_ms
    await room.take_seat("anna", buy_in=least)


async def test_back_with_all_of_it_the_rule_is_met_and_begins_anew() -> None:
    room = await modern()
    least = room.table.stake.buy_in_min
    await leave(room, "anna")
    await room.take_seat("anna", buy_in=2 * least)
    assert not room.table.blob.left
    assert (await room.take_seat("ben", buy_in=least))[0] == 1


async def test_more_than_the_most_is_brought_back_all_the_same() -> None:
    room = await modern()
    stake = room.table.stake

    def win(table: object) -> None:
        seat = table.blob.seats[0]  # type: ignore[attr-defined]
        seat.stack = seat.brought = 3 * stake.buy_in_max

    room.write(win)
    await leave(room, "anna")
    assert (await refused(room, "anna", stake.buy_in_max)).reason == "REJOIN_MINIMUM"
    assert (await refused(room, "anna", 3 * stake.buy_in_max + 1)).reason == "BUY_IN_TOO_LARGE"
    await room.take_seat("anna", buy_in=3 * stake.buy_in_max)


async def test_who_left_with_no_more_than_the_least_comes_back_with_it() -> None:
    room = await modern()
    least = room.table.stake.buy_in_min
    await room.seat("ben", buy_in=least)
    await leave(room, "ben")
    assert not room.table.blob.left
    await room.take_seat("ben", buy_in=least)


async def test_where_stacks_are_equal_everybody_begins_with_the_same_again() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna")

    def win(table: object) -> None:
        seat = table.blob.seats[0]  # type: ignore[attr-defined]
        seat.stack = seat.brought = 600

    room.write(win)
    await leave(room, "anna")
    await room.take_seat("anna")


async def test_what_is_remembered_of_those_who_left_is_bounded_and_small() -> None:
    room = await modern()
    least = room.table.stake.buy_in_min
    empty = len(room.store.tables[room.table_id].blob)
    for n in range(LEFT_MAX + 3):
        await room.take_seat(f"player-{n}", buy_in=2 * least)
        await leave(room, f"player-{n}")
    assert len(room.table.blob.left) == LEFT_MAX
    room.write(lambda table: table.blob.remembered.clear())
    assert len(room.store.tables[room.table_id].blob) - empty < 20 * LEFT_MAX
    await room.take_seat("player-0", buy_in=least)
    assert (await refused(room, f"player-{LEFT_MAX}", least)).reason == "REJOIN_MINIMUM"


async def test_who_leaves_between_hands_does_so_where_the_store_has_no_memory_left() -> None:
    room = FakeRoom(seed=4)
    await room.create()
    await room.seat("anna", "ben", "carla")
    assert not room.store.commits[-1].when_full
    assert await leave(room, "carla")
    assert room.store.commits[-1].when_full
    await room.start_hand()
    assert not room.store.commits[-2].when_full
    assert room.store.commits[-1].when_full


async def test_a_hand_does_not_begin_there_though_somebody_leaves_in_the_same_moment() -> None:
    room = FakeRoom(seed=4)
    await room.create()
    await room.seat("anna", "ben", "carla")

    def long_gone(table: Table) -> None:
        seat = table.blob.seats[table.seat_of("carla") or 0]
        seat.status, seat.freed_at_ms = SeatStatus.SITTING_OUT, 1

    room.write(long_gone)
    before = len(room.store.commits)
    assert (await room.start_hand()).seat_of("carla") is None
    assert [each.when_full for each in room.store.commits[before:]] == [False, True]
