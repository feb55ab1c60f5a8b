"""Words for who is to connect to another replica, or to call again."""

from typing import Final

from doorcard.table.v1 import table_pb2

from services.runtime.errors import ResourceExhausted

AFTER_MS: Final = 100
GOING_AWAY: Final = "the server goes away"


def reconnect(reason: str = GOING_AWAY) -> table_pb2.Reconnect:
    """The end of a stream, and why it ends."""
    return table_pb2.Reconnect(reason=reason, retry_after_ms=AFTER_MS)


def full() -> ResourceExhausted:
    """No stream more is opened here (TOO_MANY_STREAMS)."""
    return ResourceExhausted(
        "TOO_MANY_STREAMS", "connect to another replica", retry_after_ms=AFTER_MS
    )
