"""docs/METRICS.md, from the metrics that the code declares."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram

from services.runtime.metrics import REGISTRY

SERVICES: Final = Path(__file__).parent.parent / "services"
MARK: Final = "registry=REGISTRY"
"""In the text of every module that declares a metric."""

LABELS: Final[dict[str, tuple[str, str]]] = {
    # label: (what it says, all its values as a regular expression)
    "account": ("kind of account", "players|escrow|house|rake"),
    "action": (
        "what a player, the clock or an operator asked of a table",
        "bring_in|complete|bet|call|raise|check|fold|take_seat|leave_seat|sit_out|sit_back|connect"
        "|top_up|join_waiting_list|leave_waiting_list|change_table|keep_seat|seat_kept"
        "|excuse|resolve|pause|resume|void|deal|tick|[a-z_]{1,24}",
    ),
    "answer": ("of a node that sends a command elsewhere", "[a-z_]{1,24}"),
    "cause": ("why a snapshot was sent, or a new deadline was given", "[a-z_]{1,24}"),
    "currency": ("ISO 4217 code", "[A-Z]{3}"),
    "dependency": ("part that is not ours", "redis|postgres|smtp|broker"),
    "direction": ("where a clock was set to", "back|ahead"),
    "generation": ("of Python's collector", "[0-2]"),
    "grpc": ("version of grpcio", r"[0-9.]{1,16}"),
    "grpc_code": ("status code", "[A-Z_]{2,24}"),
    "grpc_method": ("method of the contract", r"[A-Za-z]{2,40}"),
    "grpc_service": ("service of the contract", r"[a-z0-9.]{1,40}\.[A-Za-z]{2,40}"),
    "grpc_type": (
        "kind of call; `batched` is one of several in a message",
        "unary|client_stream|server_stream|bidi_stream|batched",
    ),
    "implementation": ("of Python", "CPython"),
    "kind": ("which of the few kinds that the metric names", "[a-z_]{1,24}"),
    "le": ("upper bound of a bucket", r"[0-9.e+]{1,12}|\+Inf"),
    "loop": ("of the table service, in the background", "[a-z_]{1,24}"),
    "limit": ("kind and scope of a rate limit", r"[a-z]{1,8}\.(player|address|table)"),
    "major": ("of Python's version", "[0-9]+"),
    "minor": ("of Python's version", "[0-9]+"),
    "operation": ("what was asked of it", "[a-z_]{1,24}"),
    "outcome": ("how it ended", "[a-z_]{1,24}"),
    "patchlevel": ("of Python's version", "[0-9]+"),
    "purpose": ("what was sealed", "[a-z]{1,16}"),
    "python": ("version of Python", r"[0-9.]{1,16}"),
    "reason": ("reason of an error, a word of this program", "[A-Za-z0-9_]{1,48}"),
    "service": ("process, as in its settings", "[a-z][a-z0-9-]{0,31}"),
    "shard": ("number of a shard; a room has as many as its settings say", "[0-9]{1,5}"),
    "stage": (
        "part of an action's time",
        "queue|rules|shuffler|showdown|wallet|commit|total",
    ),
    "state": ("which of the few states that the metric names", "[a-z_]{1,24}"),
    "step": ("of settlement", "[a-z_.]{1,32}"),
    "task": ("Celery task", r"settlement\.[a-z]{1,24}"),
    "test": ("health test of the generator", "[a-z_]{1,24}"),
    "version": ("of a program", r"[0-9A-Za-z.+]{1,32}"),
    "why": ("away or at fault", "away|fault"),
}

EXAMPLES: Final[dict[str, str]] = {
    "doorcard_action_duration_seconds": "histogram_quantile(0.99, sum by (le, stage) "
    '(rate(doorcard_action_duration_seconds_bucket{outcome="ok"}[5m])))',
    "doorcard_build_info": "count by (service, version) (doorcard_build_info)",
    "doorcard_decks": "sum by (kind) (rate(doorcard_decks_total[5m]))",
    "doorcard_dependency_duration_seconds": "sum by (dependency) "
    '(rate(doorcard_dependency_duration_seconds_count{outcome="failed"}[5m]))',
    "doorcard_hand_pot_small_bets": "sum(rate(doorcard_hand_pot_small_bets_sum[1h])) / "
    "sum(rate(doorcard_hand_pot_small_bets_count[1h]))",
    "doorcard_hands": "3600 * sum by (outcome) (rate(doorcard_hands_total[5m]))",
    "doorcard_ledger_difference": "max by (currency, kind) (abs(doorcard_ledger_difference)) > 0",
    "doorcard_mails": 'sum(rate(doorcard_mails_total{outcome="failed"}[5m])) / '
    "sum(rate(doorcard_mails_total[5m]))",
    "doorcard_outbox_lag_seconds": "max(doorcard_outbox_lag_seconds)",
    "doorcard_postgres_pool_connections": "sum by (job) "
    '(doorcard_postgres_pool_connections{state="open"}) / '
    'sum by (job) (doorcard_postgres_pool_connections{state="max"})',
    "doorcard_postgres_server_connections": "max(doorcard_postgres_server_connections) / "
    "max(doorcard_postgres_server_connections_max)",
    "doorcard_rake_minor_units": "3600 * sum by (currency) "
    "(rate(doorcard_rake_minor_units_total[1h]))",
    "doorcard_reconciliation_difference": "max(abs(doorcard_reconciliation_difference)) > 0",
    "doorcard_rng_healthy": "min(doorcard_rng_healthy)",
    "doorcard_shards": 'sum(max by (state) (doorcard_shards{state=~"closed|rebuilding"}))',
    "doorcard_shards_reopened": "sum by (reason) "
    "(increase(doorcard_shards_reopened_total[1h])) > 0",
    "doorcard_sittings_paid_back": "sum(increase(doorcard_sittings_paid_back_total[1h])) > 0",
    "doorcard_store_memory_bytes": "max(doorcard_store_memory_bytes) / "
    "max(doorcard_store_memory_max_bytes)",
    "doorcard_store_writes_durable": "min(doorcard_store_writes_durable) == 0",
    "doorcard_table_conflicts": "sum(rate(doorcard_table_conflicts_total[5m])) / "
    'sum(rate(doorcard_table_commits_total{outcome="committed"}[5m]))',
    "doorcard_table_replicas": "min(doorcard_table_replicas)",
    "grpc_client_handled": "sum by (job, grpc_service, grpc_code) "
    "(rate(grpc_client_handled_total[5m]))",
    "grpc_server_handled": "sum by (job, grpc_code) (rate(grpc_server_handled_total[5m]))",
}
"""By name as the code has it; a metric that is not here gets the usual query of its type."""

ORDER: Final = (
    ("Every service", "services.runtime"),
    ("Tables", "services.table"),
    ("Shuffler", "services.shuffler"),
    ("Showdown", "services.showdown"),
    ("Wallet", "services.wallet"),
    ("History", "services.history"),
    ("Settlement", "services.settlement"),
)

HEAD: Final = """# Metrics

