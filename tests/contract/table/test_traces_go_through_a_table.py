"""The calls that a table makes for a player belong to the trace of the player's call."""

from typing import Any
from uuid import uuid4

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.runtime.logs import trace_id
from services.runtime.sealing import SealKeys, new_key
from services.runtime.wire import TRACE_HEADER
from services.shuffler.generator import KernelGenerator
from services.shuffler.receipts import ReceiptKeys
from services.shuffler.server import ShufflerServicer
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import Seated, cluster

TRACES = ("0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319c")
KINDS = (game_pb2.ACTION_KIND_BRING_IN, game_pb2.ACTION_KIND_CALL)


class ListeningShuffler(ShufflerServicer):
    """Notes which trace each draw belongs to."""

    def __init__(self) -> None:
        keys = SealKeys("decks", {"k1": new_key()})
        super().__init__(keys, ReceiptKeys.generate("r1"), KernelGenerator())
        self.traces: list[str] = []

    async def Draw(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.traces.append(trace_id())
        return await super().Draw(request, context)


async def test_the_draw_that_an_action_leads_to_has_its_trace(
    room: Room, server: valkey.Valkey
) -> None:
    shuffler = ListeningShuffler()
    async with cluster(room, server, shuffler) as tables:
        stub = await tables.add_replica()
        table_id = await tables.create(seats=2)
        seats = {await tables.take_seat(table_id, player): player for player in ("anna", "ben")}
        watcher = Seated(tables.stub(), room.metadata("anna"), table_id)
        await watcher.join()
        await watcher.until(lambda: watcher.turn is not None)
        assert watcher.turn is not None
        dealt = len(shuffler.traces)
        first = watcher.turn.seat
        for turn, (trace, kind) in enumerate(zip(TRACES, KINDS, strict=True)):
            request = table_pb2.ActRequest(
                request_id=str(uuid4()),
                table_id=table_id,
                hand_id=watcher.hand_id,
                turn=turn,
                action=game_pb2.Action(kind=kind),
            )
            player = seats[first if turn == 0 else 1 - first]
            header = (TRACE_HEADER, f"00-{trace}-b7ad6b7169203331-01")
            await stub.Act(request, metadata=(*room.metadata(player), header))
        assert shuffler.traces[dealt:] == [TRACES[1]]
