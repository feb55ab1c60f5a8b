"""What beat triggers: task names, queues, how often.

A trigger does not expire: that would compare beat's clock with the worker's, and where they differ
nothing would be done at all. Beat bounds how many wait.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from celery.schedules import schedule as Every  # noqa: N812 (it is a class)

from services.runtime.clock import monotonic_s
from services.settlement.settings import BeatSettings

DRAIN: Final = "settlement.drain"
MAILS: Final = "settlement.mails"
RECONCILE: Final = "settlement.reconcile"
RESERVATIONS: Final = "settlement.reservations"
LEDGER: Final = "settlement.ledger"

QUEUES: Final = {
    # A queue each, so that a backlog of one kind is never in front of another.
    DRAIN: "settlement-drain",
    MAILS: "settlement-mails",
    RECONCILE: "settlement-reconcile",
    RESERVATIONS: "settlement-reconcile",
    LEDGER: "settlement-reconcile",
}


_STARTED: Final = datetime.now(UTC)
_STARTED_S: Final = monotonic_s()


def steady_now() -> datetime:
    """The time by which triggers are due: the wall clock's as it was at the start, gone on with the
    monotonic one. By the wall clock, one that is set back would stop every trigger for as long.
    """
    return _STARTED + timedelta(seconds=monotonic_s() - _STARTED_S)


@dataclass(frozen=True, slots=True)
class Trigger:
    """One line of beat's schedule."""

    task: str
    every_s: float
    args: tuple[Any, ...] = ()

    def entry(self) -> dict[str, Any]:
        """As Celery's `beat_schedule` wants it."""
        options = {"queue": QUEUES[self.task], "retry": False}
        return {
            "task": self.task,
            "schedule": Every(self.every_s, nowfun=steady_now),
            "args": self.args,
            "options": options,
        }


def schedule(settings: BeatSettings, shards: int) -> dict[str, dict[str, Any]]:
    """Beat's whole schedule, by name."""
    reconcile_s = settings.reconcile_every_seconds
    triggers = [
        *(Trigger(DRAIN, settings.drain_every_seconds, (shard,)) for shard in range(shards)),
        Trigger(MAILS, settings.mails_every_seconds),
        *(Trigger(RECONCILE, reconcile_s, (shard,)) for shard in range(shards)),
        Trigger(RESERVATIONS, reconcile_s),
        Trigger(LEDGER, reconcile_s),
    ]
    return {"-".join(map(str, (each.task, *each.args))): each.entry() for each in triggers}