Generated from the code by `make pages`; a test compares. Every process answers `GET /metrics`; the
worker of settlement adds up what its children count, so each process reports whole numbers and sums
over processes are right. The standard metrics of the Python client (`process_*`, `python_*`) are
there too. No table, hand or player is ever a label, and no label is unbounded: the last section has
all their values.

The objective: 99.9 % of the players' actions are committed within 50 ms at the server, and 99.9 %
of them do not fail by our fault. Rules and alerts are in `deploy/prometheus/`.

In the queries, `job` is the process's name as the scrape configuration gives it.
"""


@dataclass(frozen=True, slots=True)
class Metric:
    """One declared metric."""

    name: str
    """As declared: a counter's without `_total`."""
    kind: str
    labels: tuple[str, ...]
    text: str
    module: str

    @property
    def shown(self) -> str:
        """The name as it is scraped, for a histogram without the endings of its series."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    @property
    def example(self) -> str:
        """A PromQL query that answers what one would ask of it."""
        return EXAMPLES.get(self.name) or self._usual()

    def _usual(self) -> str:
        if self.kind == "histogram":
            by = ", ".join(("le", *self.labels[:1]))
            return f"histogram_quantile(0.99, sum by ({by}) (rate({self.name}_bucket[5m])))"
        by = f" by ({', '.join(self.labels)}) " if self.labels else ""
        if self.kind == "counter":
            return f"sum{by}(rate({self.shown}[5m]))"
        return f"max{by}({self.name})"


def declared() -> list[Metric]:
    """Every metric of every service, by module and place in it."""
    found = []
    for module in _modules():
        for value in vars(importlib.import_module(module)).values():
            metric = _metric(value, module)
            if metric is not None and metric not in found:
                found.append(metric)
    return found


def text() -> str:
    """The page."""
    metrics = declared()
    parts = [HEAD]
    for title, package in ORDER:
        ours = [each for each in metrics if each.module.startswith(f"{package}.")]
        if ours:
            parts.append(f"## {title}\n")
            parts.extend(map(_section, ours))
    parts.append("## Labels\n\n| label | what it says | values |\n|---|---|---|")
    used = {label for each in metrics for label in each.labels}
    for label in sorted(used):
        meaning, values = LABELS[label]
        parts.append(f"| `{label}` | {meaning} | `{values.replace('|', chr(92) + '|')}` |")
    return "\n".join(parts) + "\n"


def _section(metric: Metric) -> str:
    labels = f", by {', '.join(f'`{label}`' for label in metric.labels)}" if metric.labels else ""
    return (
        f"### `{metric.shown}`\n\n{metric.text} {metric.kind.capitalize()}{labels}; declared in "
        f"`{metric.module}`.\n\n```promql\n{metric.example}\n```\n"
    )


def _modules() -> Iterator[str]:
    for path in sorted(SERVICES.rglob("*.py")):
        if MARK in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(SERVICES.parent).with_suffix("").parts)


def _metric(value: Any, module: str) -> Metric | None:
    kinds = ((Counter, "counter"), (Gauge, "gauge"), (Histogram, "histogram"))
    kind = next((name for kind, name in kinds if isinstance(value, kind)), None)
    # A child of a labelled metric is no metric of its own.
    if kind is None or value not in REGISTRY._collector_to_names:  # noqa: SLF001
        return None
    return Metric(value._name, kind, value._labelnames, value._documentation, module)  # noqa: SLF001
