"""What stands before every method of every server: who calls, may he, how long, and what came of
it.

One interceptor does it all. It wraps each method's handler once, on the first call, so that a call
pays for a dictionary look-up and a few counters; messages of streams pass untouched.
"""

import asyncio
import inspect
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
from grpc import aio

from services.runtime.auth import Caller, TokenVerifier, check_allowed, current_caller, enter_call
from services.runtime.errors import (
    Code,
    DeadlineExceeded,
    DoorcardError,
    Unauthenticated,
    code_of,
)
from services.runtime.incoming import Incoming
from services.runtime.logs import bind
from services.runtime.roles import OPEN_METHODS
from services.runtime.wire import ADDRESS_HEADER, AUTHORIZATION, BEARER, PLAYER_HEADER, TRACE_HEADER

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Found: TypeAlias = "Handler | None"
Context = aio.ServicerContext[Any, Any]
Details = grpc.HandlerCallDetails
_Behaviour = Callable[[Any, Context], Awaitable[Any]]

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class Knock(NamedTuple):
    """A call that was let in by its roles, before its method is called."""

    method: str
    """Full name."""
    caller: Caller
    player: str
    """The `x-doorcard-player` header, or ""."""
    forwarded: str
    """The `x-doorcard-address` header, or "". Whoever believes it checks that a gateway sent it."""
    peer: str
    """Where the call came from, in gRPC's words."""
    request: Any
    """The message, or the stream of messages."""


Gate = Callable[[Knock], Awaitable[None]]
"""Raises a DoorcardError to refuse the call."""


class Doorkeeper(aio.ServerInterceptor):
    """Authentication, roles, default deadline, typed errors, metrics and a log line for every call.

    verifier: None answers only the methods open to all.
    default_deadline_s: for unary calls whose client set none. gate: asked before every method that
    is not open to all.
    """

    def __init__(
        self,
        verifier: TokenVerifier | None,
        default_deadline_s: float,
        gate: Gate | None = None,
    ) -> None:
        self.verifier: Final = verifier
        self.gate: Final = gate
        self.default_deadline_s: Final = default_deadline_s
        self.idle: Final = asyncio.Event()
        """Set while no call is in flight, but for those to methods open to all (health watchers
        never end).
        """
        self.idle.set()
        self._in_flight = 0
        self._handlers: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[Details], Awaitable[Found]],
        handler_call_details: Details,
    ) -> Found:
        """The wrapped handler of the method; None, which is UNIMPLEMENTED, if there is no such
        method.
        """
        method = handler_call_details.method
        wrapped = self._handlers.get(method)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            # Bounded by the methods that exist.
            wrapped = self._handlers[method] = _wrapped(self, method, handler)
        return wrapped

    def entered(self) -> None:
        """A call that a drain must wait for has begun."""
        self._in_flight += 1
        self.idle.clear()

    def left(self) -> None:
        """It has ended."""
        self._in_flight -= 1
        if self._in_flight == 0:
            self.idle.set()


class _Method:
    """One method of the server with all that its calls need, looked up beforehand."""

    def __init__(self, keeper: Doorkeeper, name: str, kind: str) -> None:
        self._keeper = keeper
        self._name = name
        self._open = name in OPEN_METHODS
        self._calls = Incoming(name, kind)

    async def answer(self, behaviour: _Behaviour, request: Any, context: Context) -> Any:
        """Answer one call by `behaviour`; whatever it raises leaves as a status."""
        started_s = time.perf_counter()
        code = Code.OK
        self._calls.begun()
        if not self._open:
            self._keeper.entered()
        try:
            knock = self._enter(context, request)
            if knock is not None and self._keeper.gate is not None:
                await self._keeper.gate(knock)
            response = await behaviour(request, context)
            code = code_of(context.code())
            return response
        except asyncio.CancelledError:
            remaining_s = context.time_remaining()
            late = remaining_s is not None and remaining_s <= 0
            code = Code.DEADLINE_EXCEEDED if late else Code.CANCELLED
            raise
        except aio.AbortError:
            code = code_of(context.code())
            raise
        except DoorcardError as error:
            code = error.code
            await self._refuse(context, error)
        except Exception as error:
            code = Code.INTERNAL
            await self._fail(context, error)
        finally:
            if not self._open:
                self._keeper.left()
            self._calls.ended(code, time.perf_counter() - started_s)

    def _enter(self, context: Context, request: Any) -> Knock | None:
        """None where nobody is to be asked: the method is open to all, or there is no gate."""
        authorization = player = forwarded = trace = ""
        metadata: Any = context.invocation_metadata() or ()
        for key, value in metadata:
            if key == AUTHORIZATION:
                authorization = value
            elif key == PLAYER_HEADER:
                player = value
            elif key == ADDRESS_HEADER:
                forwarded = value
            elif key == TRACE_HEADER:
                trace = value
        bind(trace=_trace_of(trace))
        if self._open:
            return None
        if authorization[: len(BEARER)].lower() != BEARER.lower():
            raise Unauthenticated("TOKEN_MISSING", "send a token: `authorization: Bearer ...`")
        if self._keeper.verifier is None:
            raise Unauthenticated("TOKEN_INVALID", "this server knows no token keys")
        caller = self._keeper.verifier.verify(authorization[len(BEARER) :])
        check_allowed(self._name, caller)
        enter_call(caller, player)
        if self._keeper.gate is None:
            return None
        return Knock(self._name, caller, player, forwarded, context.peer(), request)

    async def _refuse(self, context: Context, error: DoorcardError) -> None:
        self._calls.refused(error)
        await context.abort(error.code, error.message, error.trailing_metadata())

    async def _fail(self, context: Context, error: Exception) -> None:
        hidden = self._calls.failed(error)
        await context.abort(hidden.code, hidden.message, hidden.trailing_metadata())


