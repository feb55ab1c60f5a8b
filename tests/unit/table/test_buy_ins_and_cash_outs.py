"""The life of money at a table: every reservation is seated or given back, once."""

from collections import Counter
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2

from services.game.wants import ActionKind
from services.runtime.errors import (
    AlreadyExists,
    Code,
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from services.runtime.ids import uuid7
from services.table.draft import money
from services.table.hands import reservations
from services.table.state.state import SeatStatus, Table, TableStatus, decode, money_of
from tests.unit.table.rooms import FakeRoom, bold


async def open_table(**fields: object) -> FakeRoom:
    """A room with an empty table."""
    room = FakeRoom()
    await room.create(**fields)
    return room


def entries(room: FakeRoom) -> list[tuple[str, str]]:
    """Kind and id of what each entry of the outbox is about."""
    found: list[tuple[str, str]] = []
    for each in room.store.outbox:
        kind = each.ledger.WhichOneof("entry")
        assert kind is not None
        about = getattr(each.ledger, kind)
        name = {"hand": "hand_id", "cash_out": "sitting_id"}.get(kind, "reservation_id")
        found.append((kind, getattr(about, name)))
    assert max(Counter(e.ledger.entry_id for e in room.store.outbox).values(), default=0) <= 1
    return found


async def refusal(room: FakeRoom, *args: object, **fields: object) -> DoorcardError:
    """Why a TakeSeat is refused."""
    with pytest.raises(DoorcardError) as caught:
        await room.take_seat(*args, **fields)  # type: ignore[arg-type]
    return caught.value


async def test_a_buy_in_is_reserved_seated_and_committed() -> None:
    room = await open_table()
    seat, version, sitting_id = await room.take_seat("anna", "r1", number=3)
    assert (seat, version) == (3, room.table.version)
    (reservation,) = room.wallet.reservations.values()
    assert reservation.sitting_id == sitting_id
    assert entries(room) == [("commit", reservation.reservation_id)]
    taken = room.table.blob.seats[3]
    assert (taken.stack, taken.brought, taken.reservation_id) == (
        200,
        200,
        reservation.reservation_id,
    )


async def test_a_repeated_take_seat_seats_once() -> None:
    room = await open_table()
    first = await room.take_seat("anna", "r1")
    again = await room.take_seat("anna", "r1")
    assert (again[0], again[2]) == (first[0], first[2])
    assert len(entries(room)) == 1
    assert len(room.table.blob.seats) == 1


async def test_a_seat_that_is_gone_by_the_time_of_the_money_gives_the_money_back() -> None:
    room = await open_table()
    other = room.replica("replica-2")

    async def anna_is_quicker() -> None:
        room.wallet.after_reserve = None
        seating = room.seating(other)
        await seating.take_seat(room.table_id, "anna", "Anna", "a1", number=0, buy_in=200)

    room.wallet.after_reserve = anna_is_quicker
    error = await refusal(room, "ben", "b1", number=0)
    assert error.reason == "SEAT_TAKEN"
    reservation = str(money.reservation_of("ben", room.table_id, "b1"))
    assert entries(room)[-1] == ("release", reservation)
    # The seat is free again, but this request was answered.
    await room.tables.leave(room.table_id, "anna")
    error = await refusal(room, "ben", "b1", number=0)
    assert error.reason == "RESERVATION_SPENT"
    assert [kind for kind, _ in entries(room)].count("release") == 1


@pytest.mark.parametrize(
    "state", [wallet_pb2.RESERVATION_STATE_COMMITTED, wallet_pb2.RESERVATION_STATE_RELEASED]
)
async def test_only_a_pending_reservation_may_be_seated(
    state: wallet_pb2.ReservationState.ValueType,
) -> None:
    room = await open_table()

    async def was_answered_before() -> None:
        for each in room.wallet.reservations.values():
            each.state = state

    room.wallet.after_reserve = was_answered_before
    error = await refusal(room, "anna", "r1")
    assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "RESERVATION_SPENT")
    assert not room.store.outbox
    assert not room.table.blob.seats


