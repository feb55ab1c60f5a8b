"""Who waits for a seat, and the seats that are kept for a while for who is next."""

from typing import Final

from doorcard.table.v1 import table_pb2

from services.runtime.errors import FailedPrecondition, ResourceExhausted
from services.table.draft.draft import Draft
from services.table.state import buy_ins, due, views
from services.table.state.buy_ins import AFTER_HAND, ANYTHING, offer_of
from services.table.state.state import Table, TableStatus, Waiter

WAITING_MAX: Final = 16
"""Players who wait at one table without an offer."""
RETRY_AFTER_MS: Final = 30_000


async def join(draft: Draft, player_id: str, name: str) -> int:
    """Wait for a seat; his place, 1 for the first, 0 with an offer.

    Raises FailedPrecondition (ALREADY_SEATED, SEAT_FREE, and those of `check_open`),
    ResourceExhausted (WAITING_LIST_FULL).
    """
    table, blob = draft.table, draft.table.blob
    if _waiter(table, player_id) is None:
        check_open(table)
        check_cash(table)
        if table.seat_of(player_id) is not None:
            raise FailedPrecondition("ALREADY_SEATED", "he has a seat at this table")
        if open_to(table, player_id):
            raise FailedPrecondition("SEAT_FREE", "there is a free seat; take it")
        if len(in_line(table)) >= WAITING_MAX:
            raise ResourceExhausted(
                "WAITING_LIST_FULL", "too many wait already", retry_after_ms=RETRY_AFTER_MS
            )
        blob.waiting.append(Waiter(player_id, name))
        _tell_line(draft)
    line = [waiter.player_id for waiter in in_line(table)]
    return line.index(player_id) + 1 if player_id in line else 0


async def leave(draft: Draft, player_id: str) -> int:
    """Wait no longer, or decline the offer; the version at which it holds."""
    drop(draft, player_id)
    return draft.version_after


def drop(draft: Draft, player_id: str) -> None:
    """He does not wait here any more: he declined, or has a seat. What was kept for him is free."""
    blob = draft.table.blob
    waiter = _waiter(draft.table, player_id)
    if waiter is None:
        return
    blob.waiting.remove(waiter)
    if waiter.seat >= 0:
        draft.tell_player(player_id, seat_offered=table_pb2.TableEvent.SeatOffered())
    offer(draft)
    _tell_line(draft)


def offer(draft: Draft) -> None:
    """Offer the free seats to those who are next."""
    table, blob = draft.table, draft.table.blob
    if blob.status is TableStatus.CLOSED or blob.after_hand is not None:
        return
    line = in_line(table)
    for number, waiter in zip(free(table), line, strict=False):
        waiter.seat, waiter.until_ms = number, draft.now_ms + draft.times.offer_ms
        _tell_offer(draft, waiter)
    if len(in_line(table)) < len(line):
        _tell_line(draft)


def lapse(draft: Draft) -> None:
    """Offers whose time is over go to the next in line."""
    for waiter in list(draft.table.blob.waiting):
        if waiter.seat >= 0 and due.is_past(waiter.until_ms, draft.now_ms):
            drop(draft, waiter.player_id)


def renew(draft: Draft) -> None:
    """After a pause: an offer that lapsed meanwhile has its whole time again."""
    for waiter in draft.table.blob.waiting:
        if 0 < waiter.until_ms <= draft.now_ms:
            waiter.until_ms = draft.now_ms + draft.times.offer_ms
            _tell_offer(draft, waiter)


def bring_back(draft: Draft, further_ms: int) -> None:
    """Offers that would hold for longer than any does have their whole time from now on."""
    times = draft.times
    for waiter in draft.table.blob.waiting:
        plays = waiter.brings == AFTER_HAND
        span_ms = times.hand_elsewhere_ms if plays else max(times.offer_ms, times.move_ms)
        if waiter.until_ms > draft.now_ms + span_ms + further_ms:
            waiter.until_ms = draft.now_ms + span_ms
            _tell_offer(draft, waiter)


def clear(draft: Draft) -> None:
    """Nobody takes a seat here any more: who waits is told."""
    waiting, draft.table.blob.waiting = draft.table.blob.waiting, []
    for waiter in waiting:
        if waiter.seat >= 0:
            no_offer = table_pb2.TableEvent.SeatOffered()
            draft.tell_player(waiter.player_id, seat_offered=no_offer)
    if waiting:
        _tell_line(draft)


