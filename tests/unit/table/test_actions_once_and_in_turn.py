"""An action is taken once, in its turn, or refused with the right reason."""

import asyncio

import pytest

from services.game.wants import ActionKind
from services.runtime.clock import monotonic_s
from services.runtime.errors import (
    AlreadyExists,
    Code,
    DoorcardError,
    FailedPrecondition,
    NotFound,
    ResourceExhausted,
)
from services.runtime.ids import uuid7
from services.table.hands.hands import HANDS, Order
from services.table.state.state import EPOCH_MASK, RECENT_BYTES
from services.table.tables.tables import CONFLICTS
from tests.unit.table.rooms import FakeRoom, passive


async def playing(*players: str, seed: int = 1) -> FakeRoom:
    """A room with a hand on third street."""
    room = FakeRoom(seed=seed)
    await room.create()
    await room.seat(*(players or ("anna", "ben", "carla")))
    await room.start_hand()
    return room


async def refused(room: FakeRoom, **changes: object) -> DoorcardError:
    """Why an action with these changes is refused; nothing may have happened."""
    before = room.store.tables[room.table_id]
    with pytest.raises(DoorcardError) as caught:
        await room.act(**changes)  # type: ignore[arg-type]
    assert room.store.tables[room.table_id] == before
    return caught.value


async def test_a_repeated_request_acts_once_and_gets_the_first_answer() -> None:
    room = await playing()
    player, want, hand_id = room.to_act()
    order = Order(player, "r7", hand_id, want.turn, passive(want), 0)
    first = await room.tables.act(room.table_id, order, monotonic_s())
    for _ in range(2):
        assert await room.tables.act(room.table_id, order, monotonic_s()) == first
    assert room.table.version == first
    other = room.replica("replica-2")
    assert await other.act(room.table_id, order, monotonic_s()) == first


async def test_a_request_id_used_again_for_another_action_is_refused() -> None:
    room = await playing()
    player, want, hand_id = room.to_act()
    order = Order(player, "r7", hand_id, want.turn, passive(want), 0)
    await room.tables.act(room.table_id, order, monotonic_s())
    for changes in (
        {"kind": ActionKind.FOLD},
        {"amount": 5},
        {"turn": want.turn + 1},
        {"hand_id": uuid7()},
    ):
        with pytest.raises(AlreadyExists):
            await room.tables.act(room.table_id, order._replace(**changes), monotonic_s())


async def test_only_the_last_eight_requests_are_remembered_and_older_ones_are_stale() -> None:
    room = await playing("anna", "ben")
    orders: list[tuple[Order, int]] = []
    while len([1 for order, _ in orders if order.player_id == "anna"]) < 10:
        if room.table.hand is None:
            await room.start_hand()
        player, want, hand_id = room.to_act()
        order = Order(player, room.request_id(), hand_id, want.turn, passive(want), 0)
        orders.append((order, await room.tables.act(room.table_id, order, monotonic_s())))
    of_anna = [each for each in orders if each[0].player_id == "anna"]
    for order, version in of_anna[-8:]:
        assert await room.tables.act(room.table_id, order, monotonic_s()) == version
    with pytest.raises(FailedPrecondition) as caught:
        await room.tables.act(room.table_id, of_anna[0][0], monotonic_s())
    assert caught.value.reason == "STALE_TURN"
    assert all(len(seat.recent) <= 8 * RECENT_BYTES for seat in room.table.blob.seats.values())


async def test_a_second_click_does_not_land_on_the_next_decision() -> None:
    room = await playing("anna", "ben")
    player, want, hand_id = room.to_act()
    await room.act()
    await room.act()
    again, later, _ = room.to_act()
    stale = Order(player, "second-click", hand_id, want.turn, passive(want), 0)
    with pytest.raises(FailedPrecondition) as caught:
        await room.tables.act(room.table_id, stale, monotonic_s())
    error = caught.value
    assert error.reason == "STALE_TURN"
    assert error.metadata["turn"] == str(later.turn)
    assert error.metadata["hand_id"] == hand_id
    assert error.metadata["seat"] == str(room.table.seat_of(again))


async def test_an_action_from_the_hand_before_is_stale() -> None:
    room = await playing()
    error = await refused(room, hand_id=uuid7())
    assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "STALE_TURN")


async def test_who_is_not_to_act_is_told_so() -> None:
    room = await playing()
    player, _, _ = room.to_act()
    other = next(each for each in ("anna", "ben", "carla") if each != player)
    error = await refused(room, player_id=other)
    assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "NOT_YOUR_TURN")
    assert error.metadata["seat"] == str(room.table.seat_of(player))


async def test_a_wrong_amount_is_refused_with_its_rule() -> None:
    room = await playing()
    error = await refused(room, kind=ActionKind.COMPLETE, amount=7)
    assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "ILLEGAL_AMOUNT")
    assert error.metadata["rule"].startswith("3 ")
    assert error.metadata["wagers"] == "5"
    error = await refused(room, kind=ActionKind.BRING_IN, amount=2)
    assert error.reason == "ILLEGAL_AMOUNT"


