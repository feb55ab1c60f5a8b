"""Faults of our own in background loops: one item must not end the replica that all others need.

What fails outside an item, so that a loop cannot go on at all, ends the replica as ever.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from prometheus_client import Counter

from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY


class Loop(StrEnum):
    """The loops that pass over an item."""

    CLOSED_TABLES = "closed_tables"
    FAILOVERS = "failovers"
    LOBBY = "lobby"
    MEASURING = "measuring"
    OUTBOX = "outbox"
    REOPENED = "reopened"
    REOPENING = "reopening"
    REVIEWS = "reviews"
    SCHEDULES = "schedules"
    WAKES = "wakes"


FAULTS: Final = Counter(
    "doorcard_table_loop_faults",
    "Items that a background loop passed over after a fault of our own.",
    ["loop"],
    registry=REGISTRY,
)
for _loop in Loop:
    FAULTS.labels(_loop)


@contextmanager
def passed_over(loop: Loop, item: object = "") -> Iterator[None]:
    """What fails inside by our own fault is logged and counted, and the loop goes on.

    item: shard, table or schedule. DoorcardError is raised: each loop has its own word for it.
    """
    try:
        yield
    except DoorcardError:
        raise
    except Exception:
        FAULTS.labels(loop).inc()
        logger.exception("loop_fault", loop=loop.value, item=item)
