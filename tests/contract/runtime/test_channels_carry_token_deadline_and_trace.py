"""Channels: what every call gets, how failures are retried, and TLS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from services.runtime import channels
from services.runtime.channels import call, call_sync, connect, connect_sync
from services.runtime.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    Unauthenticated,
    Unavailable,
)
from services.runtime.logs import bind, trace_id
from services.runtime.roles import METHOD_ROLES
from services.runtime.server import Running, serving
from tests.conftest import Room
from tests.contract.runtime.echo import ROLES, Client, Echo, text


@pytest.fixture(autouse=True)
def _roles_and_no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for method, roles in ROLES.items():
        monkeypatch.setitem(METHOD_ROLES, method, roles)
    monkeypatch.setattr(channels, "BACKOFF_FIRST_S", 0.001)


@asynccontextmanager
async def echo(room: Room, answer: Any = None, **fields: Any) -> AsyncIterator[Running]:
    async with serving(room.settings(**fields), Echo(answer).register) as running:
        yield running


class Failing:
    """Refuses so many times, then answers."""

    def __init__(self, times: int, error: Exception) -> None:
        self.calls: list[str] = []
        self._times = times
        self._error = error

    async def __call__(self, word: str) -> str:
        self.calls.append(word)
        if len(self.calls) <= self._times:
            raise self._error
        return word


async def test_the_processs_own_token_goes_with_every_call(room: Room) -> None:
    settings = room.settings(token_file=room.token_file("anna"))
    async with echo(room) as server, connect(server.address, settings) as channel:
        client = Client(channel)
        assert (await client.unary(text("a"))).value == "a:anna:anna"
        assert [m.value async for m in client.server_stream(text("a b"))] == [
            "a:anna:anna",
            "b:anna:anna",
        ]
        # A call that brings its own keeps it.
        answer = await client.unary(text("a"), metadata=room.metadata("ben"))
        assert answer.value == "a:ben:ben"


async def test_a_token_may_come_from_the_caller_and_change(room: Room) -> None:
    tokens = iter([room.token("anna"), room.token("ben")])
    async with (
        echo(room) as server,
        connect(server.address, room.settings(), token=lambda: next(tokens)) as channel,
    ):
        client = Client(channel)
        assert (await client.unary(text("a"))).value == "a:anna:anna"
        assert (await client.unary(text("a"))).value == "a:ben:ben"


async def test_the_trace_goes_with_every_call(room: Room) -> None:
    async def trace(_word: str) -> str:
        return trace_id()

    settings = room.settings(token_file=room.token_file())
    async with echo(room, trace) as server, connect(server.address, settings) as channel:
        client = Client(channel)
        bind(trace="0af7651916cd43dd8448eb211c80319c")
        assert (await client.unary(text("a"))).value == "0af7651916cd43dd8448eb211c80319c"
        bind(trace="")
        assert len((await client.unary(text("a"))).value) == 32


async def test_unary_calls_have_a_deadline_even_if_nobody_sets_one(room: Room) -> None:
    async def never(_word: str) -> str:
        await asyncio.Event().wait()
        return ""

    settings = room.settings(token_file=room.token_file(), default_deadline_seconds=0.05)
    async with echo(room, never) as server, connect(server.address, settings) as channel:
        with pytest.raises(grpc.RpcError) as late:
            await Client(channel).unary(text("a"))
        assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_what_may_pass_is_tried_again_with_the_same_request(room: Room) -> None:
    failing = Failing(2, Unavailable("SHARD_CLOSED", "closed", retry_after_ms=1))
    settings = room.settings(token_file=room.token_file())
    async with echo(room, failing) as server, connect(server.address, settings) as channel:
        answer = await call(Client(channel).unary, text("r1"), timeout_s=5, attempts=3)
    assert answer.value == "r1"
    assert failing.calls == ["r1", "r1", "r1"]


async def test_attempts_are_bounded_and_the_last_error_is_typed(room: Room) -> None:
    failing = Failing(9, Unavailable("SHARD_CLOSED", "closed"))
    settings = room.settings(token_file=room.token_file())
    async with echo(room, failing) as server, connect(server.address, settings) as channel:
        with pytest.raises(Unavailable) as given_up:
            await call(Client(channel).unary, text("r1"), timeout_s=5, attempts=4)
    assert given_up.value.reason == "SHARD_CLOSED"
    assert len(failing.calls) == 4


async def test_a_refusal_is_not_tried_again(room: Room) -> None:
    failing = Failing(9, FailedPrecondition("NOT_YOUR_TURN", "wait"))
    settings = room.settings(token_file=room.token_file())
    async with echo(room, failing) as server, connect(server.address, settings) as channel:
        with pytest.raises(FailedPrecondition):
            await call(Client(channel).unary, text("r1"), timeout_s=5)
    assert failing.calls == ["r1"]


async def test_a_time_out_is_for_each_attempt(room: Room) -> None:
    started: list[str] = []

    async def slow_at_first(word: str) -> str:
        started.append(word)
        if len(started) == 1:
            await asyncio.Event().wait()
        return word

    settings = room.settings(token_file=room.token_file())
    async with echo(room, slow_at_first) as server, connect(server.address, settings) as channel:
        client = Client(channel)
        with pytest.raises(DeadlineExceeded):
            await call(client.unary, text("a"), timeout_s=0.1, attempts=1)
        assert (await call(client.unary, text("b"), timeout_s=5, attempts=2)).value == "b"


async def test_several_addresses_share_the_calls_and_one_dead_is_passed_over(room: Room) -> None:
    first, second = Failing(0, ValueError()), Failing(0, ValueError())
    settings = room.settings(token_file=room.token_file())
    async with echo(room, first) as one:
        async with (
            echo(room, second) as two,
            connect([one.address, two.address], settings) as channel,
        ):
            client = Client(channel)
            # Both connections come up by themselves; round robin then takes turns.
            while not (first.calls and second.calls):
                await call(client.unary, text("a"), timeout_s=5)
        async with connect([one.address, two.address], settings) as channel:
            before = len(second.calls)
            for _ in range(4):
                await call(Client(channel).unary, text("a"), timeout_s=5)
            assert len(second.calls) == before


@pytest.mark.parametrize(
    "addresses", [[], ["localhost:1", "127.0.0.1:2"], ["127.0.0.1:1", "[::1]:2"]]
)
async def test_addresses_that_cannot_be_shared_are_refused(
    room: Room, addresses: list[str]
) -> None:
    with pytest.raises(ValueError, match="address"):
        connect(addresses, room.settings())


async def test_threads_have_the_same_channel(room: Room) -> None:
    failing = Failing(1, Unavailable("SHARD_CLOSED", "closed"))
    settings = room.settings(token_file=room.token_file())

    def in_a_thread(address: str) -> list[str]:
        with connect_sync(address, settings) as channel:
            client = Client(channel)
            unary = call_sync(client.unary, text("a"), timeout_s=5).value
            return [unary, *(m.value for m in client.server_stream(text("b c"), timeout=5))]

    async with echo(room, failing) as server:
        assert await asyncio.to_thread(in_a_thread, server.address) == ["a", "b", "c"]
    with pytest.raises(Unavailable):
        await asyncio.to_thread(in_a_thread, server.address)


# -- TLS


def certificates(folder: Path, name: str) -> dict[str, Path]:
    """An authority of its own and a certificate for loopback."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    paths = {part: folder / f"{name}-{part}.pem" for part in ("tls_ca", "tls_cert", "tls_key")}
    authority.cert_pem.write_to_path(str(paths["tls_ca"]))
    issued.cert_chain_pems[0].write_to_path(str(paths["tls_cert"]))
    issued.private_key_pem.write_to_path(str(paths["tls_key"]))
    return paths


