"""Moves between tables that are not finished: what is left to others when a replica dies in the
middle (`tables.moves`).

A move takes commits at two tables. What is still to be done is in the state of the table that
players leave, which is due when it should long be done; whoever ticks it then goes on with it.
"""

from typing import Final

from services.table.draft.draft import Draft

WITHIN_MS: Final = 10_000
"""After so long what is under way is taken up, and again for as long as it is not finished."""


def begin(draft: Draft) -> None:
    """Something is under way from here on."""
    blob = draft.table.blob
    blob.moves_ms = blob.moves_ms or draft.now_ms + WITHIN_MS
    draft.changed = True


def settle(draft: Draft) -> None:
    """Something is finished: nothing is due where that was all."""
    blob = draft.table.blob
    if blob.moves_ms and not blob.breaks and not blob.telling:
        blob.moves_ms = 0
        draft.changed = True


def is_due(draft: Draft) -> bool:
    """Whether it is time to take it up; then it is another's turn only in a while."""
    blob, now_ms = draft.table.blob, draft.now_ms
    # Further ahead than it can be: the store's clock was set back.
    if not blob.moves_ms or now_ms < blob.moves_ms <= now_ms + 2 * WITHIN_MS:
        return False
    blob.moves_ms = now_ms + WITHIN_MS
    draft.changed = True
    return True
