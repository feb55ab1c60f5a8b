"""Connections to Redis, and the pauses between trying to make them."""

import random
from collections.abc import Callable
from typing import Final

from redis.asyncio.connection import AbstractConnection, ConnectionPool

CONNECT_TIMEOUT_S: Final = 1.0
BACKOFF_FIRST_S: Final = 0.02
BACKOFF_MAX_S: Final = 0.5

Connect = Callable[[], AbstractConnection]


def connections(url: str) -> Connect:
    """A maker of connections; time-outs are the caller's, over whole batches."""
    pool = ConnectionPool.from_url(
        url, protocol=2, socket_timeout=None, socket_connect_timeout=CONNECT_TIMEOUT_S
    )
    return pool.make_connection


def backoff_s(failures: int) -> float:
    """The pause after so many failures in a row, jittered."""
    ceiling = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(failures - 1, 8))
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311 (no secret)
