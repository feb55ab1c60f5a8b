"""A service of nothing but the four kinds of calls; also a process, for tests of its life."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.wrappers_pb2 import StringValue
from grpc import aio

from services.runtime.auth import acting_player, current_caller
from services.runtime.roles import METHOD_ROLES, Role

SERVICE = "doorcard.test.v1.EchoService"
ROLES = {
    f"/{SERVICE}/{method}": frozenset({Role.PLAYER, Role.SERVICE})
    for method in ("Unary", "ClientStream", "ServerStream", "ServerWrites", "Bidi")
}
# Not in ROLES: a method somebody forgot.
FORGOTTEN = f"/{SERVICE}/Forgotten"


class Echo:
    """Answers every text by `answer`, whatever the kind of the call."""

    def __init__(self, answer: Callable[[str], Awaitable[str]] | None = None) -> None:
        self._answer = answer or who

    async def unary(self, request: StringValue, _context: Any) -> StringValue:
        return StringValue(value=await self._answer(request.value))

    async def client_stream(
        self, requests: AsyncIterator[StringValue], _context: Any
    ) -> StringValue:
        texts = [await self._answer(request.value) async for request in requests]
        return StringValue(value=" ".join(texts))

    async def server_stream(
        self, request: StringValue, _context: Any
    ) -> AsyncIterator[StringValue]:
        for word in request.value.split():
            yield StringValue(value=await self._answer(word))

    async def server_writes(self, request: StringValue, context: Any) -> None:
        for word in request.value.split():
            await context.write(StringValue(value=await self._answer(word)))

    async def bidi(
        self, requests: AsyncIterator[StringValue], _context: Any
    ) -> AsyncIterator[StringValue]:
        async for request in requests:
            yield StringValue(value=await self._answer(request.value))

    async def register(self, server: aio.Server) -> list[str]:
        """For `services.runtime.server.run`."""
        wire: dict[str, Any] = {
            "request_deserializer": StringValue.FromString,
            "response_serializer": StringValue.SerializeToString,
        }
        handlers = {
            "Unary": grpc.unary_unary_rpc_method_handler(self.unary, **wire),
            "Forgotten": grpc.unary_unary_rpc_method_handler(self.unary, **wire),
            "ClientStream": grpc.stream_unary_rpc_method_handler(self.client_stream, **wire),
            "ServerStream": grpc.unary_stream_rpc_method_handler(self.server_stream, **wire),
            "ServerWrites": grpc.unary_stream_rpc_method_handler(self.server_writes, **wire),
            "Bidi": grpc.stream_stream_rpc_method_handler(self.bidi, **wire),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        return [SERVICE]


async def who(text: str) -> str:
    """The text with the caller and the player he acts for."""
    return f"{text}:{current_caller().subject}:{acting_player(current_caller())}"


class Client:
    """The stub."""

    def __init__(self, channel: Any) -> None:
        wire: dict[str, Any] = {
            "request_serializer": StringValue.SerializeToString,
            "response_deserializer": StringValue.FromString,
        }
        self.unary = channel.unary_unary(f"/{SERVICE}/Unary", **wire)
        self.forgotten = channel.unary_unary(FORGOTTEN, **wire)
        self.missing = channel.unary_unary(f"/{SERVICE}/Missing", **wire)
        self.client_stream = channel.stream_unary(f"/{SERVICE}/ClientStream", **wire)
        self.server_stream = channel.unary_stream(f"/{SERVICE}/ServerStream", **wire)
        self.server_writes = channel.unary_stream(f"/{SERVICE}/ServerWrites", **wire)
        self.bidi = channel.stream_stream(f"/{SERVICE}/Bidi", **wire)


def text(value: str) -> StringValue:
    """A message."""
    return StringValue(value=value)


def _process() -> None:
    """Says on stdout what happens to it; the text "hang" is answered after a line on stdin."""
    from services.runtime.server import main, run
    from services.runtime.settings import ServiceSettings, load

    METHOD_ROLES.update(ROLES)
    draining = asyncio.Event()

    async def answer(word: str) -> str:
        if word == "hang":
            print("hanging", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        if word == "until drained":
            print("watching", flush=True)
            await draining.wait()
        return word

    async def on_drain() -> None:
        print("on_drain", flush=True)
        draining.set()

    async def on_stop() -> None:
        print("on_stop", flush=True)

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            print("background cancelled", flush=True)

    async def broken() -> None:
        raise LookupError("nothing goes on for ever")

    works = [broken if "broken" in sys.argv else background]
    settings = load(ServiceSettings)
    main(
        run(
            settings,
            Echo(answer).register,
            on_drain=on_drain,
            background=works,
            on_stop=on_stop,
        )
    )


if __name__ == "__main__":
    _process()
