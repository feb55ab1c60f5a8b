"""A way to a service that can be shut, and a clock of the tables that can be moved on."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc

from services.table.__main__ import Replica


class Gate(grpc.GenericRpcHandler):
    """Passes every unary call on to a server, unless it is away."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.away = False
        self.refused = 0
        self.address = ""
        self._channel = channel

    def service(self, handler_call_details: Any) -> Any:
        """The way of one call."""
        return grpc.unary_unary_rpc_method_handler(partial(self._pass, handler_call_details.method))

    async def _pass(self, method: str, request: bytes, context: Any) -> bytes:
        if self.away:
            self.refused += 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        onward: Any = self._channel.unary_unary(method)
        metadata = [each for each in context.invocation_metadata() if each[0] == "authorization"]
        passed: bytes = await onward(request, metadata=metadata, timeout=5)
        return passed


@asynccontextmanager
async def gate_to(address: str) -> AsyncIterator[Gate]:
    """A gate before a server."""
    async with grpc.aio.insecure_channel(address) as channel:
        gate = Gate(channel)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((gate,))
        gate.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        try:
            yield gate
        finally:
            await server.stop(None)


class LaterClock:
    """The replicas' idea of the store's time, moved on: what is due then is ticked by the test."""

    def __init__(self, *replicas: Replica) -> None:
        self.ahead_ms = 0
        for replica in replicas:
            replica.store.now_ms = partial(  # type: ignore[method-assign]
                self._later, replica.store.now_ms
            )

    def _later(self, now_ms: Callable[[int], int], shard: int = 0) -> int:
        return now_ms(shard) + self.ahead_ms


class SetClock:
    """The store's clock as replicas compare it with theirs, `ahead_ms` ahead of what it is: set to
    that, and back again, it steps for them as it would if somebody set it.
    """

    def __init__(self, *replicas: Replica) -> None:
        self.ahead_ms = 0
        self._replicas = replicas
        for replica in replicas:
            heart = replica.store.heart
            heart._measured = partial(self._measured, heart._measured)  # type: ignore[method-assign]

    async def set(self, ahead_ms: int) -> None:
        """The clock is set; return when every replica has compared it."""
        self.ahead_ms = ahead_ms
        for replica in self._replicas:
            await replica.store.beat()

    def _measured(
        self, measured: Callable[[str, int, int], None], node: str, sent_us: int, redis_us: int
    ) -> None:
        measured(node, sent_us, redis_us + self.ahead_ms * 1000)
