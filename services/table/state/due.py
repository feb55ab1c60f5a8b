"""When a table is due next: the one place that puts together all that waits for a time. What then
happens is with the thing itself.
"""

from collections.abc import Iterator

from services.table.state.state import Table, TableStatus, is_unconfirmed
from services.table.state.turn_times import GRACE_MS, step_ms


def next_ms(table: Table) -> int | None:
    """The earliest of the reasons, Redis time; None for none."""
    return min(_reasons(table), default=None)


def hand_ms(table: Table) -> int:
    """When the hand comes to something, or the next one begins; 0 for never.

    A deal waits for those who have still to confirm their antes, as long as they were told.
    """
    blob = table.blob
    if table.clock_runs:
        return step_ms(table)
    if table.hand is None and blob.due_ms and _is_asked(table):
        return max(blob.due_ms, blob.asked_until_ms + GRACE_MS)
    return blob.due_ms


def is_past(until_ms: int, now_ms: int) -> bool:
    """Whether something has lapsed that was promised until a time; a tie goes to the player."""
    return now_ms >= until_ms + GRACE_MS


def _reasons(table: Table) -> Iterator[int]:
    blob = table.blob
    if blob.moves_ms:
        yield blob.moves_ms
    hand = hand_ms(table)
    if hand:
        yield hand
    if blob.status is not TableStatus.OPEN:
        return
    if blob.game is not None and table.hand is None and blob.after_hand is None:
        yield from filter(None, (blob.game.until_ms, blob.game.deserted_until_ms))
    for waiter in blob.waiting:
        if waiter.seat >= 0:
            yield waiter.until_ms + GRACE_MS
    for number, seat in blob.seats.items():
        if seat.freed_at_ms and not table.in_hand(number):
            yield seat.freed_at_ms + GRACE_MS


def _is_asked(table: Table) -> bool:
    return any(is_unconfirmed(table.blob.seats[number]) for number in table.able())
