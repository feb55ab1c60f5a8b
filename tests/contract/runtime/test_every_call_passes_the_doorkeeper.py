"""Who calls, may he, how long, what came of it: for all four kinds of calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc import aio
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.runtime import metrics
from services.runtime.auth import CLOCK_SKEW_S
from services.runtime.errors import (
    DeadlineExceeded,
    DoorcardError,
    FailedPrecondition,
    Internal,
    PermissionDenied,
    Unauthenticated,
)
from services.runtime.roles import METHOD_ROLES
from services.runtime.server import serving
from tests.conftest import Room
from tests.contract.runtime.echo import ROLES, SERVICE, Client, Echo, text


@pytest.fixture(autouse=True)
def _roles(monkeypatch: pytest.MonkeyPatch) -> None:
    for method, roles in ROLES.items():
        monkeypatch.setitem(METHOD_ROLES, method, roles)


@asynccontextmanager
async def echo(
    room: Room, answer: Callable[[str], Awaitable[str]] | None = None, **fields: Any
) -> AsyncIterator[Client]:
    async with (
        serving(room.settings(**fields), Echo(answer).register) as running,
        aio.insecure_channel(running.address) as channel,
    ):
        yield Client(channel)


async def each(*values: str) -> AsyncIterator[Any]:
    for value in values:
        yield text(value)


async def all_kinds(client: Client, metadata: Any) -> dict[str, str | DoorcardError]:
    """What each kind of call gives: the answers joined, or the error."""

    async def server_stream() -> str:
        return " ".join(
            [m.value async for m in client.server_stream(text("a b"), metadata=metadata)]
        )

    async def server_writes() -> str:
        return " ".join(
            [m.value async for m in client.server_writes(text("a b"), metadata=metadata)]
        )

    async def bidi() -> str:
        answers = client.bidi(each("a", "b"), metadata=metadata)
        return " ".join([m.value async for m in answers])

    async def unary() -> str:
        answers = [await client.unary(text(word), metadata=metadata) for word in "ab"]
        return " ".join(each.value for each in answers)

    async def client_stream() -> str:
        answer = await client.client_stream(each("a", "b"), metadata=metadata)
        return str(answer.value)

    given: dict[str, str | DoorcardError] = {}
    for kind in (unary, client_stream, server_stream, server_writes, bidi):
        # A refusal that meets the client's writing may be lost on the way; it is asked for again.
        for _attempt in range(50):
            try:
                given[kind.__name__] = await kind()
            except grpc.RpcError as error:
                given[kind.__name__] = DoorcardError.from_rpc(error)
            if getattr(given[kind.__name__], "reason", "") != "STREAM_LOST":
                break
    return given


async def refusal(call: Awaitable[Any]) -> DoorcardError:
    with pytest.raises(grpc.RpcError) as refused:
        await call
    return DoorcardError.from_rpc(refused.value)


async def test_a_token_opens_every_kind_of_call_and_names_the_caller(room: Room) -> None:
    async with echo(room) as client:
        given = await all_kinds(client, room.metadata("anna"))
    assert set(given.values()) == {"a:anna:anna b:anna:anna"}


async def test_a_gateway_names_its_player_by_header(room: Room) -> None:
    gateway = room.metadata("gw", ["service"], act_for=["bot-"])
    async with echo(room) as client:
        given = await all_kinds(client, [*gateway, ("x-doorcard-player", "bot-7")])
        assert set(given.values()) == {"a:gw:bot-7 b:gw:bot-7"}
        outside = await all_kinds(client, [*gateway, ("x-doorcard-player", "anna")])
    assert {type(error) for error in outside.values()} == {PermissionDenied}


async def test_a_stream_ends_when_its_token_does(room: Room) -> None:
    waiting: list[str] = []

    async def hang(word: str) -> str:
        waiting.append(word)
        await asyncio.Event().wait()
        return ""

    async with echo(room, hang) as client:
        # Expired, but for what clocks may differ: it holds for another second or two.
        metadata = room.metadata("anna", ttl_s=2 - CLOCK_SKEW_S)
        calls = (
            client.server_stream(text("stream"), metadata=metadata),
            client.server_writes(text("writes"), metadata=metadata),
            client.bidi(each("bidi"), metadata=metadata),
        )
        errors = await asyncio.gather(*(refusal(anext(aiter(call))) for call in calls))
    assert sorted(waiting) == ["bidi", "stream", "writes"]
    assert {(type(each), each.reason) for each in errors} == {(Unauthenticated, "TOKEN_EXPIRED")}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "TOKEN_MISSING"),
        ("", "TOKEN_MISSING"),
        ("Basic YW5uYQ==", "TOKEN_MISSING"),
        ("Bearer ", "TOKEN_INVALID"),
        ("Bearer a.b.c", "TOKEN_INVALID"),
    ],
)
async def test_without_a_token_that_holds_every_kind_is_unauthenticated(
    room: Room, header: str | None, reason: str
) -> None:
    metadata = [] if header is None else [("authorization", header)]
    async with echo(room) as client:
        given = await all_kinds(client, metadata)
    assert {type(error) for error in given.values()} == {Unauthenticated}
    assert {error.reason for error in given.values() if isinstance(error, DoorcardError)} == {
        reason
    }


async def test_an_expired_token_says_so(room: Room) -> None:
    async with echo(room) as client:
        error = await refusal(client.unary(text("a"), metadata=room.metadata(ttl_s=-60)))
    assert (type(error), error.reason) == (Unauthenticated, "TOKEN_EXPIRED")


async def test_a_wrong_role_is_denied_for_every_kind(room: Room) -> None:
    async with echo(room) as client:
        given = await all_kinds(client, room.metadata("olga", ["auditor"]))
    assert {type(error) for error in given.values()} == {PermissionDenied}


async def test_a_method_without_roles_is_denied_and_one_that_is_not_there_is_unimplemented(
    room: Room,
) -> None:
    everything = room.metadata(roles=["player", "operator", "service", "auditor"])
    async with echo(room) as client:
        denied = await refusal(client.forgotten(text("a"), metadata=everything))
        missing = await refusal(client.missing(text("a"), metadata=everything))
    assert (type(denied), denied.reason) == (PermissionDenied, "ROLE_NOT_ALLOWED")
    assert missing.code is grpc.StatusCode.UNIMPLEMENTED


async def test_a_server_without_keys_believes_nobody(room: Room) -> None:
    async with echo(room, auth_keys_file=None) as client:
        error = await refusal(client.unary(text("a"), metadata=room.metadata()))
    assert type(error) is Unauthenticated


async def test_typed_errors_arrive_whole_from_every_kind(room: Room) -> None:
    async def refuse(_word: str) -> str:
        raise FailedPrecondition(
            "NOT_YOUR_TURN", "seat 3 is to act", metadata={"turn": "7"}, retry_after_ms=20
        )

    async with echo(room, refuse) as client:
        given = await all_kinds(client, room.metadata())
    for error in given.values():
        assert isinstance(error, FailedPrecondition)
        assert (error.reason, error.metadata) == ("NOT_YOUR_TURN", {"turn": "7"})
        assert error.retry_after_ms == 20


@pytest.mark.parametrize("kind", [ValueError, KeyError, TimeoutError, ZeroDivisionError])
async def test_other_exceptions_are_internal_and_tell_nothing(
    room: Room, kind: type[Exception]
) -> None:
    async def fail(_word: str) -> str:
        raise kind("AsKd for anna@club.example")

    async with echo(room, fail) as client:
        given = await all_kinds(client, room.metadata())
    for error in given.values():
        assert isinstance(error, Internal)
        assert error.message == "internal error"
        assert len(error.metadata["trace"]) == 32


async def test_the_trace_of_the_caller_goes_on(room: Room) -> None:
    async def fail(_word: str) -> str:
        raise ZeroDivisionError

    trace = "0af7651916cd43dd8448eb211c80319c"
    header = ("traceparent", f"00-{trace}-b7ad6b7169203331-01")
    async with echo(room, fail) as client:
        error = await refusal(client.unary(text("a"), metadata=[*room.metadata(), header]))
    assert error.metadata["trace"] == trace


async def test_a_unary_call_without_deadline_gets_the_default(room: Room) -> None:
    async def never(_word: str) -> str:
        await asyncio.Event().wait()
        return ""

    async with echo(room, never, default_deadline_seconds=0.05) as client:
        error = await refusal(client.unary(text("a"), metadata=room.metadata()))
        assert type(error) is DeadlineExceeded
        # The client's own deadline comes before the default, however short that is.
        own = client.unary(text("a"), metadata=room.metadata(), timeout=0.2)
        assert (await refusal(own)).code is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_streams_have_no_default_deadline(room: Room) -> None:
    async with echo(room, default_deadline_seconds=0.01) as client:
        stream = client.bidi(metadata=room.metadata())
        await stream.write(text("a"))
        assert (await stream.read()).value == "a:anna:anna"
        late = asyncio.get_running_loop().time() + 0.05
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(late):
                await stream.read()


async def test_every_call_is_counted_by_kind_method_and_code(room: Room) -> None:
    def handled() -> dict[tuple[str, str, str], float]:
        page = generate_latest(metrics.REGISTRY).decode()
        return {
            (s.labels["grpc_type"], s.labels["grpc_method"], s.labels["grpc_code"]): s.value
            for family in text_string_to_metric_families(page)
            for s in family.samples
            if s.name == "grpc_server_handled_total" and s.labels["grpc_service"] == SERVICE
        }

    async def answer(word: str) -> str:
        if word == "never":
            await asyncio.Event().wait()
        return word

    before = handled()
    async with echo(room, answer) as client:
        await all_kinds(client, room.metadata())
        await refusal(client.unary(text("a")))
        stream = client.server_stream(text("a never"), metadata=room.metadata())
        await stream.read()
        stream.cancel()
    grown = {key: value - before.get(key, 0) for key, value in handled().items()}
    assert {key: value for key, value in grown.items() if value} == {
        ("unary", "Unary", "OK"): 2,
        ("unary", "Unary", "UNAUTHENTICATED"): 1,
        ("client_stream", "ClientStream", "OK"): 1,
        ("server_stream", "ServerStream", "OK"): 1,
        ("server_stream", "ServerWrites", "OK"): 1,
        ("bidi_stream", "Bidi", "OK"): 1,
        ("server_stream", "ServerStream", "CANCELLED"): 1,
    }
