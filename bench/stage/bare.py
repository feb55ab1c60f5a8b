"""Tables of the bare floor: six streams each, one message in flight."""

import asyncio
from typing import Any, Final

import grpc

from bench.stage.floor import ECHO, METHOD, TABLE_HEADER
from bench.stage.pace import Pace
from bench.stage.players import CONNECTIONS, LEADER, SEATS


class BareTable:
    """As `PlayedTable`: an action goes out on the next seat's stream, everybody reads."""

    def __init__(self, pace: Pace, name: str, message: bytes) -> None:
        self.since_s = 0.0
        self._pace = pace
        self._name = name
        self._message = message
        self._calls: list[Any] = []
        self._reading: list[asyncio.Task[None]] = []
        self._seat = LEADER
        self._missing = 0

    async def open(self, channels: list[grpc.aio.Channel]) -> None:
        """Open six streams."""
        for number in range(SEATS):
            method: Any = channels[number % len(channels)].stream_stream(METHOD)
            call = method(metadata=((TABLE_HEADER, self._name),))
            await call.wait_for_connection()
            self._calls.append(call)
            self._reading.append(asyncio.create_task(self._read(number, call)))
        self._pace.turned(self)

    async def close(self) -> None:
        """Stop reading."""
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def act(self) -> None:
        """Send one message."""
        self._seat = (self._seat + 1) % SEATS
        self._missing = 2
        await self._calls[self._seat].write(self._message)

    async def _read(self, number: int, call: Any) -> None:
        """The echo answers; the leader's push tells that the next may act."""
        while (message := await call.read()) is not grpc.aio.EOF:
            if message.startswith(ECHO):
                self._pace.answered(self)
            elif number != LEADER:
                continue
            self._missing -= 1
            if not self._missing:
                self._pace.turned(self)


class BareTables:
    """Tables of one floor."""

    def __init__(self, address: str) -> None:
        options: Final = [("grpc.use_local_subchannel_pool", 1)]
        self._channels = [
            grpc.aio.insecure_channel(address, options=options) for _ in range(CONNECTIONS)
        ]
        self._tables: list[BareTable] = []

    async def open(self, pace: Pace, count: int, message_bytes: int) -> None:
        """Tables that wait for their pace."""
        self._tables = [BareTable(pace, str(n), bytes(message_bytes)) for n in range(count)]
        await asyncio.gather(*(each.open(self._channels) for each in self._tables))

    async def close(self) -> None:
        """End every stream."""
        for table in self._tables:
            await table.close()
        for channel in self._channels:
            await channel.close()
