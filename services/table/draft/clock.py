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
from services.table.draft.draft import Draft
from services.table.state import views
from services.table.state.state import RunningHand, Stage, Table
from services.table.state.turn_times import (
    GRACE_MS,
    RENEWALS_MAX,
    Mark,
    bank_left_ms,
    longest_ms,
    mark_of,
    times_of,
)

RETRY_FIRST_MS: Final = 250
RETRY_MAX_MS: Final = 5000
GIVE_UP_AFTER_MS: Final = 600_000

DEPLOY: Final = "deploy"
"""A replica of ours went away and cut his stream."""
OUTAGE: Final = "outage"
"""A replica of ours died with his stream, or the room looked too late."""
RECONNECTED: Final = "reconnected"
"""He is back after his connection was lost in the countdown."""
RESUMED: Final = "resumed"
"""The table stood still."""
CLOCK_SET: Final = "clock_set"
"""The store's clock was set, ahead or back, since his time began."""
OURS: Final = frozenset({DEPLOY, OUTAGE, RESUMED, CLOCK_SET})
"""Whatever comes of a clock that was renewed for these is not the player's fault alone."""

RENEWED: Final = Counter(
    "doorcard_clock_renewals",
    "New deadlines of decisions, by why they were given: deploy, outage, reconnected, resumed, "
    "clock_set.",
    ["cause"],
    registry=REGISTRY,
)
BANKS: Final = Counter(
    "doorcard_time_banks_begun", "Decisions that went on in a time bank.", registry=REGISTRY
)
WAITS: Final = Counter(
    "doorcard_table_waits",
    "Times that a hand stood still for a service, by service and whether it was away or at fault.",
    ["service", "why"],
    registry=REGISTRY,
)
for _cause in (DEPLOY, OUTAGE, RECONNECTED, RESUMED, CLOCK_SET):
    RENEWED.labels(_cause)
for _service in ("shuffler", "wallet", "showdown"):
    # What never happened is 0, not absent: a rule that looks for it finds it.
    for _why in ("away", "fault"):
        WAITS.labels(_service, _why)


# A decision


def follow(draft: Draft, before: Want | None, hand: Hand, running: RunningHand) -> None:
    """The hand wants an action: another one than before has its own time.

    before: what the hand wanted at the beginning of the command.
    """
    waited = bool(draft.table.blob.waits_for)
    go_on(draft)
    if waited or _decision(before) != _decision(hand.want):
        running.renewals, running.reconnected = 0, False
        begin(draft)
    elif hand.want is not before:
        draft.tell(turn=views.turn(draft.table))


def decided(draft: Draft, before: Want | None) -> None:
    """If a decision is over that was made in the time bank, what it used is taken off.

    Within the grace it costs nothing: a tie goes to the player.
    """
    table, running = draft.table, draft.table.blob.hand
    if running is None or running.stage is not Stage.BANK or not isinstance(before, Act):
        return
    if table.hand is not None and _decision(table.hand.want) == _decision(before):
        return
    if not table.blob.due_ms:
        # The table stood still: his time was to begin anew.
        return
    began_ms = table.blob.due_ms - bank_left_ms(table, table.blob.seats[before.seat])
    _use_bank(draft, before.seat, draft.arrived_ms - began_ms)


def begin(draft: Draft, why: str = "") -> None:
    """The player to act has his whole time from now on. why: he had some before."""
    running = draft.table.blob.hand
    if running is None:
        return
    times = times_of(draft.table)
    draft.table.blob.due_ms = draft.now_ms + times.silent_ms + times.shown_ms
    running.countdown_ms = draft.now_ms + times.silent_ms if times.shown_ms else 0
    running.stage, running.lost = Stage.SILENT, False
    _renew(draft, running, why)


def excuse(draft: Draft, players: Collection[str], why: str) -> None:
    """We cut the streams of these players: whoever of them is to act gets a full new clock."""
    running, hand = draft.table.blob.hand, draft.table.hand
    if running is None or hand is None or not draft.table.clock_runs:
        return
    if not isinstance(hand.want, Act) or running.renewals >= RENEWALS_MAX:
        return
    if draft.table.blob.seats[hand.want.seat].player_id in players:
        running.renewals += 1
        begin(draft, why)


