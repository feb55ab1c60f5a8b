"""The Celery application: how the broker is used, and the tasks.

A task is a trigger, not a letter: it carries a shard or nothing, says what to look at, and looking
twice or not at all does no harm.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from celery import Celery
from kombu.entity import Exchange, Queue

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.settlement import meters, triggers
from services.settlement.drain import Drain
from services.settlement.mails import Mails
from services.settlement.reconcile import Reconciler
from services.settlement.settings import SettlementSettings
from services.settlement.turns import Turns

SOFT_LIMIT_S: Final = 20
HARD_LIMIT_S: Final = 30
VISIBILITY_S: Final = 120
"""Longer than the hard limit: no task that still runs is given out again."""
BROKER_SOCKET_S: Final = 5
LOST_CHILD_S: Final = 1.0
"""How long a killed child's task still counts as running and keeps its place from another."""


def quieten_celery() -> None:
    """Leave Celery's warnings and errors in the log, not its two lines for every trigger."""
    logging.getLogger("celery").setLevel(logging.WARNING)


def make_app(settings: SettlementSettings) -> Celery:
    """An application that knows the broker and how to use it; beat needs no more."""
    app = Celery("doorcard-settlement", broker=settings.broker_url.get_secret_value())
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        event_serializer="json",
        result_backend=None,
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_acks_on_failure=True,
        task_acks_on_timeout=True,
        task_soft_time_limit=SOFT_LIMIT_S,
        task_time_limit=HARD_LIMIT_S,
        task_default_queue=triggers.QUEUES[triggers.DRAIN],
        task_queues=[
            Queue(name, Exchange(""), routing_key=name)  # type: ignore[no-untyped-call]
            for name in sorted(set(triggers.QUEUES.values()))
        ],
        task_create_missing_queues=False,
        worker_prefetch_multiplier=1,
        worker_lost_wait=LOST_CHILD_S,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_S,
            "socket_timeout": BROKER_SOCKET_S,
            "socket_connect_timeout": BROKER_SOCKET_S,
            "socket_keepalive": True,
        },
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        timezone="UTC",
        enable_utc=True,
    )
    return app


class Works:
    """The tasks of a worker. Each builds what it needs in the child that runs it."""

    def __init__(
        self,
        *,
        drain: Callable[[], Drain],
        reconciler: Callable[[], Reconciler],
        mails: Callable[[], Mails],
        turns: Turns,
    ) -> None:
        self._drain = drain
        self._reconciler = reconciler
        self._mails = mails
        self._turns = turns
        self._faults: dict[str, str] = {}

    def add_to(self, app: Celery) -> None:
        """Register the tasks."""
        for name, task in {
            triggers.DRAIN: self.drain,
            triggers.RECONCILE: self.reconcile,
            triggers.RESERVATIONS: self.reservations,
            triggers.LEDGER: self.ledger,
            triggers.MAILS: self.mails,
        }.items():
            app.task(task, name=name)

    def drain(self, shard: int) -> None:
        """Drain one shard's outbox."""
        with self._one_at_a_time(triggers.DRAIN, f"drain-{_number(shard)}") as ours:
            if ours:
                self._drain().shard(shard)

    def reconcile(self, shard: int) -> None:
        """Compare one shard's tables with their escrow."""
        with self._one_at_a_time(triggers.RECONCILE, f"reconcile-{_number(shard)}") as ours:
            if ours:
                self._reconciler().shard(shard)

    def reservations(self) -> None:
        """Put old pending reservations to their tables."""
        with self._one_at_a_time(triggers.RESERVATIONS, "reservations") as ours:
            if ours:
                self._reconciler().reservations()

    def ledger(self) -> None:
        """Check the sums over the whole ledger in every currency."""
        with self._one_at_a_time(triggers.LEDGER, "ledger") as ours:
            if ours:
                self._reconciler().ledger()

    def mails(self) -> None:
        """Send the hands that were asked for; one child at most waits for the mail server."""
        with self._one_at_a_time(triggers.MAILS, "mails") as ours:
            if ours:
                self._mails().send_due()

    @contextmanager
    def _one_at_a_time(self, task: str, turn: str) -> Iterator[bool]:
        """True if it is this child's turn. What goes wrong inside is counted, and logged once
        until it changes: the next trigger comes soon.
        """
        started_s = monotonic_s()
        with self._turns.turn(turn) as ours:
            try:
                yield ours
            except DoorcardError as error:
                meters.TASKS.labels(task, "failed").inc()
                meters.FAULTS.labels(task, error.reason).inc()
                if self._faults.get(turn) != error.reason:
                    logger.warning("task_failed", task=task, turn=turn, reason=error.reason)
                self._faults[turn] = error.reason
                return
            except Exception:
                meters.TASKS.labels(task, "broken").inc()
                raise
        if ours:
            if self._faults.pop(turn, None):
                logger.info("task_works_again", task=task, turn=turn)
            meters.TASK_SECONDS.labels(task).observe(monotonic_s() - started_s)
        meters.TASKS.labels(task, "done" if ours else "taken").inc()


def _number(shard: Any) -> int:
    """The shard number of a trigger. It names a lock file, so nothing else gets through."""
    if type(shard) is not int or shard < 0:
        raise ValueError("a trigger names a shard by its number")
    return shard
