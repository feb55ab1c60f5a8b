"""A table made anew from the ledger, after its shard lost part of what was stored of it.

Pure: what survived of the table and what the ledger has in escrow go in. The hand in progress is
void; seats that have posted escrow keep it as their stack, all others are freed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from services.table.draft.money import text_of
from services.table.state.formats import Game
from services.table.state.state import Blob, Rebuild, Seat, SeatStatus, TableStatus

PARKED: Final = "an entry of this table could not be applied to the ledger"


@dataclass(frozen=True, slots=True)
class Posted:
    """What the ledger has of a shard, in one snapshot at the start of its new epoch."""

    escrow: Mapping[str, int]
    """Sitting id -> posted minor units, above zero."""
    pending: Collection[str]
    """Reservations that are neither committed nor released."""
    parked: Collection[str]
    """Tables with parked entries that nobody has resolved."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What a table lost when it was made anew."""

    hand_id: str
    """The hand in progress; empty for none."""
    kept: int
    """Seats that stay."""
    freed: int
    """Seats that do not."""


def rebuild(table_id: str, blob: Blob, posted: Posted, at_ms: int) -> Losses:
    """Make the table anew in place; returns what it lost.

    Reservations without a seat are forgotten: the outbox with their entries is gone. Whoever asks
    the ledger from now on learns what holds (`stored.check_epoch`), and pending ones are resolved
    anew.
    """
    hand_id = blob.hand.hand_id if blob.hand is not None else ""
    taken, closing = len(blob.seats), blob.after_hand is TableStatus.CLOSING
    blob.seats = {
        number: seat
        for number, seat in blob.seats.items()
        if _stays(blob, seat, posted) and not (closing or _leaves(seat))
    }
    for seat in blob.seats.values():
        _restack(seat, posted)
    if blob.game is not None:
        _put_out(blob, blob.game)
    blob.remembered = {}
    blob.hand, blob.hidden = None, None
    blob.due_ms, blob.asked_until_ms = 0, 0
    blob.waits_for, blob.waits_since_ms, blob.tries = "", 0, 0
    # Who has left took his money with him; who has not is as he is.
    blob.moves_ms, blob.breaks, blob.telling = 0, False, []
    blob.rebuilt = Rebuild(at_ms, hand_id)
    if closing:
        # Who leaves when the hand is over leaves now, and so do all where the table closes then.
        blob.status, blob.after_hand = TableStatus.CLOSED, None
    if blob.status is TableStatus.CLOSED:
        blob.closed_ms = blob.closed_ms or at_ms
    if table_id in posted.parked and blob.status is TableStatus.OPEN:
        blob.status, blob.pause_reason = TableStatus.PAUSED, PARKED
    if blob.status is TableStatus.OPEN and blob.after_hand is None:
        # The first tick sees what there is to do.
        blob.due_ms = at_ms + blob.config.hand_pause_ms
    return Losses(hand_id, len(blob.seats), taken - len(blob.seats))


def _stays(blob: Blob, seat: Seat, posted: Posted) -> bool:
    """Who has chips; in a club game also who lost them, since his place may have a prize."""
    paid = text_of(seat.reservation) not in posted.pending
    return posted.escrow.get(seat.sitting_id, 0) > 0 or (blob.game is not None and paid)


def _put_out(blob: Blob, game: Game) -> None:
    """Those without chips are out, in the order that is known; of the others it was not known yet,
    or is not any more: they went out last, together.
    """
    broke = {number for number, seat in blob.seats.items() if not seat.stack}
    hands = [[[n for n in group if n in broke] for group in hand] for hand in game.out]
    game.out = [groups for hand in hands if (groups := [group for group in hand if group])]
    known = {number for hand in game.out for group in hand for number in group}
    if broke - known:
        game.out.append([sorted(broke - known)])
    game.deserted_until_ms = 0
    if len(broke) == len(blob.seats):
        # Nobody has chips to play for.
        blob.seats, game.out = {}, []
        blob.status, blob.after_hand = TableStatus.CLOSED, None


def _leaves(seat: Seat) -> bool:
    return seat.status is SeatStatus.LEAVING or bool(seat.moves_to)


def _restack(seat: Seat, posted: Posted) -> None:
    seat.stack = seat.brought = posted.escrow.get(seat.sitting_id, 0)
    # What he did in the void hand is not remembered: repeated, it finds no such hand.
    seat.recent = b""
    if seat.held is not None and text_of(seat.held.reservation) not in posted.pending:
        seat.held = None
