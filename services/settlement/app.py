"""The Celery application: how the broker is used, and the tasks.

A task is a trigger, not a letter: it carries a shard or nothing, says what to look at, and looking
twice or not at all does no harm.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from celery import Celery, current_task
from celery.worker.request import Request
from kombu.entity import Exchange, Queue

from services.runtime import failpoints
from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.settlement import meters, triggers
from services.settlement.attempts import Attempts
from services.settlement.broker import TRANSPORT
from services.settlement.drain import Drain
from services.settlement.mails import Mails
from services.settlement.reconcile import Reconciler
from services.settlement.settings import SettlementSettings
from services.settlement.turns import Turns

SOFT_LIMIT_S: Final = 20
HARD_LIMIT_S: Final = 30
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
        broker_transport_options=TRANSPORT,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        timezone="UTC",
        enable_utc=True,
    )
    return app


class Acknowledged(Request):  # type: ignore[misc]
    """A message, as the worker's parent process knows it."""

    def acknowledge(self) -> None:
        """Its work is over: the broker may forget it."""
        super().acknowledge()
        failpoints.reach("worker.acknowledged")


class Works:
    """The tasks of a worker. Each builds what it needs in the child that runs it."""

    def __init__(
        self,
        *,
        drain: Callable[[], Drain],
        reconciler: Callable[[], Reconciler],
        mails: Callable[[], Mails],
        turns: Turns,
        attempts: Attempts,
    ) -> None:
        self._drain = drain
        self._reconciler = reconciler
        self._mails = mails
        self._turns = turns
        self._attempts = attempts
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
            app.task(task, name=name, Request=Acknowledged)

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
        """True if it is this child's turn and the work does not rest. What goes wrong inside is
        counted, and logged once until it changes: the next trigger comes soon.
        """
        started_s = monotonic_s()
        with self._turns.turn(turn) as ours:
            begun = self._attempts.begin(turn, task, _args(), _message()) if ours else None
            well = False
            failpoints.reach("worker.begun")
            try:
                yield begun is not None
                well = True
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
            finally:
                if begun is not None:
                    self._attempts.end(begun, well=well)
        failpoints.reach("worker.ended")
        if begun is not None:
            if self._faults.pop(turn, None):
                logger.info("task_works_again", task=task, turn=turn)
            meters.TASK_SECONDS.labels(task).observe(monotonic_s() - started_s)
        meters.TASKS.labels(task, _outcome(ours=ours, rests=begun is None)).inc()


def _outcome(*, ours: bool, rests: bool) -> str:
    if not ours:
        return "taken"
    return "resting" if rests else "done"


def _message() -> str:
    """Id of the message that this child works on."""
    return str(current_task.request.id or "") if current_task else ""


def _args() -> tuple[Any, ...]:
    return tuple(current_task.request.args or ()) if current_task else ()


def _number(shard: Any) -> int:
    """The shard number of a trigger. It names a lock file, so nothing else gets through."""
    if type(shard) is not int or shard < 0:
        raise ValueError("a trigger names a shard by its number")
    return shard
