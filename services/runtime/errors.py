# ruff: noqa: N818 (the classes carry the names of the status codes that clients see)
"""The typed errors that cross the wire, and the only place that knows gRPC status codes.

A `DoorcardError` becomes google.rpc.Status with ErrorInfo (reason, domain, metadata), BadRequest
when fields are at fault and RetryInfo when a later try may succeed; `DoorcardError.from_rpc` is the
way back.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import (  # type: ignore[import-untyped]
    error_details_pb2,
    status_pb2,
)

DOMAIN: Final = "doorcard"
STATUS_DETAILS_KEY: Final = "grpc-status-details-bin"

TEXT_MAX: Final = 500
"""Characters of one text of an error. A peer drops the whole answer when its trailers are longer
than `wire.METADATA_BYTES_MAX`.
"""
VIOLATIONS_BYTES_MAX: Final = 4000
"""All fields at fault together; what goes beyond is counted."""

Code = grpc.StatusCode
_CODE_BY_NUMBER: Final[Mapping[int, grpc.StatusCode]] = {code.value[0]: code for code in Code}

RETRIABLE: Final = frozenset({Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED})
"""What a client may send again with the same request_id."""

OUR_FAULT: Final = frozenset(
    {Code.INTERNAL, Code.UNKNOWN, Code.DATA_LOSS, Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED}
)
"""Codes that point at the room and not at the caller; logged as warnings."""


_LOST: Final = "Internal error from Core"
"""What grpc.aio puts in place of the server's status when a write meets the end of its stream
(grpc/grpc issue 36066); the next try gets to see the status itself.
"""


class DoorcardError(Exception):
    """An error with a meaning for the caller.

    code: the gRPC status code.
    reason: machine-readable, SCREAMING_SNAKE, stable.
    message: for developers, in English; never a card, token or address.
    metadata: facts a client can act on (present version, limit), all strings.
    violations: (field, description) of each malformed field.
    retry_after_ms: when a later try may succeed; None if it says nothing.
    """

    default_code: ClassVar[grpc.StatusCode] = Code.UNKNOWN

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        violations: Iterable[tuple[str, str]] = (),
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.code = self.default_code
        self.reason = reason
        self.message = _short(message)
        self.metadata = dict(metadata or {})
        self.violations = _fitting(list(violations))
        self.retry_after_ms = retry_after_ms

    @property
    def retriable(self) -> bool:
        """Whether the same request, with the same request_id, may be sent again."""
        return self.code in RETRIABLE

    def to_rich_status(self) -> status_pb2.Status:
        """google.rpc.Status carrying everything this error knows."""
        status = status_pb2.Status(code=self.code.value[0], message=self.message)
        info = error_details_pb2.ErrorInfo(
            reason=self.reason, domain=DOMAIN, metadata=self.metadata
        )
        status.details.add().Pack(info)
        if self.violations:
            faults = error_details_pb2.BadRequest()
            for field, description in self.violations:
                faults.field_violations.add(field=field, description=description)
            status.details.add().Pack(faults)
        if self.retry_after_ms is not None:
            delay = Duration()
            delay.FromMilliseconds(self.retry_after_ms)
            status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
        return status

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
        """The trailer that carries `to_rich_status` beside code and message."""
        return ((STATUS_DETAILS_KEY, self.to_rich_status().SerializeToString()),)

    @staticmethod
    def from_rpc(error: grpc.RpcError) -> "DoorcardError":
        """The typed error behind a failed call; one without our details has the code's name as
        reason.
        """
        code = error.code()
        status = _rich_status(error)
        if status is None and code is Code.INTERNAL and (error.details() or "").startswith(_LOST):
            return Unavailable("STREAM_LOST", "the stream ended while a message was being sent")
        if status is None:
            return of_code(code, code.name, error.details() or code.name)
        return _of_status(status)

    @staticmethod
    def from_wire(content: bytes) -> "DoorcardError":
        """The typed error behind a serialized google.rpc.Status, as `to_rich_status` has it."""
        try:
            return _of_status(status_pb2.Status.FromString(content))
        except DecodeError:
            return of_code(Code.UNKNOWN, Code.UNKNOWN.name, "the error cannot be read")


class InvalidArgument(DoorcardError):
    """Malformed: the same request can never succeed."""

    default_code = Code.INVALID_ARGUMENT

    @classmethod
    def of_field(
        cls, field: str, description: str, reason: str = "INVALID_FIELD"
    ) -> "InvalidArgument":
        """One malformed field."""
        return cls(reason, f"{field}: {description}", violations=[(field, description)])


class FailedPrecondition(DoorcardError):
    """Well formed, but not now: not your turn, wrong street."""

    default_code = Code.FAILED_PRECONDITION


class Aborted(DoorcardError):
    """The state moved meanwhile; look again."""

    default_code = Code.ABORTED


class AlreadyExists(DoorcardError):
    """The same id was used before with other content."""

    default_code = Code.ALREADY_EXISTS


class ResourceExhausted(DoorcardError):
    """A bound was reached; give `retry_after_ms`."""

    default_code = Code.RESOURCE_EXHAUSTED


class NotFound(DoorcardError):
    """There is no such thing, or none that the caller may know of."""

    default_code = Code.NOT_FOUND


class PermissionDenied(DoorcardError):
    """We know who calls, and he may not."""

    default_code = Code.PERMISSION_DENIED


class Unauthenticated(DoorcardError):
    """We do not know who calls: no token, or none that holds."""

    default_code = Code.UNAUTHENTICATED


class Unavailable(DoorcardError):
    """Our fault and passing; the same request may be sent again."""

    default_code = Code.UNAVAILABLE


class DeadlineExceeded(DoorcardError):
    """Not done in time; it may or may not have had its effect."""

    default_code = Code.DEADLINE_EXCEEDED


class Internal(DoorcardError):
    """Our fault; says nothing about why."""

    default_code = Code.INTERNAL


_CLASS_BY_CODE: Final[Mapping[grpc.StatusCode, type[DoorcardError]]] = {
    each.default_code: each for each in DoorcardError.__subclasses__()
}


def code_of(status: grpc.StatusCode | int | None) -> grpc.StatusCode:
    """The code in any of the forms in which gRPC hands it out; None and 0 are OK."""
    if isinstance(status, grpc.StatusCode):
        return status
    return _CODE_BY_NUMBER.get(status or 0, Code.UNKNOWN)


def of_code(code: grpc.StatusCode, reason: str, message: str) -> DoorcardError:
    """The error of the class that belongs to `code`; DoorcardError itself for codes without one."""
    error = _CLASS_BY_CODE.get(code, DoorcardError)(reason, message)
    error.code = code
    return error


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


def _fitting(violations: list[tuple[str, str]]) -> list[tuple[str, str]]:
    room = VIOLATIONS_BYTES_MAX
    for at, (field, text) in enumerate(violations):
        violations[at] = (_short(field), _short(text))
        room -= len("".join(violations[at]).encode())
        if room < 0:
            return [*violations[:at], ("", f"and {len(violations) - at} more")]
    return violations


def _of_status(status: status_pb2.Status) -> DoorcardError:
    code = code_of(status.code)
    info = error_details_pb2.ErrorInfo(reason=code.name)
    faults = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    retry_after_ms = None
    for detail in status.details:
        if detail.Is(retry.DESCRIPTOR):
            detail.Unpack(retry)
            retry_after_ms = retry.retry_delay.ToMilliseconds()
        elif not detail.Unpack(info):
            detail.Unpack(faults)
    found = of_code(code, info.reason, status.message)
    found.metadata = dict(info.metadata)
    found.violations = [(each.field, each.description) for each in faults.field_violations]
    found.retry_after_ms = retry_after_ms
    return found


def _rich_status(error: grpc.RpcError) -> status_pb2.Status | None:
    trailer: Iterable[tuple[str, str | bytes]] = error.trailing_metadata() or ()  # type: ignore[assignment]
    for key, value in trailer:
        if key == STATUS_DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                return None
    return None
