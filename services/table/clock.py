"""Clocks: how long a player has, whose time is over, and what our own delays give back.

A deadline is an absolute time of the store, in the state and in every event that asks for an
action. While a service is away the clock stands still.
"""

from collections.abc import Collection
from typing import Final

from doorcard.table.v1 import table_pb2
from prometheus_client import Counter

from services.game.hand import Act, Hand, Want
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table import views
from services.table.draft import Draft
from services.table.state import RunningHand, Table

GRACE_MS: Final = 250
"""A time-out is committed only this long after the deadline: a tie goes to the player."""
OVERDUE_MS: Final = 2000
"""A deadline found later than this is our fault: the player gets a full new clock."""
RENEWALS_MAX: Final = 3
"""New clocks for one decision; a room that is always late must not stop its tables for ever."""
RETRY_FIRST_MS: Final = 250
RETRY_MAX_MS: Final = 5000
GIVE_UP_AFTER_MS: Final = 600_000

TIMEOUTS: Final = Counter("doorcard_timeouts", "Players out of time.", registry=REGISTRY)
WAITS: Final = Counter(
    "doorcard_table_waits",
    "Times that a hand stood still for a service, by service and whether it was away or at fault.",
    ["service", "why"],
    registry=REGISTRY,
)
for _service in ("shuffler", "wallet", "showdown"):
    # What never happened is 0, not absent: a rule that looks for it finds it.
    for _why in ("away", "fault"):
        WAITS.labels(_service, _why)


def due_ms(table: Table) -> int:
    """When the sweep must look at the table, Redis time: the earliest of all that waits for a
    time; 0 for nothing. The one place that puts the parts together.
    """
    parts = (step_ms(table),)
    return min((each for each in parts if each), default=0)


def step_ms(table: Table) -> int:
    """When the hand, or the beginning of the next, is due; 0 for never."""
    grace_ms = GRACE_MS if table.clock_runs else 0
    return table.blob.due_ms + grace_ms


async def excuse(draft: Draft, players: Collection[str]) -> None:
    """We cut the streams of these players: whoever of them is to act gets a full new clock."""
    running, hand = draft.table.blob.hand, draft.table.hand
    if running is None or hand is None or not draft.table.clock_runs:
        return
    if not isinstance(hand.want, Act) or running.renewals >= RENEWALS_MAX:
        return
    if draft.table.blob.seats[hand.want.seat].player_id in players:
        running.renewals += 1
        begin(draft)


def out_of_time(draft: Draft) -> str:
    """The player to act whose time is over; empty for nobody."""
    table, blob = draft.table, draft.table.blob
    want = table.hand.want if table.hand is not None else None
    late = table.clock_runs and draft.now_ms >= blob.due_ms + GRACE_MS
    return blob.seats[want.seat].player_id if late and isinstance(want, Act) else ""


def has_run_out(draft: Draft, running: RunningHand) -> bool:
    """Whether the player to act is out of time; a deadline that we missed by far begins anew."""
    blob = draft.table.blob
    if draft.now_ms < blob.due_ms + GRACE_MS:
        return False
    if draft.now_ms > blob.due_ms + OVERDUE_MS and running.renewals < RENEWALS_MAX:
        running.renewals += 1
        begin(draft)
        return False
    draft.not_before_ms = blob.due_ms + GRACE_MS
    return True


def begin(draft: Draft) -> None:
    """The player to act has his whole time from now on."""
    draft.table.blob.due_ms = draft.now_ms + draft.table.blob.config.action_ms
    draft.tell(turn=views.turn(draft.table))


def follow(draft: Draft, before: Want | None, hand: Hand, running: RunningHand) -> None:
    """The hand wants an action: another one than before has its own time.

    before: what the hand wanted at the beginning of the command.
    """
    waited = bool(draft.table.blob.waits_for)
    go_on(draft)
    if waited or _decision(before) != _decision(hand.want):
        running.renewals = 0
        begin(draft)
    elif hand.want is not before:
        draft.tell(turn=views.turn(draft.table))


def wait_for(draft: Draft, service: str, error: Exception) -> bool:
    """The clock stands still until a service answers; a later tick asks it again.

    False: it has been away for too long, and nothing more is due.
    """
    blob = draft.table.blob
    away = isinstance(error, DoorcardError) and error.retriable
    WAITS.labels(service, "away" if away else "fault").inc()
    if not blob.waits_for:
        blob.waits_since_ms = draft.now_ms
        stopped = table_pb2.TableEvent.ClockChanged(stopped=True, reason=f"waits for {service}")
        draft.tell(clock=stopped)
    blob.waits_for = service
    blob.tries += 1
    draft.changed = True
    if draft.now_ms - blob.waits_since_ms > GIVE_UP_AFTER_MS:
        logger.error("table_gave_up", table=draft.table.table_id, waits_for=service)
        blob.due_ms = 0
        return False
    wait_ms = min(RETRY_MAX_MS, RETRY_FIRST_MS << min(blob.tries - 1, 8))
    blob.due_ms = draft.now_ms + wait_ms
    return True


def go_on(draft: Draft) -> None:
    """Nothing is waited for any more."""
    blob = draft.table.blob
    if blob.waits_for:
        blob.waits_for, blob.waits_since_ms, blob.tries = "", 0, 0
        draft.tell(clock=table_pb2.TableEvent.ClockChanged(stopped=False))


def _decision(want: Want | None) -> tuple[int, int] | None:
    return (want.turn, want.seat) if isinstance(want, Act) else None
