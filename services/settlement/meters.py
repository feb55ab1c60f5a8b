"""What settlement reports to Prometheus: the worker's children write, their parent serves."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from services.runtime.metrics import REGISTRY, Dependency

SMTP: Final = Dependency("smtp", "deliver")
BROKER: Final = Dependency("broker", "publish")

TASKS: Final = Counter(
    "doorcard_tasks", "Tasks ended, by outcome.", ["task", "outcome"], registry=REGISTRY
)
TASK_SECONDS: Final = Histogram(
    "doorcard_task_duration_seconds",
    "Time of a task that had something to do.",
    ["task"],
    registry=REGISTRY,
)
FAULTS: Final = Counter(
    "doorcard_settlement_faults",
    "Steps of settlement that failed, by step and reason; the next trigger tries again.",
    ["step", "reason"],
    registry=REGISTRY,
)
SETTLED: Final = Counter(
    "doorcard_settled_entries", "Entries applied to the ledger, by kind.", ["kind"],
    registry=REGISTRY,
)  # fmt: skip
ARCHIVED: Final = Counter("doorcard_archived_hands", "Hands archived.", registry=REGISTRY)
DELAY: Final = Histogram(
    "doorcard_settlement_delay_seconds",
    "From the commit at the table to the ledger.",
    buckets=(0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0),
    registry=REGISTRY,
)
PARKED: Final = Counter(
    "doorcard_parked", "Entries that the ledger could not apply, by reason.", ["reason"],
    registry=REGISTRY,
)  # fmt: skip
PARKED_NOW: Final = Gauge(
    "doorcard_parked_entries",
    "Parked entries of a shard that nobody has resolved.",
    ["shard"],
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
SHARD_CLOSED: Final = Gauge(
    "doorcard_settlement_shard_closed",
    "1 while a shard accepts no commits: it is closed, or being rebuilt.",
    ["shard"],
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
DIFFERENCE: Final = Gauge(
    "doorcard_reconciliation_difference",
    "Between a shard's tables and their escrow, minor units, summed over sittings; 0 is well.",
    ["shard"],
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
LEDGER_DIFFERENCE: Final = Gauge(
    "doorcard_ledger_difference",
    "kind=sum: deposits - withdrawals - (players + escrow + house); kind=balances: balances against"
    " transfers. Minor units.",
    ["currency", "kind"],
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
BALANCES: Final = Gauge(
    "doorcard_ledger_balance_minor_units",
    "What the ledger holds, by kind of account: players, escrow, house; rake is part of house.",
    ["currency", "account"],
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
OLD_RESERVATIONS: Final = Counter(
    "doorcard_old_reservations", "Old pending reservations put to their table.", ["outcome"],
    registry=REGISTRY,
)  # fmt: skip
for _outcome in ("seated", "released"):
    # What never happened is 0, not absent: a rule that looks for it finds it.
    OLD_RESERVATIONS.labels(_outcome)
MAILS: Final = Counter("doorcard_mails", "Tries to send a hand.", ["outcome"], registry=REGISTRY)
for _outcome in ("sent", "failed"):
    MAILS.labels(_outcome)
MESSAGES_PARKED: Final = Counter(
    "doorcard_messages_parked",
    "Times that a message was parked because its work killed its workers.",
    ["task"],
    registry=REGISTRY,
)
PARKED_MESSAGES: Final = Gauge(
    "doorcard_parked_messages",
    "Pieces of work that killed their workers, are parked, and have not succeeded since.",
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
TRIGGERS: Final = Counter(
    "doorcard_triggers",
    "Triggers that beat sent, dropped (the queue is full) or lost (the broker is away).",
    ["task", "outcome"],
    registry=REGISTRY,
)
BACKLOG: Final = Gauge(
    "doorcard_trigger_backlog",
    "Triggers that wait in the broker.",
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
