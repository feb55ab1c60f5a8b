"""Rate, errors and duration of calls, counted by the caller, for asyncio and for threads."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from services.runtime.channels import connect, connect_sync
from services.runtime.errors import InvalidArgument
from services.runtime.metrics import REGISTRY
from services.runtime.roles import METHOD_ROLES
from services.runtime.server import Running, serving
from tests.conftest import Room
from tests.contract.runtime.echo import ROLES, SERVICE, Client, Echo, text


@pytest.fixture(autouse=True)
def _roles(monkeypatch: pytest.MonkeyPatch) -> None:
    for method, roles in ROLES.items():
        monkeypatch.setitem(METHOD_ROLES, method, roles)


@asynccontextmanager
async def echo(room: Room, answer: Any = None) -> AsyncIterator[Running]:
    async with serving(room.settings(), Echo(answer).register) as running:
        yield running


def counted(method: str, code: str) -> tuple[float, float, float]:
    """Calls begun, ended with `code`, and timed, as they stand now."""
    kinds = {"Unary": "unary", "ServerStream": "server_stream", "Bidi": "bidi_stream"}
    labels = {"grpc_type": kinds[method], "grpc_service": SERVICE, "grpc_method": method}
    return (
        REGISTRY.get_sample_value("grpc_client_started_total", labels) or 0.0,
        REGISTRY.get_sample_value("grpc_client_handled_total", {**labels, "grpc_code": code})
        or 0.0,
        REGISTRY.get_sample_value("grpc_client_handling_seconds_count", labels) or 0.0,
    )


class Counting:
    """What the block adds to the counters of a method."""

    def __init__(self, method: str, code: str) -> None:
        self._what = (method, code)

    def __enter__(self) -> "Counting":
        self._before = counted(*self._what)
        return self

    def __exit__(self, *_: object) -> None:
        self.added = tuple(
            now - before for now, before in zip(counted(*self._what), self._before, strict=True)
        )


async def refuse(_text: str) -> str:
    raise InvalidArgument("BAD_WORD", "not that one")


async def test_a_call_that_ends_well(room: Room) -> None:
    settings = room.settings(token_file=room.token_file())
    async with echo(room) as server, connect(server.address, settings) as channel:
        with Counting("Unary", "OK") as unary:
            await Client(channel).unary(text("a"))
        with Counting("ServerStream", "OK") as stream:
            assert len([each async for each in Client(channel).server_stream(text("a b"))]) == 2
    assert unary.added == stream.added == (1, 1, 1)


async def test_a_refusal_counts_by_its_status(room: Room) -> None:
    settings = room.settings(token_file=room.token_file())
    async with echo(room, refuse) as server, connect(server.address, settings) as channel:
        with Counting("Unary", "INVALID_ARGUMENT") as counting, pytest.raises(grpc.RpcError):
            await Client(channel).unary(text("a"))
    assert counting.added == (1, 1, 1)


async def test_a_caller_who_goes_away_counts_as_cancelled(room: Room) -> None:
    arrived = asyncio.Event()

    async def never(_text: str) -> str:
        arrived.set()
        await asyncio.Event().wait()
        return ""

    settings = room.settings(token_file=room.token_file())
    async with echo(room, never) as server, connect(server.address, settings) as channel:
        with Counting("Unary", "CANCELLED") as counting:
            call = asyncio.ensure_future(Client(channel).unary(text("a")))
            await arrived.wait()
            call.cancel()
            await asyncio.wait({call})
    assert counting.added == (1, 1, 1)


async def test_nobody_there_counts_as_unavailable(room: Room) -> None:
    async with connect("127.0.0.1:9", room.settings()) as channel:
        with Counting("Unary", "UNAVAILABLE") as counting, pytest.raises(grpc.RpcError):
            await Client(channel).unary(text("a"))
    assert counting.added == (1, 1, 1)


async def test_threads_count_alike(room: Room) -> None:
    settings = room.settings(token_file=room.token_file())
    async with echo(room) as server:
        added = await asyncio.to_thread(calls_of_a_thread, server.address, settings)
    assert added == [(1, 1, 1)] * 3


def calls_of_a_thread(address: str, settings: Any) -> list[tuple[float, ...]]:
    with connect_sync(address, settings) as channel:
        client = Client(channel)
        with Counting("Unary", "OK") as unary:
            client.unary(text("a"))
        with Counting("Unary", "UNAUTHENTICATED") as refused, pytest.raises(grpc.RpcError):
            client.unary(text("a"), metadata=[("authorization", "Bearer no token")])
        stream = Counting("ServerStream", "OK")
        with stream:
            ended = threading.Event()
            answers: Iterator[Any] = client.server_stream(text("a b"))
            answers.add_done_callback(lambda _: ended.set())  # type: ignore[attr-defined]
            assert len(list(answers)) == 2
            # Callbacks run in the order they were added: ours was the last.
            assert ended.wait(5.0)
    return [unary.added, refused.added, stream.added]
