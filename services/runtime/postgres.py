"""PostgreSQL for a service: a bounded pool, transactions that are tried again, typed errors.

When the database is away a caller hears UNAVAILABLE within a bounded time, and the pool finds its
way back by itself. What is tried again must be safe to repeat: a commit whose answer was lost may
have happened.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import psycopg
from prometheus_client import Gauge
from psycopg import errors
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from services.runtime.errors import DoorcardError, ResourceExhausted, Unavailable
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY, Dependency

Connection = psycopg.AsyncConnection[Any]
Result = TypeVar("Result")
Work = Callable[[Connection], Awaitable[Result]]

ATTEMPTS: Final = 5
WAITING_MAX: Final = 256
CONNECT_S: Final = 2
RECONNECT_S: Final = 1.0
"""After this the pool stops trying by itself; the next caller makes it try anew, without a long
backoff.
"""
STATEMENT_MS: Final = 4000
LOCK_MS: Final = 2000
IDLE_IN_TRANSACTION_MS: Final = 10_000
AWAY_RETRY_MS: Final = 500
BUSY_RETRY_MS: Final = 100

MEASURE_EVERY_S: Final = 10.0

POSTGRES: Final = Dependency("postgres", "transaction", "snapshot")
POOL: Final = Gauge(
    "doorcard_postgres_pool_connections",
    "Connections of this process to its database: open, idle, and the most that it may have.",
    ["state"],
    registry=REGISTRY,
)
WAITING: Final = Gauge(
    "doorcard_postgres_pool_waiting", "Calls that wait for a connection.", registry=REGISTRY
)
SERVER_CONNECTIONS: Final = Gauge(
    "doorcard_postgres_server_connections",
    "Connections of all clients to the database's server.",
    registry=REGISTRY,
)
SERVER_CONNECTIONS_MAX: Final = Gauge(
    "doorcard_postgres_server_connections_max",
    "Connections that the server takes, without those kept for superusers.",
    registry=REGISTRY,
)

_COUNT_CONNECTIONS: Final = """
    SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
"""

_COLLIDED: Final = (errors.SerializationFailure, errors.DeadlockDetected)
_TOO_SLOW: Final = (errors.LockNotAvailable, errors.QueryCanceled)
_AWAY: Final = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)


class Database:
    """A pool of connections to one database.

    url: a libpq connection string. connections_max: per process. wait_s: for a free connection.
    """

    def __init__(
        self, url: str, application: str, *, connections_max: int = 8, wait_s: float = 1.0
    ) -> None:
        options = (
            f"-c statement_timeout={STATEMENT_MS} -c lock_timeout={LOCK_MS} -c timezone=UTC"
            f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_MS}"
        )
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            kwargs={
                "application_name": f"doorcard-{application}",
                "connect_timeout": CONNECT_S,
                "options": options,
            },
            min_size=1,
            max_size=connections_max,
            max_waiting=WAITING_MAX,
            timeout=wait_s,
            reconnect_timeout=RECONNECT_S,
            open=False,
        )
        self._measuring: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to connect; does not wait for the database."""
        await self._pool.open(wait=False)
        if self._measuring is None:
            self._measuring = asyncio.create_task(self._measure_for_ever(), name="postgres gauges")

    async def close(self) -> None:
        """Close every connection."""
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.gather(self._measuring, return_exceptions=True)
            self._measuring = None
        await self._pool.close()

    async def transaction(
        self,
        work: Work[Result],
        *,
        again_on: tuple[type[psycopg.Error], ...] = (),
    ) -> Result:
        """What `work` returns, done in one READ COMMITTED transaction.

        Collisions, lost connections and the errors in `again_on` repeat the whole transaction,
        with jitter, at most `ATTEMPTS` times. Raises what `work` raises (nothing is then written),
        Unavailable (DATABASE_AWAY, DATABASE_BUSY), ResourceExhausted (TOO_MANY_CALLS).
        """
        return await self._repeated(work, _COLLIDED + again_on, snapshot=False)

    async def snapshot(self, work: Work[Result]) -> Result:
        """What `work` returns, all of it read from one moment (REPEATABLE READ, read only)."""
        return await self._repeated(work, _COLLIDED, snapshot=True)

    async def _repeated(
        self, work: Work[Result], again_on: tuple[type[psycopg.Error], ...], *, snapshot: bool
    ) -> Result:
        attempt = 1
        while True:
            try:
                return await self._once(work, snapshot=snapshot)
            except again_on as error:
                refusal = Unavailable(
                    "DATABASE_BUSY", "the database is busy", retry_after_ms=BUSY_RETRY_MS
                )
                if attempt == ATTEMPTS:
                    raise refusal from error
            except _TOO_SLOW as error:
                # Its own time limit has passed already: the caller decides whether to wait again.
                raise Unavailable(
                    "DATABASE_BUSY", "the database is busy", retry_after_ms=BUSY_RETRY_MS
                ) from error
            except TooManyRequests as error:
                raise ResourceExhausted(
                    "TOO_MANY_CALLS",
                    "too many calls wait for the database",
                    retry_after_ms=BUSY_RETRY_MS,
                ) from error
            except _AWAY as error:
                if isinstance(error, PoolTimeout) or attempt == ATTEMPTS:
                    logger.warning("database_away", kind=type(error).__name__)
                    raise Unavailable(
                        "DATABASE_AWAY", "the database is away", retry_after_ms=AWAY_RETRY_MS
                    ) from error
                # What broke one connection has mostly broken the idle ones too.
                await self._pool.check()
            await asyncio.sleep(random.uniform(0.002, 0.010) * 2**attempt)  # noqa: S311 (no secret)
            attempt += 1

    async def _once(self, work: Work[Result], *, snapshot: bool) -> Result:
        operation = "snapshot" if snapshot else "transaction"
        with POSTGRES.timed(operation, not_its_fault=(DoorcardError,)):
            async with self._pool.connection() as connection, connection.transaction():
                if snapshot:
                    await connection.execute(
                        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
                    )
                return await work(connection)

    async def _measure_for_ever(self) -> None:
        while True:
            found = self._pool.get_stats()
            size = found.get("pool_size", 0)
            POOL.labels("open").set(size)
            POOL.labels("idle").set(found.get("pool_available", 0))
            POOL.labels("max").set(self._pool.max_size)
            WAITING.set(found.get("requests_waiting", 0))
            try:
                connections, most = await self.snapshot(_count_connections)
            except (DoorcardError, psycopg.Error):
                # Away: that is seen in the failures of those who need it.
                pass
            else:
                SERVER_CONNECTIONS.set(connections)
                SERVER_CONNECTIONS_MAX.set(most)
            await asyncio.sleep(MEASURE_EVERY_S)


async def _count_connections(connection: Connection) -> tuple[int, int]:
    found = await (await connection.execute(_COUNT_CONNECTIONS)).fetchone()
    if found is None:
        raise Unavailable("DATABASE_AWAY", "the database did not count its connections")
    return int(found[0]), int(found[1])
