"""Tables whose players come through gateways: few streams for many tables, batched both ways."""

import asyncio
from typing import Any, Final

import grpc
from doorcard.table.v1 import table_pb2

from bench.stage.pace import Pace
from bench.stage.players import LEADER, SEATS, Door, PlayedTable, message_of


class Gateway:
    """One stream. What its tables send in one tick of the loop goes out in one message."""

    def __init__(self, door: Door, name: str) -> None:
        self.tables: Final[dict[str, GatewayTable]] = {}
        self._call = door.play_for_all(name)
        self._waiting: list[bytes] = []
        self._tasks = {asyncio.create_task(self._read())}
        self._wanted = asyncio.Event()
        self._tasks.add(asyncio.create_task(self._write()))

    def send(self, message: bytes) -> None:
        """Frames to be written with all others that wait."""
        self._waiting.append(message)
        self._wanted.set()

    async def close(self) -> None:
        """Stop reading and writing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            message = b"".join(self._waiting)
            self._waiting.clear()
            await self._call.write(message)

    async def _read(self) -> None:
        while (message := await self._call.read()) is not grpc.aio.EOF:
            seen = set()
            for frame in table_pb2.PlayResponse.FromString(message).frames:
                table = self.tables[frame.table_id]
                table.bytes_read += frame.ByteSize()
                table.see(frame)
                seen.add(table)
            for table in seen:
                table.go_on()


class GatewayTable(PlayedTable):
    """A table of six players of one gateway."""

    def __init__(self, pace: Pace, door: Door, gateway: Gateway, seed: int) -> None:
        super().__init__(pace, [door], seed)
        self._gateway = gateway
        self._players: list[str] = []

    async def open(self) -> None:
        """Create it, join it six times, take six seats."""
        door = self._doors[0]
        self.table_id = await door.create(SEATS)
        self._gateway.tables[self.table_id] = self
        self._players = [f"{self.table_id[:8]}-{number}" for number in range(SEATS)]
        for number, player_id in enumerate(self._players):
            join: Any = {"join": table_pb2.JoinTable(), "player_id": player_id}
            self._gateway.send(message_of(self.table_id, f"join-{number}", **join))
        for number, player_id in enumerate(self._players):
            taken = await door.sit(self.table_id, player_id)
            if taken != number:
                raise RuntimeError(f"seat {taken} instead of {number}")

    def see(self, frame: table_pb2.PlayResponseFrame) -> None:
        """What everybody sees, the leader's snapshot, and answers."""
        named = list(frame.player_ids)
        if not named or named == self._players[LEADER : LEADER + 1]:
            self._see(LEADER, frame)
        elif frame.HasField("result"):
            self._see(self._acting, frame)

    def go_on(self) -> None:
        """Say so if somebody is to act."""
        self._offer()

    async def _write(self, seat: int, act: table_pb2.PlayAction) -> None:
        message = message_of(
            self.table_id, self._request_id, act=act, player_id=self._players[seat]
        )
        self.bytes_sent += len(message)
        self._gateway.send(message)


async def open_gateway_tables(
    pace: Pace, door: Door, gateways: int, count: int, seed: int
) -> tuple[list[Gateway], list[GatewayTable]]:
    """Tables that wait for their pace, dealt out to gateways."""
    streams = [Gateway(door, f"gateway-{number}") for number in range(gateways)]
    tables = [
        GatewayTable(pace, door, streams[number % gateways], seed + number)
        for number in range(count)
    ]
    for table in tables:
        await table.open()
    return streams, tables