def connection_changed(draft: Draft, player_id: str) -> None:
    """The player's connection was lost or is back, as his seat says; in a countdown that gives him
    time, once for a decision (docs/rules.md, 5).
    """
    table, running, now_ms = draft.table, draft.table.blob.hand, draft.now_ms
    if running is None or not table.clock_runs or not running.countdown_ms:
        return
    number = table.seat_of(player_id)
    want = table.hand.want if table.hand is not None else None
    if number is None or not isinstance(want, Act) or want.seat != number:
        return
    reconnect_ms = times_of(table).reconnect_ms
    if not table.blob.seats[number].connection:
        shown = now_ms >= running.countdown_ms
        running.lost = bool(reconnect_ms) and shown and not running.reconnected
    elif running.lost:
        running.lost, running.reconnected = False, True
        deadline_ms = table.blob.due_ms
        if now_ms < deadline_ms + GRACE_MS and now_ms + reconnect_ms > deadline_ms:
            table.blob.due_ms = now_ms + reconnect_ms
            running.countdown_ms, running.stage = now_ms, Stage.SHOWN
            _renew(draft, running, RECONNECTED)


# Time goes by


def late(draft: Draft) -> str:
    """The player to act whose ordinary time or time bank is over; empty for nobody."""
    hand = draft.table.hand
    over = mark_of(draft.table, draft.now_ms) in (Mark.LATE, Mark.BANK, Mark.OUT)
    want = hand.want if hand is not None and over else None
    return draft.table.blob.seats[want.seat].player_id if isinstance(want, Act) else ""


def began_before(table: Table, at_ms: int) -> bool:
    """Whether the running part of the clock of the player to act began before a time."""
    return table.blob.due_ms - longest_ms(table) < at_ms


def is_out(draft: Draft, want: Act) -> bool:
    """Whether the player to act is out of time. Where his clock has come to something else, that
    is done.
    """
    blob, running = draft.table.blob, draft.table.blob.hand
    mark = mark_of(draft.table, draft.now_ms)
    if running is None or mark is Mark.NOTHING:
        return False
    left_ms = bank_left_ms(draft.table, blob.seats[want.seat])
    if mark is Mark.OUT:
        draft.not_before_ms = blob.due_ms + GRACE_MS
        if running.stage is Stage.BANK:
            _use_bank(draft, want.seat, left_ms)
        return True
    if mark is Mark.LATE:
        running.renewals += 1
        begin(draft, OUTAGE)
        return False
    if mark is Mark.COUNTDOWN:
        running.stage = Stage.SHOWN
    else:
        # From now on, whenever it was that his ordinary time was over.
        blob.due_ms = draft.now_ms + left_ms
        running.stage, running.countdown_ms = Stage.BANK, 0
        draft.once_committed.append(BANKS.inc)
    draft.tell(turn=views.turn(draft.table))
    return False


def count_hand(draft: Draft, running: RunningHand) -> None:
    """A hand begins: after enough of them something comes back to the time banks of its players."""
    times = times_of(draft.table)
    for number in running.seats if times.accrual_hands else ():
        seat = draft.table.blob.seats[number]
        seat.bank_hands += 1
        if seat.bank_hands >= times.accrual_hands:
            seat.bank_hands = 0
            if seat.bank_used_ms:
                seat.bank_used_ms = max(0, seat.bank_used_ms - times.accrual_ms)
                draft.tell_seat(number)


# The clock stands still


def wait_for(draft: Draft, service: str, error: Exception) -> bool:
    """The clock stands still until a service answers; a later tick asks it again.

    False: it has been away for too long, and nothing more is due.
    """
    blob = draft.table.blob
    away = isinstance(error, DoorcardError) and error.retriable
    draft.once_committed.append(WAITS.labels(service, "away" if away else "fault").inc)
    if not blob.waits_for:
        blob.waits_since_ms = draft.now_ms
        stopped = table_pb2.TableEvent.ClockChanged(stopped=True, reason=f"waits for {service}")
        draft.tell(clock=stopped)
    blob.waits_for = service
    blob.tries += 1
    draft.changed = True
    if draft.now_ms - blob.waits_since_ms > GIVE_UP_AFTER_MS:
        table_id = draft.table.table_id
        draft.once_committed.append(
            lambda: logger.error("table_gave_up", table=table_id, waits_for=service)
        )
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


def _renew(draft: Draft, running: RunningHand, why: str) -> None:
    running.renewed = why
    if why:
        draft.once_committed.append(RENEWED.labels(why).inc)
    draft.tell(turn=views.turn(draft.table))


def _use_bank(draft: Draft, number: int, used_ms: int) -> None:
    running, seat = draft.table.blob.hand, draft.table.blob.seats[number]
    if running is not None:
        running.stage = Stage.SILENT
    if used_ms > GRACE_MS:
        seat.bank_used_ms += min(used_ms, bank_left_ms(draft.table, seat))
        draft.tell_seat(number)


def _decision(want: Want | None) -> tuple[int, int] | None:
    return (want.turn, want.seat) if isinstance(want, Act) else None
