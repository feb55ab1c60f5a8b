"""A room around a store that loses something: real ledger, tables, settlement and reconciler."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import grpc
import redis
from doorcard.history.v1 import history_pb2, history_pb2_grpc
from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.errors import DoorcardError, Unavailable
from services.runtime.server import serving
from services.settlement.drain import Drain
from services.settlement.peers import Peers, connect_peers
from services.settlement.reconcile import Reconciler
from services.settlement.settings import WorkerSettings
from services.table.store.store import Store
from services.table.store.stored import ShardState
from tests.choices import passive
from tests.conftest import Room
from tests.contract.reopening.stores import LossyStore
from tests.contract.table.replicas import SHARDS, Cluster, Seated, cluster
from tests.contract.wallet.conftest import Start, Wallet

CURRENCY = "XTS"
PATIENCE_S = 30.0


class Archive(history_pb2_grpc.HistoryServiceServicer):
    """Remembers the hands of each shard and epoch, without a gap."""

    def __init__(self) -> None:
        self.progress: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self.hands: list[str] = []
        self.away = False

    async def GetArchiveProgress(self, request: Any, _context: Any) -> Any:  # noqa: N802
        epoch, seq = self.progress[request.shard]
        return history_pb2.GetArchiveProgressResponse(epoch=epoch, archived_seq=seq)

    async def StoreHands(self, request: Any, _context: Any) -> Any:  # noqa: N802
        if self.away:
            raise Unavailable("DATABASE_AWAY", "the archive is away")
        epoch, seq = self.progress[request.shard]
        seq = seq if epoch == request.epoch else 0
        for entry in request.entries:
            if entry.seq > seq:
                assert entry.seq == seq + 1
                seq = entry.seq
                if entry.HasField("hand"):
                    self.hands.append(entry.hand.hand_id)
        self.progress[request.shard] = (request.epoch, seq)
        return history_pb2.StoreHandsResponse(archived_seq=seq)


class Scene:
    """Tables, players and their money."""

    def __init__(self, tables: Cluster, wallet: Wallet, peers: Peers, archive: Archive) -> None:
        self.tables = tables
        self.wallet = wallet
        self.archive = archive
        self.peers = peers
        self.stub = tables.stub()
        self._drain = Drain(peers, batch=50)

    async def create(self, *, beside: str = "") -> str:
        """A table, on the shard of another one if that is wanted."""
        while True:
            table_id = await self.tables.create(action_ms=300_000, hand_pause_ms=20)
            if not beside or self.shard_of(table_id) == self.shard_of(beside):
                return table_id

    async def seat(self, table_id: str, *players: str) -> list[str]:
        """Players with 200 in all sit down with it; their sittings."""
        sittings = []
        for player in players:
            await self.wallet.deposit(player, 200, CURRENCY)
            request = table_pb2.TakeSeatRequest(
                request_id=str(uuid4()), table_id=table_id, buy_in=200
            )
            answer = await self.stub.TakeSeat(request, metadata=self.tables.room.metadata(player))
            sittings.append(answer.sitting_id)
        return sittings

    async def reserve(self, table_id: str, player: str) -> str:
        """A reservation that no seat is taken with."""
        await self.wallet.deposit(player, 200, CURRENCY)
        made = await self.wallet.reserve(
            player, 200, str(uuid4()), table_id=table_id, currency=CURRENCY
        )
        return str(made.reservation_id)

    async def watch(self, table_id: str, player: str, *, replica: int = 0) -> Seated:
        """His stream, with the table open on it."""
        seated = Seated(self.tables.stub(replica), self.tables.room.metadata(player), table_id)
        await seated.join()
        return seated

    async def view(self, table_id: str) -> table_pb2.TableView:
        """The table as everybody sees it."""
        answer = await self.stub.GetTable(
            table_pb2.GetTableRequest(table_id=table_id),
            metadata=self.tables.room.metadata("olga", ("operator",)),
        )
        return answer.table

    async def act(self, table_id: str) -> table_pb2.TableView:
        """Whoever's turn it is brings in, checks or calls; the table before that."""
        view = await self.until(table_id, lambda view: view.hand.HasField("turn"))
        turn = view.hand.turn
        player = next(seat.player_id for seat in view.seats if seat.seat == turn.seat)
        request = table_pb2.ActRequest(
            request_id=str(uuid4()),
            table_id=table_id,
            hand_id=view.hand.hand_id,
            turn=turn.turn,
            action=passive(turn),
        )
        await self.stub.Act(request, metadata=self.tables.room.metadata(player))
        return view

    async def play_hand(self, table_id: str) -> str:
        """A whole hand to its showdown; its id."""
        view = await self.act(table_id)
        hand_id = view.hand.hand_id
        while view.hand.hand_id == hand_id:
            view = await self.until(
                table_id,
                lambda view: view.hand.HasField("turn") or view.hand.hand_id != hand_id,
            )
            if view.hand.hand_id == hand_id:
                await self.act(table_id)
        return str(hand_id)

    async def until(
        self, table_id: str, done: Callable[[table_pb2.TableView], Any]
    ) -> table_pb2.TableView:
        """The view in which something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not done(view := await self.view(table_id)):
                await asyncio.sleep(0.01)
        return view

    async def escrow(self, table_id: str) -> list[wallet_pb2.SittingEscrow]:
        """What the ledger has of the table."""
        shard = self.shard_of(table_id)
        found = await self.wallet.inspect(shard)
        return [each for each in found.escrow if each.table_id == table_id]

    def lose_table(self, table_id: str) -> None:
        """Take a table out of the store, behind its back."""
        shard = self.shard_of(table_id)
        with redis.Redis.from_url(self.tables.server.url) as client:
            client.delete(f"{{t{shard}}}:table:{table_id}")

    # Settlement

    async def drain(self, table_id: str) -> None:
        """One trigger."""
        shard = self.shard_of(table_id)
        await asyncio.to_thread(self._drain.shard, shard)

    async def reconciled(self, shard: int) -> dict[Any, int]:
        """What the reconciler finds, with every old reservation put to its table before."""
        await asyncio.to_thread(
            Reconciler(self.peers, confirm_s=0, reservation_age_s=0).reservations
        )
        await asyncio.to_thread(self._drain.shard, shard)
        reconciler = Reconciler(self.peers, confirm_s=0.01, reservation_age_s=60)
        return dict(await asyncio.to_thread(reconciler.shard, shard))

    async def agree(self, table_id: str) -> None:
        """Check that tables and ledger agree, as they stand and once all is drained."""
        shard = self.shard_of(table_id)
        assert await self.reconciled(shard) == {}
        await self.drain(table_id)
        assert await self.reconciled(shard) == {}

    async def settle(self) -> None:
        """Triggers for every shard, again and again."""
        while True:
            for shard in range(SHARDS):
                try:
                    await asyncio.to_thread(self._drain.shard, shard)
                except DoorcardError:
                    continue
            await asyncio.sleep(0.05)

    @property
    def store(self) -> Store:
        """The first replica's."""
        return self.tables.replicas[0].store

    def shard_of(self, table_id: str) -> int:
        """The table's shard."""
        return self.store.shard_of(table_id)

    async def reopened(self, table_id: str, epoch: int = 2) -> int:
        """Wait until the table's shard is open in this epoch; the shard."""
        store = self.tables.replicas[-1].store
        shard = store.shard_of(table_id)
        settling = asyncio.create_task(self.settle())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    try:
                        found = await store.shard(shard)
                    except DoorcardError:
                        continue
                    if found.epoch == epoch and found.state is ShardState.OPEN:
                        return shard
                    await asyncio.sleep(0.02)
        finally:
            settling.cancel()
            await asyncio.gather(settling, return_exceptions=True)

    async def sound(self, shard: int) -> None:
        """The ledger's sums are zero, escrow is what lies at the tables, and nothing is pending."""
        assert await self.reconciled(shard) == {}
        await self.wallet.sound(CURRENCY)
        found = await self.wallet.inspect(shard)
        assert not found.parked, str(found.parked)
        assert not found.pending, str(found.pending)


@asynccontextmanager
async def scene(
    room: Room, start: Start, store: LossyStore, replicas: int = 2
) -> AsyncIterator[Scene]:
    """A room on this store."""
    archive = Archive()  # type: ignore[abstract]  # settlement needs no more of it

    async def register(server: grpc.aio.Server) -> Sequence[str]:
        history_pb2_grpc.add_HistoryServiceServicer_to_server(archive, server)
        return []

    async with (
        start(shards=SHARDS) as wallet,
        serving(room.settings(service="history"), register) as history,
        cluster(room, store, wallet_address=wallet.address) as tables,  # type: ignore[arg-type]
    ):
        for _ in range(replicas):
            await tables.add_replica()
        settings = room.settings(
            WorkerSettings,
            broker_url="redis://unused",
            table_addresses=tuple(each.address for each in tables.running),
            wallet_address=wallet.address,
            history_address=history.address,
            token_file=room.token_file("settlement", ("service",)),
        )
        yield Scene(tables, wallet, connect_peers(settings, timeout_s=5), archive)


def released(reservation: wallet_pb2.Reservation) -> bool:
    """It went back."""
    return reservation.state == wallet_pb2.RESERVATION_STATE_RELEASED
