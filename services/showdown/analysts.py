"""Processes for work that takes long, so that showdowns of running tables never wait behind it.

Calls are let in up to a bound, and each hands its work over in parts of a few hundredths of a
second, one after the other: several calls share the processes evenly, and one that is cancelled
stops at the end of its part. The processes start with the first call that needs them, run at a
lower priority, keep nothing and end with their parent, however that ends.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection
from pathlib import Path
from typing import Final, TypeVar

from prometheus_client import Counter, Gauge

from services.runtime.errors import ResourceExhausted, Unavailable
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.showdown.table_files import share_tables

NICENESS: Final = 10
RETRY_AFTER_MS: Final = 500

ANALYSES: Final = Gauge(
    "doorcard_showdown_analyses",
    "Analyses at work: estimates of equity and evaluations of many hands.",
    registry=REGISTRY,
)
REFUSED: Final = Counter(
    "doorcard_showdown_analyses_refused", "Analyses refused: too many at work.", registry=REGISTRY
)
LOST: Final = Counter(
    "doorcard_showdown_analysts_lost", "Times that a process died at work.", registry=REGISTRY
)

Result = TypeVar("Result")


class Analysts:
    """A bounded pool of processes."""

    def __init__(self, processes: int, calls_max: int, tables_folder: Path | None) -> None:
        """`calls_max` calls may be at work or wait at once; `tables_folder` as in settings."""
        self.calls_max: Final = calls_max
        self._calls = 0
        self._processes = processes
        self._tables_folder = tables_folder
        self._executor: ProcessPoolExecutor | None = None

    @contextmanager
    def let_in(self) -> Iterator[None]:
        """A place for one call; raises ResourceExhausted when all are taken."""
        if self._calls >= self.calls_max:
            REFUSED.inc()
            raise ResourceExhausted(
                "TOO_MANY_ANALYSES",
                f"{self.calls_max} analyses are at work",
                metadata={"limit": str(self.calls_max)},
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._calls += 1
        ANALYSES.inc()
        try:
            yield
        finally:
            self._calls -= 1
            ANALYSES.dec()

    async def do(self, part: Callable[[], Result]) -> Result:
        """Have a part done by one of the processes; what it raises is raised here.

        Part and result must be picklable. Raises Unavailable when the process died.
        """
        executor = self._started()
        try:
            return await asyncio.wrap_future(executor.submit(part))
        except BrokenExecutor:
            if self._executor is executor:
                self._executor = None
                LOST.inc()
                logger.error("analyst_lost")
                executor.shutdown(wait=False)
            raise Unavailable("ANALYST_LOST", "the process at work on it died") from None

    async def close(self) -> None:
        """End the processes; each may finish its part."""
        if self._executor is not None:
            executor, self._executor = self._executor, None
            await asyncio.to_thread(executor.shutdown, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self._processes,
                # gRPC does not survive a fork.
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_become_analyst,
                initargs=(self._tables_folder,),
            )
        return self._executor


def _become_analyst(tables_folder: Path | None) -> None:
    # Ctrl-C reaches every process of a terminal; the parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="leash", daemon=True).start()
    os.nice(NICENESS)
    if tables_folder is not None:
        share_tables(tables_folder)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
