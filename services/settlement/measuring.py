"""Reads tables and ledger so that they can be compared. The reconciler and `doorcard ledger
reconcile` measure by this one way.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from doorcard.table.v1 import internal_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.errors import InvalidArgument, NotFound, Unavailable
from services.settlement import comparison
from services.settlement.comparison import Differences
from services.settlement.peers import Peers


class NotComparable(Unavailable):
    """Tables and ledger could not be read together (NOT_COMPARABLE)."""

    def __init__(self, parked: dict[str, int]) -> None:
        super().__init__("NOT_COMPARABLE", "tables and ledger could not be read together")
        self.parked: Final = parked
        """As in `Measured`."""


READINGS_MAX: Final = 3
"""Times that tables and ledger are read until the two belong together."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A shard's tables against the ledger."""

    differences: Differences
    parked: dict[str, int]
    """table id -> entries that could not be applied and nobody has resolved."""
    epoch: int
    """Of the shard when the ledger was read ..."""
    applied_seq: int
    """... and how far the ledger was."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The whole ledger in one currency, minor units."""

    currency: str
    totals: wallet_pb2.GetTotalsResponse

    @property
    def difference(self) -> int:
        """Deposits less withdrawals and everything that there is of them; 0 in a sound ledger."""
        held = self.totals.players + self.totals.escrow + self.totals.house
        return self.totals.deposits - self.totals.withdrawals - held

    @property
    def balance_difference(self) -> int:
        """How far balances are from their transfers; 0 in a sound ledger."""
        return self.totals.balance_difference


def confirmed(peers: Peers, shard: int, confirm_s: float) -> Measured:
    """Only the differences that two measurements, `confirm_s` apart, find alike.

    Raises NotComparable or another DoorcardError.
    """
    first = measure(peers, shard)
    if not first.differences:
        return first
    time.sleep(confirm_s)
    again = measure(peers, shard)
    lasting = {
        place: amount
        for place, amount in again.differences.items()
        if first.differences.get(place) == amount
    }
    return Measured(lasting, again.parked, again.epoch, again.applied_seq)


def measure(peers: Peers, shard: int) -> Measured:
    """One measurement. Raises DoorcardError as `confirmed` does."""
    tables = internal_pb2.InspectMoneyRequest(shard=shard)
    escrow = wallet_pb2.InspectEscrowRequest(shard=shard)
    parked: dict[str, int] = {}
    for _ in range(READINGS_MAX):
        # Tables first: what the ledger applies after that is still in the outbox as read.
        money = peers.call(peers.tables.InspectMoney, tables)
        ledger = peers.call(peers.wallet.InspectEscrow, escrow)
        parked = _parked(ledger.parked)
        if comparison.comparable(money, ledger):
            commits = comparison.committed(comparison.unapplied(money, ledger))
            reservations = _reservations(peers, commits, ledger.pending)
            return Measured(
                comparison.differences(money, ledger, reservations),
                parked,
                ledger.progress.epoch,
                ledger.progress.applied_seq,
            )
    raise NotComparable(parked)


def currencies(peers: Peers) -> list[str]:
    """Of the ledger's accounts, ascending. Raises DoorcardError."""
    request = wallet_pb2.ListCurrenciesRequest()
    return list(peers.call(peers.wallet.ListCurrencies, request).currencies)


def sums(peers: Peers, currency: str, *, recount: bool = False) -> Sums:
    """recount: read every transfer instead of what is known of them. Raises DoorcardError."""
    request = wallet_pb2.GetTotalsRequest(currency=currency, recount=recount)
    return Sums(currency, peers.call(peers.wallet.GetTotals, request))


def _parked(entries: Iterable[wallet_pb2.ParkedEntry]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for each in entries:
        counted[each.table_id] = counted.get(each.table_id, 0) + 1
    return counted


def _reservations(
    peers: Peers, ids: Iterable[str], pending: Iterable[wallet_pb2.Reservation]
) -> dict[str, wallet_pb2.Reservation]:
    """Those of the snapshot, and of the rest whatever the ledger knows now: a reservation never
    changes its amount.
    """
    known = {each.reservation_id: each for each in pending}
    for reservation_id in ids:
        if reservation_id in known:
            continue
        request = wallet_pb2.GetReservationRequest(reservation_id=reservation_id)
        try:
            known[reservation_id] = peers.call(peers.wallet.GetReservation, request).reservation
        except (NotFound, InvalidArgument):
            # Entries are parked for naming what is no reservation, too.
            continue
    return known
