"""Rate, errors and duration of calls to other services, seen from the caller.

One `Outgoing` per method of a channel: its label children are looked up once, so that a call pays
for two counters and one histogram.
"""

import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import grpc
from grpc import aio
from prometheus_client import Counter

from services.runtime import metrics
from services.runtime.errors import Code


class Outgoing:
    """Counts the calls of one method.

    name: "/package.Service/Method". kind: unary, client_stream, server_stream, bidi_stream, or
    batched for a call that goes in a message with others.
    """

    def __init__(self, name: str, kind: str) -> None:
        service, _, method = name.removeprefix("/").rpartition("/")
        self._labels: Final = (kind, service, method)
        self._started = metrics.GRPC_CLIENT_STARTED.labels(*self._labels)
        self._handling = metrics.GRPC_CLIENT_HANDLING.labels(*self._labels)
        self._handled: dict[grpc.StatusCode, Counter] = {}

    def call(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `inner` returns; its end is counted whenever it comes."""
        self.begun()
        began_s = time.perf_counter()
        try:
            call = inner(*args, **kwargs)
        except grpc.RpcError as error:
            # Threads: a unary call has ended here, well or not.
            self.ended(began_s, error.code() if isinstance(error, grpc.Call) else Code.UNKNOWN)
            raise
        if isinstance(call, aio.Call):
            call.add_done_callback(lambda done: self.ended(began_s, _present(done.code())))
        elif isinstance(call, grpc.Future):
            ending: Any = call
            ending.add_done_callback(lambda done: self.ended(began_s, done.code()))
        else:
            self.ended(began_s, Code.OK)
        return call

    def begun(self) -> None:
        """A call begins."""
        self._started.inc()

    def ended(self, began_s: float, code: grpc.StatusCode) -> None:
        """A call is over, which began at this `time.perf_counter()`."""
        self._handling.observe(time.perf_counter() - began_s)
        counter = self._handled.get(code)
        if counter is None:
            # Bounded by the status codes that exist.
            counter = self._handled[code] = metrics.GRPC_CLIENT_HANDLED.labels(
                *self._labels, code.name
            )
        counter.inc()


def _present(code: Coroutine[Any, Any, grpc.StatusCode]) -> grpc.StatusCode:
    """The status of a call that has ended, which waits for nothing."""
    try:
        code.send(None)
    except StopIteration as answer:
        return answer.value  # type: ignore[no-any-return]
    code.close()
    return Code.UNKNOWN
