"""Re-buys and top-ups: reserved at once, in play between hands, given back if they may not be."""

import grpc
import pytest
from doorcard.wallet.v1 import wallet_pb2

from services.game.rulebook import UNITS_MAX
from services.game.wants import ActionKind
from services.runtime.errors import (
    AlreadyExists,
    Code,
    DoorcardError,
    FailedPrecondition,
)
from services.table.draft import money
from services.table.hands import hands, standing
from services.table.state.state import BrokenConservation, SeatStatus, Table, money_of
from services.table.tables.mailbox import TICKS
from tests.unit.table.rooms import FakeRoom, bold
from tests.unit.table.test_buy_ins_and_cash_outs import entries

PENDING = wallet_pb2.RESERVATION_STATE_PENDING
COMMITTED = wallet_pb2.RESERVATION_STATE_COMMITTED


async def playing(**fields: object) -> FakeRoom:
    """A hand of two under the announced minimum, which is 5000 here; anna is in seat 0."""
    room = FakeRoom(seed=3)
    await room.create(**{"rulebook": "triopoker", "stake_name": "5/10", **fields})
    await room.seat("anna", "ben", buy_in=room.table.stake.buy_in_min)
    await room.start_hand()
    return room


def reservation(room: FakeRoom, request_id: str, player: str = "anna") -> str:
    """Id of the reservation of a TopUp request."""
    return str(money.top_up_of(player, room.table_id, request_id))


async def refusal(room: FakeRoom, player: str, amount: int, request_id: str = "") -> DoorcardError:
    """Why a TopUp is refused."""
    with pytest.raises(DoorcardError) as caught:
        await room.top_up(player, amount, request_id)
    return caught.value


def broke(room: FakeRoom, player: str = "anna") -> None:
    """The player has lost everything between hands; the room does not ask where it went."""

    def lose(table: Table) -> None:
        seat = table.blob.seats[table.seat_of(player) or 0]
        seat.stack, seat.brought, seat.status = 0, 0, SeatStatus.SITTING_OUT

    room.write(lose)


async def test_in_a_hand_it_is_held_and_comes_into_play_when_the_hand_is_over() -> None:
    room = await playing()
    stack = room.seat_of("anna").stack
    version, held = await room.top_up("anna", 1000, "t1")
    assert (version, held) == (room.table.version, 1000)
    seat = room.seat_of("anna")
    assert (seat.stack, seat.brought) == (stack, stack)
    assert room.wallet.reservations[reservation(room, "t1")].sitting_id == seat.sitting_id
    assert [kind for kind, _ in entries(room)] == ["commit", "commit"]
    shown = (await room.tables.view(room.table_id, "ben")).seats[0]
    assert (shown.player_id, shown.held) == ("anna", 1000)
    await room.play_out()
    assert entries(room)[2:][0][0] == "hand"
    assert entries(room)[3:] == [("commit", reservation(room, "t1"))]
    nets = {each.sitting_id: each.amount for each in room.store.outbox[2].ledger.hand.nets}
    seat = room.seat_of("anna")
    assert seat.stack == seat.brought == stack + nets[seat.sitting_id] + 1000
    assert seat.held is None


async def test_nothing_is_added_to_the_stack_that_plays() -> None:
    room = await playing()
    before = room.table.hand
    assert before is not None
    await room.top_up("anna", 100_000)
    after = room.table.hand
    assert after is not None
    assert after.stacks == before.stacks


async def test_between_hands_it_is_in_play_at_once() -> None:
    room = await playing()
    await room.play_out()
    stack = room.seat_of("anna").stack
    _, held = await room.top_up("anna", 700, "t1")
    assert held == 0
    assert room.seat_of("anna").stack == stack + 700
    assert entries(room)[-1] == ("commit", reservation(room, "t1"))


async def test_who_is_not_in_the_running_hand_has_it_at_once() -> None:
    room = await playing()
    await room.take_seat("carla", buy_in=room.table.stake.buy_in_min)
    _, held = await room.top_up("carla", 5)
    assert held == 0


async def test_a_repeated_request_adds_once_whenever_it_is_repeated() -> None:
    room = await playing()
    first = await room.top_up("anna", 1000, "t1")
    assert (await room.top_up("anna", 1000, "t1"))[1] == first[1] == 1000
    await room.play_out()
    stack = room.seat_of("anna").stack
    assert (await room.top_up("anna", 1000, "t1"))[1] == 0
    # The table forgets; the ledger does not.
    reserved = room.wallet.reservations[reservation(room, "t1")]
    reserved.state = COMMITTED
    for _ in range(2):
        room.store.ms += 10 * money.REMEMBERED_FOR_MS
        await room.start_hand()
        await room.play_out()
    assert not room.table.blob.remembered
    stack = room.seat_of("anna").stack
    assert (await room.top_up("anna", 1000, "t1"))[1] == 0
    assert room.seat_of("anna").stack == stack
    assert [each for each in entries(room) if each[1] == reservation(room, "t1")] == [
        ("commit", reservation(room, "t1"))
    ]


