"""Rate, errors and duration of the calls that a server answers, and what is logged of them."""

from typing import Final

import grpc
from prometheus_client import Counter

from services.runtime import metrics
from services.runtime.errors import OUR_FAULT, DoorcardError, Internal
from services.runtime.logs import logger, trace_id


class Incoming:
    """Counts and logs the calls of one method; its label children are looked up once.

    name: "/package.Service/Method". kind: unary, client_stream, server_stream, bidi_stream, or
    batched for a call that came in a message with others.
    """

    def __init__(self, name: str, kind: str) -> None:
        service, _, method = name.removeprefix("/").rpartition("/")
        self._name: Final = name
        self._labels: Final = (kind, service, method)
        self._started = metrics.GRPC_STARTED.labels(*self._labels)
        self._handling = metrics.GRPC_HANDLING.labels(*self._labels)
        self._handled: dict[grpc.StatusCode, Counter] = {}

    def begun(self) -> None:
        """A call has come."""
        self._started.inc()

    def refused(self, error: DoorcardError) -> None:
        """The call ends with a typed error."""
        write = logger.warning if error.code in OUR_FAULT else logger.info
        write("call_refused", method=self._name, code=error.code.name, reason=error.reason)

    def failed(self, error: Exception) -> DoorcardError:
        """The call ends with a fault of ours; what its caller may know of that."""
        logger.error("call_failed", method=self._name, exc_info=error)
        return Internal("INTERNAL", "internal error", metadata={"trace": trace_id()})

    def ended(self, code: grpc.StatusCode, took_s: float) -> None:
        """The call is over."""
        self._handling.observe(took_s)
        counter = self._handled.get(code)
        if counter is None:
            # Bounded by the status codes that exist.
            counter = self._handled[code] = metrics.GRPC_HANDLED.labels(*self._labels, code.name)
        counter.inc()
        logger.debug("call_ended", method=self._name, code=code.name, took_ms=took_s * 1000)
