"""Calls of another service that go together: what several tasks ask in one tick of the loop, or
while earlier messages are under way, is one message of a batch method.

A message costs its sender much the same with one call in it or with sixty.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, Final

import grpc

from services.runtime.batches import CALLS_MAX, ERROR, KIND, Batch
from services.runtime.errors import Code, DeadlineExceeded, DoorcardError, Internal, Unavailable
from services.runtime.errors import of_code as error_of_code
from services.runtime.logs import logger, trace_id
from services.runtime.outgoing import Outgoing

UNDER_WAY_MAX: Final = 4
"""Messages of a service under way at a time. With fewer a call waits longer for one to come back,
with more they are smaller: at four, tables under full load gather seven calls in one.
"""
BATCH_BYTES_MAX: Final = 1024 * 1024
"""Of the calls in one message; well below `wire.MESSAGE_BYTES_MAX`."""
WAITING_MAX: Final = 4096
"""Calls that wait for a message to come back."""
RETRY_AFTER_MS: Final = 250
LOOK_AGAIN_S: Final = 60.0
"""For how long a server that does not know the batch method, which is of an older release, is asked
one by one."""
GIVEN_UP: Final = error_of_code(Code.CANCELLED, "CANCELLED", "the call was given up")

Single = Callable[..., Awaitable[Any]]


class Gathered:
    """A stub whose single methods gather their calls; what else the stub has is passed through.

    A single method of it takes (request, timeout=seconds) like a stub's, and raises DoorcardError,
    or the stub's grpc.RpcError. The time counts from when it was asked: a call whose time is over
    before a message could take it is not sent. A call that finds no other goes by its own method,
    and so does every call while the server does not know the batch method.

    A batch belongs to no trace: each call in it names its own, and the server works and logs in
    that. Raises DoorcardError (CALLS_WAITING) where too many calls wait already.
    """

    def __init__(self, stub: Any, batch: Batch) -> None:
        self._stub = stub
        gathering = _Gathering(getattr(stub, batch.method), batch)
        for name, field in batch.calls.items():
            outgoing = Outgoing(f"/{batch.service}/{name}", KIND)
            setattr(self, name, _Method(gathering, getattr(stub, name), field, outgoing))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stub, name)


class _Method:
    """A single method, called like a stub's."""

    def __init__(
        self, gathering: "_Gathering", single: Single, field: str, outgoing: Outgoing
    ) -> None:
        self._gathering = gathering
        self._single = single
        self._field = field
        self._outgoing = outgoing

    async def __call__(self, request: Any, *, timeout: float, metadata: Any = ()) -> Any:
        loop = asyncio.get_running_loop()
        if metadata or self._gathering.one_by_one(loop.time()):
            return await self._single(request, timeout=timeout, metadata=metadata)
        began_s = time.perf_counter()
        asked = _Asked(self._field, request, loop, timeout)
        self._gathering.join(asked)
        expiry = loop.call_at(asked.ends_s, asked.expire)
        answer: Any = GIVEN_UP
        try:
            answer = await asked.answer
            if answer is None:
                return await self._single(request, timeout=asked.ends_s - loop.time())
        finally:
            expiry.cancel()
            if asked.has_turn:
                self._gathering.landed()
            else:
                self._count(answer, began_s)
        if isinstance(answer, DoorcardError):
            raise answer
        return answer

    def _count(self, answer: Any, began_s: float) -> None:
        code = answer.code if isinstance(answer, DoorcardError) else Code.OK
        self._outgoing.begun()
        self._outgoing.ended(began_s, Code.UNIMPLEMENTED if answer is None else code)


