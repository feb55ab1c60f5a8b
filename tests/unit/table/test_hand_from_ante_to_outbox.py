"""A hand from the first tick to the outbox, through services that answer."""

from services.table.state.state import SeatStatus
from services.table.tables.tables import IDLE_MS
from tests.unit.table.rooms import FakeRoom, bold


async def test_a_hand_goes_from_the_deck_to_the_settlement() -> None:
    room = FakeRoom(seed=7)
    await room.create(rake_schedule_id="standard")
    await room.seat("anna", "ben", "carla")
    table = await room.start_hand()
    assert table.hand is not None
    assert table.hand.street == 3
    await room.play_out(room.choose)

    settled = [each for each in room.store.outbox if each.ledger.HasField("hand")]
    assert len(settled) == 1
    ledger, record = settled[0].ledger.hand, settled[0].hand
    assert sum(net.amount for net in ledger.nets) + ledger.rake == 0
    assert record.rake == ledger.rake
    put_in = {each.sitting_id: each.contributed for each in ledger.dealt_in}
    assert list(put_in) == [player.sitting_id for player in record.players]
    assert sum(put_in.values()) == sum(pot.amount for pot in record.pots)
    assert all(net.amount >= -put_in[net.sitting_id] for net in ledger.nets)
    assert (ledger.game, ledger.stake) == (record.game, record.stake.name)
    assert ledger.ended == record.ended
    assert [player.player_id for player in record.players] == ["anna", "ben", "carla"]
    stacks = {seat.player_id: seat.stack for seat in room.table.blob.seats.values()}
    assert {p.player_id: p.finishing_stack for p in record.players} == stacks
    assert sum(stacks.values()) + ledger.rake == 600
    assert all(s.status is SeatStatus.PLAYING for s in room.table.blob.seats.values() if s.stack)


async def test_hands_follow_one_another_until_chips_run_out() -> None:
    room = FakeRoom(seed=11)
    await room.create()
    await room.seat("anna", "ben", "carla", "dan")
    hands = 0
    while len(room.table.ready()) > 1 and hands < 300:
        await room.start_hand()
        await room.play_out(bold)
        hands += 1
    assert sum(seat.stack for seat in room.table.blob.seats.values()) == 800
    broke = [seat for seat in room.table.blob.seats.values() if not seat.stack]
    assert all(seat.status is SeatStatus.SITTING_OUT for seat in broke)
    assert room.table.blob.hands == hands


async def test_records_are_forgotten_between_hands_only() -> None:
    room = FakeRoom(seed=3)
    await room.create()
    await room.seat("anna", "ben")
    assert room.store.commits[-1].forget_events_ms == IDLE_MS
    await room.start_hand()
    assert room.store.commits[-1].forget_events_ms == 0
    await room.play_out(room.choose)
    assert room.table.hand is None
    assert room.store.commits[-1].forget_events_ms == IDLE_MS
