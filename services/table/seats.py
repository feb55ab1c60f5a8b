"""Taking, leaving and keeping a seat; what of it concerns the hand in progress is in `hands`."""

from dataclasses import dataclass
from typing import Final

from doorcard.table.v1 import table_pb2

from services.game.invariant import require
from services.runtime.clock import monotonic_s
from services.runtime.errors import (
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
    ResourceExhausted,
)
from services.table import money
from services.table.draft import Draft
from services.table.state import (
    Remembered,
    Seat,
    SeatStatus,
    Table,
    TableStatus,
    is_repeat,
    player_digest,
)

REMEMBERED_MAX: Final = 256
"""Reservations without a seat that a table remembers; beyond it nobody is seated for a while."""
REMEMBERED_PER_PLAYER_MAX: Final = 32
"""Of one player's, so that who comes and goes all the time keeps only himself from a seat."""


@dataclass(frozen=True, slots=True)
class Sitter:
    """Who wants to sit, and with what money."""

    player_id: str
    name: str
    number: int | None
    """The seat he wants; None for the first free one."""
    buy_in: int
    sitting: bytes
    reservation: bytes
    asked: bytes
    """`digest` of the request."""
    began_s: float
    """Monotonic, from before the money was reserved."""
    pending: bool
    """The reservation was pending when it was asked for: it has not been seated or refused."""
    connection: str
    """Id of the replica that has his `Play` stream; empty for none."""


def refusal(table: Table, sitter: Sitter) -> DoorcardError | None:
    """Why he cannot have a seat as things stand; None when he can."""
    try:
        _check(table, sitter)
    except DoorcardError as error:
        return error
    return None


async def take(draft: Draft, sitter: Sitter) -> int | DoorcardError:
    """Seat him, or refuse for good and give his reservation back: number of the seat, or why not.

    A refusal is an answer and not raised, because it is committed.
    """
    table, blob = draft.table, draft.table.blob
    seated = seated_at(table, sitter)
    if seated is not None:
        return seated
    if not sitter.pending or sitter.reservation in blob.remembered:
        raise FailedPrecondition(
            "RESERVATION_SPENT", "this request was answered before; take a seat by a new one"
        )
    error = refusal(table, sitter)
    if error is None and monotonic_s() - sitter.began_s > money.TAKE_SEAT_LIFE_S:
        error = FailedPrecondition("TAKE_SEAT_TOO_OLD", "the request took too long; make a new one")
    if error is not None:
        refuse(draft, sitter.reservation, player_digest(sitter.player_id))
        return error
    number = sitter.number if sitter.number is not None else _free(table)[0]
    blob.seats[number] = Seat(
        player_id=sitter.player_id,
        name=sitter.name,
        sitting=sitter.sitting,
        reservation=sitter.reservation,
        stack=sitter.buy_in,
        brought=sitter.buy_in,
        status=SeatStatus.PLAYING,
        connection=sitter.connection,
        asked=sitter.asked,
    )
    draft.outbox.append(money.commit_of(table, blob.seats[number].reservation_id))
    draft.joined.append(sitter.player_id)
    draft.lobby = True
    draft.tell_seat(number)
    schedule(draft)
    return number


def refuse(draft: Draft, reservation: bytes, player: bytes = b"") -> None:
    """Never seat the reservation, and have the ledger give it back."""
    blob = draft.table.blob
    blob.remembered[reservation] = Remembered(draft.now_ms, seated=False, player=player)
    draft.outbox.append(money.release_of(draft.table, money.text_of(reservation)))
    draft.changed = True


async def resolve(draft: Draft, reservation: bytes) -> bool:
    """What becomes of an old reservation: True if it was seated, else it is refused for good."""
    blob = draft.table.blob
    if any(seat.reservation == reservation for seat in blob.seats.values()):
        return True
    known = blob.remembered.get(reservation)
    if known is None:
        refuse(draft, reservation)
        return False
    return known.seated


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


def remove(draft: Draft, number: int) -> None:
    """The player leaves now, with his stack. He must not be in a hand."""
    table, blob = draft.table, draft.table.blob
    require(not table.in_hand(number), "a player was taken out of a running hand")
    seat = blob.seats.pop(number)
    draft.outbox.append(money.cash_out_of(table, seat))
    blob.remembered[seat.reservation] = Remembered(
        draft.now_ms, seated=True, player=player_digest(seat.player_id)
    )
    draft.lobby = True
    freed = table_pb2.TableEvent.SeatFreed(seat=number, player_id=seat.player_id)
    draft.tell(seat_freed=freed)


