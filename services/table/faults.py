"""Faults of our own in background loops: one item must not end the replica that all others need.

What fails outside an item, so that a loop cannot go on at all, ends the replica as ever.
"""

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


class passed_over:  # noqa: N801 (a block's name; a class, since this is done for every wake-up)
    """What fails inside by our own fault is logged and counted, and the loop goes on.

    item: shard, table or schedule. DoorcardError is raised: each loop has its own word for it.
    """

    __slots__ = ("_item", "_loop")

    def __init__(self, loop: Loop, item: object = "") -> None:
        self._loop = loop
        self._item = item

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, DoorcardError):
            return False
        FAULTS.labels(self._loop).inc()
        logger.error("loop_fault", loop=self._loop.value, item=self._item, exc_info=error)
        return True
