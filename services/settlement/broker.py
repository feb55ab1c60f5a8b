"""The broker's Redis: how it is reached."""

from typing import Any, Final

from kombu.connection import Connection
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import RedisError

VISIBILITY_S: Final = 120
"""Longer than a task may run: no task that still runs is given out again."""
SOCKET_S: Final = 5

TRANSPORT: Final[dict[str, Any]] = {
    "visibility_timeout": VISIBILITY_S,
    "socket_timeout": SOCKET_S,
    "socket_connect_timeout": SOCKET_S,
    "socket_keepalive": True,
}

BROKER_AWAY: Final = (RedisError, OperationalError, OSError)
"""What calls of the client, and making it, raise while the broker does not answer."""


def connect_broker(url: str) -> Redis:
    """A plain client of the broker, made by the same rules as Celery's own: one for each process.

    Raises one of `BROKER_AWAY`.
    """
    channel: Any = Connection(url, transport_options=TRANSPORT).channel()  # type: ignore[no-untyped-call]
    client: Redis = channel.client
    return client