def keep(draft: Draft, player_id: str, name: str, brings: int, until_ms: int) -> int:
    """Keep a free seat for who comes from another table; its number.

    Raises FailedPrecondition (TABLE_PAUSED, ALREADY_SEATED, REJOIN_MINIMUM, TABLE_FULL, and those
    of `check_open`).
    """
    table, blob = draft.table, draft.table.blob
    kept = offer_of(table, player_id)
    if kept is None:
        check_open(table)
        check_cash(table)
        if blob.status is not TableStatus.OPEN:
            raise FailedPrecondition("TABLE_PAUSED", "the table is paused", retry_after_ms=1000)
        if table.seat_of(player_id) is not None:
            raise FailedPrecondition("ALREADY_SEATED", "he has a seat at that table")
        if brings > ANYTHING:
            buy_ins.check_rejoin(table, player_id, brings, draft.now_ms)
        seats = open_to(table, player_id)
        if not seats:
            raise FailedPrecondition("TABLE_FULL", "every seat is taken, or kept for somebody")
        kept = Waiter(player_id, name, seats[0])
        # He may be the first in line here.
        blob.waiting = [*(each for each in blob.waiting if each.player_id != player_id), kept]
        draft.lobby = True
    kept.brings, kept.until_ms = brings, until_ms
    _tell_offer(draft, kept)
    return kept.seat


def comes_with(draft: Draft, player_id: str, amount: int) -> None:
    """He has left the other table: what he comes with; his seat is kept from now on."""
    kept = offer_of(draft.table, player_id)
    if kept is not None and kept.brings != amount:
        if kept.brings != ANYTHING:
            kept.brings = amount or ANYTHING
        kept.until_ms = draft.now_ms + draft.times.move_ms
        _tell_offer(draft, kept)


def check_open(table: Table) -> None:
    """Raises FailedPrecondition where nobody may take a seat: TABLE_CLOSED, TABLE_CLOSING,
    TABLE_IN_MAINTENANCE, GAME_STARTED.
    """
    if table.blob.status is TableStatus.CLOSED:
        raise FailedPrecondition("TABLE_CLOSED", "the table is closed")
    if table.blob.after_hand is TableStatus.CLOSING:
        raise FailedPrecondition("TABLE_CLOSING", "the table closes after the hand")
    if table.blob.after_hand is TableStatus.MAINTENANCE:
        raise FailedPrecondition("TABLE_IN_MAINTENANCE", "the table is in maintenance")
    if table.blob.game is not None:
        raise FailedPrecondition("GAME_STARTED", "the club game has begun")


def check_cash(table: Table) -> None:
    """Raises FailedPrecondition (CLUB_GAME): seats of club games are neither waited for nor
    changed.
    """
    if table.blob.config.format is not None:
        raise FailedPrecondition("CLUB_GAME", "that is for cash tables")


def free(table: Table, player_id: str = "") -> list[int]:
    """Seats that are free or kept for the player, the latter first."""
    agreed = table.blob.config.format
    if agreed is not None and len(table.blob.seats) >= agreed.players:
        return []
    kept = {each.seat: each.player_id for each in table.blob.waiting if each.seat >= 0}
    empty = [number for number in range(table.blob.config.seats) if number not in table.blob.seats]
    his = [number for number in empty if kept.get(number, player_id) == player_id]
    return sorted(his, key=lambda number: number not in kept)


def open_to(table: Table, player_id: str) -> list[int]:
    """Seats that a player may take now, the one that is kept for him first: not those that will be
    offered to who waits before him, which is done with the next tick where it could not be at once.
    """
    found = free(table, player_id)
    if not found or offer_of(table, player_id) is not None:
        return found
    line = [each.player_id for each in in_line(table)]
    return found[line.index(player_id) if player_id in line else len(line) :]


def in_line(table: Table) -> list[Waiter]:
    """Those who wait without an offer, in order."""
    return [each for each in table.blob.waiting if each.seat < 0]


def _waiter(table: Table, player_id: str) -> Waiter | None:
    for waiter in table.blob.waiting:
        if waiter.player_id == player_id:
            return waiter
    return None


def _tell_offer(draft: Draft, waiter: Waiter) -> None:
    offered = table_pb2.TableEvent.SeatOffered(offer=views.offer(draft.table, waiter))
    draft.tell_player(waiter.player_id, seat_offered=offered)


def _tell_line(draft: Draft) -> None:
    draft.lobby = True
    line = table_pb2.TableEvent.WaitingChanged(waiting=views.waiting(draft.table))
    draft.tell(waiting_changed=line)
