"""WatchRouting: a caller has a few streams of it, a gateway any number."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from doorcard.table.v1 import table_pb2

from services.runtime.auth import Caller, enter_call
from services.runtime.errors import Code, ResourceExhausted
from services.runtime.roles import Role
from services.table.streams.ownership import Ownership
from services.table.streams.routing import WATCHING_PER_CALLER_MAX, Routing


def routing() -> Routing:
    one = SimpleNamespace(owners=["a"], addresses={"a": "a:1"}, next_change=asyncio.Event())
    return Routing(cast(Ownership, one))


async def watch(routing: Routing, subject: str, role: Role = Role.PLAYER) -> Any:
    """A stream of a caller's, on which the first message came."""
    enter_call(Caller(subject, frozenset({role})), "")
    watching = routing.WatchRouting(table_pb2.WatchRoutingRequest(), cast(Any, None))
    assert (await anext(watching)).shards == 1
    return watching


async def test_a_caller_has_a_few_and_another_when_one_is_closed() -> None:
    routes = routing()
    open_ = [await watch(routes, "anna") for _ in range(WATCHING_PER_CALLER_MAX)]
    with pytest.raises(ResourceExhausted) as refused:
        await watch(routes, "anna")
    assert (refused.value.code, refused.value.reason) == (
        Code.RESOURCE_EXHAUSTED,
        "TOO_MANY_STREAMS",
    )
    assert refused.value.retry_after_ms
    open_.append(await watch(routes, "ben"))
    await open_[0].aclose()
    open_[0] = await watch(routes, "anna")
    for each in open_:
        await each.aclose()


async def test_a_gateway_has_any_number() -> None:
    routes = routing()
    many = WATCHING_PER_CALLER_MAX * 3
    open_ = [await watch(routes, "web", Role.SERVICE) for _ in range(many)]
    for each in open_:
        await each.aclose()
