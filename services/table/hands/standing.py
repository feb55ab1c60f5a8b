"""How a table stands: open, paused, closing, closed or in maintenance.

Closing and maintenance begin when no hand is running; until then the hand goes on as if nothing
were, and nobody may take a seat. A paused table keeps its hand, whose clock stands still.
"""

from doorcard.table.v1 import table_pb2

from services.runtime.errors import FailedPrecondition
from services.table.draft import clock
from services.table.draft.draft import Draft
from services.table.hands import club_games, seats, under_way, waiting
from services.table.state.state import Table, TableStatus


async def pause(draft: Draft, reason: str) -> int:
    """No new hand begins, clocks stand still. Returns the version at which it holds."""
    check_not_closed(draft.table)
    if draft.table.blob.status is TableStatus.OPEN:
        draft.table.blob.due_ms = 0
        set_status(draft, TableStatus.PAUSED, reason)
    return draft.version_after


async def close(draft: Draft, reason: str, *, moving: bool = False) -> bool:
    """Close the table for good when no hand is running. Whether it is closed now.

    moving: not yet, also without a hand; its players are found seats elsewhere before.
    """
    blob = draft.table.blob
    if blob.status is not TableStatus.CLOSED:
        if blob.after_hand is not TableStatus.CLOSING:
            _after_hand(draft, TableStatus.CLOSING, reason)
        if moving:
            blob.breaks = True
            under_way.begin(draft)
        elif blob.hand is None:
            blob.breaks = False
            hand_is_over(draft)
    return blob.status is TableStatus.CLOSED


async def rest(draft: Draft, reason: str) -> bool:
    """Let no further hand begin and nobody sit down. Whether no hand is running."""
    check_not_closed(draft.table)
    blob = draft.table.blob
    if blob.after_hand is TableStatus.CLOSING:
        raise FailedPrecondition("TABLE_CLOSING", "the table closes after the hand")
    if blob.after_hand is None:
        _after_hand(draft, TableStatus.MAINTENANCE, reason)
    return blob.hand is None


def hand_is_over(draft: Draft) -> None:
    """No hand is running: a table that closes is closed now, and everybody leaves; but one that is
    broken up when its players were found seats.
    """
    table, blob = draft.table, draft.table.blob
    if blob.after_hand is not TableStatus.CLOSING or blob.breaks:
        return
    club_games.closed(draft)
    for number in sorted(blob.seats):
        seats.remove(draft, number)
    blob.after_hand = None
    under_way.settle(draft)
    blob.closed_ms = draft.now_ms
    set_status(draft, TableStatus.CLOSED, blob.pause_reason)
    seats.schedule(draft)
    if table.blob.waits_for:
        clock.go_on(draft)


def check_not_closed(table: Table) -> None:
    """Raises FailedPrecondition (TABLE_CLOSED)."""
    if table.blob.status is TableStatus.CLOSED:
        raise FailedPrecondition("TABLE_CLOSED", "the table is closed")


def set_status(draft: Draft, status: TableStatus, reason: str) -> None:
    """The table is open, paused or closed now; all are told how it stands."""
    draft.table.blob.status = status
    draft.table.blob.pause_reason = reason
    draft.lobby = True
    state = table_pb2.TableState.ValueType(draft.table.state)
    draft.tell(state_changed=table_pb2.TableEvent.StateChanged(state=state, reason=reason))


def _after_hand(draft: Draft, then: TableStatus, reason: str) -> None:
    blob = draft.table.blob
    blob.after_hand = then
    set_status(draft, blob.status, reason)
    if then is TableStatus.CLOSING:
        waiting.clear(draft)
    if blob.hand is None:
        clock.go_on(draft)
        seats.schedule(draft)