async def sit_out(draft: Draft, player_id: str) -> int:
    """Deal him no further hands. Returns the version at which it holds."""
    number = _number_of(draft.table, player_id)
    if draft.table.blob.seats[number].status is SeatStatus.PLAYING:
        set_status(draft, number, SeatStatus.SITTING_OUT)
    return draft.version_after


async def sit_back(draft: Draft, player_id: str) -> int:
    """Deal him in again. Returns the version at which it holds."""
    number = _number_of(draft.table, player_id)
    seat = draft.table.blob.seats[number]
    if seat.status is SeatStatus.LEAVING:
        raise FailedPrecondition("LEAVING", "he leaves when the hand is over")
    if draft.table.behind(number) == 0 and not draft.table.in_hand(number):
        raise FailedPrecondition("NO_CHIPS", "there are no chips before him")
    if seat.status is SeatStatus.SITTING_OUT:
        set_status(draft, number, SeatStatus.PLAYING)
    return draft.version_after


def set_status(draft: Draft, number: int, status: SeatStatus) -> None:
    """Give the seat another state."""
    draft.table.blob.seats[number].status = status
    draft.tell_seat(number)
    schedule(draft)


async def connect(draft: Draft, player_id: str, replica: str, *, there: bool) -> None:
    """A `Play` stream of his opened at a replica (`there`), or his last one there closed."""
    number = draft.table.seat_of(player_id)
    if number is None or not would_connect(draft.table, player_id, replica, there=there):
        return
    seat = draft.table.blob.seats[number]
    shown = bool(seat.connection)
    seat.connection = replica if there else ""
    draft.changed = True
    if not there:
        draft.joined.append(player_id)
    if shown != there:
        draft.tell_seat(number)


def would_connect(table: Table, player_id: str, replica: str, *, there: bool) -> bool:
    """Whether `connect` has anything to change."""
    number = table.seat_of(player_id)
    return number is not None and (table.blob.seats[number].connection == replica) != there


def schedule(draft: Draft) -> None:
    """Between hands: set when the next one begins, or that none does."""
    blob = draft.table.blob
    if blob.hand is not None:
        return
    rests = blob.status is not TableStatus.OPEN or blob.after_hand is not None
    if rests or len(draft.table.ready()) < 2:
        blob.due_ms = 0
    elif not blob.due_ms:
        blob.due_ms = draft.now_ms + blob.config.hand_pause_ms


def check_open(table: Table) -> None:
    """Raises FailedPrecondition where nobody may take a seat: TABLE_CLOSED, TABLE_CLOSING,
    TABLE_IN_MAINTENANCE.
    """
    if table.blob.status is TableStatus.CLOSED:
        raise FailedPrecondition("TABLE_CLOSED", "the table is closed")
    if table.blob.after_hand is TableStatus.CLOSING:
        raise FailedPrecondition("TABLE_CLOSING", "the table closes after the hand")
    if table.blob.after_hand is TableStatus.MAINTENANCE:
        raise FailedPrecondition("TABLE_IN_MAINTENANCE", "the table is in maintenance")


def _check(table: Table, sitter: Sitter) -> None:
    blob = table.blob
    check_open(table)
    money.check_buy_in(table, sitter.buy_in)
    if sitter.number is not None and sitter.number >= blob.config.seats:
        raise InvalidArgument.of_field("seat", f"the table has {blob.config.seats} seats")
    if table.seat_of(sitter.player_id) is not None:
        raise FailedPrecondition("ALREADY_SEATED", "he has a seat at this table")
    free = _free(table)
    if not free:
        raise FailedPrecondition("TABLE_FULL", "every seat is taken")
    if sitter.number is not None and sitter.number not in free:
        raise FailedPrecondition("SEAT_TAKEN", f"seat {sitter.number} is taken")
    player = player_digest(sitter.player_id)
    his = sum(each.player == player for each in blob.remembered.values())
    if len(blob.remembered) >= REMEMBERED_MAX or his >= REMEMBERED_PER_PLAYER_MAX:
        raise ResourceExhausted(
            "RESERVATIONS_FULL", "too many came and went; try again later", retry_after_ms=5000
        )


def seated_at(table: Table, sitter: Sitter) -> int | None:
    """The seat that this very request took. Raises AlreadyExists (ID_REUSED)."""
    for number, seat in table.blob.seats.items():
        if seat.sitting == sitter.sitting and is_repeat(seat.asked, sitter.asked):
            return number
    return None


def _free(table: Table) -> list[int]:
    return [n for n in range(table.blob.config.seats) if n not in table.blob.seats]


def _number_of(table: Table, player_id: str) -> int:
    number = table.seat_of(player_id)
    if number is None:
        raise FailedPrecondition("NOT_SEATED", "he has no seat at this table")
    return number
