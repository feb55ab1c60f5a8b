"""A room whose Redis has no memory left: what was begun ends, and everybody gets what is his."""

from collections.abc import Iterator
from uuid import uuid4

import grpc
import pytest
from doorcard.table.v1 import internal_pb2, table_pb2

from services.runtime.errors import DoorcardError
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, cluster
from tests.contract.table.test_playing_over_streams import PLAYERS, play_hand, seated


@pytest.fixture
def full(server: valkey.Valkey) -> Iterator[valkey.Valkey]:
    """`full.fill()` it in the test; afterwards it has memory again."""
    yield server
    server.unfill()


async def test_a_hand_ends_and_its_players_leave_with_their_money_and_nothing_begins(
    room: Room, full: valkey.Valkey
) -> None:
    async with cluster(room, full) as tables:
        await tables.add_replica()
        table_id = await tables.create()
        streams = await seated(tables, table_id, 1)
        first = streams[0]
        await first.until(lambda: first.turn is not None)
        full.fill()
        hand_id = await play_hand(streams)
        with pytest.raises(grpc.RpcError) as refused:
            await tables.take_seat(table_id, "dora")
        assert DoorcardError.from_rpc(refused.value).reason == "STORE_MEMORY"
        for player in PLAYERS:
            leave = table_pb2.LeaveSeatRequest(request_id=str(uuid4()), table_id=table_id)
            metadata = room.metadata(player)
            assert (await tables.stub().LeaveSeat(leave, metadata=metadata)).left
        entries = await outbox(tables, table_id)
        kinds = [entry.ledger.WhichOneof("entry") for entry in entries]
        assert kinds == ["note", *["commit"] * 3, "hand", *["cash_out"] * 3]
        assert entries[4].hand.hand_id == hand_id
        nets = {each.sitting_id: each.amount for each in entries[4].ledger.hand.nets}
        for entry in entries[5:]:
            paid = entry.ledger.cash_out
            assert paid.amount == 200 + nets.get(paid.sitting_id, 0)
        full.unfill()
        await tables.take_seat(table_id, "dora")


async def outbox(tables: Cluster, table_id: str) -> list[internal_pb2.OutboxEntry]:
    """Every entry of the table's shard."""
    store = tables.replicas[0].store
    read = await store.read_outbox(
        store.shard_of(table_id), after_seq=0, limit=100, epoch=1, applied_id=""
    )
    return [internal_pb2.OutboxEntry.FromString(each.payload) for each in read.entries]
