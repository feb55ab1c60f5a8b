"""Table replicas in this process, with real servers around them: Valkey, shuffler, showdown, and a
wallet that keeps its reservations in memory.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import grpc
from doorcard.showdown.v1 import showdown_pb2_grpc
from doorcard.shuffler.v1 import shuffler_pb2_grpc
from doorcard.table.v1 import table_pb2, table_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from google.protobuf.message import Message

from services.runtime.batches import Answering
from services.runtime.channels import connect
from services.runtime.sealing import SealKeys, new_key
from services.runtime.server import Running, serving
from services.runtime.settings import ServiceSettings
from services.shuffler.generator import KernelGenerator
from services.shuffler.receipts import ReceiptKeys
from services.shuffler.server import ShufflerServicer
from services.table.__main__ import RAKES, SHOWDOWNS, Replica
from services.table.settings import TableSettings
from tests import valkey, valkey_cluster
from tests.conftest import Room
from tests.unit.table.rooms import FakeShowdown, FakeWallet

SHARDS = 8
PATIENCE_S = 10.0
Add = Callable[[Any, grpc.aio.Server], None]


class WalletServer(wallet_pb2_grpc.WalletServiceServicer):
    """Reservations and rake of `FakeWallet`, and shards that were never used."""

    def __init__(self) -> None:
        self.fake = FakeWallet()
        self.epochs: dict[int, int] = {}
        self.shards = SHARDS

    async def ReserveBuyIn(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return await self.fake.on_ReserveBuyIn(request)

    async def GetReservation(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return await self.fake.on_GetReservation(request)

    async def GetRakeSchedule(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return await self.fake.on_GetRakeSchedule(request)

    async def AssessRake(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return await self.fake.on_AssessRake(request)

    async def BatchAssessRake(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await Answering(RAKES).answer(self, request, context)

    async def GetProgress(self, request: Any, _context: Any) -> Any:  # noqa: N802
        epoch = self.epochs.get(request.shard, 0)
        return wallet_pb2.GetProgressResponse(
            progress=wallet_pb2.Progress(shard=request.shard, epoch=epoch)
        )

    async def OpenEpoch(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self.epochs[request.shard] = request.expected_epoch + 1
        return wallet_pb2.OpenEpochResponse(
            progress=wallet_pb2.Progress(shard=request.shard, epoch=self.epochs[request.shard])
        )

    async def GetRoomSettings(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return wallet_pb2.GetRoomSettingsResponse(shards=self.shards)


class ShowdownServer(showdown_pb2_grpc.ShowdownServiceServicer):
    """Divides pots as the showdown service does."""

    async def DivideShowdown(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return await FakeShowdown().on_DivideShowdown(request)

    async def BatchDivideShowdown(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await Answering(SHOWDOWNS).answer(self, request, context)


@dataclass
class Cluster:
    """Replicas on one store, and channels to them."""

    room: Room
    wallet: WalletServer
    addresses: dict[str, str]
    server: valkey.Valkey | valkey_cluster.ValkeyCluster
    stack: AsyncExitStack
    keys: SealKeys = field(default_factory=lambda: SealKeys("test", {"k1": new_key()}))
    replicas: list[Replica] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    async def add_replica(self, **fields: Any) -> "table_pb2_grpc.TableServiceAsyncStub":
        """Another replica; a stub to it. fields: more of its settings."""
        name = f"replica-{len(self.replicas) + 1}"
        settings = self.room.settings(
            TableSettings,
            table_redis_url=self.server.url,
            table_seal_keys_file=self.room.folder / "unread",
            shards=SHARDS,
            replica_id=name,
            sweep_interval_ms=20,
            token_file=self.room.token_file("table", ("service",)),
            **self.addresses,
            **fields,
        )
        replica = Replica(settings, self.keys)
        running = await self.stack.enter_async_context(
            serving(
                settings,
                replica.register,
                on_drain=replica.drain,
                background=replica.background,
                on_stop=replica.stop,
                on_bound=replica.bound,
                gate=replica.limits.admit,
            )
        )
        self.replicas.append(replica)
        self.running.append(running)
        return self.stub(len(self.replicas) - 1)

    def stub(self, at: int = 0) -> "table_pb2_grpc.TableServiceAsyncStub":
        """A stub on a channel of its own; calls bring their own token."""
        channel = connect(self.running[at].address, ServiceSettings())
        self.channels.append(channel)
        self.stack.push_async_callback(channel.close)
        return table_pb2_grpc.TableServiceStub(channel)

    async def create(self, **fields: Any) -> str:
        """A table for play money; its id."""
        request = table_pb2.CreateTableRequest(
            request_id=str(uuid4()),
            name="Table one",
            rulebook="club",
            stake_name="5/10",
            seats=6,
            currency="XTS",
            action_ms=60_000,
            hand_pause_ms=20,
        )
        for name, value in fields.items():
            if isinstance(value, Message):
                getattr(request, name).CopyFrom(value)
            else:
                setattr(request, name, value)
        metadata = self.room.metadata("olga", ("operator",))
        answer = await self.stub().CreateTable(request, metadata=metadata)
        return answer.table.config.table_id

    async def take_seat(self, table_id: str, player_id: str, **fields: Any) -> int:
        """A player sits down with 200, if no other buy-in is given; the seat."""
        request = table_pb2.TakeSeatRequest(
            request_id=str(uuid4()), table_id=table_id, **{"buy_in": 200, **fields}
        )
        answer = await self.stub().TakeSeat(request, metadata=self.room.metadata(player_id))
        return answer.seat


@asynccontextmanager
async def cluster(
    room: Room,
    server: valkey.Valkey | valkey_cluster.ValkeyCluster,
    shuffler: ShufflerServicer | None = None,
    **elsewhere: str,
) -> AsyncIterator[Cluster]:
    """The servers around the tables, and no replica yet. elsewhere: addresses of others."""
    async with AsyncExitStack() as stack:
        wallet = WalletServer()  # type: ignore[abstract]  # tables need no more of it
        if shuffler is None:
            keys = SealKeys("decks", {"k1": new_key()})
            shuffler = ShufflerServicer(keys, ReceiptKeys.generate("r1"), KernelGenerator())
        addresses = {}
        for name, servicer, add in (
            ("shuffler", shuffler, shuffler_pb2_grpc.add_ShufflerServiceServicer_to_server),
            (
                "showdown",
                ShowdownServer(),  # type: ignore[abstract]
                showdown_pb2_grpc.add_ShowdownServiceServicer_to_server,
            ),
            ("wallet", wallet, wallet_pb2_grpc.add_WalletServiceServicer_to_server),
        ):
            running = await stack.enter_async_context(
                serving(room.settings(service=name), _registering(servicer, add))
            )
            addresses[f"{name}_address"] = running.address
        yield Cluster(room, wallet, {**addresses, **elsewhere}, server, stack)


def _registering(servicer: Any, add: Any) -> Callable[[grpc.aio.Server], Awaitable[Sequence[str]]]:
    async def register(server: grpc.aio.Server) -> Sequence[str]:
        add(servicer, server)
        return []

    return register


class Seated:
    """A player's `Play` stream, and all that came on it."""

    def __init__(
        self, stub: "table_pb2_grpc.TableServiceAsyncStub", metadata: Any, table_id: str
    ) -> None:
        self.table_id = table_id
        self.call = stub.Play(metadata=metadata)
        self.frames: list[table_pb2.PlayResponseFrame] = []
        self.raw: list[bytes] = []
        self.version = 0
        self.turn: table_pb2.Turn | None = None
        self.hand_id = ""
        self.hands_ended: list[str] = []
        self.snapshots: list[table_pb2.TableView] = []
        self.results: dict[str, table_pb2.RequestResult] = {}
        self.reconnect: table_pb2.Reconnect | None = None

    async def join(self, from_version: int = 0) -> int:
        """Open the table; the version that it was brought to."""
        request_id = str(uuid4())
        frame = table_pb2.PlayRequestFrame(
            request_id=request_id,
            table_id=self.table_id,
            join=table_pb2.JoinTable(from_version=from_version),
        )
        await self.call.write(table_pb2.PlayRequest(frames=[frame]))
        await self.until(lambda: request_id in self.results)
        return self.results[request_id].version

    async def until(self, done: Callable[[], Any]) -> None:
        """Read until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                message = await self.call.read()
                assert isinstance(message, table_pb2.PlayResponse), "the stream ended"
                self.raw.append(message.SerializeToString())
                for frame in message.frames:
                    self.take(frame)

    async def until_version(self, version: int) -> None:
        """Read until a version has come."""
        await self.until(lambda: self.version >= version)

    async def until_turn(self, hand_id: str, turn: int) -> None:
        """Read until this decision of this hand is the present one."""
        await self.until(
            lambda: self.hand_id == hand_id and self.turn is not None and self.turn.turn == turn
        )

    async def until_past(self, turn: int, hands: int) -> bool:
        """Read until a later decision, or the end of one more hand than `hands`: whether it is."""
        await self.until(
            lambda: (
                len(self.hands_ended) > hands or (self.turn is not None and self.turn.turn > turn)
            )
        )
        return len(self.hands_ended) > hands

    def take(self, frame: table_pb2.PlayResponseFrame) -> None:
        """See one frame."""
        self.frames.append(frame)
        kind = frame.WhichOneof("frame")
        if kind == "snapshot":
            view = frame.snapshot
            self.snapshots.append(view)
            self.version = view.version
            self.hand_id = view.hand.hand_id
            self.turn = view.hand.turn if view.hand.HasField("turn") else None
        elif kind == "result":
            self.results[frame.result.request_id] = frame.result
        elif kind == "reconnect":
            self.reconnect = frame.reconnect
        elif kind == "update":
            assert frame.update.version in (self.version, self.version + 1), "a gap or a repeat"
            self.version = frame.update.version
            for event in frame.update.events:
                self.see(event)

    def see(self, event: table_pb2.TableEvent) -> None:
        """See one event."""
        kind = event.WhichOneof("event")
        if kind == "hand_started":
            self.hand_id = event.hand_started.hand_id
            self.turn = None
        elif kind == "turn":
            self.turn = event.turn
        elif kind == "hand_ended":
            self.hands_ended.append(event.hand_ended)
            self.turn = None

    async def act(self, action: Any, **changes: Any) -> table_pb2.RequestResult:
        """Send an action for the turn that was seen last; what became of it."""
        assert self.turn is not None
        request_id = changes.pop("request_id", str(uuid4()))
        fields = {"hand_id": self.hand_id, "turn": self.turn.turn, **changes}
        frame = table_pb2.PlayRequestFrame(
            request_id=request_id,
            table_id=self.table_id,
            act=table_pb2.PlayAction(action=action, **fields),
        )
        await self.call.write(table_pb2.PlayRequest(frames=[frame]))
        await self.until(lambda: request_id in self.results)
        return self.results[request_id]
