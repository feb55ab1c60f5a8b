"""How players reach their tables: each on a `Play` stream of his own, or all through gateways.

Both find the owner of a table, open what breaks again, resume from the last version that came, and
ask again what got no answer.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol
from uuid import uuid4

import grpc
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from services.client import RoutedPlay, Routes, TableLost
from services.client.routes import Dial, pause_s
from services.local.bots import bearer
from services.local.load.figures import Figures
from services.local.load.tables import LoadTable
from services.runtime.errors import DeadlineExceeded, DoorcardError, code_of, of_code

ANSWER_S: Final = 30.0

Frame = table_pb2.PlayRequestFrame


class Streams(Protocol):
    """What carries the players of all tables."""

    @property
    def opened(self) -> int:
        """Streams that were opened, those again that broke included."""

    async def __aenter__(self) -> "Streams":
        """Ready to join."""

    async def __aexit__(self, *_: object) -> None:
        """End every stream."""

    async def join(self, table: LoadTable) -> None:
        """Have all its players follow it. Raises DoorcardError."""


class SeatStreams:
    """A stream for each player. token_of: of a player id."""

    def __init__(
        self, seeds: Sequence[str], dial: Dial, token_of: Callable[[str], str], figures: Figures
    ) -> None:
        self._routes = Routes(seeds, dial)
        self._token_of = token_of
        self._figures = figures
        self._seats: dict[tuple[str, str], _Seat] = {}

    @property
    def opened(self) -> int:
        """Streams that were opened, those again that broke included."""
        return sum(seat.opened for seat in self._seats.values())

    async def __aenter__(self) -> "SeatStreams":
        await self._routes.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(seat.close() for seat in self._seats.values()))
        await self._routes.__aexit__()

    async def join(self, table: LoadTable) -> None:
        """Have all its players follow it. Raises DoorcardError."""
        table.ask = self._act
        seats = [
            _Seat(self._routes, table, self._token_of(player), self._figures)
            for player in table.players
        ]
        for player, seat in zip(table.players, seats, strict=True):
            self._seats[table.table_id, player] = seat
        await asyncio.gather(*(seat.joined() for seat in seats))

    async def _act(self, table_id: str, player_id: str, act: table_pb2.PlayAction) -> None:
        frame = Frame(request_id=str(uuid4()), table_id=table_id, act=act)
        await self._seats[table_id, player_id].ask(frame)


class GatewayStreams:
    """Gateways that share the tables. dial: with a token of a service that may act for players."""

    def __init__(self, seeds: Sequence[str], dial: Dial, count: int, figures: Figures) -> None:
        # Each gateway has connections of its own.
        self._routes = [Routes(seeds, dial) for _ in range(count)]
        self._plays = [RoutedPlay(routes, gateway=True) for routes in self._routes]
        self._figures = figures
        self._tables: dict[str, LoadTable] = {}
        self._seen: set[tuple[str, str]] = set()
        """Tables and players whose first snapshot has come."""
        self._reading: list[asyncio.Task[None]] = []

    @property
    def opened(self) -> int:
        """Streams that were opened, those again that broke included."""
        return sum(play.streams_opened for play in self._plays)

    async def __aenter__(self) -> "GatewayStreams":
        for routes, play in zip(self._routes, self._plays, strict=True):
            await routes.__aenter__()
            await play.__aenter__()
            self._reading.append(asyncio.create_task(self._read(play)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        for routes, play in zip(self._routes, self._plays, strict=True):
            await play.__aexit__()
            await routes.__aexit__()

    async def join(self, table: LoadTable) -> None:
        """Have all its players follow it. Raises DoorcardError."""
        play = self._plays[len(self._tables) % len(self._plays)]

        async def act(table_id: str, player_id: str, act: table_pb2.PlayAction) -> None:
            await play.request(Frame(table_id=table_id, player_id=player_id, act=act))

        table.ask = act
        self._tables[table.table_id] = table
        await asyncio.gather(*(play.join(table.table_id, player) for player in table.players))

    async def _read(self, play: RoutedPlay) -> None:
        while True:
            try:
                frame = await play.read()
            except TableLost as lost:
                if not self._tables[lost.table_id].closed.is_set():
                    self._figures.failed(f"a table was lost: {lost.error.reason}")
                continue
            except DoorcardError as error:
                self._figures.failed(f"a gateway was refused: {error.reason}")
                return
            if frame.HasField("snapshot"):
                self._count_snapshots(frame)
            self._tables[frame.table_id].see(frame)

    def _count_snapshots(self, frame: table_pb2.PlayResponseFrame) -> None:
        for player in frame.player_ids:
            if (frame.table_id, player) in self._seen:
                self._figures.resyncs += 1
            self._seen.add((frame.table_id, player))


class _Seat:
    """One player's stream, opened again and again."""

    def __init__(self, routes: Routes, table: LoadTable, token: str, figures: Figures) -> None:
        self._routes = routes
        self.opened = 0
        self._table = table
        self._token = token
        self._figures = figures
        self._version = 0
        self._call: Any = None
        self._answers: dict[str, tuple[Frame, asyncio.Future[None]]] = {}
        self._joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    async def joined(self) -> None:
        """Wait until it follows its table. Raises DoorcardError."""
        await _in_time(self._joined)

    async def ask(self, frame: Frame) -> None:
        """Until it is answered. Raises DoorcardError."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers[frame.request_id] = (frame, answer)
        try:
            if self._call is not None:
                await _write(self._call, frame)
            await _in_time(answer)
        finally:
            del self._answers[frame.request_id]

    async def close(self) -> None:
        """End it."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        failures = 0
        while True:
            address = self._routes.address_of(self._table.table_id)
            try:
                await self._stream(address)
                failures = 0
            except grpc.RpcError as failure:
                error = DoorcardError.from_rpc(failure)
                failures += 1
                if not error.retriable:
                    self._figures.failed(f"a stream was refused: {error.reason}")
            if self._table.closed.is_set():
                return
            self._routes.suspect(address)
            await asyncio.sleep(pause_s(failures) if failures else 0)

    async def _stream(self, address: str) -> None:
        """One stream, until it ends."""
        stub = table_pb2_grpc.TableServiceStub(self._routes.channel(address))
        call = stub.Play(metadata=bearer(self._token))
        join = table_pb2.JoinTable(from_version=self._version)
        self.opened += 1
        try:
            join_id = str(uuid4())
            await _write(call, Frame(request_id=join_id, table_id=self._table.table_id, join=join))
            for asked, _ in list(self._answers.values()):
                await _write(call, asked)
            self._call = call
            async for message in call:
                for frame in message.frames:
                    if frame.HasField("reconnect"):
                        return
                    self._see(frame, join_id)
        finally:
            self._call = None
            call.cancel()

    def _see(self, frame: table_pb2.PlayResponseFrame, join_id: str) -> None:
        if frame.HasField("result"):
            self._answered(frame.result, join_id)
            return
        if frame.HasField("snapshot"):
            self._figures.resyncs += self._version > 0
            self._version = frame.snapshot.version
        else:
            self._version = max(self._version, frame.update.version)
        self._table.see(frame)

    def _answered(self, result: table_pb2.RequestResult, join_id: str) -> None:
        if result.request_id == join_id:
            answer = self._joined
        elif result.request_id in self._answers:
            answer = self._answers[result.request_id][1]
        else:
            return
        if answer.done():
            return
        if result.HasField("refusal"):
            refusal = result.refusal
            answer.set_exception(of_code(code_of(refusal.code), refusal.reason, refusal.message))
        else:
            answer.set_result(None)


async def _write(call: Any, frame: Frame) -> None:
    try:
        await call.write(table_pb2.PlayRequest(frames=[frame]))
    except (asyncio.InvalidStateError, grpc.RpcError):
        # The stream is over; the next read tells why, and then it is asked again.
        return


async def _in_time(answer: "asyncio.Future[None]") -> None:
    try:
        async with asyncio.timeout(ANSWER_S):
            await asyncio.shield(answer)
    except TimeoutError:
        raise DeadlineExceeded("NO_ANSWER", "no answer came in time") from None
