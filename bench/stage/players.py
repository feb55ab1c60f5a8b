"""Tables with six players, each on a `Play` stream of his own, that act when their pace says so.

A player decides by the dice of his table. Messages are read from every stream; what is decoded is
what the dice need: the updates on the first seat's stream, and the answer on the stream of the
player who acted.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import grpc
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from bench.stage.pace import Pace
from services.runtime.auth import TokenSigner
from services.runtime.roles import Role

SEATS: Final = 6
CONNECTIONS: Final = 8
"""Connections that the streams of one server share."""
BUY_IN: Final = 10_000_000
OPENED_AT_ONCE: Final = 25
TOKEN_S: Final = 3600
WATCHED_AT_ONCE: Final = 64
LEADER: Final = 0
NOBODY: Final = -1
RAISE_SHARE: Final = 0.15
FOLD_SHARE: Final = 0.3

Kind = game_pb2.ActionKind
Metadata = tuple[tuple[str, str], ...]


class Door:
    """A replica as players reach it."""

    def __init__(self, address: str, signer: TokenSigner) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        self._channels = [
            grpc.aio.insecure_channel(address, options=options) for _ in range(CONNECTIONS)
        ]
        self._signer = signer
        self._streams = 0
        self.held: Final[list[asyncio.Task[None]]] = []
        """Readers of streams that only watch."""
        self.stub: Final = table_pb2_grpc.TableServiceStub(self._channels[0])

    def metadata(self, subject: str, role: Role = Role.PLAYER) -> Metadata:
        """The token of a caller."""
        return (("authorization", f"Bearer {self._signer.mint(subject, [role], TOKEN_S)}"),)

    def play(self, player_id: str) -> Any:
        """A stream of raw bytes."""
        channel = self._channels[self._streams % CONNECTIONS]
        self._streams += 1
        method: Any = channel.stream_stream("/doorcard.table.v1.TableService/Play")
        return method(metadata=self.metadata(player_id))

    def play_for_all(self, name: str) -> Any:
        """A gateway's stream of raw bytes, for every player."""
        token = self._signer.mint(name, [Role.SERVICE], TOKEN_S, act_for=["*"])
        channel = self._channels[self._streams % CONNECTIONS]
        self._streams += 1
        method: Any = channel.stream_stream("/doorcard.table.v1.TableService/Play")
        return method(metadata=(("authorization", f"Bearer {token}"),))

    async def create(self, seats: int) -> str:
        """A table with a long clock and no pause between hands; its id."""
        request = table_pb2.CreateTableRequest(
            request_id=str(uuid4()),
            name="Bench",
            rulebook="interpoker",
            stake_name="1/2",
            seats=seats,
            currency="XTS",
            rake_schedule_id="bench",
            action_ms=300_000,
        )
        answer = await self.stub.CreateTable(
            request, metadata=self.metadata("bench", Role.OPERATOR)
        )
        return answer.table.config.table_id

    async def sit(self, table_id: str, player_id: str) -> int:
        """Take the first free seat; its number."""
        request = table_pb2.TakeSeatRequest(
            request_id=str(uuid4()), table_id=table_id, buy_in=BUY_IN
        )
        answer = await self.stub.TakeSeat(request, metadata=self.metadata(player_id))
        return answer.seat

    async def close(self) -> None:
        """End every stream."""
        for task in self.held:
            task.cancel()
        await asyncio.gather(*self.held, return_exceptions=True)
        for channel in self._channels:
            await channel.close()


