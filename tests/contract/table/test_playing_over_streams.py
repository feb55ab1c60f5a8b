"""Hands over `Play` streams, against real servers."""

import asyncio

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, Seated, cluster

PLAYERS = ("anna", "ben", "carla")


def passive(turn: table_pb2.Turn) -> game_pb2.Action:
    """Bring in, check, or call."""
    if turn.legal.bring_in:
        return game_pb2.Action(kind=game_pb2.ACTION_KIND_BRING_IN)
    if turn.legal.check:
        return game_pb2.Action(kind=game_pb2.ACTION_KIND_CHECK)
    return game_pb2.Action(kind=game_pb2.ACTION_KIND_CALL)


async def seated(tables: Cluster, table_id: str, replicas: int) -> dict[int, Seated]:
    """The players with their streams, spread over the replicas; seat -> stream."""
    streams = {}
    for at, player in enumerate(PLAYERS):
        seat = await tables.take_seat(table_id, player)
        stub = tables.stub(at % replicas)
        streams[seat] = Seated(stub, tables.room.metadata(player), table_id)
        await streams[seat].join()
    return streams


async def play_hand(streams: dict[int, Seated]) -> str:
    """Everybody checks and calls until the hand is over; its id."""
    first = next(iter(streams.values()))
    hands = len(first.hands_ended)
    over = await first.until_past(-1, hands)
    while not over:
        assert first.turn is not None
        turn = first.turn
        actor = streams[turn.seat]
        await actor.until_turn(turn.turn)
        result = await actor.act(passive(turn))
        assert not result.HasField("refusal"), result
        over = await first.until_past(turn.turn, hands)
    return first.hands_ended[-1]


async def test_hands_are_played_over_two_replicas(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        await tables.add_replica()
        table_id = await tables.create()
        streams = await seated(tables, table_id, 2)
        hands = {await play_hand(streams) for _ in range(3)}
        assert len(hands) == 3
        for stream in streams.values():
            await stream.until_past(1 << 30, 2)
            stream.call.cancel()
