"""What a table remembers of reservations that no seat holds, so that none is seated or given back
twice.
"""

from typing import Final

from services.runtime.errors import ResourceExhausted
from services.table.draft import money
from services.table.draft.draft import Draft
from services.table.state.state import Remembered, Seat, Table, player_digest

REMEMBERED_MAX: Final = 256
"""Reservations without a seat that a table remembers; beyond it nobody is seated for a while."""
REMEMBERED_PER_PLAYER_MAX: Final = 32
"""Of one player's, so that who comes and goes all the time keeps only himself from a seat."""


def refuse(draft: Draft, reservation: bytes, player: bytes = b"") -> None:
    """Never take the reservation, and have the ledger give it back."""
    blob = draft.table.blob
    blob.remembered[reservation] = Remembered(draft.now_ms, seated=False, player=player)
    draft.outbox.append(money.release_of(draft.table, money.text_of(reservation)))
    draft.changed = True


def give_back(draft: Draft, seat: Seat) -> None:
    """What is held on the seat goes back to its player."""
    held, seat.held = seat.held, None
    if held is not None:
        refuse(draft, held.reservation, player_digest(seat.player_id))


def spend(draft: Draft, reservation: bytes, player_id: str, amount: int = 0) -> None:
    """It was taken; no seat holds it now. amount: of a top-up."""
    draft.table.blob.remembered[reservation] = Remembered(
        draft.now_ms, seated=True, player=player_digest(player_id), amount=amount
    )
    draft.changed = True


async def resolve(draft: Draft, reservation: bytes) -> bool:
    """What becomes of an old reservation: True if it was seated, or its top-up is held; else it is
    refused for good.
    """
    blob = draft.table.blob
    for seat in blob.seats.values():
        if seat.reservation == reservation:
            return True
        if seat.held is not None and seat.held.reservation == reservation:
            return True
    known = blob.remembered.get(reservation)
    if known is None:
        refuse(draft, reservation)
        return False
    return known.seated


def check_room(table: Table, player_id: str) -> None:
    """Raises ResourceExhausted (RESERVATIONS_FULL) when the table cannot remember any more."""
    blob, player = table.blob, player_digest(player_id)
    his = sum(each.player == player for each in blob.remembered.values())
    if len(blob.remembered) >= REMEMBERED_MAX or his >= REMEMBERED_PER_PLAYER_MAX:
        raise ResourceExhausted(
            "RESERVATIONS_FULL", "too many came and went; try again later", retry_after_ms=5000
        )


def forget(table: Table, now_ms: int, undrained_age_ms: int) -> bool:
    """Forget reservations whose last entry the ledger has applied long enough ago. Until then a
    TakeSeat may be under way that was told they are pending. True if anything is to be stored.

    undrained_age_ms: age of the shard's oldest entry that is not applied.
    """
    changed = False
    applied_until_ms = now_ms - undrained_age_ms - money.COMMIT_TAKES_MAX_MS
    for reservation, each in list(table.blob.remembered.items()):
        if not each.applied_ms and each.at_ms < applied_until_ms:
            each.applied_ms = now_ms
        elif each.applied_ms and each.applied_ms < now_ms - money.REMEMBERED_FOR_MS:
            del table.blob.remembered[reservation]
        else:
            continue
        changed = True
    return changed
