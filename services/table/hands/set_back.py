"""What lies further ahead than it ever can: the store's clock was set back since it was promised.

Nothing waits for as long as the clock was set back: whatever it is has its whole time from now on.
What is left to come within an ordinary time may be a little later than it was meant to be.
"""

from typing import Final

from services.game.hand import Act
from services.table.draft import clock
from services.table.draft.draft import Draft
from services.table.hands import seats, waiting
from services.table.state.turn_times import OVERDUE_MS, longest_ms

FURTHER_MS: Final = OVERDUE_MS
"""Beyond the whole of a time; the clocks of replicas differ a little."""


def bring_back(draft: Draft) -> None:
    """See that nothing of an open table lies further ahead than a whole time of its own."""
    _hand(draft)
    waiting.bring_back(draft, FURTHER_MS)
    seats.bring_back(draft, FURTHER_MS)


def _hand(draft: Draft) -> None:
    """The time to act, the next try of a service, or the next hand."""
    table, blob = draft.table, draft.table.blob
    latest_ms = draft.now_ms + FURTHER_MS
    if table.clock_runs:
        if blob.due_ms > latest_ms + longest_ms(table):
            clock.begin(draft, clock.CLOCK_SET)
        return
    if table.hand is not None and isinstance(table.hand.want, Act):
        return
    waits = table.hand is not None or bool(blob.waits_for)
    span_ms = clock.RETRY_MAX_MS if waits else blob.config.hand_pause_ms
    if blob.due_ms > latest_ms + span_ms:
        blob.due_ms = draft.now_ms + (0 if waits else span_ms)
        blob.waits_since_ms = min(blob.waits_since_ms, draft.now_ms)
        draft.changed = True
    if blob.asked_until_ms > latest_ms + max(blob.config.hand_pause_ms, draft.times.ante_ms):
        # Asked again, with another time.
        blob.asked_until_ms = 0
        seats.schedule(draft)
        draft.changed = True
