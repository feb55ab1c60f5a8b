"""Top-ups, waiting lists, antes to confirm, seats that are given up and tables that are changed:
over gRPC and two replicas, on a real Valkey.
"""

from typing import Any
from uuid import uuid4

import grpc
import pytest
from doorcard.table.v1 import table_pb2

from services.runtime.errors import Code, DoorcardError
from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, Seated, cluster

BUY_IN = 5000
TABLE: dict[str, Any] = {"rulebook": "triopoker", "stake_name": "5/10"}


class Seats:
    """Calls about seats, each to the other replica than the one before."""

    def __init__(self, tables: Cluster) -> None:
        self.tables = tables
        self._stubs = [tables.stub(at) for at in range(len(tables.running))]
        self._calls = 0

    async def ask(self, method: str, player: str, table_id: str, **fields: Any) -> Any:
        """The answer, with a fresh request id unless there is one."""
        self._calls += 1
        stub = self._stubs[self._calls % len(self._stubs)]
        message = getattr(table_pb2, f"{method}Request")
        request = message(**{"request_id": str(uuid4()), "table_id": table_id, **fields})
        return await getattr(stub, method)(request, metadata=self.tables.room.metadata(player))

    async def refused(self, *args: Any, **fields: Any) -> DoorcardError:
        """Why it is refused."""
        with pytest.raises(grpc.RpcError) as caught:
            await self.ask(*args, **fields)
        return DoorcardError.from_rpc(caught.value)

    async def view(self, table_id: str, player: str) -> table_pb2.TableView:
        """The table as he sees it."""
        request = table_pb2.GetTableRequest(table_id=table_id)
        metadata = self.tables.room.metadata(player)
        return (await self._stubs[0].GetTable(request, metadata=metadata)).table

    async def watch(self, table_id: str, player: str, at: int = 0) -> Seated:
        """His stream, seated or not."""
        stream = Seated(self.tables.stub(at), self.tables.room.metadata(player), table_id)
        await stream.join()
        return stream


def told(stream: Seated, kind: str) -> list[Any]:
    """What came on a stream, of one kind of event, in order."""
    return [
        getattr(event, kind)
        for frame in stream.frames
        for event in frame.update.events
        if event.WhichOneof("event") == kind
    ]


async def play_out(streams: dict[int, Seated]) -> None:
    """Everybody checks and calls until the hand is over."""
    first = next(iter(streams.values()))
    hands = len(first.hands_ended)
    over = await first.until_past(-1, hands)
    while not over:
        assert first.turn is not None
        turn = first.turn
        actor = streams[turn.seat]
        await actor.until_turn(first.hand_id, turn.turn)
        await actor.act(passive(turn))
        over = await first.until_past(turn.turn, hands)