async def answer_over(server: Running, settings: Any, addresses: Any = None) -> str:
    async with connect(addresses or server.address, settings) as channel:
        answer = await call(Client(channel).unary, text("a"), timeout_s=5, attempts=1)
        return str(answer.value)


async def test_tls_by_settings(room: Room) -> None:
    tls = certificates(room.folder, "ours")
    token_file = room.token_file()
    async with echo(room, **tls) as server:
        trusting = room.settings(tls_ca=tls["tls_ca"], token_file=token_file)
        assert await answer_over(server, trusting) == "a:anna:anna"
        assert await answer_over(server, trusting, [server.address] * 2) == "a:anna:anna"
        assert await answer_over(server, trusting, f"localhost:{server.grpc_port}") == "a:anna:anna"
        stranger = certificates(room.folder, "theirs")["tls_ca"]
        for settings in (
            room.settings(tls_ca=stranger, token_file=token_file),
            room.settings(token_file=token_file),
            room.settings(tls_ca=tls["tls_ca"], tls_server_name="wallet", token_file=token_file),
        ):
            with pytest.raises(Unavailable):
                await answer_over(server, settings)


async def test_mtls_refuses_clients_without_a_certificate_of_ours(room: Room) -> None:
    tls = certificates(room.folder, "ours")
    theirs = certificates(room.folder, "theirs")
    token_file = room.token_file()
    async with echo(room, **tls, require_client_cert=True) as server:
        assert (
            await answer_over(server, room.settings(**tls, token_file=token_file)) == "a:anna:anna"
        )
        without = room.settings(tls_ca=tls["tls_ca"], token_file=token_file)
        strange = room.settings(**{**theirs, "tls_ca": tls["tls_ca"]}, token_file=token_file)
        for settings in (without, strange):
            with pytest.raises(Unavailable):
                await answer_over(server, settings)
        # A certificate alone is no token.
        with pytest.raises(Unauthenticated):
            await answer_over(server, room.settings(**tls))


def test_certificates_must_be_whole(room: Room) -> None:
    with pytest.raises(ValueError, match="go together"):
        room.settings(tls_cert=Path("cert.pem"))
