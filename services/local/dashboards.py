"""The six dashboards: one description for Grafana, for `doorcard report` and `doorcard top`.

Queries use the metrics as they are scraped, so that they work on any Prometheus that sees the room,
with our recording rules or without.
"""

from typing import Final

from services.local.panels import RATE, Curve, Dashboard, Panel, Unit, quantile, rate, ratio

PLAYERS: Final = 'action=~"bring_in|complete|bet|call|raise|check|fold"'
TOTAL: Final = f'{PLAYERS},stage="total"'
OBJECTIVE_S: Final = 0.05
BUDGET: Final = 0.001
ACTIONS: Final = "doorcard_action_duration_seconds"

ROOM: Final = Dashboard(
    "doorcard-room",
    "Doorcard: the room",
    (
        Panel(
            "Hands an hour",
            "Hands that ended; void ones gave every stake back.",
            Unit.PER_HOUR,
            (Curve(rate("doorcard_hands_total", "outcome", factor="3600 * "), "{{outcome}}"),),
        ),
        Panel(
            "Actions a second",
            "Players' actions by outcome: refused ones broke a rule, failed ones are our fault.",
            Unit.PER_SECOND,
            (Curve(rate(f"{ACTIONS}_count", "outcome", TOTAL), "{{outcome}}"),),
        ),
        Panel(
            "Time of an action",
            "From its arrival to its commit. The line is the objective: 99.9 % are quicker.",
            Unit.SECONDS,
            tuple(
                Curve(quantile(share, ACTIONS, labels=f'{TOTAL},outcome="ok"'), name)
                for share, name in (("0.5", "median"), ("0.99", "p99"), ("0.999", "p99.9"))
            ),
            line=OBJECTIVE_S,
        ),
        Panel(
            "Error budget's burn",
            "1: the budget of 30 days is used up in 30 days. Beyond 14.4 somebody is called.",
            Unit.COUNT,
            (
                Curve(
                    f'(1 - sum(rate({ACTIONS}_bucket{{{TOTAL},outcome="ok",le="0.05"}}[{RATE}])) / '
                    f'sum(rate({ACTIONS}_count{{{TOTAL},outcome="ok"}}[{RATE}]))) / {BUDGET}',
                    "slow",
                ),
                Curve(
                    ratio(
                        rate(f"{ACTIONS}_count", labels=f'{TOTAL},outcome="failed"'),
                        rate(f"{ACTIONS}_count", labels=TOTAL),
                    )
                    + f" / {BUDGET}",
                    "failed",
                ),
            ),
            line=14.4,
        ),
        Panel(
            "Tables and streams",
            "Tables in the lobby, tables watched, open streams of players and watchers.",
            Unit.COUNT,
            (
                Curve("max(doorcard_tables)", "tables"),
                Curve("sum(doorcard_watched_tables)", "watched"),
                Curve("sum by (kind) (doorcard_watchers)", "streams: {{kind}}"),
            ),
        ),
        Panel(
            "The ledger behind the tables",
            "Age of the oldest hand that is not in the ledger. At 60 s no new hands begin.",
            Unit.SECONDS,
            (Curve("max(doorcard_outbox_lag_seconds)", "lag"),),
            line=60,
        ),
        Panel(
            "Rake an hour",
            "Minor units.",
            Unit.PER_HOUR,
            (
                Curve(
                    rate("doorcard_rake_minor_units_total", "currency", factor="3600 * "),
                    "{{currency}}",
                ),
            ),
        ),
        Panel(
            "Processes",
            "That answer, by service.",
            Unit.COUNT,
            (Curve("sum by (job) (up)", "{{job}}"),),
        ),
    ),
)

