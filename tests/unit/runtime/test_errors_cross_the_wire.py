"""A DoorcardError is the same on both sides of a call."""

import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata

from services.runtime import errors
from services.runtime.errors import DoorcardError, InvalidArgument, ResourceExhausted
from services.runtime.wire import METADATA_BYTES_MAX


def sent(error: DoorcardError) -> DoorcardError:
    trailer = Metadata(*error.trailing_metadata())
    return DoorcardError.from_rpc(AioRpcError(error.code, Metadata(), trailer, error.message))


def test_reason_metadata_violations_and_delay_survive() -> None:
    error = InvalidArgument(
        "BAD_AMOUNT",
        "amount must be one of those offered",
        metadata={"turn": "7"},
        violations=[("amount", "not offered"), ("kind", "unknown")],
        retry_after_ms=1250,
    )
    back = sent(error)
    assert type(back) is InvalidArgument
    assert back.reason == "BAD_AMOUNT"
    assert back.message == "amount must be one of those offered"
    assert back.metadata == {"turn": "7"}
    assert back.violations == [("amount", "not offered"), ("kind", "unknown")]
    assert back.retry_after_ms == 1250


def test_an_error_with_thousands_of_faults_fits_into_the_trailers() -> None:
    faults = [("é" * 3000, f"{n} is unknown") for n in range(5000)]
    error = InvalidArgument("BAD_TABLE", "é" * 100_000, violations=faults)
    ((_, trailer),) = error.trailing_metadata()
    on_the_wire = 4 * len(trailer) / 3 + 3 * len(error.message.encode())
    assert on_the_wire < METADATA_BYTES_MAX
    assert len(error.violations) > 2
    assert error.violations[-1] == ("", f"and {5001 - len(error.violations)} more")


def test_the_status_is_google_rpc_with_domain_doorcard() -> None:
    status = ResourceExhausted("MAILBOX_FULL", "slow down", retry_after_ms=50).to_rich_status()
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    assert status.code == StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == ("MAILBOX_FULL", "doorcard")
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 50


@pytest.mark.parametrize("kind", DoorcardError.__subclasses__())
def test_every_class_comes_back_as_itself(kind: type[DoorcardError]) -> None:
    back = sent(kind("REASON", "message"))
    assert type(back) is kind
    assert back.code is kind.default_code
    assert back.retry_after_ms is None


def test_an_error_without_our_details_takes_the_code_as_reason() -> None:
    plain = AioRpcError(StatusCode.UNAVAILABLE, Metadata(), Metadata(), "failed to connect")
    back = DoorcardError.from_rpc(plain)
    assert isinstance(back, errors.Unavailable)
    assert (back.reason, back.message) == ("UNAVAILABLE", "failed to connect")
    assert back.retriable


def test_a_write_that_met_the_end_of_its_stream_may_be_tried_again() -> None:
    details = 'Internal error from Core Failed "execute_batch": (SendMessageOperation,)'
    lost = AioRpcError(StatusCode.INTERNAL, Metadata(), Metadata(), details)
    back = DoorcardError.from_rpc(lost)
    assert (type(back), back.reason) == (errors.Unavailable, "STREAM_LOST")
    assert back.retriable


def test_garbage_in_the_trailer_is_no_obstacle() -> None:
    trailer = Metadata(("grpc-status-details-bin", b"\xff\xff\xff"))
    error = AioRpcError(StatusCode.ABORTED, Metadata(), trailer, "moved")
    assert DoorcardError.from_rpc(error).reason == "ABORTED"


def test_only_what_may_pass_is_retriable() -> None:
    retriable = {k.__name__ for k in DoorcardError.__subclasses__() if k("R", "m").retriable}
    assert retriable == {"Unavailable", "DeadlineExceeded"}