async def test_an_action_that_is_not_offered_is_refused_with_its_rule() -> None:
    room = await playing()
    error = await refused(room, kind=ActionKind.CHECK)
    assert (error.reason, error.metadata["rule"]) == ("ILLEGAL_ACTION", "3 bring-in")


async def test_who_has_no_seat_and_what_is_no_table_are_told_apart() -> None:
    room = await playing()
    assert (await refused(room, player_id="stranger")).reason == "NOT_SEATED"
    order = Order("anna", "r", uuid7(), 0, ActionKind.FOLD, 0)
    with pytest.raises(NotFound) as caught:
        await room.tables.act(uuid7(), order, monotonic_s())
    assert caught.value.reason == "TABLE_UNKNOWN"


async def test_a_stale_cache_refuses_nothing_before_it_has_looked() -> None:
    room = await playing("anna", "ben")
    other = room.replica("replica-2")
    player, want, hand_id = room.to_act()
    order = Order(player, "r1", hand_id, want.turn, passive(want), 0)
    await other.act(room.table_id, order, monotonic_s())
    # The first replica still has the table as it was; it is asked for the next decision.
    version = await room.act()
    assert version == room.table.version


async def test_a_stale_cache_loses_the_commit_and_makes_the_change_anew() -> None:
    room = await playing("anna", "ben")
    other = room.replica("replica-2")
    await other.read(room.table_id)
    await other.sit_out(room.table_id, "ben")
    before = CONFLICTS._value.get()
    version = await room.act()
    assert CONFLICTS._value.get() == before + 1
    assert version == room.table.version


async def test_of_two_actions_for_one_turn_through_two_replicas_one_is_taken() -> None:
    room = await playing("anna", "ben")
    other = room.replica("replica-2")
    player, want, hand_id = room.to_act()
    first = Order(player, "left", hand_id, want.turn, passive(want), 0)
    second = Order(player, "right", hand_id, want.turn, ActionKind.COMPLETE, 5)
    before = room.table.version
    answers = await asyncio.gather(
        room.tables.act(room.table_id, first, monotonic_s()),
        other.act(room.table_id, second, monotonic_s()),
        return_exceptions=True,
    )
    errors = [each for each in answers if isinstance(each, DoorcardError)]
    assert [each.reason for each in errors] == ["STALE_TURN"]
    assert room.table.version == before + 1
    versions = [version for version, _ in room.frames()]
    assert versions == sorted(set(versions))


async def test_a_refusal_leaves_no_trace_in_memory() -> None:
    room = await playing()
    for _ in range(3):
        await refused(room, kind=ActionKind.RAISE, amount=10)
    await room.act()
    kept = await room.tables.read(room.table_id)
    assert kept.encode() == room.store.tables[room.table_id].blob


async def test_a_caller_that_goes_away_takes_nothing_back() -> None:
    room = await playing()
    player, want, hand_id = room.to_act()
    order = Order(player, "r1", hand_id, want.turn, passive(want), 0)
    before = room.table.version
    waiting = asyncio.ensure_future(
        asyncio.shield(room.tables.act(room.table_id, order, monotonic_s()))
    )
    await asyncio.sleep(0)
    waiting.cancel()
    await room.tables.emptied()
    assert room.table.version == before + 1
    assert await room.tables.act(room.table_id, order, monotonic_s()) == before + 1


async def test_one_spammer_fills_only_his_own_places() -> None:
    room = await playing("anna", "ben")
    player, want, hand_id = room.to_act()
    other = "ben" if player == "anna" else "anna"
    spam = [Order(other, f"spam-{n}", uuid7(), 0, ActionKind.FOLD, 0) for n in range(6)]
    futures = [room.tables.act(room.table_id, each, monotonic_s()) for each in spam[:4]]
    with pytest.raises(ResourceExhausted) as caught:
        room.tables.act(room.table_id, spam[4], monotonic_s())
    assert caught.value.retry_after_ms
    order = Order(player, "mine", hand_id, want.turn, passive(want), 0)
    mine = room.tables.act(room.table_id, order, monotonic_s())
    await asyncio.gather(*futures, return_exceptions=True)
    assert await mine == room.table.version


async def test_the_version_in_memory_of_requests_is_the_one_of_the_commit() -> None:
    room = await playing()
    player, _, _ = room.to_act()
    version = await room.act()
    number = room.table.seat_of(player)
    assert number is not None
    recent = room.table.blob.seats[number].recent
    assert isinstance(recent, bytes)
    assert int.from_bytes(recent[-4:]) == version & EPOCH_MASK


async def test_a_hand_whose_last_action_was_made_anew_is_counted_once() -> None:
    room = await playing("anna", "ben")
    await room.act()
    other = room.replica("replica-2")
    await other.read(room.table_id)
    await other.sit_out(room.table_id, "ben")
    hands, conflicts = HANDS.labels("settled")._value.get(), CONFLICTS._value.get()
    await room.act(ActionKind.FOLD)
    assert room.table.hand is None
    assert CONFLICTS._value.get() == conflicts + 1
    assert HANDS.labels("settled")._value.get() == hands + 1
