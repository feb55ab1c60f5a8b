"""Hands over `Play` streams, against real servers."""

import asyncio

from doorcard.table.v1 import internal_pb2, internal_pb2_grpc, table_pb2

from services.runtime.channels import connect
from services.runtime.settings import ServiceSettings
from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, Seated, cluster

PLAYERS = ("anna", "ben", "carla")


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
        await actor.until_turn(first.hand_id, turn.turn)
        result = await actor.act(passive(turn))
        assert not result.HasField("refusal"), (
            str(result),
            turn.turn,
            turn.seat,
            actor.hand_id,
            first.hand_id,
            actor.hands_ended,
        )
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


async def test_a_drained_replica_sends_its_players_to_the_other(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        await tables.add_replica()
        table_id = await tables.create()
        streams = await seated(tables, table_id, 1)
        first = next(iter(streams.values()))
        await first.until(lambda: first.turn is not None)
        await tables.replicas[0].drain()
        for seat, player in enumerate(PLAYERS):
            old = streams[seat]
            await old.until(lambda: old.reconnect is not None)  # noqa: B023
            fresh = Seated(tables.stub(1), room.metadata(player), table_id)
            fresh.version, fresh.hand_id, fresh.turn = old.version, old.hand_id, old.turn
            await fresh.join(old.version)
            assert not fresh.snapshots
            streams[seat] = fresh
        assert await play_hand(streams)


async def test_a_spectator_sees_a_hand_and_no_hidden_card(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        table_id = await tables.create()
        watching = tables.stub().WatchTable(
            table_pb2.WatchTableRequest(table_id=table_id), metadata=room.metadata("olga")
        )
        streams = await seated(tables, table_id, 1)
        hand_id = await play_hand(streams)
        ended = False
        while not ended:
            message = await watching.read()
            assert isinstance(message, table_pb2.WatchTableResponse)
            for frame in message.frames:
                for event in frame.update.events:
                    dealt = event.hand.dealt
                    assert not dealt.card or dealt.up
                    ended = ended or event.hand_ended == hand_id
        watching.cancel()


async def test_the_outbox_of_a_hand_is_read_by_settlement(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        table_id = await tables.create()
        streams = await seated(tables, table_id, 1)
        hand_id = await play_hand(streams)
        store = tables.replicas[0].store
        channel = connect(tables.running[0].address, ServiceSettings())
        internal = internal_pb2_grpc.TableInternalServiceStub(channel)
        read = await internal.ReadOutbox(
            internal_pb2.ReadOutboxRequest(shard=store.shard_of(table_id), limit=100, epoch=1),
            metadata=room.metadata("settlement", ("service",)),
        )
        kinds = [entry.ledger.WhichOneof("entry") for entry in read.entries]
        assert kinds[:5] == ["note", "commit", "commit", "commit", "hand"]
        assert read.entries[4].hand.hand_id == hand_id
        money = await internal.InspectMoney(
            internal_pb2.InspectMoneyRequest(shard=store.shard_of(table_id)),
            metadata=room.metadata("settlement", ("service",)),
        )
        (table,) = money.tables
        assert sum(sitting.amount for sitting in table.sittings) == 600
        await channel.close()
