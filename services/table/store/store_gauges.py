"""What the tables' Redis says of itself, for the dashboards: memory, durability, tables.

Every replica measures the whole room: look at the largest, not at the sum.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from prometheus_client import Gauge

from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.faults import Loop, passed_over
from services.table.store.store import Store

MEASURE_EVERY_S: Final = 5.0
FSYNC_EVENT: Final = "aof-fsync-always"
FSYNC_RECENT_S: Final = 60

MEMORY: Final = Gauge(
    "doorcard_store_memory_bytes",
    "Memory that the tables' Redis uses; in a cluster its fullest node.",
    registry=REGISTRY,
)
MEMORY_MAX: Final = Gauge(
    "doorcard_store_memory_max_bytes",
    "Memory that it may use: its maxmemory, or the machine's if none is set.",
    registry=REGISTRY,
)
FSYNC: Final = Gauge(
    "doorcard_store_fsync_slowest_seconds",
    "The last fsync of the last minute that was slower than Redis' latency-monitor-threshold; 0 if "
    "none was, or if the threshold is 0.",
    registry=REGISTRY,
)
DURABLE: Final = Gauge(
    "doorcard_store_writes_durable",
    "1 while the append-only file is on and its last write succeeded.",
    registry=REGISTRY,
)
EVICTED: Final = Gauge(
    "doorcard_store_evicted_keys",
    "Keys that Redis evicted since its start; anything but 0 is a wrong maxmemory-policy.",
    registry=REGISTRY,
)
CLIENTS: Final = Gauge(
    "doorcard_store_clients", "Connections to the tables' Redis.", registry=REGISTRY
)
TABLES: Final = Gauge("doorcard_tables", "Tables in the lobby.", registry=REGISTRY)
REPLICAS: Final = Gauge(
    "doorcard_table_replicas", "Table replicas whose heart beat lately.", registry=REGISTRY
)


class StoreGauges:
    """Sets the gauges every few seconds."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            try:
                with passed_over(Loop.MEASURING):
                    now_s = self._store.now_ms() // 1000
                    reports = await self._store.server_reports()
                    show([(facts_of(info), fsync_seconds(last, now_s)) for info, last in reports])
                TABLES.set(await self._store.tables_listed())
                REPLICAS.set(len(await self._store.live_replicas()))
            except DoorcardError as error:
                logger.warning("store_not_measured", reason=error.reason)
            await asyncio.sleep(MEASURE_EVERY_S)


def facts_of(info: bytes) -> dict[str, str]:
    """INFO's text as a mapping."""
    lines = (line.partition(":") for line in info.decode().splitlines() if ":" in line)
    return {key: value for key, _, value in lines}


def fsync_seconds(latest: Iterable[Any], now_s: int) -> float:
    """From LATENCY LATEST: the last slow fsync, 0 if it is older than a minute or there was none.

    Each item is event, Unix time, latest and greatest milliseconds, and more in newer servers.
    """
    for event, at_s, took_ms, *_ in latest:
        if bytes(event).decode() == FSYNC_EVENT and now_s - int(at_s) < FSYNC_RECENT_S:
            return int(took_ms) / 1000
    return 0.0


def show(nodes: Sequence[tuple[dict[str, str], float]]) -> None:
    """Set the gauges that are about the server; of a cluster's nodes each shows the worst."""
    facts = [of_node for of_node, _ in nodes]
    fullest = max(facts, key=lambda each: int(each.get("used_memory", 0)) / (_limit(each) or 1))
    MEMORY.set(int(fullest.get("used_memory", 0)))
    MEMORY_MAX.set(_limit(fullest))
    DURABLE.set(int(all(map(_written, facts))))
    EVICTED.set(sum(int(each.get("evicted_keys", 0)) for each in facts))
    CLIENTS.set(sum(int(each.get("connected_clients", 0)) for each in facts))
    FSYNC.set(max(fsync_s for _, fsync_s in nodes))


def _limit(facts: dict[str, str]) -> int:
    return int(facts.get("maxmemory", 0)) or int(facts.get("total_system_memory", 0))


def _written(facts: dict[str, str]) -> bool:
    return facts.get("aof_enabled") == "1" and facts.get("aof_last_write_status") == "ok"