LATENCY: Final = Dashboard(
    "doorcard-latency",
    "Doorcard: action latency by stage",
    (
        *(
            Panel(
                f"{name} by stage",
                "Where the time of an accepted action goes. The line is the objective.",
                Unit.SECONDS,
                (Curve(quantile(share, ACTIONS, "stage", f'{PLAYERS},outcome="ok"'), "{{stage}}"),),
                line=OBJECTIVE_S,
            )
            for share, name in (("0.5", "Median"), ("0.99", "p99"))
        ),
        Panel(
            "p99 by action",
            "Each kind of command of players and of the clock, whole.",
            Unit.SECONDS,
            (
                Curve(
                    quantile("0.99", ACTIONS, "action", 'stage="total",outcome="ok"'), "{{action}}"
                ),
            ),
            line=OBJECTIVE_S,
        ),
        Panel(
            "Share within 50 ms",
            "Of accepted actions. The line is the objective.",
            Unit.SHARE,
            (
                Curve(
                    f'sum(rate({ACTIONS}_bucket{{{TOTAL},outcome="ok",le="0.05"}}[{RATE}])) / '
                    f'sum(rate({ACTIONS}_count{{{TOTAL},outcome="ok"}}[{RATE}]))',
                    "within 50 ms",
                ),
            ),
            line=1 - BUDGET,
            floor=True,
        ),
        Panel(
            "Time spent per second, by stage",
            "How many actions are in each stage at any moment.",
            Unit.COUNT,
            (Curve(rate(f"{ACTIONS}_sum", "stage", f'{PLAYERS},stage!="total"'), "{{stage}}"),),
        ),
        Panel(
            "CPU of the table replicas",
            "Cores; one replica uses one at most.",
            Unit.COUNT,
            (
                Curve(
                    f'sum by (instance) (rate(process_cpu_seconds_total{{job="table"}}[{RATE}]))',
                    "{{instance}}",
                ),
            ),
            line=1,
        ),
        Panel(
            "Exchanges with Redis",
            "One write and its replies, of all commands of a tick.",
            Unit.SECONDS,
            tuple(
                Curve(
                    quantile(
                        share, "doorcard_dependency_duration_seconds", labels='dependency="redis"'
                    ),
                    name,
                )
                for share, name in (("0.5", "median"), ("0.99", "p99"))
            ),
        ),
        Panel(
            "Commands that wait for their table",
            "The depth of all mailboxes; it rises when a replica has more than it can do.",
            Unit.COUNT,
            (Curve("sum by (instance) (doorcard_table_mailbox_depth)", "{{instance}}"),),
        ),
    ),
)

