"""What beat triggers: task names, queues, and how long a trigger is worth anything."""

from dataclasses import dataclass
from typing import Any, Final

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

EXPIRES_MIN_S: Final = 5.0
PERIODS_KEPT: Final = 2
"""A trigger expires after this many periods: the next ones do its work."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One line of beat's schedule."""

    task: str
    every_s: float
    args: tuple[Any, ...] = ()

    def entry(self) -> dict[str, Any]:
        """As Celery's `beat_schedule` wants it."""
        expires_s = max(EXPIRES_MIN_S, PERIODS_KEPT * self.every_s)
        options = {"queue": QUEUES[self.task], "expires": expires_s, "retry": False}
        return {
            "task": self.task,
            "schedule": self.every_s,
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
