"""What a player may bring to a table (docs/rules.md, 1), sitting down and afterwards."""

from typing import Final, NamedTuple

from services.game.rulebook import UNITS_MAX, BuyIn
from services.runtime.clock import MS_PER_S
from services.runtime.errors import FailedPrecondition, InvalidArgument
from services.table.state.state import Left, Seat, Table, Waiter, player_digest

ANYTHING: Final = 0
"""Of `Waiter.brings`: as the stake allows."""
AFTER_HAND: Final = -1
"""Of `Waiter.brings`: it is not known before his hand at the other table is over."""
LEFT_MAX: Final = 16
"""Players whose way back is remembered; the oldest are forgotten."""


class Bounds(NamedTuple):
    """What a player may sit down with, minor units."""

    least: int
    most: int
    """0 for no limit."""
    until_s: int = 0
    """Until when he has to bring back what he left with, Unix time; 0 where he does not."""


def bounds(table: Table, player_id: str, now_ms: int) -> Bounds:
    """What the player may sit down with now.

    Who comes from another table brings what he left that with, whatever the stake says; 0 while
    that is not known. Who left this one with more than the least buy-in brings that back, also
    where it is more than the most (ours), and where he comes back by way of another table:
    otherwise leaving would be a way to take chips off the table. Where stacks are equal all begin
    with the same.
    """
    kept = offer_of(table, player_id)
    if kept is not None and kept.brings == AFTER_HAND:
        return Bounds(0, 0)
    least, most = table.stake.buy_in_min, table.stake.buy_in_max
    if kept is not None and kept.brings != ANYTHING:
        least = most = kept.brings
    left = _left(table, player_id, now_ms)
    if left is None:
        return Bounds(least, most)
    return Bounds(max(least, left.amount), max(most, left.amount) if most else 0, left.until_s)


def check(table: Table, player_id: str, amount: int, now_ms: int) -> None:
    """Raises InvalidArgument for what is no amount, FailedPrecondition for what he may not bring:
    BUY_IN_TOO_SMALL, BUY_IN_TOO_LARGE, REJOIN_MINIMUM, STILL_PLAYING.
    """
    if not 1 <= amount <= UNITS_MAX:
        raise InvalidArgument.of_field("buy_in", f"must be from 1 to {UNITS_MAX}")
    kept = offer_of(table, player_id)
    if kept is not None and kept.brings == AFTER_HAND:
        raise FailedPrecondition(
            "STILL_PLAYING", "the seat is his when his hand at the other table is over"
        )
    check_rejoin(table, player_id, amount, now_ms)
    least, most, _ = bounds(table, player_id, now_ms)
    allowed = {"buy_in_min": str(least), "buy_in_max": str(most)}
    if amount < least:
        raise FailedPrecondition(
            "BUY_IN_TOO_SMALL", f"the least buy-in is {least}", metadata=allowed
        )
    if most and amount > most:
        raise FailedPrecondition(
            "BUY_IN_TOO_LARGE", f"the largest buy-in is {most}", metadata=allowed
        )


def check_rejoin(table: Table, player_id: str, amount: int, now_ms: int) -> None:
    """Raises FailedPrecondition (REJOIN_MINIMUM) for less than he left this table with."""
    least, most, until_s = bounds(table, player_id, now_ms)
    if amount < least and until_s:
        allowed = {"buy_in_min": str(least), "buy_in_max": str(most)}
        raise FailedPrecondition(
            "REJOIN_MINIMUM",
            f"he left with {least} and brings that back",
            metadata={**allowed, "until": str(until_s)},
        )


def check_top_up(table: Table, behind: int, amount: int, *, short: bool = False) -> None:
    """Raises FailedPrecondition for chips that may not be added to those behind: NO_TOP_UPS where
    stacks are equal, BUY_IN_TOO_SMALL for a re-buy below the least buy-in, BUY_IN_TOO_LARGE beyond
    the most.

    short: a re-buy may be, because more chips may come before it is in play.
    """
    rulebook, stake = table.rulebook, table.stake
    if rulebook is None or rulebook.buy_in is BuyIn.EQUAL_STACKS:
        raise FailedPrecondition("NO_TOP_UPS", "everybody plays with what he began with")
    allowed = {"buy_in_min": str(stake.buy_in_min), "buy_in_max": str(stake.buy_in_max)}
    if behind == 0 and amount < stake.buy_in_min and not short:
        raise FailedPrecondition(
            "BUY_IN_TOO_SMALL",
            f"who has no chips brings at least {stake.buy_in_min}",
            metadata=allowed,
        )
    if stake.buy_in_max and behind + amount > stake.buy_in_max:
        raise FailedPrecondition(
            "BUY_IN_TOO_LARGE",
            f"with his chips it would be over {stake.buy_in_max}",
            metadata=allowed,
        )


def check_total(table: Table, amount: int) -> None:
    """Raises FailedPrecondition (TABLE_CHIPS_MAX) where one player could win more than is an
    amount of money.
    """
    chips = sum(stack for _, _, stack in table.money()) + sum(held for _, _, held in table.held())
    if chips + amount > UNITS_MAX:
        raise FailedPrecondition("TABLE_CHIPS_MAX", f"a table has at most {UNITS_MAX} of chips")


def remember_leaving(table: Table, seat: Seat, now_ms: int, rejoin_ms: int) -> None:
    """He left; with more than the least buy-in he has to bring that back for a time."""
    blob = table.blob
    kept = [each for each in blob.left if each.until_s * MS_PER_S > now_ms]
    equal = table.rulebook is None or table.rulebook.buy_in is BuyIn.EQUAL_STACKS
    if seat.stack > table.stake.buy_in_min and not equal and rejoin_ms:
        until_s = (now_ms + rejoin_ms) // MS_PER_S
        kept.append(Left(player_digest(seat.player_id), seat.stack, until_s))
    blob.left = kept[-LEFT_MAX:]


def forget_leaving(table: Table, player_id: str) -> None:
    """He is back with what he left with."""
    player = player_digest(player_id)
    table.blob.left = [each for each in table.blob.left if each.player != player]


def offer_of(table: Table, player_id: str) -> Waiter | None:
    """What is kept for the player here."""
    for waiter in table.blob.waiting:
        if waiter.player_id == player_id and waiter.seat >= 0:
            return waiter
    return None


def _left(table: Table, player_id: str, now_ms: int) -> Left | None:
    player = player_digest(player_id)
    for each in reversed(table.blob.left):
        if each.player == player and each.until_s * MS_PER_S > now_ms:
            return each
    return None
