"""Batch methods: several calls of a service in one message, each answered as if it had come by
itself.

The messages of all of them have one form. A request has `calls`, each with a `trace` and a oneof
`call` of the requests of single methods; a response has `answers`, each with a oneof `answer` of an
`error` and the responses, under the names that the requests have.
"""

import re
import time
from typing import Any, Final

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from services.runtime.errors import Code, DoorcardError, InvalidArgument
from services.runtime.incoming import Incoming
from services.runtime.logs import bind, trace_id

CALLS_MAX: Final = 64
"""Calls in one message. The answer to as many draws of a whole deck stays below 1 MB."""
ERROR: Final = "error"
KIND: Final = "batched"
"""The `grpc_type` under which a call of a batch is counted, by the server and by the caller."""

Context = aio.ServicerContext[Any, Any]

_TRACE: Final = re.compile(r"[0-9a-f]{32}")


class Batch:
    """A batch method, as its messages describe it."""

    def __init__(self, service: ServiceDescriptor, method: str) -> None:
        described: Any = service.methods_by_name[method]
        kinds = described.input_type.fields_by_name["calls"].message_type.oneofs_by_name["call"]
        singles = {each.input_type.full_name: each.name for each in service.methods}
        self.method: Final = method
        self.service: Final = service.full_name
        self.request: Final[type[Any]] = GetMessageClass(described.input_type)
        self.response: Final[type[Any]] = GetMessageClass(described.output_type)
        self.calls: Final = {
            singles[each.message_type.full_name]: each.name for each in kinds.fields
        }
        """Single method -> its field in a call and in an answer."""


class Answering:
    """Answers the calls of a batch by the single methods of a servicer, counted and logged as if
    they had come by themselves, each in its own trace.
    """

    def __init__(self, batch: Batch) -> None:
        self._response = batch.response
        self._methods = {
            field: (name, Incoming(f"/{batch.service}/{name}", KIND))
            for name, field in batch.calls.items()
        }

    async def answer(self, servicer: Any, request: Any, context: Context) -> Any:
        """The response to a request. Raises InvalidArgument for one with no calls or too many."""
        if not 1 <= len(request.calls) <= CALLS_MAX:
            raise InvalidArgument.of_field("calls", f"must be 1 to {CALLS_MAX}")
        response = self._response()
        own_trace = trace_id()
        try:
            for call in request.calls:
                bind(trace=call.trace if _TRACE.fullmatch(call.trace) else own_trace)
                await self._answer(servicer, call, context, response.answers.add())
        finally:
            bind(trace=own_trace)
        return response

    async def _answer(self, servicer: Any, call: Any, context: Context, answer: Any) -> None:
        field = call.WhichOneof("call")
        if field is None:
            answer.error = _wire(InvalidArgument.of_field("call", "none is given"))
            return
        name, incoming = self._methods[field]
        began_s, code = time.perf_counter(), Code.CANCELLED
        incoming.begun()
        try:
            found = await getattr(servicer, name)(getattr(call, field), context)
            getattr(answer, field).CopyFrom(found)
            code = Code.OK
        except DoorcardError as refusal:
            code = refusal.code
            incoming.refused(refusal)
            answer.error = _wire(refusal)
        except Exception as failure:
            code = Code.INTERNAL
            answer.error = _wire(incoming.failed(failure))
        finally:
            incoming.ended(code, time.perf_counter() - began_s)


def _wire(error: DoorcardError) -> bytes:
    return error.to_rich_status().SerializeToString()  # type: ignore[no-any-return]
