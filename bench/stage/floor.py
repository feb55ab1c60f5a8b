"""The floor of an action, as a process: a stream's message is taken, one EVALSHA of an action's
size is done, then the message is echoed and something is pushed to the streams of its table.

    python -m bench.stage.floor

Plain grpc.aio and redis-py, raw bytes, one message at a time: no tokens, no rules, no sealing,
nothing encoded, and nothing gathered into one write.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any, Final

import grpc
import uvloop
from grpc import aio
from redis.asyncio import Redis

from services.runtime.ready import write_ready
from services.runtime.settings import LOOPBACK

METHOD: Final = "/bench.Floor/Play"
TABLE_HEADER: Final = "table"
ECHO: Final = b"e"
EVENTS_KEPT: Final = 60
SCRIPT: Final = """
redis.call('HSET', KEYS[1], 'b', ARGV[1])
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[3], '*', 'e', ARGV[2])
redis.call('ZADD', KEYS[3], ARGV[4], KEYS[1])
return 'DONE'
"""


class Floor:
    """The streams of each table; blob_bytes, event_bytes and push_bytes as in the product."""

    def __init__(self, redis: Redis, blob_bytes: int, event_bytes: int, push_bytes: int) -> None:
        self._redis = redis
        self._blob = os.urandom(blob_bytes)
        self._event = os.urandom(event_bytes)
        self._push = bytes(push_bytes)
        self._sha = ""
        self._tables: dict[str, list[asyncio.Queue[bytes]]] = {}

    async def start(self) -> None:
        """Load the script."""
        self._sha = await self._redis.script_load(SCRIPT)

    async def play(self, requests: AsyncIterable[bytes], context: Any) -> None:
        """One stream of a table."""
        table = dict(context.invocation_metadata())[TABLE_HEADER]
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._tables.setdefault(table, []).append(queue)
        writing = asyncio.create_task(_write(queue, context))
        try:
            async for message in requests:
                await self._commit(table)
                queue.put_nowait(ECHO + message)
                for watcher in self._tables[table]:
                    watcher.put_nowait(self._push)
        finally:
            writing.cancel()
            self._tables[table].remove(queue)

    async def _commit(self, table: str) -> None:
        answer: Any = self._redis.evalsha(
            self._sha,
            3,
            f"floor:{table}",
            f"floor-events:{table}",
            "floor-deadlines",
            self._blob,
            self._event,
            EVENTS_KEPT,
            "1",
        )
        await answer


async def _write(queue: asyncio.Queue[bytes], context: Any) -> None:
    while True:
        await context.write(await queue.get())


async def main() -> None:
    """Serve until SIGTERM."""
    sizes = [int(os.environ[f"DOORCARD_FLOOR_{name}_BYTES"]) for name in ("BLOB", "EVENT", "PUSH")]
    redis = Redis.from_url(os.environ["DOORCARD_FLOOR_REDIS_URL"])
    floor = Floor(redis, *sizes)
    await floor.start()
    server = aio.server()
    service, _, method = METHOD.removeprefix("/").partition("/")
    handlers: Any = {method: grpc.stream_stream_rpc_method_handler(floor.play)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    await server.start()
    write_ready(Path(os.environ["DOORCARD_READY_FILE"]), "floor", grpc=port)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await server.stop(0)
    with contextlib.suppress(OSError):
        await redis.aclose()


if __name__ == "__main__":
    uvloop.run(main())
