"""Clocks. Wall time is for stamps that others read; durations and time-outs use the monotonic
clock.
"""

import time
from datetime import UTC, datetime
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

MS_PER_S: Final = 1000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000


def now_ms() -> int:
    """Wall clock, milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // NS_PER_MS


def monotonic_s() -> float:
    """Seconds on a clock that never steps back; only differences mean anything."""
    return time.monotonic()


def timestamp(at_ms: int) -> Timestamp:
    """The protobuf Timestamp of `at_ms` (milliseconds since 1970 UTC)."""
    return Timestamp(seconds=at_ms // MS_PER_S, nanos=(at_ms % MS_PER_S) * NS_PER_MS)


def milliseconds(at: Timestamp) -> int:
    """Milliseconds since 1970 UTC of a protobuf Timestamp, rounded down."""
    return at.seconds * MS_PER_S + at.nanos // NS_PER_MS


def utc_text(at_ms: int) -> str:
    """ISO 8601 with milliseconds and a Z, for people and logs."""
    at = datetime.fromtimestamp(at_ms / MS_PER_S, tz=UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
