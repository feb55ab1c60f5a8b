"""Chips that are added to a seat between hands: re-buys and top-ups (docs/rules.md, 1).

Table stakes: during his hand the money is reserved and held on the seat. It comes into play with
the commit that ends the hand, or goes back by the same if the rule does not allow it any more.
"""

from dataclasses import dataclass
from typing import Final

from doorcard.wallet.v1 import wallet_pb2

from services.game.rulebook import UNITS_MAX
from services.runtime.clock import monotonic_s
from services.runtime.errors import (
    AlreadyExists,
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
)
from services.table.draft import money
from services.table.draft.draft import Draft
from services.table.hands import reservations, seats, waiting
from services.table.state import buy_ins
from services.table.state.state import Held, SeatStatus, Table, player_digest

IN_PLAY: Final = 0
"""Chips that wait for the next deal when they do not wait any more."""


@dataclass(frozen=True, slots=True)
class TopUp:
    """What a player wants to add, and with what money."""

    player_id: str
    amount: int
    reservation: bytes
    began_s: float
    """Monotonic, from before the money was reserved."""
    state: wallet_pb2.ReservationState.ValueType = wallet_pb2.RESERVATION_STATE_UNSPECIFIED
    """Of the reservation, as the ledger answered."""


def refusal(table: Table, top_up: TopUp) -> DoorcardError | None:
    """Why he cannot add it as things stand; None when he can."""
    try:
        _check(table, top_up)
    except DoorcardError as error:
        return error
    return None


def known(table: Table, top_up: TopUp) -> int | None:
    """What still waits for the deal, if the table remembers this very request; else None.

    Raises FailedPrecondition (RESERVATION_SPENT) if it was refused, AlreadyExists (ID_REUSED) if it
    was for another amount.
    """
    remembered = table.blob.remembered.get(top_up.reservation)
    if remembered is not None:
        if not remembered.seated:
            raise spent()
        if remembered.amount:
            _check_same(top_up, remembered.amount)
        return IN_PLAY
    for seat in table.blob.seats.values():
        if seat.held is not None and seat.held.reservation == top_up.reservation:
            _check_same(top_up, seat.held.amount)
            return seat.held.amount
    return None


async def take(draft: Draft, top_up: TopUp, sitting_id: str) -> int | DoorcardError:
    """Add the chips, or hold them until the hand is over, or refuse for good and give the money
    back: chips that wait for the deal, or why not. A refusal is committed, not raised.

    sitting_id: the sitting that the money is reserved for.
    """
    waits = known(draft.table, top_up)
    if waits is not None:
        return waits
    if top_up.state == wallet_pb2.RESERVATION_STATE_COMMITTED:
        return IN_PLAY
    if top_up.state != wallet_pb2.RESERVATION_STATE_PENDING:
        raise spent()
    error = refusal(draft.table, top_up)
    if error is None and not _sits(draft.table, top_up.player_id, sitting_id):
        error = FailedPrecondition("NOT_SEATED", "he left this seat meanwhile")
    if error is None and monotonic_s() - top_up.began_s > money.TAKE_SEAT_LIFE_S:
        error = FailedPrecondition("TOP_UP_TOO_OLD", "the request took too long; make a new one")
    if error is not None:
        reservations.refuse(draft, top_up.reservation, player_digest(top_up.player_id))
        return error
    number = seats.number_of(draft.table, top_up.player_id)
    seat = draft.table.blob.seats[number]
    seat.held = Held(top_up.reservation, top_up.amount)
    if draft.table.in_hand(number):
        draft.tell_seat(number)
        return top_up.amount
    broke = seat.stack == 0
    come_in(draft, number)
    draft.tell_seat(number)
    if broke and seat.status is SeatStatus.SITTING_OUT:
        seats.set_status(draft, number, SeatStatus.PLAYING)
    return IN_PLAY


def come_in(draft: Draft, number: int) -> None:
    """What is held on the seat comes into play, or goes back where it would break the rule now."""
    table = draft.table
    seat = table.blob.seats[number]
    held = seat.held
    if held is None:
        return
    try:
        buy_ins.check_top_up(table, seat.stack, held.amount)
    except FailedPrecondition:
        reservations.give_back(draft, seat)
        return
    seat.held = None
    seat.stack += held.amount
    seat.brought += held.amount
    draft.outbox.append(money.commit_of(table, money.text_of(held.reservation)))
    reservations.spend(draft, held.reservation, seat.player_id, held.amount)


def spent() -> FailedPrecondition:
    """RESERVATION_SPENT: this request was refused before."""
    return FailedPrecondition(
        "RESERVATION_SPENT", "this request was answered before; make a new one"
    )


def _check_same(top_up: TopUp, amount: int) -> None:
    if top_up.amount != amount:
        raise AlreadyExists("ID_REUSED", "this request id was used for another amount")


def _sits(table: Table, player_id: str, sitting_id: str) -> bool:
    number = table.seat_of(player_id)
    return number is not None and table.blob.seats[number].sitting_id == sitting_id


def _check(table: Table, top_up: TopUp) -> None:
    if not 1 <= top_up.amount <= UNITS_MAX:
        raise InvalidArgument.of_field("amount", f"must be from 1 to {UNITS_MAX}")
    waiting.check_open(table)
    number = seats.number_of(table, top_up.player_id)
    seat = table.blob.seats[number]
    if seat.status is SeatStatus.LEAVING or seat.moves_to:
        raise FailedPrecondition("LEAVING", "he leaves when the hand is over")
    if seat.held is not None:
        raise FailedPrecondition(
            "TOP_UP_HELD",
            "chips of his wait for the next deal already",
            metadata={"held": str(seat.held.amount)},
        )
    in_hand = table.in_hand(number)
    buy_ins.check_top_up(table, table.behind(number), top_up.amount, short=in_hand)
    buy_ins.check_total(table, top_up.amount)
    reservations.check_room(table, top_up.player_id)