def _wrapped(keeper: Doorkeeper, name: str, handler: Handler) -> Handler:
    """The handler with the doorkeeper before it, of the same kind."""
    streams = (handler.request_streaming, handler.response_streaming)
    kind, attribute, make = _KINDS[streams]
    inner = getattr(handler, attribute)
    behaviour: _Behaviour
    if inspect.isasyncgenfunction(inner):
        behaviour = _writing(inner)
    elif not inspect.iscoroutinefunction(inner):
        raise TypeError(f"{name}: the handler must be async")
    elif handler.response_streaming:
        behaviour = inner
    else:
        behaviour = _bounded(inner, keeper.default_deadline_s)
    if handler.response_streaming and name not in OPEN_METHODS:
        behaviour = _while_the_token_holds(behaviour)
    method = _Method(keeper, name, kind)

    async def answer(request: Any, context: Context) -> Any:
        return await method.answer(behaviour, request, context)

    return make(answer, handler.request_deserializer, handler.response_serializer)  # type: ignore[no-any-return]


_KINDS: Final[dict[tuple[bool, bool], tuple[str, str, Callable[..., Any]]]] = {
    (False, False): ("unary", "unary_unary", grpc.unary_unary_rpc_method_handler),
    (True, False): ("client_stream", "stream_unary", grpc.stream_unary_rpc_method_handler),
    (False, True): ("server_stream", "unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, True): ("bidi_stream", "stream_stream", grpc.stream_stream_rpc_method_handler),
}
"""(request streams, response streams) -> grpc_type label, the handler's attribute, its maker."""


def _writing(inner: Callable[..., Any]) -> _Behaviour:
    """An async generator as a coroutine that writes what it yields."""

    async def write_all(request: Any, context: Context) -> None:
        async with aclosing(inner(request, context)) as responses:
            async for response in responses:
                await context.write(response)

    return write_all


def _bounded(inner: _Behaviour, default_deadline_s: float) -> _Behaviour:
    """A unary handler that always has a deadline: the client's, which gRPC enforces, or the
    default.
    """

    async def answer(request: Any, context: Context) -> Any:
        if context.time_remaining() is not None:
            return await inner(request, context)
        deadline = asyncio.timeout(default_deadline_s)
        try:
            async with deadline:
                return await inner(request, context)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise DeadlineExceeded(
                "DEADLINE_EXCEEDED", "not done within the default deadline"
            ) from None

    return answer


def _while_the_token_holds(inner: _Behaviour) -> _Behaviour:
    """A stream that ends with its token: whoever lost his rights must not watch or play on."""

    async def answer(request: Any, context: Context) -> Any:
        until_expiry = asyncio.timeout(current_caller().holds_for_s())
        try:
            async with until_expiry:
                return await inner(request, context)
        except TimeoutError:
            if not until_expiry.expired():
                raise
            raise Unauthenticated(
                "TOKEN_EXPIRED", "the token has expired; go on with a new one"
            ) from None

    return answer


def _trace_of(traceparent: str) -> str:
    """The trace id of a W3C traceparent header, or a new one."""
    found = _TRACEPARENT.fullmatch(traceparent)
    return found[1] if found else secrets.token_hex(16)