class PlayedTable:
    """One table. doors: of seats 0, 1, 2, ... in turn, and of the table itself the first."""

    def __init__(self, pace: Pace, doors: Sequence[Door], seed: int) -> None:
        self.since_s = 0.0
        self.table_id = ""
        self.hands = 0
        """Hands that ended."""
        self.bytes_read = 0
        self.bytes_sent = 0
        """Of actions."""
        self._pace = pace
        self._doors = doors
        self._dice = random.Random(seed)
        self._calls: list[Any] = []
        self._reading: list[asyncio.Task[None]] = []
        self._hand_id = ""
        self._turn: table_pb2.Turn | None = None
        self._offered = False
        self._acting = NOBODY
        self._request = 0

    async def open(self) -> None:
        """Create it, open six streams, take six seats."""
        self.table_id = await self._doors[0].create(SEATS)
        players = [f"{self.table_id[:8]}-{number}" for number in range(SEATS)]
        for number, player_id in enumerate(players):
            call = self._door(number).play(player_id)
            await call.write(message_of(self.table_id, "join", join=table_pb2.JoinTable()))
            self._calls.append(call)
            self._reading.append(asyncio.create_task(self._read(number, call)))
        for number, player_id in enumerate(players):
            taken = await self._door(number).sit(self.table_id, player_id)
            if taken != number:
                raise RuntimeError(f"seat {taken} instead of {number}")

    async def close(self) -> None:
        """Stop reading."""
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def act(self) -> None:
        """The player to act does what the dice say."""
        turn, self._turn, self._offered = self._turn, None, False
        if turn is None:
            raise RuntimeError("nobody is to act")
        self._acting = turn.seat
        self._request += 1
        action = table_pb2.PlayAction(
            hand_id=self._hand_id, turn=turn.turn, action=_chosen(turn.legal, self._dice.random())
        )
        await self._write(turn.seat, action)

    async def _write(self, seat: int, act: table_pb2.PlayAction) -> None:
        message = message_of(self.table_id, self._request_id, act=act)
        self.bytes_sent += len(message)
        await self._calls[seat].write(message)

    async def _read(self, number: int, call: Any) -> None:
        while (message := await call.read()) is not grpc.aio.EOF:
            self.bytes_read += len(message)
            if number in (LEADER, self._acting):
                for frame in table_pb2.PlayResponse.FromString(message).frames:
                    self._see(number, frame)
                self._offer()

    def _offer(self) -> None:
        if self._turn is not None and self._acting == NOBODY and not self._offered:
            self._offered = True
            self._pace.turned(self)

    def _see(self, number: int, frame: table_pb2.PlayResponseFrame) -> None:
        kind = frame.WhichOneof("frame")
        if kind == "result" and frame.result.request_id == self._request_id:
            if frame.result.HasField("refusal"):
                raise RuntimeError(f"refused: {frame.result.refusal.reason}")
            self._acting = NOBODY
            self._pace.answered(self)
        elif kind == "update" and number == LEADER:
            for event in frame.update.events:
                self._follow(event)
        elif kind == "snapshot" and number == LEADER:
            hand = frame.snapshot.hand
            self._hand_id = hand.hand_id
            self._turn = hand.turn if hand.HasField("turn") else None

    def _follow(self, event: table_pb2.TableEvent) -> None:
        kind = event.WhichOneof("event")
        if kind == "turn":
            self._turn = event.turn
        elif kind == "hand_started":
            self._hand_id = event.hand_started.hand_id
        elif kind == "hand_ended":
            self.hands += 1

    def _door(self, number: int) -> Door:
        return self._doors[number % len(self._doors)]

    @property
    def _request_id(self) -> str:
        return f"{self._request:032x}"


async def open_tables(
    pace: Pace, doors: Sequence[Door], count: int, seed: int
) -> list[PlayedTable]:
    """Tables that wait for their pace."""
    tables = [PlayedTable(pace, doors, seed + number) for number in range(count)]
    for start in range(0, count, OPENED_AT_ONCE):
        await asyncio.gather(*(each.open() for each in tables[start : start + OPENED_AT_ONCE]))
    return tables


async def hold_open(door: Door, count: int) -> None:
    """Tables with a hand in progress, two players who think, and somebody who watches."""
    for start in range(0, count, WATCHED_AT_ONCE):
        table_ids = await asyncio.gather(
            *(_hold_one_open(door) for _ in range(min(WATCHED_AT_ONCE, count - start)))
        )
        call = door.play(f"watcher-{start}")
        for table_id in table_ids:
            await call.write(message_of(table_id, "join", join=table_pb2.JoinTable()))
        door.held.append(asyncio.create_task(_read_on(call)))


async def hold_streams(door: Door, table_ids: Sequence[str], count: int) -> None:
    """Streams of players who look on, each at one of the tables; returns when all have joined."""

    async def join(number: int) -> None:
        call = door.play(f"idle-{number}")
        table_id = table_ids[number % len(table_ids)]
        await call.write(message_of(table_id, "join", join=table_pb2.JoinTable()))
        await call.read()
        door.held.append(asyncio.create_task(_read_on(call)))

    for start in range(0, count, WATCHED_AT_ONCE):
        await asyncio.gather(*map(join, range(start, min(count, start + WATCHED_AT_ONCE))))


async def _hold_one_open(door: Door) -> str:
    table_id = await door.create(2)
    for number in range(2):
        await door.sit(table_id, f"{table_id[:8]}-thinker-{number}")
    return table_id


async def _read_on(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


def message_of(table_id: str, request_id: str, **what: Any) -> bytes:
    """A message with one frame."""
    frame = table_pb2.PlayRequestFrame(request_id=request_id, table_id=table_id, **what)
    return table_pb2.PlayRequest(frames=[frame]).SerializeToString()


def _chosen(legal: game_pb2.LegalActions, roll: float) -> game_pb2.Action:
    """A hand of six has some twenty of these, as in a room."""
    wager = game_pb2.Action(kind=legal.wager_kind, amount=legal.wagers[0]) if legal.wagers else None
    if legal.bring_in:
        return game_pb2.Action(kind=Kind.ACTION_KIND_BRING_IN)
    if wager is not None and roll > 1 - RAISE_SHARE:
        return wager
    if legal.check:
        return game_pb2.Action(kind=Kind.ACTION_KIND_CHECK)
    if legal.call and roll > FOLD_SHARE:
        return game_pb2.Action(kind=Kind.ACTION_KIND_CALL)
    return game_pb2.Action(kind=Kind.ACTION_KIND_FOLD)
