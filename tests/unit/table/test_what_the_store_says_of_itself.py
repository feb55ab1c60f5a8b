"""Gauges from INFO and LATENCY LATEST, as Redis and Valkey write them."""

from services.runtime.metrics import REGISTRY
from services.table.store.store_gauges import facts_of, fsync_seconds, show

INFO = b"""# Memory\r
used_memory:1048576\r
total_system_memory:8589934592\r
maxmemory:%d\r
# Persistence\r
aof_enabled:1\r
aof_last_write_status:%s\r
# Stats\r
evicted_keys:3\r
# Clients\r
connected_clients:5\r
"""


def value(name: str) -> float | None:
    return REGISTRY.get_sample_value(name)


def test_memory_is_measured_against_its_limit_or_the_machines() -> None:
    show([(facts_of(INFO % (4096, b"ok")), 0.0)])
    assert value("doorcard_store_memory_bytes") == 1_048_576
    assert value("doorcard_store_memory_max_bytes") == 4096
    show([(facts_of(INFO % (0, b"ok")), 0.0)])
    assert value("doorcard_store_memory_max_bytes") == 8_589_934_592
    assert value("doorcard_store_evicted_keys") == 3


def test_writes_are_durable_only_while_the_file_takes_them() -> None:
    show([(facts_of(INFO % (0, b"ok")), 0.0)])
    assert value("doorcard_store_writes_durable") == 1
    show([(facts_of(INFO % (0, b"err")), 0.0)])
    assert value("doorcard_store_writes_durable") == 0
    show([({}, 0.0)])
    assert value("doorcard_store_writes_durable") == 0


def test_a_slow_fsync_is_shown_for_a_minute() -> None:
    latest = [[b"command", 1000, 900, 900], [b"aof-fsync-always", 1000, 35, 80, 12, 3]]
    assert fsync_seconds(latest, 1059) == 0.035
    assert fsync_seconds(latest, 1060) == 0
    assert fsync_seconds([], 1000) == 0
