"""One `Play` stream: frames go out together, messages come in one at a time."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import grpc
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from services.runtime.errors import DoorcardError, ResourceExhausted, Unavailable
from services.runtime.logs import logger

FRAMES_MAX: Final = 64
"""Frames in one message."""
QUEUED_MAX: Final = 4096
"""Frames that wait for the stream; what a caller asks for then is refused."""

Received = Callable[["Link", table_pb2.PlayResponse], Awaitable[None]]
Ended = Callable[["Link", DoorcardError], None]


class Link:
    """A stream to one replica.

    received(link, message): waited for before the next message is read. ended(link, error): it is
    over; told once, unless it was finished or closed by us.
    """

    def __init__(
        self,
        address: str,
        channel: grpc.aio.Channel,
        metadata: Sequence[tuple[str, str]],
        received: Received,
        ended: Ended,
    ) -> None:
        self.address: Final = address
        self.parting: Final[dict[tuple[str, str], str]] = {}
        """(table, player) -> the part that is not answered yet."""
        self._channel = channel
        self._metadata = metadata
        self._received = received
        self._ended = ended
        self._queue: deque[table_pb2.PlayRequestFrame] = deque()
        self._queued = asyncio.Event()
        self._finishing = False
        self._task = asyncio.create_task(self._run(), name=f"play {address}")

    @property
    def over(self) -> bool:
        """Nothing goes out or comes in any more."""
        return self._task.done()

    def send(self, frame: table_pb2.PlayRequestFrame) -> None:
        """Send it with everything else of this tick."""
        self._queue.append(frame)
        self._queued.set()

    def ask(self, frame: table_pb2.PlayRequestFrame) -> None:
        """Send what a caller asks for. Raises ResourceExhausted (STREAM_FULL).

        Joins and parts go by `send`: there is one for each table that is followed.
        """
        if len(self._queue) >= QUEUED_MAX:
            raise ResourceExhausted("STREAM_FULL", "too many requests wait for the stream")
        self.send(frame)

    def finish(self) -> None:
        """Send what is queued and nothing more; then the server ends the stream."""
        self._finishing = True
        self._queued.set()

    async def close(self) -> None:
        """Break it off."""
        self._finishing = True
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        failure: DoorcardError = Unavailable("STREAM_LOST", "the stream has ended")
        call = table_pb2_grpc.TableServiceStub(self._channel).Play(metadata=self._metadata)
        writing = asyncio.create_task(self._write(call))
        try:
            async for message in call:
                await self._received(self, message)
        except grpc.RpcError as error:
            failure = DoorcardError.from_rpc(error)
        except Exception:
            # Whatever it was, the tables that are on it must not wait for ever.
            logger.exception("stream_failed")
        finally:
            writing.cancel()
            call.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        if not self._finishing:
            self._ended(self, failure)

    async def _write(
        self, call: "grpc.aio.StreamStreamCall[table_pb2.PlayRequest, table_pb2.PlayResponse]"
    ) -> None:
        # What a write fails with is told by the next read.
        while not (self._finishing and not self._queue):
            await self._queued.wait()
            self._queued.clear()
            while self._queue:
                count = min(FRAMES_MAX, len(self._queue))
                frames = [self._queue.popleft() for _ in range(count)]
                await call.write(table_pb2.PlayRequest(frames=frames))
        await call.done_writing()
