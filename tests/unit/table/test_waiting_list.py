"""Who waits for a seat, is offered one for a while, and what nobody else can take meanwhile."""

from functools import partial

import pytest

from services.runtime.errors import Code, DoorcardError
from services.table.draft.draft import Draft
from services.table.hands import hands, standing, waiting
from services.table.hands.waiting import WAITING_MAX
from services.table.state.state import TableStatus
from services.table.state.times import STANDARD
from services.table.state.turn_times import GRACE_MS
from services.table.tables.mailbox import TICKS
from tests.unit.table.rooms import FakeRoom


async def full(*waiting: str) -> FakeRoom:
    """A table of two with anna and ben, and who waits there."""
    room = FakeRoom()
    await room.create(seats=2, hand_pause_ms=60_000)
    await room.seat("anna", "ben")
    for player in waiting:
        await join(room, player)
    return room


async def join(room: FakeRoom, player: str) -> int:
    """His place."""
    return (await room.seating().join_waiting_list(room.table_id, player, player.title()))[1]


async def decline(room: FakeRoom, player: str) -> None:
    """He waits no longer."""
    await room.seating().leave_waiting_list(room.table_id, player)


async def error_of(call: object) -> DoorcardError:
    """Why something is refused."""
    with pytest.raises(DoorcardError) as caught:
        await call  # type: ignore[misc]
    return caught.value


async def offer_to(room: FakeRoom, player: str) -> tuple[int, int]:
    """(seat, until) of his offer, in his own view."""
    view = await room.tables.view(room.table_id, player)
    assert view.HasField("own_offer")
    return view.own_offer.seat, view.own_offer.until.ToMilliseconds()


async def line(room: FakeRoom) -> list[str]:
    """Who waits, as spectators see it."""
    return [each.player_id for each in (await room.tables.view(room.table_id, "")).waiting]


async def test_places_are_in_the_order_of_coming_and_a_repeat_keeps_its_own() -> None:
    room = await full()
    assert [await join(room, player) for player in ("carla", "dan", "eva")] == [1, 2, 3]
    version = room.table.version
    assert await join(room, "dan") == 2
    assert room.table.version == version
    assert await line(room) == ["carla", "dan", "eva"]


async def test_the_list_is_public_and_an_offer_is_private() -> None:
    room = await full("carla")
    version = room.table.version
    assert room.events()[-1].waiting_changed.waiting[0].player_id == "carla"
    await room.tables.leave(room.table_id, "ben")
    assert not any(each.HasField("seat_offered") for each in room.events("", version))
    own = room.events("carla", version)
    offered = next(each.seat_offered.offer for each in own if each.HasField("seat_offered"))
    assert (offered.seat, offered.buy_in_min, offered.buy_in_max) == (1, 200, 200)
    assert offered.until.ToMilliseconds() == room.store.ms + STANDARD.offer_ms
    assert not (await room.tables.view(room.table_id, "dan")).HasField("own_offer")
    assert [each for each in own if each.HasField("waiting_changed")]


async def test_a_seat_that_is_offered_is_nobody_elses() -> None:
    room = await full("carla")
    await room.tables.leave(room.table_id, "ben")
    assert (await error_of(room.take_seat("dan"))).reason == "TABLE_FULL"
    assert (await error_of(room.take_seat("dan", number=1))).reason == "TABLE_FULL"
    assert await join(room, "dan") == 1
    assert await join(room, "carla") == 0
    seat, _, _ = await room.take_seat("carla")
    assert seat == 1
    assert await line(room) == ["dan"]
    assert not (await room.tables.view(room.table_id, "carla")).HasField("own_offer")


async def test_two_free_seats_go_to_the_two_who_came_first() -> None:
    room = await full("carla", "dan", "eva")
    await room.tables.leave(room.table_id, "anna")
    await room.tables.leave(room.table_id, "ben")
    assert (await offer_to(room, "carla"))[0] == 0
    assert (await offer_to(room, "dan"))[0] == 1
    assert await line(room) == ["eva"]
    assert (await error_of(room.take_seat("carla", number=1))).reason == "SEAT_TAKEN"
    assert (await room.take_seat("dan"))[0] == 1


async def test_an_offer_that_lapses_goes_to_the_next_and_no_moment_before() -> None:
    room = await full("carla", "dan")
    await room.tables.leave(room.table_id, "ben")
    _, until = await offer_to(room, "carla")
    due = until + GRACE_MS
    assert room.store.deadlines[room.table_id] == due
    await room.pass_to(due - 1)
    assert (await offer_to(room, "carla"))[1] == until
    await room.pass_to(due)
    assert await offer_to(room, "dan") == (1, due + STANDARD.offer_ms)
    assert await line(room) == []
    assert (await error_of(room.take_seat("carla"))).reason == "TABLE_FULL"
    told = [e for e in room.events("carla") if e.HasField("seat_offered")]
    assert not told[-1].seat_offered.HasField("offer")


async def test_an_offer_that_nobody_wants_leaves_the_seat_free_for_all() -> None:
    room = await full("carla")
    await room.tables.leave(room.table_id, "ben")
    await room.pass_to(room.store.ms + STANDARD.offer_ms + GRACE_MS)
    assert room.table_id not in room.store.deadlines
    assert (await room.take_seat("dan"))[0] == 1