TABLES: Final = Dashboard(
    "doorcard-tables",
    "Doorcard: tables and hands",
    (
        Panel(
            "Commits a second",
            "Of changes to tables, by outcome.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_table_commits_total", "outcome"), "{{outcome}}"),),
        ),
        Panel(
            "Commits by replica",
            "Accepted ones: how the work is spread.",
            Unit.PER_SECOND,
            (
                Curve(
                    rate("doorcard_table_commits_total", "instance", 'outcome="committed"'),
                    "{{instance}}",
                ),
            ),
        ),
        Panel(
            "Shards by replica",
            "Which each of them owns: a replica that comes or goes moves them.",
            Unit.COUNT,
            (Curve("sum by (instance) (doorcard_shards_owned)", "{{instance}}"),),
        ),
        Panel(
            "Share of conflicts",
            "Changes that had to be made anew on another replica's.",
            Unit.SHARE,
            (
                Curve(
                    ratio(
                        rate("doorcard_table_conflicts_total"),
                        rate("doorcard_table_commits_total", labels='outcome="committed"'),
                    ),
                    "conflicts",
                ),
            ),
            line=0.2,
        ),
        Panel(
            "Size of a pot",
            "Before rake, in small bets of its table.",
            Unit.COUNT,
            (
                Curve(quantile("0.5", "doorcard_hand_pot_small_bets"), "median"),
                Curve(
                    f"{rate('doorcard_hand_pot_small_bets_sum')} / "
                    f"{rate('doorcard_hand_pot_small_bets_count')}",
                    "mean",
                ),
            ),
        ),
        Panel(
            "Players out of time, a minute",
            "Many at once mean that players cannot reach us.",
            Unit.COUNT,
            (Curve(rate("doorcard_timeouts_total", "outcome", factor="60 * "), "{{outcome}}"),),
        ),
        Panel(
            "Time given back, a minute",
            "New deadlines: deploys and resumes are ours to choose, outages are faults.",
            Unit.COUNT,
            (Curve(rate("doorcard_clock_renewals_total", "cause", factor="60 * "), "{{cause}}"),),
        ),
        Panel(
            "Hands that stand still",
            "Tries to reach a service that a hand waits for; clocks are stopped meanwhile.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_table_waits_total", "service, why"), "{{service}} {{why}}"),),
        ),
        Panel(
            "Snapshots sent",
            "By cause: joining is normal, gap and slow mean that watchers lag.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_watcher_snapshots_total", "cause"), "{{cause}}"),),
        ),
        Panel(
            "Sweep",
            "Deadlines that replicas claimed, and ticks that failed.",
            Unit.PER_SECOND,
            (
                Curve(rate("doorcard_sweep_claimed_total"), "claimed"),
                Curve(rate("doorcard_sweep_claimed_for_others_total"), "for a late owner"),
                Curve(f"{rate('doorcard_sweep_ticks_failed_total')} or vector(0)", "failed"),
            ),
        ),
        Panel(
            "Decks and cards",
            "Decks made by kind, and positions opened.",
            Unit.PER_SECOND,
            (
                Curve(rate("doorcard_decks_total", "kind"), "decks: {{kind}}"),
                Curve(rate("doorcard_cards_opened_total"), "cards opened"),
            ),
        ),
        Panel(
            "The generator's health",
            "1: every shuffler's generator passes its tests.",
            Unit.COUNT,
            (Curve("min by (instance) (doorcard_rng_healthy)", "{{instance}}"),),
        ),
    ),
)

MONEY: Final = Dashboard(
    "doorcard-money",
    "Doorcard: money and reconciliation",
    (
        Panel(
            "Tables against escrow",
            "Minor units, largest difference of any shard. Anything but 0 is an alarm.",
            Unit.COUNT,
            (Curve("max(abs(doorcard_reconciliation_difference))", "difference"),),
        ),
        Panel(
            "The ledger against itself",
            "Minor units; anything but 0 is an alarm.",
            Unit.COUNT,
            (
                Curve(
                    "max by (currency, kind) (abs(doorcard_ledger_difference))",
                    "{{currency}} {{kind}}",
                ),
            ),
        ),
        Panel(
            "Balances",
            "What the ledger holds, in minor units; rake is part of house.",
            Unit.COUNT,
            (
                Curve(
                    "max by (currency, account) (doorcard_ledger_balance_minor_units)",
                    "{{currency}} {{account}}",
                ),
            ),
        ),
        Panel(
            "Entries settled",
            "By kind: hands, buy-ins committed or released, returns.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_settled_entries_total", "kind"), "{{kind}}"),),
        ),
        Panel(
            "Parked entries",
            "That the ledger could not apply; their tables are paused.",
            Unit.COUNT,
            (Curve("sum(doorcard_parked_entries)", "parked"),),
        ),
        Panel(
            "Faults in the ledger",
            "Rows not as they were sealed, accounts not the sum of their transfers; 0 is well.",
            Unit.COUNT,
            (
                Curve("sum(doorcard_ledger_chain_faults)", "rows"),
                Curve("max(doorcard_ledger_balance_faults)", "accounts"),
            ),
        ),
        Panel(
            "Shards by state",
            "A closed one accepts no commits.",
            Unit.COUNT,
            (Curve("max by (state) (doorcard_shards)", "{{state}}"),),
        ),
        Panel(
            "Reconciliations",
            "Tasks by outcome; taken means that another child was at it.",
            Unit.PER_SECOND,
            (
                Curve(
                    rate("doorcard_tasks_total", "task, outcome", 'task!~".*(drain|mails)"'),
                    "{{task}} {{outcome}}",
                ),
            ),
        ),
        Panel(
            "Old reservations",
            "Buy-ins that hung between wallet and table and were put right.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_old_reservations_total", "outcome"), "{{outcome}}"),),
        ),
    ),
)

