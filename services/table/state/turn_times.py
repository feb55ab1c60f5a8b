"""How long a player has at a decision, in what parts, and what his clock has come to.

A decision begins silent; where the house shows a countdown, it is shown for the rest of the time;
then the player's time bank is used, if he has one; then he is out of time (docs/rules.md, 5).
"""

from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from services.game.hand import Act
from services.runtime.clock import MS_PER_S
from services.table.state.packed_rulebooks import unpack_rulebook
from services.table.state.state import Seat, Stage, Table

GRACE_MS: Final = 250
"""A time-out is committed only this long after the deadline: a tie goes to the player."""
OVERDUE_MS: Final = 2000
"""A deadline found later than this is our fault: the player gets a full new clock."""
RENEWALS_MAX: Final = 3
"""New clocks for one decision; a room that is always late must not stop its tables for ever."""


class TurnTimes(NamedTuple):
    """The clock of a table, in milliseconds."""

    silent_ms: int
    shown_ms: int = 0
    """Further time, shown as a countdown."""
    reconnect_ms: int = 0
    """For a connection that was lost in the countdown and came back."""
    bank_ms: int = 0
    """A player's whole time bank."""
    accrual_ms: int = 0
    """What comes back to it."""
    accrual_hands: int = 0
    """After so many hands that he was dealt into."""


class Mark(IntEnum):
    """What the clock of the player to act has come to."""

    NOTHING = 0
    COUNTDOWN = 1
    """The countdown begins."""
    LATE = 2
    """His time was over long before we looked, which is our fault."""
    BANK = 3
    """His ordinary time is over, and his time bank begins."""
    OUT = 4
    """He is out of time."""


def times_of(table: Table) -> TurnTimes:
    """The rulebook's clock; or the one time that the operator gave the table instead of it."""
    return _times(table.blob.config.rulebook, table.blob.config.action_ms)


@lru_cache(maxsize=256)
def _times(rulebook: bytes, action_ms: int) -> TurnTimes:
    if not rulebook:
        return TurnTimes(action_ms)
    clock = unpack_rulebook(rulebook).clock
    if action_ms != (clock.act_s + clock.countdown_s) * MS_PER_S:
        return TurnTimes(action_ms)
    return TurnTimes(
        clock.act_s * MS_PER_S,
        clock.countdown_s * MS_PER_S,
        clock.reconnect_s * MS_PER_S,
        clock.time_bank_s * MS_PER_S,
        clock.time_bank_accrual_s * MS_PER_S,
        clock.time_bank_accrual_hands,
    )


def bank_left_ms(table: Table, seat: Seat) -> int:
    """What a player has left in his time bank; while he uses it, what he had when it began."""
    return max(0, times_of(table).bank_ms - seat.bank_used_ms)


def longest_ms(table: Table) -> int:
    """How far ahead the running deadline may be, in the part of the clock that it is in."""
    times, running = times_of(table), table.blob.hand
    want = table.hand.want if table.hand is not None else None
    if running is not None and running.stage is Stage.BANK and isinstance(want, Act):
        return bank_left_ms(table, table.blob.seats[want.seat])
    return max(times.silent_ms + times.shown_ms, times.reconnect_ms)


def step_ms(table: Table) -> int:
    """When the running clock comes to its next mark, Redis time."""
    blob, running = table.blob, table.blob.hand
    if running is None:
        return blob.due_ms
    if running.stage is Stage.SILENT and running.countdown_ms:
        return running.countdown_ms
    return blob.due_ms if _bank_to_come_ms(table) else blob.due_ms + GRACE_MS


def mark_of(table: Table, now_ms: int) -> Mark:
    """What the clock has come to now."""
    running, deadline_ms = table.blob.hand, table.blob.due_ms
    if running is None or not table.clock_runs or now_ms < step_ms(table):
        return Mark.NOTHING
    if now_ms > deadline_ms + OVERDUE_MS and running.renewals < RENEWALS_MAX:
        return Mark.LATE
    if now_ms >= deadline_ms and _bank_to_come_ms(table):
        return Mark.BANK
    if now_ms >= deadline_ms + GRACE_MS:
        return Mark.OUT
    return Mark.COUNTDOWN if running.stage is Stage.SILENT else Mark.NOTHING


def _bank_to_come_ms(table: Table) -> int:
    """What the player to act has in his time bank and does not yet use."""
    running = table.blob.hand
    want = table.hand.want if table.hand is not None else None
    if running is None or running.stage is Stage.BANK or not isinstance(want, Act):
        return 0
    return bank_left_ms(table, table.blob.seats[want.seat])