async def test_a_repeat_is_answered_also_when_a_new_one_would_be_refused() -> None:
    room = FakeRoom()
    await room.create(rulebook="modern", stake_name="1/2")
    stake = room.table.stake
    await room.seat("anna", buy_in=stake.buy_in_min)
    rest = stake.buy_in_max - stake.buy_in_min
    await room.top_up("anna", rest, "t1")
    room.wallet.reservations[reservation(room, "t1")].state = COMMITTED
    room.write(lambda table: table.blob.remembered.clear())
    assert (await room.top_up("anna", rest, "t1"))[1] == 0
    assert (await refusal(room, "anna", rest - 1, "t1")).reason == "ID_REUSED"
    assert (await refusal(room, "anna", rest)).reason == "BUY_IN_TOO_LARGE"


async def test_a_request_id_used_again_for_another_amount_is_refused() -> None:
    room = await playing()
    await room.top_up("anna", 1000, "t1")
    with pytest.raises(AlreadyExists):
        await room.top_up("anna", 999, "t1")


@pytest.mark.parametrize("held", [True, False])
async def test_a_request_id_used_again_is_refused_also_when_its_chips_are_in_play(
    held: bool,
) -> None:
    room = await playing()
    if not held:
        await room.play_out()
    await room.top_up("anna", 1000, "t1")
    if held:
        await room.play_out()
    before, outbox = room.table.encode(), len(room.store.outbox)
    for other in (999, 1001):
        error = await refusal(room, "anna", other, "t1")
        assert (error.code, error.reason) == (Code.ALREADY_EXISTS, "ID_REUSED")
    assert (await room.top_up("anna", 1000, "t1"))[1] == 0
    assert (room.table.encode(), len(room.store.outbox)) == (before, outbox)


async def test_a_repeat_of_a_top_up_that_is_remembered_without_its_amount_is_answered() -> None:
    room = await playing()
    await room.play_out()
    await room.top_up("anna", 1000, "t1")

    def as_before(table: Table) -> None:
        for each in table.blob.remembered.values():
            each.amount = 0

    room.write(as_before)
    assert (await room.top_up("anna", 1000, "t1"))[1] == 0


async def test_a_top_up_has_another_reservation_than_a_take_seat_of_the_same_request_id() -> None:
    room = FakeRoom()
    await room.create(rulebook="triopoker", stake_name="5/10")
    buy_in = room.table.stake.buy_in_min
    await room.take_seat("anna", "r1", buy_in=buy_in)
    await room.top_up("anna", buy_in, "r1")
    assert room.seat_of("anna").stack == 2 * buy_in


async def test_one_waits_at_a_time() -> None:
    room = await playing()
    await room.top_up("anna", 1000)
    error = await refusal(room, "anna", 1)
    assert (error.reason, error.metadata["held"]) == ("TOP_UP_HELD", "1000")


async def test_a_short_re_buy_is_refused_and_a_short_top_up_is_free() -> None:
    room = await playing()
    await room.play_out()
    least = room.table.stake.buy_in_min
    await room.top_up("anna", 1)
    broke(room)
    error = await refusal(room, "anna", least - 1)
    assert (error.reason, error.metadata["buy_in_min"]) == ("BUY_IN_TOO_SMALL", str(least))
    await room.top_up("anna", least)
    seat = room.seat_of("anna")
    assert (seat.stack, seat.status) == (least, SeatStatus.PLAYING)


async def test_the_most_bounds_stack_and_top_up_together() -> None:
    room = FakeRoom()
    await room.create(rulebook="modern", stake_name="1/2")
    stake = room.table.stake
    await room.seat("anna", buy_in=stake.buy_in_max - 10)
    error = await refusal(room, "anna", 11)
    assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "BUY_IN_TOO_LARGE")
    await room.top_up("anna", 10)
    assert room.seat_of("anna").stack == stake.buy_in_max


async def test_where_stacks_are_equal_nothing_is_added() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna")
    assert (await refusal(room, "anna", 50)).reason == "NO_TOP_UPS"
    assert len(room.wallet.reservations) == 1


