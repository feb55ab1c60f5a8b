"""A running showdown service for the tests, and how they call it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from doorcard.showdown.v1 import showdown_pb2_grpc

from services.runtime.channels import call, connect
from services.runtime.server import serving
from services.showdown.__main__ import ShowdownSettings, analysts_of, registered
from tests.conftest import Room

if TYPE_CHECKING:
    Stub = showdown_pb2_grpc.ShowdownServiceAsyncStub
else:
    Stub = showdown_pb2_grpc.ShowdownServiceStub

Answer = TypeVar("Answer")


@asynccontextmanager
async def showdown_of(
    room: Room, roles: Sequence[str] = ("service",), **settings: Any
) -> AsyncIterator[Stub]:
    """A running showdown service seen by a caller with these roles; none sends no token."""
    # A folder that cannot be: the tables in memory serve all tests.
    fields = {"tables_folder": room.auth_keys_file, "analysts": 1, **settings}
    mine = room.settings(ShowdownSettings, **fields)
    analysts = analysts_of(mine)
    async with serving(mine, registered(mine, analysts), on_stop=analysts.close) as running:
        token_file = room.token_file("table-1", roles) if roles else None
        async with connect(running.address, room.settings(token_file=token_file)) as channel:
            yield showdown_pb2_grpc.ShowdownServiceStub(channel)


async def answered(method: Callable[..., Awaitable[Answer]], request: Any) -> Answer:
    """The answer to one call, or the typed error."""
    return await call(method, request, timeout_s=30, attempts=1)


def names(cards: str) -> list[str]:
    """The names of a run of cards."""
    return [cards[at : at + 2] for at in range(0, len(cards), 2)]
