"""The reconciler: finds where tables, ledger and reservations disagree, pauses and reports.

It never corrects anything silently: a table whose money differs waits for an operator.
"""

import random
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import islice
from typing import Final

from doorcard.table.v1 import internal_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.ids import uuid7
from services.runtime.logs import logger
from services.settlement import comparison, measuring, meters
from services.settlement.comparison import Differences
from services.settlement.pausing import PARKED, pause
from services.settlement.peers import Peers

TOLD_MAX: Final = 20
"""Differences of a shard that go into the log, each time."""
RESERVATIONS_PAGE: Final = 100
BUDGET_S: Final = 10.0
"""For one round of old reservations; what is left over is there in the next one."""


class Reconciler:
    """Compares and pauses.

    confirm_s: between two measurements that must agree. reservation_age_s: a pending reservation
    older than this is put to its table.
    """

    def __init__(self, peers: Peers, *, confirm_s: float, reservation_age_s: float) -> None:
        self._peers = peers
        self._confirm_s = confirm_s
        self._reservation_age = timedelta(seconds=reservation_age_s)

    def shard(self, shard: int) -> Differences:
        """Compare a shard's tables with the ledger; pause those with a confirmed difference.

        Also pauses, again if need be, every table with parked entries. Returns the confirmed
        differences. Raises DoorcardError.
        """
        try:
            measured = measuring.confirmed(self._peers, shard, self._confirm_s)
        except measuring.NotComparable as error:
            self._parked(shard, error.parked)
            raise
        found = measured.differences
        meters.DIFFERENCE.labels(str(shard)).set(comparison.size(found))
        for place, amount in islice(found.items(), TOLD_MAX):
            logger.error(
                "reconciliation_difference",
                table=place.table_id,
                sitting=place.sitting_id,
                currency=place.currency,
                amount=amount,
                epoch=measured.epoch,
                seq=measured.applied_seq,
            )
        self._pause({place.table_id for place in found}, "its chips differ from its escrow")
        self._parked(shard, measured.parked)
        return found

    def reservations(self) -> int:
        """Put old pending reservations to their tables, which seat or release them; how many.

        A table that fails is not asked again in this round, and each page is gone through in an
        order of its own, so that tables that hang keep nobody else's money waiting for ever.
        """
        request = wallet_pb2.ListReservationsRequest(page_size=RESERVATIONS_PAGE)
        request.older_than.FromTimedelta(self._reservation_age)
        until_s = monotonic_s() + BUDGET_S
        resolved = 0
        failing: set[str] = set()
        while True:
            page = self._peers.call(self._peers.wallet.ListReservations, request)
            old = list(page.reservations)
            for reservation in random.sample(old, len(old)):
                if monotonic_s() > until_s:
                    return resolved
                if reservation.table_id in failing:
                    continue
                if self._resolve(reservation):
                    resolved += 1
                else:
                    failing.add(reservation.table_id)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return resolved

    def ledger(self) -> dict[str, int]:
        """Check the sums over the whole ledger, in every currency that it has.

        Returns the currencies whose deposits are not what there is of them, with the difference.
        """
        found = {}
        for currency in measuring.currencies(self._peers):
            sums = measuring.sums(self._peers, currency)
            meters.LEDGER_DIFFERENCE.labels(currency, "sum").set(sums.difference)
            meters.LEDGER_DIFFERENCE.labels(currency, "balances").set(sums.balance_difference)
            for account in ("players", "escrow", "house", "rake"):
                meters.BALANCES.labels(currency, account).set(getattr(sums.totals, account))
            if sums.difference or sums.balance_difference:
                logger.error(
                    "ledger_difference",
                    currency=currency,
                    difference=sums.difference,
                    balance_difference=sums.balance_difference,
                )
            if sums.difference:
                found[currency] = sums.difference
        return found

    def _parked(self, shard: int, parked: Mapping[str, int]) -> None:
        meters.PARKED_NOW.labels(str(shard)).set(sum(parked.values()))
        self._pause(parked, PARKED)

    def _pause(self, table_ids: Iterable[str], reason: str) -> None:
        for table_id in sorted(table_ids):
            # A new id each time: an operator may have resumed it without settling what is wrong.
            pause(self._peers, table_id, reason, uuid7())

    def _resolve(self, reservation: wallet_pb2.Reservation) -> bool:
        request = internal_pb2.ResolveReservationRequest(
            table_id=reservation.table_id,
            reservation_id=reservation.reservation_id,
            sitting_id=reservation.sitting_id,
        )
        try:
            answer = self._peers.call(self._peers.tables.ResolveReservation, request)
        except DoorcardError as error:
            meters.FAULTS.labels("resolve", error.reason).inc()
            logger.warning(
                "reservation_unresolved", table=reservation.table_id, reason=error.reason
            )
            return False
        meters.OLD_RESERVATIONS.labels("seated" if answer.seated else "released").inc()
        return True