async def test_a_top_up_is_held_in_the_hand_and_played_in_the_next(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        await tables.add_replica()
        seats = Seats(tables)
        table_id = await tables.create(**TABLE)
        streams = {}
        for at, player in enumerate(("anna", "ben")):
            seat = await tables.take_seat(table_id, player, buy_in=BUY_IN)
            streams[seat] = await seats.watch(table_id, player, at)
        first = streams[0]
        await first.until(lambda: first.turn is not None)
        request: dict[str, Any] = {"amount": 700, "request_id": "t1"}
        answers = [await seats.ask("TopUp", "anna", table_id, **request) for _ in range(3)]
        assert {answer.held for answer in answers} == {700}
        error = await seats.refused("TopUp", "anna", table_id, amount=701, request_id="t1")
        assert (error.code, error.reason) == (Code.ALREADY_EXISTS, "ID_REUSED")
        assert (await seats.refused("TopUp", "dan", table_id, amount=1)).reason == "NOT_SEATED"
        error = await seats.refused("TopUp", "anna", table_id, amount=0)
        assert error.code is Code.INVALID_ARGUMENT
        await play_out(streams)
        await first.until(lambda: first.turn is not None)
        answer = await seats.ask("TopUp", "anna", table_id, **request)
        assert answer.held == 0
        stacks = {s.player_id: s.stack for s in (await seats.view(table_id, "anna")).seats}
        hand = (await seats.view(table_id, "anna")).hand
        in_play = sum(stacks.values()) + sum(seat.put_in for seat in hand.seats)
        assert in_play == 2 * BUY_IN + 700


async def test_an_offer_is_private_kept_and_lapses_by_the_sweep(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica(seat_offer_ms=1000)
        seats = Seats(tables)
        table_id = await tables.create(seats=2, hand_pause_ms=60_000)
        for player in ("anna", "ben"):
            await tables.take_seat(table_id, player)
        carla, dan = [await seats.watch(table_id, p, at) for at, p in enumerate(("carla", "dan"))]
        for place, player in enumerate(("carla", "dan"), start=1):
            assert (await seats.ask("JoinWaitingList", player, table_id)).place == place
        await dan.until(lambda: len(told(dan, "waiting_changed")) == 2)
        await seats.ask("LeaveSeat", "ben", table_id)
        await carla.until(lambda: told(carla, "seat_offered"))
        offer = told(carla, "seat_offered")[0].offer
        assert (offer.seat, offer.buy_in_min) == (1, 200)
        error = await seats.refused("TakeSeat", "eva", table_id, buy_in=200)
        assert error.reason == "TABLE_FULL"
        assert (await seats.ask("JoinWaitingList", "carla", table_id)).place == 0
        assert not told(dan, "seat_offered")
        # Nobody calls: a replica finds out that time has passed.
        await carla.until(lambda: len(told(carla, "seat_offered")) == 2)
        assert not told(carla, "seat_offered")[1].HasField("offer")
        await dan.until(lambda: told(dan, "seat_offered"))
        taken = await seats.ask("TakeSeat", "dan", table_id, buy_in=200)
        assert taken.seat == 1
        assert not (await seats.view(table_id, "eva")).waiting


async def test_who_confirms_his_antes_is_asked_before_the_hand(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica(ante_confirmation_ms=60_000)
        seats = Seats(tables)
        table_id = await tables.create(**TABLE)
        await tables.take_seat(table_id, "anna", buy_in=BUY_IN)
        anna = await seats.watch(table_id, "anna")
        await seats.ask("SetSeatOptions", "anna", table_id, options={"auto_ante": False})
        await tables.take_seat(table_id, "ben", buy_in=BUY_IN)
        ben = await seats.watch(table_id, "ben", 1)
        await anna.until(lambda: told(anna, "ante_asked"))
        assert not anna.hand_id
        await seats.ask(
            "SetSeatOptions", "anna", table_id, options={"auto_ante": False}, confirm_ante=True
        )
        await anna.until(lambda: anna.turn is not None)
        await ben.until(lambda: ben.turn is not None)
        assert not told(ben, "ante_asked")
        club = await tables.create()
        await tables.take_seat(club, "anna")
        await seats.ask("SetSeatOptions", "anna", club, options={"show_beaten": True})
        error = await seats.refused("SetSeatOptions", "anna", club, options={"auto_ante": False})
        assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "ANTES_AUTOMATIC")


async def test_a_seat_that_is_sat_out_of_is_given_up_by_the_sweep(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica(sit_out_max_ms=300)
        seats = Seats(tables)
        table_id = await tables.create()
        await tables.take_seat(table_id, "anna")
        anna = await seats.watch(table_id, "anna")
        await seats.ask("SitOut", "anna", table_id)
        await anna.until(lambda: told(anna, "seat_freed"))
        assert not (await seats.view(table_id, "anna")).seats


async def test_who_left_with_more_brings_it_back(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica()
        seats = Seats(tables)
        table_id = await tables.create(**TABLE)
        await tables.take_seat(table_id, "anna", buy_in=BUY_IN + 1)
        await seats.ask("LeaveSeat", "anna", table_id)
        error = await seats.refused("TakeSeat", "anna", table_id, buy_in=BUY_IN)
        assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "REJOIN_MINIMUM")
        assert error.metadata["buy_in_min"] == str(BUY_IN + 1)
        await seats.ask("TakeSeat", "anna", table_id, buy_in=BUY_IN + 1)


async def test_a_table_is_changed_in_the_middle_of_a_hand_for_one_on_another_shard(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica()
        seats = Seats(tables)
        store = tables.replicas[0].store
        table_id = await tables.create(**TABLE)
        other = table_id
        while store.shard_of(other) == store.shard_of(table_id):
            other = await tables.create(**TABLE)
        streams = {}
        for at, player in enumerate(("anna", "ben")):
            seat = await tables.take_seat(table_id, player, buy_in=BUY_IN)
            streams[seat] = await seats.watch(table_id, player, at)
        there = await seats.watch(other, "anna")
        first = streams[0]
        await first.until(lambda: first.turn is not None)
        changed = await seats.ask("ChangeTable", "anna", table_id, to_table_id=other)
        assert (changed.to_table_id, changed.left) == (other, False)
        error = await seats.refused("TakeSeat", "anna", other, buy_in=BUY_IN)
        assert error.reason == "STILL_PLAYING"
        await play_out(streams)
        await there.until(lambda: len(told(there, "seat_offered")) == 2)
        offer = told(there, "seat_offered")[1].offer
        assert offer.buy_in_min == offer.buy_in_max > 0
        left = await seats.view(table_id, "anna")
        assert [seat.player_id for seat in left.seats] == ["ben"]
        taken = await seats.ask("TakeSeat", "anna", other, buy_in=offer.buy_in_min)
        assert taken.seat == offer.seat