async def test_a_take_seat_that_took_too_long_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    room = await open_table()
    monkeypatch.setattr(money, "TAKE_SEAT_LIFE_S", 0.0)
    error = await refusal(room, "anna", "r1")
    assert error.reason == "TAKE_SEAT_TOO_OLD"
    assert [kind for kind, _ in entries(room)] == ["release"]
    error = await refusal(room, "anna", "r1")
    assert error.reason == "RESERVATION_SPENT"
    assert [kind for kind, _ in entries(room)] == ["release"]


async def test_a_sitting_is_never_seated_twice_even_after_leaving() -> None:
    room = await open_table()
    await room.take_seat("anna", "r1")
    await room.tables.leave(room.table_id, "anna")
    error = await refusal(room, "anna", "r1")
    assert error.reason == "RESERVATION_SPENT"
    assert [kind for kind, _ in entries(room)] == ["commit", "cash_out"]


async def test_the_stake_bounds_the_buy_in_and_the_table_its_seats() -> None:
    room = await open_table(rulebook="modern", stake_name="1/2", seats=2)
    stake = room.table.stake
    assert (await refusal(room, "anna", buy_in=stake.buy_in_min - 1)).reason == "BUY_IN_TOO_SMALL"
    assert (await refusal(room, "anna", buy_in=stake.buy_in_max + 1)).reason == "BUY_IN_TOO_LARGE"
    await room.seat("anna", buy_in=stake.buy_in_max)
    assert (await refusal(room, "anna", buy_in=stake.buy_in_min)).reason == "ALREADY_SEATED"
    assert (await refusal(room, "ben", number=0, buy_in=stake.buy_in_min)).reason == "SEAT_TAKEN"
    with pytest.raises(InvalidArgument):
        await room.take_seat("ben", number=2, buy_in=stake.buy_in_min)
    await room.seat("ben", buy_in=stake.buy_in_min)
    assert (await refusal(room, "carla", buy_in=stake.buy_in_min)).reason == "TABLE_FULL"
    assert len(room.wallet.reservations) == 2


async def test_no_money_is_reserved_for_an_unknown_table() -> None:
    room = FakeRoom()
    room.table_id = uuid7()
    with pytest.raises(NotFound):
        await room.take_seat("anna")
    assert not room.wallet.reservations


async def test_leaving_between_hands_pays_the_stack_at_once() -> None:
    room = await open_table()
    _, _, sitting_id = await room.take_seat("anna")
    version, left = await room.tables.leave(room.table_id, "anna")
    assert (version, left) == (room.table.version, True)
    assert room.store.outbox[-1].ledger.cash_out == wallet_pb2.CashOut(
        sitting_id=sitting_id, player_id="anna", amount=200
    )
    assert not room.table.blob.seats
    assert await room.tables.leave(room.table_id, "anna") == (version, True)


async def test_leaving_in_a_hand_folds_and_pays_after_the_hands_entry() -> None:
    room = await open_table()
    await room.seat("anna", "ben", "carla")
    await room.start_hand()
    actor, _, _ = room.to_act()
    idle = next(each for each in ("anna", "ben", "carla") if each != actor)
    _, left = await room.tables.leave(room.table_id, idle)
    assert not left
    number = room.table.seat_of(idle)
    assert number is not None
    hand = room.table.hand
    assert hand is not None
    assert number in hand.folded
    assert room.table.blob.seats[number].status is SeatStatus.LEAVING
    await room.play_out()
    assert [kind for kind, _ in entries(room)][-2:] == ["hand", "cash_out"]
    assert room.table.seat_of(idle) is None
    assert room.store.outbox[-1].ledger.cash_out.amount == 199


async def test_the_leaving_of_the_last_opponent_ends_the_hand_and_pays_him_in_one_commit() -> None:
    room = await open_table()
    await room.seat("anna", "ben")
    await room.start_hand()
    actor, _, _ = room.to_act()
    _, left = await room.tables.leave(room.table_id, actor)
    assert left
    assert [kind for kind, _ in entries(room)][-2:] == ["hand", "cash_out"]
    assert room.table.hand is None
    assert sum(seat.stack for seat in room.table.blob.seats.values()) == 201


