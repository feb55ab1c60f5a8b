"""Channels to other services: token, deadline and trace on every call, load spread over addresses.

`connect` for asyncio, `connect_sync` for threads (Celery: call it in the child, after the fork).
Stubs are made on them as on any channel; `call` and `call_sync` add bounded retries and give typed
errors.
"""

import asyncio
import ipaddress
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import grpc
from grpc import aio

from services.runtime.auth import TokenFile
from services.runtime.errors import DoorcardError
from services.runtime.listen import split_listen
from services.runtime.logs import trace_id
from services.runtime.noise import random_bytes
from services.runtime.outgoing import Outgoing
from services.runtime.settings import ServiceSettings
from services.runtime.tls import client_credentials
from services.runtime.wire import AUTHORIZATION, BEARER, CHANNEL_OPTIONS, TRACE_HEADER

BACKOFF_FIRST_S: Final = 0.05
BACKOFF_MAX_S: Final = 1.0
RETRY_AFTER_MAX_S: Final = 5.0
"""A server's wish to wait longer than this is not followed."""

Response = TypeVar("Response")
Token = Callable[[], str]


def connect(
    addresses: str | Sequence[str], settings: ServiceSettings, token: Token | None = None
) -> aio.Channel:
    """A channel for asyncio, to one address (spread over all a DNS name resolves to) or several
    IPs.

    token: gives the token of each call; default `settings.token_file`, and no token without one. A
    call that brings its own `authorization` keeps it. Raises ValueError for unusable addresses.
    """
    target, options = _target(addresses, settings)
    credentials = client_credentials(settings)
    attach = _Attach(settings, token)
    if credentials is None:
        return _AioChannel(aio.insecure_channel(target, options), attach)
    return _AioChannel(aio.secure_channel(target, credentials, options), attach)


def connect_sync(
    addresses: str | Sequence[str], settings: ServiceSettings, token: Token | None = None
) -> grpc.Channel:
    """The same for threads. gRPC does not survive a fork: connect in the process that calls."""
    target, options = _target(addresses, settings)
    credentials = client_credentials(settings)
    attach = _Attach(settings, token)
    if credentials is None:
        return _SyncChannel(grpc.insecure_channel(target, options), attach)
    return _SyncChannel(grpc.secure_channel(target, credentials, options), attach)