class _Asked:
    """A call that somebody waits for."""

    __slots__ = ("answer", "ends_s", "field", "has_turn", "request", "trace")

    def __init__(
        self, field: str, request: Any, loop: asyncio.AbstractEventLoop, timeout: float
    ) -> None:
        self.field = field
        self.request = request
        self.ends_s = loop.time() + timeout
        """In the loop's time."""
        self.trace = trace_id()
        self.answer: asyncio.Future[Any] = loop.create_future()
        """The response, a DoorcardError, or None: it goes by its own method."""
        self.has_turn = False
        """It goes by its own method and counts among what is under way."""

    def end(self, answer: Any) -> None:
        """Set the answer, unless there is one or nobody waits any more."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def expire(self) -> None:
        """Its time is over."""
        self.end(DeadlineExceeded("DEADLINE_EXCEEDED", "not answered in time"))


class _Gathering:
    """What waits, and what is under way."""

    def __init__(self, send: Single, batch: Batch) -> None:
        self._send = send
        self._batch = batch
        self._waiting: deque[_Asked] = deque()
        self._under_way = 0
        self._leaving = False
        self._one_by_one_until_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        # Nothing of the call that happens to be the first: its trace is not that of the others.
        self._nobody = Context()

    def one_by_one(self, now_s: float) -> bool:
        """The server does not know batches."""
        return now_s < self._one_by_one_until_s

    def join(self, asked: _Asked) -> None:
        """Go with the others."""
        if len(self._waiting) >= WAITING_MAX:
            raise Unavailable(
                "CALLS_WAITING",
                "too many calls wait for this service",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._waiting.append(asked)
        self._leave_soon()

    def landed(self) -> None:
        """Something is no longer under way."""
        self._under_way -= 1
        self._leave_soon()

    def _leave_soon(self) -> None:
        if self._waiting and not self._leaving and self._under_way < UNDER_WAY_MAX:
            self._leaving = True
            # At the end of the tick: others of it may have something to ask too.
            asyncio.get_running_loop().call_soon(self._leave, context=self._nobody)

    def _leave(self) -> None:
        self._leaving = False
        loop = asyncio.get_running_loop()
        while self._under_way < UNDER_WAY_MAX and (together := self._together(loop.time())):
            self._under_way += 1
            if len(together) == 1:
                together[0].has_turn = True
                together[0].end(None)
            else:
                task = loop.create_task(self._ask(together, loop))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _together(self, now_s: float) -> list[_Asked]:
        together: list[_Asked] = []
        size = 0
        while self._waiting and len(together) < CALLS_MAX:
            asked = self._waiting[0]
            if now_s >= asked.ends_s:
                asked.expire()
            if not asked.answer.done():
                size += asked.request.ByteSize()
                if together and size > BATCH_BYTES_MAX:
                    break
                together.append(asked)
            self._waiting.popleft()
        return together

    async def _ask(self, together: list[_Asked], loop: asyncio.AbstractEventLoop) -> None:
        try:
            request = self._batch.request()
            for asked in together:
                call = request.calls.add(trace=asked.trace)
                getattr(call, asked.field).CopyFrom(asked.request)
            last_s = max(asked.ends_s for asked in together)
            response = await self._send(request, timeout=last_s - loop.time())
            _hand_out(response.answers, together)
        except grpc.RpcError as failure:
            unknown = failure.code() is Code.UNIMPLEMENTED
            if unknown:
                self._one_by_one_until_s = loop.time() + LOOK_AGAIN_S
            for asked in together:
                asked.end(None if unknown else DoorcardError.from_rpc(failure))
        except Exception as fault:
            logger.error("batch_failed", method=self._batch.method, exc_info=fault)
            for asked in together:
                asked.end(Internal("BATCH_FAILED", "the batch of calls failed"))
        finally:
            # Whoever ended this without an answer, such as a channel that was closed.
            for asked in together:
                asked.end(GIVEN_UP)
            self.landed()


def _hand_out(answers: Any, together: list[_Asked]) -> None:
    if len(answers) != len(together):
        raise ValueError(f"{len(answers)} answers to {len(together)} calls")
    for asked, answer in zip(together, answers, strict=True):
        kind = answer.WhichOneof("answer")
        if kind == asked.field:
            asked.end(getattr(answer, kind))
        elif kind == ERROR:
            asked.end(DoorcardError.from_wire(answer.error))
        else:
            asked.end(Internal("ANSWER_DIFFERS", "the answer is not to what was asked"))
