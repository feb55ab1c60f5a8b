"""The replica that breaks a table up is killed at each step: another goes on, asked by nobody."""

from pathlib import Path
from uuid import uuid4

import pytest
from doorcard.table.v1 import admin_pb2, admin_pb2_grpc, table_pb2
from grpc import aio

from services.table.hands.under_way import WITHIN_MS
from services.table.state.buy_ins import offer_of
from tests import valkey
from tests.conftest import Room
from tests.contract.table.gates import LaterClock
from tests.contract.table.replicas import cluster
from tests.contract.table.test_operators_killed import replica_process
from tests.contract.table.test_operators_service import Admin

STEPS = ("commit.done", "cash_out.made", "cash_out.stored")
"""The table closes and nobody is moved; a seat is kept for him; he has left, the table is open."""


@pytest.mark.parametrize("step", STEPS)
async def test_a_table_is_broken_up_though_the_replica_was_killed(
    room: Room, server: valkey.Valkey, tmp_path: Path, step: str
) -> None:
    points = tmp_path / "points"
    points.mkdir()
    async with cluster(room, server) as tables:
        await tables.add_replica()
        replica, admin = tables.replicas[0], Admin(tables)
        table_id, like_it = [await tables.create(name=f"Table {n}") for n in range(2)]
        await tables.take_seat(table_id, "anna")
        order = {"request_id": str(uuid4()), "table_id": table_id, "reason": "too few"}
        async with (
            replica_process(tables, tmp_path, "victim", fail_points=str(points)) as address,
            aio.insecure_channel(address) as channel,
        ):
            (points / step).touch()
            breaking = admin_pb2_grpc.TableAdminServiceStub(channel).BreakTable(
                admin_pb2.BreakTableRequest(**order),
                metadata=room.metadata("olga", ("operator",)),
                timeout=10,
            )
            with pytest.raises(aio.AioRpcError):
                await breaking
        assert not list(points.iterdir())
        assert (await admin.view(table_id)).state == table_pb2.TABLE_STATE_CLOSING
        LaterClock(replica).ahead_ms = WITHIN_MS
        await replica.tables.tick(table_id)
        await replica.moves.finished()
        view = await admin.view(table_id)
        assert (view.state, len(view.seats)) == (table_pb2.TABLE_STATE_CLOSED, 0)
        offer = offer_of(await replica.tables.read(like_it), "anna")
        assert offer is not None
        assert offer.brings == 200
        again = await admin("BreakTable", **order)
        assert [(each.player_id, each.table_id) for each in again.moved] == [("anna", like_it)]
        actions = {each.action for each in await admin.records() if each.table_id == table_id}
        assert "break_table" in actions