async def test_what_would_be_too_much_after_the_hand_goes_back() -> None:
    room = FakeRoom(seed=3)
    await room.create(rulebook="modern", stake_name="1/2")
    stake = room.table.stake
    await room.seat("anna", "ben", buy_in=stake.buy_in_max)
    await room.start_hand()
    # Whoever wins the antes is over the most with what both may add now.
    for player in ("anna", "ben"):
        await room.top_up(player, 1, player)
    await room.play_out()
    winner, loser = sorted(("anna", "ben"), key=lambda player: -room.seat_of(player).stack)
    assert room.seat_of(winner).stack > stake.buy_in_max
    about = {about: kind for kind, about in entries(room)}
    assert about[reservation(room, winner, winner)] == "release"
    assert about[reservation(room, loser, loser)] == "commit"
    assert room.seat_of(winner).held is None


async def test_leaving_gives_back_what_is_held() -> None:
    room = await playing()
    await room.top_up("anna", 1000, "t1")
    await room.tables.leave(room.table_id, "anna")
    if room.table.hand is not None:
        await room.play_out()
    assert room.table.seat_of("anna") is None
    assert ("release", reservation(room, "t1")) in entries(room)
    assert room.store.outbox[-1].ledger.WhichOneof("entry") in {"release", "cash_out"}
    assert (await refusal(room, "anna", 1000, "t1")).reason == "RESERVATION_SPENT"


async def test_who_has_no_seat_or_leaves_cannot_add() -> None:
    room = await playing()
    assert (await refusal(room, "carla", 1000)).reason == "NOT_SEATED"
    await room.take_seat("carla", buy_in=room.table.stake.buy_in_min)
    await room.play_out()
    await room.start_hand()
    idle = next(p for p in ("anna", "ben", "carla") if p != room.to_act()[0])
    await room.tables.leave(room.table_id, idle)
    assert (await refusal(room, idle, 1000)).reason == "LEAVING"


async def test_what_came_too_late_or_for_a_seat_that_was_left_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = await playing()
    with monkeypatch.context() as patch:
        patch.setattr(money, "TAKE_SEAT_LIFE_S", 0.0)
        assert (await refusal(room, "anna", 1000, "t1")).reason == "TOP_UP_TOO_OLD"
    assert entries(room)[-1] == ("release", reservation(room, "t1"))
    assert (await refusal(room, "anna", 1000, "t1")).reason == "RESERVATION_SPENT"
    await room.play_out()

    async def anna_leaves_and_comes_back() -> None:
        room.wallet.after_reserve = None
        await room.tables.leave(room.table_id, "anna")
        await room.take_seat("anna", "again", buy_in=100_000)

    room.wallet.after_reserve = anna_leaves_and_comes_back
    assert (await refusal(room, "anna", 1000, "t2")).reason == "NOT_SEATED"
    assert entries(room)[-1] == ("release", reservation(room, "t2"))
    assert room.seat_of("anna").stack == 100_000


async def test_resolve_knows_what_is_held_what_came_in_and_what_went_back() -> None:
    room = await playing()
    sitting = room.seat_of("anna").sitting_id
    await room.top_up("anna", 1000, "t1")
    held = reservation(room, "t1")
    assert await room.tables.resolve_reservation(room.table_id, held, sitting)
    assert room.seat_of("anna").held is not None
    await room.play_out()
    assert await room.tables.resolve_reservation(room.table_id, held, sitting)
    lost = reservation(room, "t2")
    room.wallet.reservations[lost] = wallet_pb2.Reservation(
        reservation_id=lost, table_id=room.table_id, sitting_id=sitting, state=PENDING
    )
    assert not await room.tables.resolve_reservation(room.table_id, lost, sitting)
    assert entries(room)[-1] == ("release", lost)


async def test_what_is_held_is_told_beside_the_money_in_play() -> None:
    room = await playing()
    stacks = room.seat_of("anna").stack
    await room.top_up("anna", 1000, "t1")
    found = money_of(room.store.tables[room.table_id].blob)
    assert found.held == [(reservation(room, "t1"), room.seat_of("anna").sitting_id, 1000)]
    assert [amount for _, _, amount in found.sittings] == [stacks, stacks]


async def test_a_table_that_holds_what_it_must_not_is_neither_loaded_nor_committed() -> None:
    room = await playing()
    await room.top_up("anna", 1000, "t1")
    stored = room.store.tables[room.table_id]
    for wrong in ({"amount": 0}, {"reservation": room.seat_of("anna").reservation}):
        table = Table.load(room.table_id, stored)
        held = table.blob.seats[0].held
        assert held is not None
        for field, value in wrong.items():
            setattr(held, field, value)
        with pytest.raises(BrokenConservation):
            table.check()