async def test_a_broke_player_is_not_dealt_in_and_cannot_sit_back() -> None:
    room = FakeRoom(seed=2)
    await room.create()
    await room.seat("anna", "ben")
    while len(room.table.ready()) > 1:
        await room.start_hand()
        await room.play_out(bold)
    broke = next(s for s in room.table.blob.seats.values() if not s.stack)
    assert broke.status is SeatStatus.SITTING_OUT
    assert not room.table.blob.due_ms
    with pytest.raises(FailedPrecondition) as caught:
        await room.tables.sit_back(room.table_id, broke.player_id)
    assert caught.value.reason == "NO_CHIPS"
    await room.tables.leave(room.table_id, broke.player_id)
    assert room.store.outbox[-1].ledger.cash_out.amount == 0


async def test_who_sits_out_is_not_dealt_in_and_pays_no_ante() -> None:
    room = await open_table()
    await room.seat("anna", "ben", "carla")
    await room.tables.sit_out(room.table_id, "carla")
    version = await room.tables.sit_out(room.table_id, "carla")
    assert version == room.table.version
    table = await room.start_hand()
    number = table.seat_of("carla")
    assert table.blob.hand is not None
    assert number not in table.blob.hand.seats
    await room.play_out()
    assert room.table.blob.seats[number or 2].stack == 200
    await room.tables.sit_back(room.table_id, "carla")
    table = await room.start_hand()
    assert table.blob.hand is not None
    assert number in table.blob.hand.seats


async def test_resolve_finds_what_is_seated_and_refuses_what_is_not() -> None:
    room = await open_table()
    await room.take_seat("anna", "r1")
    seated = str(money.reservation_of("anna", room.table_id, "r1"))
    sitting = str(money.sitting_of("anna", room.table_id, "r1"))
    assert await room.tables.resolve_reservation(room.table_id, seated, sitting)
    await room.tables.leave(room.table_id, "anna")
    assert await room.tables.resolve_reservation(room.table_id, seated, sitting)
    lost, nobody = room.wallet.lost(room.table_id)
    for _ in range(2):
        assert not await room.tables.resolve_reservation(room.table_id, lost, nobody)
    assert [each for each in entries(room) if each[0] == "release"] == [("release", lost)]


async def test_what_was_reserved_goes_back_where_the_store_has_no_memory_left() -> None:
    room = await open_table()
    await room.take_seat("anna", "r1")
    assert not room.store.commits[-1].when_full
    await room.tables.resolve_reservation(room.table_id, *room.wallet.lost(room.table_id))
    assert entries(room)[-1][0] == "release"
    assert room.store.commits[-1].when_full


async def test_a_reservation_of_another_table_or_sitting_is_refused_and_changes_nothing() -> None:
    room = await open_table()
    await room.take_seat("anna", "r1")
    elsewhere, there = room.wallet.lost(uuid7())
    here, nobody = room.wallet.lost(room.table_id)
    before, written = room.table.version, entries(room)
    for reservation, sitting, kind, reason in (
        (elsewhere, there, FailedPrecondition, "TABLE_DIFFERS"),
        (here, there, FailedPrecondition, "SITTING_DIFFERS"),
        (str(uuid4()), nobody, NotFound, ""),
    ):
        with pytest.raises(kind) as refused:
            await room.tables.resolve_reservation(room.table_id, reservation, sitting)
        assert reason in refused.value.reason
    assert (room.table.version, entries(room)) == (before, written)


async def test_a_resolved_reservation_is_not_seated_afterwards() -> None:
    room = await open_table()
    reservation = str(money.reservation_of("anna", room.table_id, "r1"))
    sitting = str(money.sitting_of("anna", room.table_id, "r1"))
    room.wallet.reservations[reservation] = wallet_pb2.Reservation(
        reservation_id=reservation,
        table_id=room.table_id,
        sitting_id=sitting,
        state=wallet_pb2.RESERVATION_STATE_PENDING,
    )
    assert not await room.tables.resolve_reservation(room.table_id, reservation, sitting)
    assert (await refusal(room, "anna", "r1")).reason == "RESERVATION_SPENT"
    assert not room.table.blob.seats