async def test_who_declines_makes_room_for_the_next_at_once() -> None:
    room = await full("carla", "dan")
    await room.tables.leave(room.table_id, "ben")
    await decline(room, "carla")
    assert (await offer_to(room, "dan"))[0] == 1
    await decline(room, "carla")
    await decline(room, "dan")
    assert (await room.take_seat("eva"))[0] == 1


async def test_who_waits_may_stop_waiting() -> None:
    room = await full("carla", "dan")
    await decline(room, "carla")
    assert await line(room) == ["dan"]
    assert await join(room, "carla") == 2


async def test_nobody_waits_where_a_seat_is_free_or_he_has_one() -> None:
    room = await full()
    assert (await error_of(join(room, "anna"))).reason == "ALREADY_SEATED"
    await room.tables.leave(room.table_id, "ben")
    assert (await error_of(join(room, "carla"))).reason == "SEAT_FREE"


async def test_the_list_is_bounded() -> None:
    room = await full(*(f"player-{n}" for n in range(WAITING_MAX)))
    error = await error_of(join(room, "one-more"))
    assert (error.code, error.reason) == (Code.RESOURCE_EXHAUSTED, "WAITING_LIST_FULL")
    assert error.retry_after_ms
    await room.tables.leave(room.table_id, "ben")
    assert await join(room, "one-more") == WAITING_MAX


async def test_offers_stand_still_with_a_paused_table_and_begin_anew() -> None:
    room = await full("carla")
    await room.tables.leave(room.table_id, "ben")
    _, until = await offer_to(room, "carla")
    await room.tables.change(room.table_id, TICKS, "pause", lambda d: standing.pause(d, "a test"))
    assert room.table_id not in room.store.deadlines
    room.store.ms = until + 60_000
    await room.tables.tick(room.table_id)
    assert (await offer_to(room, "carla"))[1] == until
    await room.tables.change(room.table_id, TICKS, "resume", hands.resume)
    assert (await offer_to(room, "carla"))[1] == room.store.ms + STANDARD.offer_ms
    assert (await room.take_seat("carla"))[0] == 1


async def test_a_table_that_closes_sends_everybody_home() -> None:
    room = await full("carla", "dan")
    await room.tables.leave(room.table_id, "ben")
    await room.tables.change(room.table_id, TICKS, "close", lambda d: standing.close(d, "a test"))
    assert room.table.blob.status is TableStatus.CLOSED
    assert not room.table.blob.waiting
    assert (await error_of(join(room, "eva"))).reason == "TABLE_CLOSED"


async def test_the_next_deal_and_an_offer_are_due_each_at_its_time() -> None:
    room = FakeRoom()
    await room.create(seats=3, hand_pause_ms=60_000)
    await room.seat("anna", "ben", "carla")
    await join(room, "dan")
    await room.tables.leave(room.table_id, "carla")
    deal, (_, until) = room.table.blob.due_ms, await offer_to(room, "dan")
    assert room.store.deadlines[room.table_id] == until + GRACE_MS
    await room.pass_to(until + GRACE_MS)
    assert room.table.hand is None
    assert room.store.deadlines[room.table_id] == deal
    await room.pass_to(deal)
    assert room.table.hand is not None
    assert await line(room) == []


async def test_an_offer_that_lapses_while_the_money_is_on_its_way_gives_the_money_back() -> None:
    room = await full("carla", "dan")
    await room.tables.leave(room.table_id, "ben")

    async def time_passes() -> None:
        room.wallet.after_reserve = None
        await room.pass_to(room.store.ms + STANDARD.offer_ms + GRACE_MS)

    room.wallet.after_reserve = time_passes
    assert (await error_of(room.take_seat("carla"))).reason == "TABLE_FULL"
    assert room.store.outbox[-1].ledger.WhichOneof("entry") == "release"
    assert (await offer_to(room, "dan"))[0] == 1


async def test_a_seat_that_became_free_by_itself_is_offered_by_the_next_tick() -> None:
    room = await full("carla")
    room.write(lambda table: table.blob.seats.pop(1))
    room.store.ms += 60_000
    await room.tables.tick(room.table_id)
    assert (await offer_to(room, "carla"))[0] == 1


async def test_nobody_is_quicker_than_the_line_where_a_seat_is_not_yet_offered() -> None:
    room = FakeRoom()
    await room.create(seats=3, hand_pause_ms=60_000)
    await room.seat("anna", "ben", "carla")
    await room.tables.sit_out(room.table_id, "carla")
    await room.start_hand()
    await join(room, "dan")
    await room.operators.rest(room.table_id, room.by("set_maintenance"))
    await room.tables.leave(room.table_id, "carla")
    await room.operators.resume(room.table_id, room.by("resume_table"))
    assert await line(room) == ["dan"]
    assert (await error_of(room.take_seat("eva"))).reason == "TABLE_FULL"
    assert await join(room, "eva") == 2

    async def keep(draft: Draft, player: str) -> int:
        return waiting.keep(draft, player, player, 0, room.store.ms + 60_000)

    for player in ("eva", "fritz"):
        kept = room.tables.change(room.table_id, player, "keep", partial(keep, player=player))
        assert (await error_of(kept)).reason == "TABLE_FULL"
    # Who is next may come from another table too, and stands in one place.
    await room.tables.change(room.table_id, "dan", "keep", partial(keep, player="dan"))
    assert [(each.player_id, each.seat) for each in room.table.blob.waiting] == [
        ("eva", -1),
        ("dan", 2),
    ]
    assert (await room.take_seat("dan"))[0] == 2
