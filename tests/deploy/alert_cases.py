"""For every alert: series that fire it, its labels and summary then, and when it clears.

Values are promtool's notation: `1x9` is ten times 1, `0+5x9` counts up by 5 a step.
"""

from dataclasses import dataclass, field
from typing import Final

ACTION: Final = 'doorcard_action_duration_seconds_{part}{{action="call",stage="total",{more}}}'
OK_COUNT: Final = ACTION.format(part="count", more='outcome="ok"')
OK_FAST: Final = ACTION.format(part="bucket", more='outcome="ok",le="0.05"')
FAILED: Final = ACTION.format(part="count", more='outcome="failed"')
SETTLING: Final = 'doorcard_settlement_delay_seconds_bucket{{le="{}"}}'
HANDLED: Final = 'grpc_server_handled_total{{job="wallet",grpc_method="Deposit",grpc_code="{}"}}'
EXCHANGE: Final = (
    'doorcard_dependency_duration_seconds_count{{dependency="smtp",operation="deliver",'
    'outcome="{}"}}'
)
JOBS: Final = (
    "shuffler", "showdown", "wallet", "history", "table", "settlement-worker", "settlement-beat",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlertCase:
    """One alert. fires and clears: minutes from the start of the series."""

    alert: str
    series: dict[str, str]
    fires: int
    clears: int
    summary: str
    labels: dict[str, str] = field(default_factory=dict)
    """Besides severity."""
    interval_min: int = 1
    several: tuple[tuple[dict[str, str], str], ...] = ()
    """Labels and summaries of all that fire, where it is not the one above."""

    @property
    def firing(self) -> tuple[tuple[dict[str, str], str], ...]:
        """Labels, but for the severity, and summary of everything that fires."""
        return self.several or ((self.labels, self.summary),)


WINDOWS: Final = {"14.4": "1h", "6": "6h", "3": "1d", "1": "3d"}
"""Burn rate -> its long window; a burn that is fast enough for one is so for all slower ones."""
CALM_MIN: Final = 400
"""Minutes after a burn until the longest of the short windows, six hours, has forgotten it."""


def burns(rate: str, *, bad: int, interval_min: int, burning_min: int) -> list[AlertCase]:
    """Both budgets burn by `bad` of 1000 actions a step, then not at all."""
    steps, calm = burning_min // interval_min, CALM_MIN // interval_min + 2
    good = 1000 - bad
    slower = [each for each in WINDOWS if float(each) <= float(rate)]
    what = {
        "ActionLatencyBudgetBurn": "Actions slower than 50 ms",
        "ActionAvailabilityBudgetBurn": "Actions failed by our fault",
    }
    series: dict[str, dict[str, str]] = {
        "ActionLatencyBudgetBurn": {
            OK_COUNT: f"0+1000x{steps + calm}",
            OK_FAST: f"0+{good}x{steps} {good * steps + 1000}+1000x{calm}",
        },
        "ActionAvailabilityBudgetBurn": {
            OK_COUNT: f"0+{good}x{steps} {good * steps + 1000}+1000x{calm}",
            FAILED: f"0+{bad}x{steps} {bad * steps}x{calm}",
        },
    }
    return [
        AlertCase(
            alert,
            series[alert],
            fires=burning_min,
            clears=burning_min + CALM_MIN,
            summary="",
            labels={"burn_rate": rate},
            interval_min=interval_min,
            several=tuple(
                (
                    {"burn_rate": each},
                    f"{what[alert]}: {bad / 10:g}% over {WINDOWS[each]}, {each} times the error"
                    " budget",
                )
                for each in slower
            ),
        )
        for alert in what
    ]


CASES: Final = (
    *burns("14.4", bad=20, interval_min=1, burning_min=80),
    *burns("6", bad=8, interval_min=5, burning_min=400),
    *burns("3", bad=4, interval_min=15, burning_min=1500),
    *burns("1", bad=2, interval_min=30, burning_min=4500),
    AlertCase(
        "ReconciliationDifference",
        {'doorcard_reconciliation_difference{shard="3"}': "0 -40x4 0x9"},
        fires=2, clears=6, labels={"shard": "3"},
        summary="Tables and escrow of shard 3 differ by 40 minor units",
    ),
    AlertCase(
        "LedgerDifference",
        {'doorcard_ledger_difference{currency="EUR",kind="sum"}': "0 7x4 0x9"},
        fires=2, clears=6, labels={"currency": "EUR", "kind": "sum"},
        summary="The EUR ledger does not add up (sum): 7 minor units",
    ),
    AlertCase(
        "SettlementsParked",
        {'doorcard_parked_entries{shard="1"}': "0 2x4 0x9"},
        fires=2, clears=6, labels={"shard": "1"},
        summary="2 entries of shard 1 could not be settled; their tables are paused",
    ),
    AlertCase(
        "LedgerTampered",
        {'doorcard_ledger_chain_faults{instance="wallet:9103"}': "0x2 2x3 0x5"},
        fires=4, clears=8, summary="2 rows of the ledger are not as they were sealed",
    ),
    AlertCase(
        "LedgerBalancesWrong",
        {
            'doorcard_ledger_balance_faults{instance="wallet-1:9103"}': "0x2 3x3 0x5",
            'doorcard_ledger_balance_faults{instance="wallet-2:9103"}': "0x2 3x3 0x5",
        },
        fires=4, clears=8,
        summary="3 accounts have balances that are not the sum of their transfers",
    ),
    AlertCase(
        "LedgerUnsealed",
        {
            "doorcard_ledger_unsealed_entries": "4x10 900x25 4x15",
            "doorcard_ledger_sealed_rows_total": "0+50x10 500x25 550+50x15",
        },
        fires=30, clears=45,
        summary="900 entries of the ledger's journal wait for a seal and none is made",
    ),
    AlertCase(
        "LedgerUpkeepFailing",
        {'doorcard_ledger_upkeep_failures_total{kind="Unavailable"}': "0x2 0+1x20 20x20"},
        fires=18, clears=40,
        summary="Sealing and auditing of the ledger failed 10 times in ten minutes",
    ),
    AlertCase(
        "SettlementMessagesParked",
        {"doorcard_parked_messages": "0x2 1x3 0x5"},
        fires=4, clears=8,
        summary="1 pieces of settlement's work killed their workers again and again and are set"
        " aside",
    ),
    AlertCase(
        "ReconcilerSilent",
        {'doorcard_tasks_total{task="settlement.reconcile",outcome="done"}':
            "0+2x10 20x20 22+2x20"},
        fires=28, clears=36, summary="No shard has been reconciled for ten minutes",
    ),
    AlertCase(
        "OutboxLagging",
        {"doorcard_outbox_lag_seconds": "1x2 20x8 1x5"},
        fires=7, clears=12, summary="The ledger is 20s behind the tables",
    ),
    AlertCase(
        "OutboxStopsDealing",
        {"doorcard_outbox_lag_seconds": "1x2 90x8 1x5"},
        fires=6, clears=12,
        summary="The ledger is 1m 30s behind: no new hands begin on the shards concerned",
    ),
    AlertCase(
        "SettlementSlow",
        {
            SETTLING.format("1.0"): "0+90x30 2800+100x30",
            SETTLING.format("5.0"): "0+90x30 2800+100x30",
            SETTLING.format("10.0"): "0+100x30 3100+100x30",
            SETTLING.format("+Inf"): "0+100x30 3100+100x30",
        },
        fires=25, clears=50,
        summary="One hand in a hundred takes longer than 9.5s to reach the ledger",
    ),
    AlertCase(
        "TriggersLost",
        {'doorcard_triggers_total{task="settlement.drain",outcome="lost"}': "0x2 0+5x12 60x12"},
        fires=12, clears=24, summary="Beat cannot reach its broker",
    ),
    AlertCase(
        "BeatSilent",
        {
            'doorcard_triggers_total{task="settlement.drain",outcome="sent"}':
            "0+60x5 300x15 360+60x9",
        },
        fires=19, clears=24, summary="Nobody triggers settlement",
    ),
    AlertCase(
        "MailsFailing",
        {
            'doorcard_mails_total{outcome="sent"}': "0+4x60",
            'doorcard_mails_total{outcome="failed"}': "0+1x20 20x40",
        },
        fires=20, clears=50,
        summary="15 tries to send a mail failed within a quarter of an hour",
    ),
    AlertCase(
        "RngUnhealthy",
        {'doorcard_rng_healthy{instance="shuffler:9101"}': "1x2 0x3 1x5"},
        fires=4, clears=8, labels={"instance": "shuffler:9101"},
        summary="The generator of shuffler:9101 failed a health test and deals no more",
    ),
    AlertCase(
        "SealsBroken",
        {'doorcard_seals_broken_total{purpose="blob"}': "0x2 1x30"},
        fires=5, clears=25, labels={"purpose": "blob"},
        summary="A sealed blob did not open: a wrong key, or somebody wrote to the store",
    ),
    AlertCase(
        "ShardClosed",
        {
            'doorcard_shards{state="closed"}': "0x2 3x2 1x1 0x5",
            'doorcard_shards{state="rebuilding"}': "0x4 2x1 0x5",
        },
        fires=4, clears=8, summary="3 shards accept no commits",
    ),
    AlertCase(
        "ShardsRebuilt",
        {'doorcard_shards_reopened_total{reason="REDIS_LOST"}': "0x2 8x80"},
        fires=5, clears=75, labels={"reason": "REDIS_LOST"},
        summary="Shards were rebuilt from the ledger (REDIS_LOST); "
        "their hands in progress were void",
    ),
    AlertCase(
        "ClocksStopped",
        {'doorcard_table_waits_total{service="shuffler",why="away"}': "0x3 1+12x6 73x9"},
        fires=7, clears=14, labels={"service": "shuffler"},
        summary="Hands stand still with their clocks stopped: shuffler does not answer",
    ),
    AlertCase(
        "TablesPausedByFault",
        {"doorcard_tables_paused_by_fault_total": "0x2 1x30"},
        fires=5, clears=25,
        summary="Tables were paused after ticks that failed by our own fault",
    ),
    AlertCase(
        "LoopFaults",
        {'doorcard_table_loop_faults_total{loop="lobby"}': "0x2 1x30"},
        fires=5, clears=20, labels={"loop": "lobby"},
        summary="A background loop of the table service passed something over after a fault of "
        "our own: lobby",
    ),
    AlertCase(
        "SchedulesFailing",
        {'doorcard_scheduled_tables_total{outcome="failed"}': "0x2 10+10x4 50x30"},
        fires=6, clears=20, summary="Scheduled tables cannot be opened or closed",
    ),
    AlertCase(
        "TableReplicasMissing",
        {"doorcard_table_replicas": "2x2 1x8 2x5"},
        fires=9, clears=13, summary="Only 1 table replica is alive",
    ),
    AlertCase(
        "CommitConflictsHigh",
        {
            "doorcard_table_conflicts_total": "0+30x30 900x30",
            'doorcard_table_commits_total{outcome="committed"}': "0+100x60",
        },
        fires=25, clears=45, summary="30% of the commits had to be made anew",
    ),
    AlertCase(
        "ClocksApart",
        {'doorcard_store_clock_offset_seconds{instance="table:9110"}': "0x2 -2x8 0x5"},
        fires=9, clears=13, labels={"instance": "table:9110"},
        summary="The clock of table:9110 differs from Redis by 2s",
    ),
    AlertCase(
        "MovesNotFinished",
        {'doorcard_table_moves_taken_up_total{outcome="failed"}': "0x4 0+1x10 10x30"},
        fires=14, clears=30,
        summary="Moves between tables are gone on with again and again, and not finished",
    ),
    AlertCase(
        "StoreClockSet",
        {'doorcard_store_clock_steps_total{direction="back"}': "0x4 1x40"},
        fires=6, clears=25, labels={"direction": "back"},
        summary="The clock of the tables' Redis was set back while tables played",
    ),
    AlertCase(
        "RedisWritesNotDurable",
        {"doorcard_store_writes_durable": "1x2 0x3 1x5"},
        fires=4, clears=8, summary="The tables' Redis does not write its append-only file",
    ),
    AlertCase(
        "RedisWritesUnconfirmed",
        {"doorcard_store_writes_unconfirmed_total": "0x2 0+120x8 960x10"},
        fires=5, clears=14, summary="Redis' replicas do not confirm 2 commits a second",
    ),
    AlertCase(
        "RedisFsyncSlow",
        {"doorcard_store_fsync_slowest_seconds": "0x2 0.05x6 0x5"},
        fires=7, clears=11, summary="The tables' Redis takes 50ms for an fsync",
    ),
    AlertCase(
        "RedisMemoryHigh",
        {
            "doorcard_store_memory_bytes": "50x2 90x8 50x5",
            "doorcard_store_memory_max_bytes": "100x20",
        },
        fires=9, clears=13, summary="The tables' Redis uses 90% of its memory",
    ),
    AlertCase(
        "RedisEvicting",
        {"doorcard_store_evicted_keys": "0x2 4x3 0x5"},
        fires=4, clears=8,
        summary="The tables' Redis evicts keys: its maxmemory-policy is not noeviction",
    ),
    AlertCase(
        "PostgresConnectionsHigh",
        {
            "doorcard_postgres_server_connections": "50x2 95x8 50x5",
            "doorcard_postgres_server_connections_max": "100x20",
        },
        fires=9, clears=13, summary="95% of PostgreSQL's connections are taken",
    ),
    AlertCase(
        "PostgresPoolExhausted",
        {'doorcard_postgres_pool_waiting{job="wallet"}': "0x2 9x8 0x5"},
        fires=9, clears=13, labels={"job": "wallet"},
        summary="9 calls of wallet wait for a connection to the database",
    ),
    AlertCase(
        "DependencyFailing",
        {EXCHANGE.format("ok"): "0+90x60", EXCHANGE.format("failed"): "0+10x15 150x40"},
        fires=14, clears=30, labels={"dependency": "smtp"},
        summary="10% of the exchanges with smtp fail",
    ),
    AlertCase(
        "TargetDown",
        {'up{job="wallet",instance="wallet:9103"}': "1x2 0x5 1x5"},
        fires=5, clears=10, labels={"job": "wallet", "instance": "wallet:9103"},
        summary="wallet at wallet:9103 does not answer",
    ),
    *(
        AlertCase(
            "ServiceAbsent",
            {
                f'up{{job="{each}",instance="{each}:1"}}': "1x2 0x5 1x5" if each == job else "1x20"
                for each in JOBS
            },
            fires=5, clears=10, labels={"job": job},
            summary=f"There is no {job} at all",
        )
        for job in JOBS
    ),
    AlertCase(
        "ServerErrors",
        {HANDLED.format("OK"): "0+95x60", HANDLED.format("INTERNAL"): "0+5x15 75x40"},
        fires=14, clears=30, labels={"job": "wallet"},
        summary="5% of the calls of wallet end with an internal error",
    ),
    AlertCase(
        "ProcessRestarting",
        {'process_start_time_seconds{job="table",instance="table:9110"}': "1x2 2 3 4 5 6x40"},
        fires=8, clears=25, labels={"job": "table", "instance": "table:9110"},
        summary="table at table:9110 was started 5 times within a quarter of an hour",
    ),
    AlertCase(
        "VersionsMixed",
        {
            'doorcard_build_info{service="table",version="1.0"}': "1x100",
            'doorcard_build_info{service="wallet",version="0.9"}': "1x80 stale",
        },
        fires=70, clears=90, summary="2 versions run side by side for an hour",
    ),
)  # fmt: skip