async def test_a_reservation_for_a_table_that_never_was_is_buried_and_released() -> None:
    room = FakeRoom()
    table_id = uuid7()
    reservation, sitting = str(uuid4()), str(uuid4())
    room.wallet.reservations[reservation] = wallet_pb2.Reservation(
        reservation_id=reservation, table_id=table_id, sitting_id=sitting, currency="EUR"
    )
    for _ in range(2):
        assert not await room.tables.resolve_reservation(table_id, reservation, sitting)
    assert entries(room) == [("release", reservation)]
    assert room.store.outbox[0].ledger.currency == "EUR"
    assert not room.store.lobby
    assert decode(room.store.tables[table_id].blob).status is TableStatus.CLOSED
    with pytest.raises(NotFound):
        await room.tables.read(table_id)
    with pytest.raises(NotFound):
        await room.tables.sit_out(table_id, "anna")


async def test_remembered_reservations_are_forgotten_once_the_ledger_has_them() -> None:
    room = await open_table()
    for n in range(reservations.REMEMBERED_MAX):
        await room.tables.resolve_reservation(room.table_id, *room.wallet.lost(room.table_id))
        assert len(room.table.blob.remembered) == n + 1
    assert (await refusal(room, "anna")).reason == "RESERVATIONS_FULL"
    # The oldest entry that waits is the first release, by a clock a little before ours.
    room.store.ms += 10 * money.REMEMBERED_FOR_MS
    room.store.undrained_ms = 10 * money.REMEMBERED_FOR_MS - 5
    assert (await refusal(room, "anna")).reason == "RESERVATIONS_FULL"
    # The ledger catches up; whoever was told "pending" just before may still be under way.
    room.store.undrained_ms = 0
    assert (await refusal(room, "anna")).reason == "RESERVATIONS_FULL"
    room.store.ms += money.REMEMBERED_FOR_MS
    assert (await refusal(room, "anna")).reason == "RESERVATIONS_FULL"
    # Nobody plays here, so no tick does it.
    room.store.ms += 1
    await room.take_seat("anna")
    assert not room.table.blob.remembered


async def test_who_comes_and_goes_all_the_time_keeps_only_himself_from_a_seat() -> None:
    room = await open_table()
    for _ in range(reservations.REMEMBERED_PER_PLAYER_MAX):
        await room.take_seat("anna")
        await room.tables.leave(room.table_id, "anna")
    assert (await refusal(room, "anna")).reason == "RESERVATIONS_FULL"
    await room.take_seat("ben")


async def test_a_request_id_used_again_for_another_seat_or_buy_in_is_refused() -> None:
    room = await open_table()
    first = await room.take_seat("anna", "r1")
    for changes in ({"buy_in": 199}, {"number": 3}, {"number": 0}):
        with pytest.raises(AlreadyExists):
            await room.take_seat("anna", "r1", **changes)
    assert await room.take_seat("anna", "r1") == first


async def test_one_request_creates_one_table_and_another_content_is_refused() -> None:
    room = await open_table()
    assert await room.create() == room.table_id
    assert len(room.store.tables) == 1
    with pytest.raises(AlreadyExists):
        await room.create(name="Another")


async def test_every_fault_of_a_new_table_is_named() -> None:
    room = FakeRoom()
    with pytest.raises(InvalidArgument) as caught:
        await room.create(
            name="", rulebook="none", seats=9, currency="euro", action_ms=5, hand_pause_ms=-1
        )
    fields = {field for field, _ in caught.value.violations}
    assert fields == {"rulebook", "name", "seats", "currency", "action_ms", "hand_pause_ms"}


async def test_money_of_a_blob_is_stacks_and_what_is_in_the_pots() -> None:
    room = await open_table()
    await room.seat("anna", "ben")
    await room.start_hand()
    await room.act(ActionKind.COMPLETE, 5)
    found = money_of(room.store.tables[room.table_id].blob)
    assert found.currency == "XTS"
    assert [(player, amount) for _, player, amount in found.sittings] == [
        ("anna", 200),
        ("ben", 200),
    ]
    hand = Table.load(room.table_id, room.store.tables[room.table_id]).hand
    assert hand is not None
    assert sum(hand.put_in.values()) == 7