async def test_a_void_hand_lets_it_come_in_too() -> None:
    room = await playing()
    stack = room.seat_of("anna").stack
    await room.top_up("anna", 1000)
    await room.tables.change(
        room.table_id, TICKS, "void", lambda draft: hands.void(draft, "a test")
    )
    assert room.seat_of("anna").stack == stack + 1000


async def test_who_is_all_in_may_re_buy_for_the_next_hand_and_a_short_one_goes_back() -> None:
    room = FakeRoom(seed=5)
    await room.create(rulebook="triopoker", stake_name="5/10")
    least = room.table.stake.buy_in_min
    await room.seat("anna", "ben", buy_in=least)
    for _ in range(200):
        await room.start_hand()
        while room.table.hand is not None and all(room.table.hand.stacks.values()):
            legal = room.to_act()[1].legal
            if legal.wagers:
                await room.act(ActionKind(legal.wager_kind), legal.wagers[-1])
            else:
                await room.act()
        if room.table.hand is not None:
            break
        if min(seat.stack for seat in room.table.blob.seats.values()) == 0:
            break
    if room.table.hand is None:
        player = next(s.player_id for s in room.table.blob.seats.values() if not s.stack)
        with pytest.raises(FailedPrecondition):
            await room.top_up(player, least - 1)
        return
    player = next(
        room.table.blob.seats[number].player_id
        for number, stack in room.table.hand.stacks.items()
        if not stack
    )
    await room.top_up(player, least - 1, "short")
    await room.play_out()
    kind = {about: kind for kind, about in entries(room)}[reservation(room, "short", player)]
    assert kind == ("release" if room.seat_of(player).stack == 0 else "commit")


async def test_two_replicas_that_take_one_request_at_once_add_it_once() -> None:
    room = await playing()
    other = room.seating(room.replica("replica-2"))
    answers = []

    async def the_other_is_quicker() -> None:
        room.wallet.after_reserve = None
        answers.append(await other.top_up(room.table_id, "anna", "t1", 1000))

    room.wallet.after_reserve = the_other_is_quicker
    answers.append(await room.top_up("anna", 1000, "t1"))
    assert {held for _, held in answers} == {1000}
    await room.play_out()
    assert [about for _, about in entries(room)].count(reservation(room, "t1")) == 1


async def test_without_the_wallet_nothing_is_held_and_the_request_may_come_again() -> None:
    room = await playing()
    room.wallet.failing = grpc.StatusCode.UNAVAILABLE
    error = await refusal(room, "anna", 1000, "t1")
    assert error.retriable
    assert room.seat_of("anna").held is None
    room.wallet.failing = None
    assert (await room.top_up("anna", 1000, "t1"))[1] == 1000


async def test_a_table_that_closes_pays_out_what_came_in_with_its_last_hand() -> None:
    room = await playing()
    await room.top_up("anna", 1000, "t1")
    await room.tables.change(
        room.table_id, TICKS, "close", lambda draft: standing.close(draft, "a test")
    )
    assert (await refusal(room, "ben", 1000)).reason in {"TABLE_CLOSING", "TABLE_CLOSED"}
    await room.play_out()
    kinds = [kind for kind, _ in entries(room)]
    assert kinds[-3:] == ["commit", "cash_out", "cash_out"]
    paid = sum(entry.ledger.cash_out.amount for entry in room.store.outbox)
    rake = sum(entry.ledger.hand.rake for entry in room.store.outbox)
    assert paid + rake == 2 * room.table.stake.buy_in_min + 1000


async def test_no_table_has_more_chips_than_is_an_amount_of_money() -> None:
    room = FakeRoom(seed=3)
    await room.create(rulebook="triopoker", stake_name="5/10")
    least = room.table.stake.buy_in_min
    await room.take_seat("anna", buy_in=UNITS_MAX - 3 * least)
    await room.seat("ben", buy_in=least)
    assert (await refusal(room, "ben", 2 * least + 1)).reason == "TABLE_CHIPS_MAX"
    await room.start_hand()
    # What waits for the next deal counts, and what lies in the pots.
    await room.top_up("anna", least)
    assert (await refusal(room, "ben", least + 1)).reason == "TABLE_CHIPS_MAX"
    with pytest.raises(FailedPrecondition) as caught:
        await room.take_seat("carla", buy_in=least + 1)
    assert caught.value.reason == "TABLE_CHIPS_MAX"
    await room.take_seat("carla", buy_in=least)
    await room.play_out(bold)
    assert sum(seat.stack for seat in room.table.blob.seats.values()) == UNITS_MAX
