"""Posting is "I'm in" (docs/rules.md, 1): automatic, or confirmed by the player before each hand.

Who does not confirm in time is not dealt in and misses the hand.
"""

from typing import Final

from doorcard.table.v1 import table_pb2

from services.game.rulebook import AnteConfirmation
from services.runtime.clock import timestamp
from services.runtime.errors import FailedPrecondition
from services.table.draft.draft import Draft
from services.table.state.state import SeatFlag, Table, is_unconfirmed

UNCONFIRMED_MAX: Final = 3
"""Hands in a row that he does not confirm before he sits out."""


def ask(draft: Draft) -> None:
    """Between hands: ask those who confirm their antes and were not asked yet."""
    table, blob = draft.table, draft.table.blob
    if not blob.due_ms:
        blob.asked_until_ms = 0
        return
    again = not blob.asked_until_ms
    asked = [
        number
        for number in table.able()
        if is_unconfirmed(blob.seats[number])
        and (again or not blob.seats[number].flags & SeatFlag.ASKED)
    ]
    if not asked:
        return
    # At least as long as the pause; who is asked later than the others has his time too.
    blob.asked_until_ms = max(blob.due_ms, draft.now_ms + draft.times.ante_ms)
    until = table_pb2.TableEvent.AnteAsked(until=timestamp(blob.asked_until_ms))
    for number in asked:
        seat = blob.seats[number]
        seat.flags |= SeatFlag.ASKED
        draft.tell_player(seat.player_id, ante_asked=until)


def confirm(draft: Draft, number: int) -> None:
    """He is in for the next hand."""
    seat = draft.table.blob.seats[number]
    if is_unconfirmed(seat):
        seat.flags |= SeatFlag.CONFIRMED
        draft.changed = True


def check(table: Table, *, auto: bool) -> None:
    """Raises FailedPrecondition (ANTES_AUTOMATIC) where the house asks nobody."""
    rulebook = table.rulebook
    if auto or (rulebook and rulebook.ante_confirmation is AnteConfirmation.AUTO):
        return
    raise FailedPrecondition("ANTES_AUTOMATIC", "antes are posted without asking in this house")


def hand_begins(draft: Draft) -> None:
    """Whatever was confirmed is used up."""
    draft.table.blob.asked_until_ms = 0
    for seat in draft.table.blob.seats.values():
        seat.flags &= ~(SeatFlag.CONFIRMED | SeatFlag.ASKED)
