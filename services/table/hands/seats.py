"""Taking, leaving and keeping a seat; what of it concerns the hand in progress is in `hands`."""

from dataclasses import dataclass
from typing import Final

from doorcard.table.v1 import table_pb2

from services.game.invariant import require
from services.runtime import failpoints
from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError, FailedPrecondition, InvalidArgument
from services.table.draft import money
from services.table.draft.draft import Draft, Moved
from services.table.hands import antes, reservations, under_way, waiting
from services.table.state import buy_ins, due
from services.table.state.formats import Game
from services.table.state.state import (
    Seat,
    SeatFlag,
    SeatStatus,
    Table,
    TableStatus,
    is_repeat,
    is_unconfirmed,
    player_digest,
)

MOVED_MAX: Final = 16
"""Players who left for another table that it remembers: a repeat finds what was granted."""


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


def refusal(table: Table, sitter: Sitter, now_ms: int) -> DoorcardError | None:
    """Why he cannot have a seat as things stand; None when he can."""
    try:
        _check(table, sitter, now_ms)
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
    error = refusal(table, sitter, draft.now_ms)
    if error is None and monotonic_s() - sitter.began_s > money.TAKE_SEAT_LIFE_S:
        error = FailedPrecondition("TAKE_SEAT_TOO_OLD", "the request took too long; make a new one")
    if error is not None:
        reservations.refuse(draft, sitter.reservation, player_digest(sitter.player_id))
        return error
    free = waiting.open_to(table, sitter.player_id)
    number = sitter.number if sitter.number is not None else free[0]
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
    buy_ins.forget_leaving(table, sitter.player_id)
    waiting.drop(draft, sitter.player_id)
    schedule(draft)
    return number


def remove(draft: Draft, number: int) -> None:
    """The player leaves now, with his stack. He must not be in a hand."""
    table, blob = draft.table, draft.table.blob
    require(not table.in_hand(number), "a player was taken out of a running hand")
    seat = blob.seats.pop(number)
    draft.outbox.append(money.cash_out_of(table, seat))
    reservations.spend(draft, seat.reservation, seat.player_id)
    reservations.give_back(draft, seat)
    buy_ins.remember_leaving(table, seat, draft.now_ms, draft.times.rejoin_ms)
    if seat.moves_to:
        blob.moved = [*blob.moved, (player_digest(seat.player_id), seat.moves_to)][-MOVED_MAX:]
        to_table_id = money.text_of(seat.moves_to)
        draft.moved.append(Moved(table.table_id, seat.player_id, to_table_id, seat.stack))
        blob.telling.append((seat.player_id, seat.moves_to, seat.stack))
        under_way.begin(draft)
    draft.lobby = True
    freed = table_pb2.TableEvent.SeatFreed(seat=number, player_id=seat.player_id)
    draft.tell(seat_freed=freed)
    waiting.offer(draft)
    failpoints.reach("cash_out.made")
    draft.once_committed.append(lambda: failpoints.reach("cash_out.stored"))


async def sit_out(draft: Draft, player_id: str) -> int:
    """Deal him no further hands. Returns the version at which it holds."""
    number = number_of(draft.table, player_id)
    if draft.table.blob.seats[number].status is SeatStatus.PLAYING:
        set_status(draft, number, SeatStatus.SITTING_OUT)
    return draft.version_after


async def sit_back(draft: Draft, player_id: str) -> int:
    """Deal him in again. Returns the version at which it holds."""
    number = number_of(draft.table, player_id)
    seat = draft.table.blob.seats[number]
    if seat.status is SeatStatus.LEAVING:
        raise FailedPrecondition("LEAVING", "he leaves when the hand is over")
    if draft.table.behind(number) == 0 and not draft.table.in_hand(number):
        raise FailedPrecondition("NO_CHIPS", "there are no chips before him")
    sit_out_next(draft, number, on=False)
    shows_up(draft, number)
    if seat.status is SeatStatus.SITTING_OUT:
        # He says that he is in; he need not say it again at once.
        antes.confirm(draft, number)
        set_status(draft, number, SeatStatus.PLAYING)
    return draft.version_after


def set_status(draft: Draft, number: int, status: SeatStatus) -> None:
    """Give the seat another state."""
    seat = draft.table.blob.seats[number]
    seat.status = status
    seat.flags &= ~SeatFlag.TIMED_OUT
    _mark(draft, seat)
    draft.tell_seat(number)
    schedule(draft)


def shows_up(draft: Draft, number: int) -> None:
    """Its player does something himself: that he was out of time before counts no more."""
    seat = draft.table.blob.seats[number]
    if seat.flags & SeatFlag.TIMED_OUT:
        seat.flags &= ~SeatFlag.TIMED_OUT
        draft.changed = True


def sit_out_next(draft: Draft, number: int, *, on: bool) -> None:
    """Sit out when the hand is over, which is now where he is in none; or do not."""
    seat = draft.table.blob.seats[number]
    if on and not draft.table.in_hand(number):
        if seat.status is SeatStatus.PLAYING:
            set_status(draft, number, SeatStatus.SITTING_OUT)
        return
    flags = seat.flags | SeatFlag.OUT_NEXT if on else seat.flags & ~SeatFlag.OUT_NEXT
    if flags != seat.flags:
        seat.flags = flags
        draft.tell_options(number)


# Hands, as a seat sees them


def hand_begins(draft: Draft, dealt_in: list[int]) -> None:
    """Whoever has a seat and is not dealt in misses a hand."""
    antes.hand_begins(draft)
    if draft.table.blob.config.format is not None:
        # Nobody misses one who has chips.
        return
    for number, seat in draft.table.blob.seats.items():
        missed = 0 if number in dealt_in else seat.missed + 1
        if missed == seat.missed:
            continue
        seat.missed = missed
        if missed and seat.status is SeatStatus.PLAYING and missed >= antes.UNCONFIRMED_MAX:
            seat.status = SeatStatus.SITTING_OUT
            _mark(draft, seat)
        if draft.times.missed_max and missed >= draft.times.missed_max:
            seat.freed_at_ms = draft.now_ms
        draft.tell_seat(number)