SETTLEMENT: Final = Dashboard(
    "doorcard-settlement",
    "Doorcard: settlement and mail",
    (
        Panel(
            "From the table to the ledger",
            "Time from the commit of an entry to its posting.",
            Unit.SECONDS,
            tuple(
                Curve(quantile(share, "doorcard_settlement_delay_seconds"), name)
                for share, name in (("0.5", "median"), ("0.99", "p99"))
            ),
            line=5,
        ),
        Panel(
            "Outboxes",
            "Entries of all shards that the ledger or the archive still lacks.",
            Unit.COUNT,
            (Curve("max(doorcard_outbox_entries)", "entries"),),
        ),
        Panel(
            "The fullest outbox",
            "At 16 MiB no new hands begin on its shard.",
            Unit.BYTES,
            (Curve("max(doorcard_outbox_bytes)", "bytes"),),
        ),
        Panel(
            "Hands archived",
            "In the archive, a second.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_archived_hands_total"), "hands"),),
        ),
        Panel(
            "Tasks",
            "By task and outcome.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_tasks_total", "task, outcome"), "{{task}} {{outcome}}"),),
        ),
        Panel(
            "Time of a task",
            "p99 of those that had something to do.",
            Unit.SECONDS,
            (Curve(quantile("0.99", "doorcard_task_duration_seconds", "task"), "{{task}}"),),
        ),
        Panel(
            "Work set aside",
            "Pieces of work that killed their workers: doorcard settlement list.",
            Unit.COUNT,
            (Curve("max(doorcard_parked_messages)", "pieces"),),
        ),
        Panel(
            "Triggers",
            "Dropped: the queue was full; lost: the broker was away.",
            Unit.PER_SECOND,
            (Curve(rate("doorcard_triggers_total", "outcome"), "{{outcome}}"),),
        ),
        Panel(
            "Triggers that wait",
            "In the broker.",
            Unit.COUNT,
            (Curve("max(doorcard_trigger_backlog)", "waiting"),),
        ),
        Panel(
            "Faults",
            "Steps that failed; the next trigger tries again.",
            Unit.PER_SECOND,
            (
                Curve(
                    f"{rate('doorcard_settlement_faults_total', 'step, reason')} or vector(0)",
                    "{{step}} {{reason}}",
                ),
            ),
        ),
        Panel(
            "Mails",
            "Tries to send a hand, a minute.",
            Unit.COUNT,
            (Curve(rate("doorcard_mails_total", "outcome", factor="60 * "), "{{outcome}}"),),
        ),
    ),
)