async def call(
    method: Callable[..., Awaitable[Response]],
    request: Any,
    *,
    timeout_s: float,
    attempts: int = 3,
    metadata: Sequence[tuple[str, str]] = (),
) -> Response:
    """Call a unary method of a stub; what may pass is tried again with the same request.

    timeout_s: for each attempt. attempts: 1 or more. Raises DoorcardError.
    """
    attempt = 1
    while True:
        try:
            return await method(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as failure:
            error = DoorcardError.from_rpc(failure)
            if not error.retriable or attempt >= attempts:
                raise error from None
        await asyncio.sleep(_pause_s(attempt, error))
        attempt += 1


def call_sync(
    method: Callable[..., Response],
    request: Any,
    *,
    timeout_s: float,
    attempts: int = 3,
    metadata: Sequence[tuple[str, str]] = (),
) -> Response:
    """`call` for threads."""
    attempt = 1
    while True:
        try:
            return method(request, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as failure:
            error = DoorcardError.from_rpc(failure)
            if not error.retriable or attempt >= attempts:
                raise error from None
        time.sleep(_pause_s(attempt, error))
        attempt += 1


def _pause_s(attempt: int, error: DoorcardError) -> float:
    """Exponential and jittered, so that those whom one failure hit do not come back together."""
    ceiling_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** (attempt - 1))
    wished_s = min(RETRY_AFTER_MAX_S, (error.retry_after_ms or 0) / 1000)
    return wished_s + random.uniform(ceiling_s / 2, ceiling_s)  # noqa: S311 (no secret)


def _target(
    addresses: str | Sequence[str], settings: ServiceSettings
) -> tuple[str, list[tuple[str, str | int]]]:
    several = [addresses] if isinstance(addresses, str) else list(addresses)
    if not several:
        raise ValueError("no address to connect to")
    options: list[tuple[str, str | int]] = list(CHANNEL_OPTIONS)
    server_name = settings.tls_server_name
    if len(several) == 1 and not _ip_version(several[0]):
        target = f"dns:///{several[0]}"
    else:
        versions = {_ip_version(address) for address in several}
        if len(versions) != 1 or 0 in versions:
            raise ValueError(f"several addresses must all be IPv4 or all IPv6, not {several}")
        target = f"ipv{versions.pop()}:{','.join(several)}"
        # The authority of a list would be the list itself, which no certificate names.
        server_name = server_name or split_listen(several[0])[0]
    if server_name:
        options.append(("grpc.ssl_target_name_override", server_name))
        options.append(("grpc.default_authority", server_name))
    return target, options


def _ip_version(address: str) -> int:
    """4 or 6, or 0 for a name."""
    try:
        return ipaddress.ip_address(split_listen(address)[0]).version
    except ValueError:
        split_listen(address)
        return 0


class _Attach:
    """What every call gets: the token, the trace it belongs to, and for unary calls a deadline."""

    def __init__(self, settings: ServiceSettings, token: Token | None) -> None:
        if token is None and settings.token_file is not None:
            token = TokenFile(settings.token_file).current
        self._token = token
        self.deadline_s: Final = settings.default_deadline_seconds

    def metadata(self, given: Sequence[tuple[str, str | bytes]] | None) -> Any:
        metadata = list(given or ())
        if self._token is not None and all(key != AUTHORIZATION for key, _ in metadata):
            metadata.append((AUTHORIZATION, BEARER + self._token()))
        trace = trace_id()
        if trace:
            metadata.append((TRACE_HEADER, f"00-{trace}-{random_bytes(8).hex()}-01"))
        return metadata


class _Method:
    """One method of a channel; called like gRPC's own."""

    def __init__(
        self,
        inner: Callable[..., Any],
        attach: _Attach,
        deadline_s: float | None,
        outgoing: Outgoing,
    ) -> None:
        self._inner = inner
        self._attach = attach
        self._deadline_s = deadline_s
        self._outgoing = outgoing

    def __call__(
        self, *request: Any, timeout: float | None = None, metadata: Any = None, **others: Any
    ) -> Any:
        return self._outgoing.call(
            self._inner,
            *request,
            timeout=self._deadline_s if timeout is None else timeout,
            metadata=self._attach.metadata(metadata),
            **others,
        )


class _Methods:
    """The four kinds of methods, the same for both kinds of channel."""

    def __init__(self, inner: Any, attach: _Attach) -> None:
        self._inner = inner
        self._attach = attach

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        inner = self._inner.unary_unary(method, *args, **kwargs)
        return _Method(inner, self._attach, self._attach.deadline_s, Outgoing(method, "unary"))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        inner = self._inner.stream_unary(method, *args, **kwargs)
        return _Method(inner, self._attach, None, Outgoing(method, "client_stream"))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        inner = self._inner.unary_stream(method, *args, **kwargs)
        return _Method(inner, self._attach, None, Outgoing(method, "server_stream"))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        inner = self._inner.stream_stream(method, *args, **kwargs)
        return _Method(inner, self._attach, None, Outgoing(method, "bidi_stream"))


class _AioChannel(_Methods, aio.Channel):
    async def __aenter__(self) -> "_AioChannel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._inner.get_state(try_to_connect)  # type: ignore[no-any-return]

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._inner.channel_ready()


class _SyncChannel(_Methods, grpc.Channel):
    def __enter__(self) -> "_SyncChannel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._inner.close()

    def subscribe(
        self, callback: Callable[[grpc.ChannelConnectivity], None], try_to_connect: bool = False
    ) -> None:
        self._inner.subscribe(callback, try_to_connect)

    def unsubscribe(self, callback: Callable[[grpc.ChannelConnectivity], None]) -> None:
        self._inner.unsubscribe(callback)