def too_few_are_in(draft: Draft) -> None:
    """No hand begins: who did not confirm his ante sits out until he is back."""
    table, blob = draft.table, draft.table.blob
    blob.due_ms = 0
    draft.changed = True
    for number in table.able():
        if is_unconfirmed(blob.seats[number]):
            set_status(draft, number, SeatStatus.SITTING_OUT)
    schedule(draft)


def hand_over(draft: Draft, number: int) -> None:
    """What the end of his hand means for a seat that is kept."""
    seat = draft.table.blob.seats[number]
    out = bool(seat.flags & SeatFlag.OUT_NEXT)
    if out or seat.stack == 0:
        seat.status = SeatStatus.SITTING_OUT
        _mark(draft, seat)
    draft.tell_seat(number)
    if out:
        seat.flags &= ~SeatFlag.OUT_NEXT
        draft.tell_options(number)


def pass_time(draft: Draft) -> None:
    """Offers that lapse, seats that are free for who is next, and seats kept for long enough."""
    waiting.lapse(draft)
    waiting.offer(draft)
    table = draft.table
    for number, seat in list(table.blob.seats.items()):
        kept = not seat.freed_at_ms or table.in_hand(number)
        if not kept and due.is_past(seat.freed_at_ms, draft.now_ms):
            remove(draft, number)
    if draft.changed:
        schedule(draft)


def take_up(draft: Draft) -> None:
    """After a pause between hands: what would have lapsed in it has its time again."""
    waiting.renew(draft)
    waiting.offer(draft)
    if draft.table.blob.game is not None:
        draft.table.blob.game.deserted_until_ms = 0
    for seat in draft.table.blob.seats.values():
        if 0 < seat.freed_at_ms <= draft.now_ms:
            seat.freed_at_ms = 0
            _mark(draft, seat)
    schedule(draft)


def bring_back(draft: Draft, further_ms: int) -> None:
    """Seats that would be kept for longer than any is are kept for their whole time from now on."""
    latest_ms = draft.now_ms + max(draft.times.away_ms, draft.times.broke_ms) + further_ms
    for seat in draft.table.blob.seats.values():
        if seat.freed_at_ms > latest_ms:
            seat.freed_at_ms = 0
            _mark(draft, seat)
            draft.changed = True
    game = draft.table.blob.game
    if game is not None and game.deserted_until_ms > latest_ms:
        game.deserted_until_ms = 0
        schedule(draft)
        draft.changed = True


def _mark(draft: Draft, seat: Seat) -> None:
    """From when on nobody keeps the seat for him; who loses his chips meanwhile has less time."""
    if seat.status is not SeatStatus.SITTING_OUT or draft.table.blob.config.format is not None:
        # A club game has a place for everybody to its end.
        seat.freed_at_ms = 0
        return
    span_ms = draft.times.away_ms if seat.stack else draft.times.broke_ms
    if span_ms:
        until_ms = draft.now_ms + span_ms
        seat.freed_at_ms = min(seat.freed_at_ms or until_ms, until_ms)


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
    """Between hands: set when the next one begins, or that none does, and ask who is in for it."""
    blob = draft.table.blob
    if blob.hand is not None:
        return
    if blob.game is not None:
        _look_who_is_there(draft, blob.game)
    rests = blob.status is not TableStatus.OPEN or blob.after_hand is not None
    if rests or len(draft.table.able()) < 2:
        blob.due_ms = 0
    elif not blob.due_ms:
        blob.due_ms = draft.now_ms + blob.config.hand_pause_ms
    antes.ask(draft)


def _look_who_is_there(draft: Draft, game: Game) -> None:
    """A club game where nobody is there to play goes on for as long as a seat is kept."""
    if draft.table.able() or not draft.times.away_ms:
        game.deserted_until_ms = 0
    elif not game.deserted_until_ms:
        game.deserted_until_ms = draft.now_ms + draft.times.away_ms


def number_of(table: Table, player_id: str) -> int:
    """His seat. Raises FailedPrecondition (NOT_SEATED)."""
    number = table.seat_of(player_id)
    if number is None:
        raise FailedPrecondition("NOT_SEATED", "he has no seat at this table")
    return number


def _check(table: Table, sitter: Sitter, now_ms: int) -> None:
    blob = table.blob
    waiting.check_open(table)
    buy_ins.check(table, sitter.player_id, sitter.buy_in, now_ms)
    if sitter.number is not None and sitter.number >= blob.config.seats:
        raise InvalidArgument.of_field("seat", f"the table has {blob.config.seats} seats")
    if table.seat_of(sitter.player_id) is not None:
        raise FailedPrecondition("ALREADY_SEATED", "he has a seat at this table")
    free = waiting.open_to(table, sitter.player_id)
    if not free:
        raise FailedPrecondition("TABLE_FULL", "every seat is taken")
    if sitter.number is not None and sitter.number not in free:
        raise FailedPrecondition("SEAT_TAKEN", f"seat {sitter.number} is taken")
    buy_ins.check_total(table, sitter.buy_in)
    reservations.check_room(table, sitter.player_id)


def seated_at(table: Table, sitter: Sitter) -> int | None:
    """The seat that this very request took. Raises AlreadyExists (ID_REUSED)."""
    for number, seat in table.blob.seats.items():
        if seat.sitting == sitter.sitting and is_repeat(seat.asked, sitter.asked):
            return number
    return None