DEPENDENCIES: Final = Dashboard(
    "doorcard-dependencies",
    "Doorcard: services and what they depend on",
    (
        Panel(
            "Calls answered",
            "By service.",
            Unit.PER_SECOND,
            (Curve(rate("grpc_server_handled_total", "job"), "{{job}}"),),
        ),
        Panel(
            "Share of calls that failed by our fault",
            "INTERNAL, UNKNOWN, DATA_LOSS, UNAVAILABLE, DEADLINE_EXCEEDED.",
            Unit.SHARE,
            (
                Curve(
                    "(sum by (job) (rate(grpc_server_handled_total{grpc_code=~"
                    f'"INTERNAL|UNKNOWN|DATA_LOSS|UNAVAILABLE|DEADLINE_EXCEEDED"}}[{RATE}])) '
                    f"or 0 * {rate('grpc_server_handled_total', 'job')}) / "
                    f"{rate('grpc_server_handled_total', 'job')}",
                    "{{job}}",
                ),
            ),
            line=0.01,
        ),
        Panel(
            "Time of an answer",
            "p99 of unary calls, at the server.",
            Unit.SECONDS,
            (
                Curve(
                    quantile("0.99", "grpc_server_handling_seconds", "job", 'grpc_type="unary"'),
                    "{{job}}",
                ),
            ),
        ),
        Panel(
            "Time of a call of another service",
            "p99 as the caller sees it.",
            Unit.SECONDS,
            (
                Curve(
                    quantile("0.99", "grpc_client_handling_seconds", "job, grpc_service"),
                    "{{job}} to {{grpc_service}}",
                ),
            ),
        ),
        Panel(
            "Calls of other services that did not end well",
            "By status; refusals that belong to the game are among them.",
            Unit.PER_SECOND,
            (
                Curve(
                    "sum by (job, grpc_service, grpc_code) "
                    f'(rate(grpc_client_handled_total{{grpc_code!="OK"}}[{RATE}])) or vector(0)',
                    "{{job}} to {{grpc_service}}: {{grpc_code}}",
                ),
            ),
        ),
        Panel(
            "Exchanges with Redis, PostgreSQL, mail server, broker",
            "A second.",
            Unit.PER_SECOND,
            (
                Curve(
                    rate("doorcard_dependency_duration_seconds_count", "dependency"),
                    "{{dependency}}",
                ),
            ),
        ),
        Panel(
            "Share of them that failed",
            "",
            Unit.SHARE,
            (
                Curve(
                    rate(
                        "doorcard_dependency_duration_seconds_count",
                        "dependency",
                        'outcome="failed"',
                    )
                    + " / "
                    + rate("doorcard_dependency_duration_seconds_count", "dependency"),
                    "{{dependency}}",
                ),
            ),
            line=0.05,
        ),
        Panel(
            "Time of an exchange",
            "p99.",
            Unit.SECONDS,
            (
                Curve(
                    quantile("0.99", "doorcard_dependency_duration_seconds", "dependency"),
                    "{{dependency}}",
                ),
            ),
        ),
        Panel(
            "Memory of the tables' Redis",
            "At its limit it refuses writes.",
            Unit.SHARE,
            (
                Curve(
                    "max(doorcard_store_memory_bytes) / max(doorcard_store_memory_max_bytes)",
                    "used",
                ),
            ),
            line=0.8,
        ),
        Panel(
            "Slow fsyncs of the tables' Redis",
            "The last of the last minute; 0 if all were quick.",
            Unit.SECONDS,
            (Curve("max(doorcard_store_fsync_slowest_seconds)", "fsync"),),
            line=0.02,
        ),
        Panel(
            "PostgreSQL connections",
            "Of the server, and those that each service's pool has open.",
            Unit.COUNT,
            (
                Curve("max(doorcard_postgres_server_connections)", "server"),
                Curve("max(doorcard_postgres_server_connections_max)", "server's limit"),
                Curve('sum by (job) (doorcard_postgres_pool_connections{state="open"})', "{{job}}"),
            ),
        ),
        Panel(
            "CPU",
            "Cores, by service.",
            Unit.COUNT,
            (Curve(f"sum by (job) (rate(process_cpu_seconds_total[{RATE}]))", "{{job}}"),),
        ),
        Panel(
            "Memory",
            "Resident, by service; children of the worker not counted.",
            Unit.BYTES,
            (Curve("sum by (job) (process_resident_memory_bytes)", "{{job}}"),),
        ),
        Panel(
            "Versions",
            "That run, by service.",
            Unit.COUNT,
            (
                Curve(
                    "count by (service, version) (doorcard_build_info)", "{{service}} {{version}}"
                ),
            ),
        ),
    ),
)

DASHBOARDS: Final = (ROOM, LATENCY, TABLES, MONEY, SETTLEMENT, DEPENDENCIES)
