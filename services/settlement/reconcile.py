"""The reconciler: finds where tables, ledger and reservations disagree, pauses and reports.

It never corrects anything silently: a table whose money differs waits for an operator.
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from doorcard.table.v1 import internal_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError, NotFound, Unavailable
from services.runtime.ids import uuid7
from services.runtime.logs import logger
from services.settlement import comparison, meters
from services.settlement.comparison import Differences
from services.settlement.peers import Peers

READINGS_MAX: Final = 3
"""Times that tables and ledger are read until the two belong together."""
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
        """Compare a shard's tables with their escrow; pause those with a confirmed difference.

        Also pauses, again if need be, every table with parked entries. Returns the confirmed
        differences. Raises DoorcardError.
        """
        found = self._measure(shard)
        if found:
            time.sleep(self._confirm_s)
            again = self._measure(shard)
            found = {table: each for table, each in found.items() if again.get(table) == each}
        meters.DIFFERENCE.labels(str(shard)).set(comparison.size(found))
        for table_id, sittings in found.items():
            logger.error(
                "reconciliation_difference",
                table=table_id,
                sittings=len(sittings),
                amount=sum(sittings.values()),
            )
        self._pause(found, "its chips differ from its escrow")
        return found

    def reservations(self) -> int:
        """Put old pending reservations to their tables, which seat or release them; how many."""
        request = wallet_pb2.ListReservationsRequest(page_size=RESERVATIONS_PAGE)
        request.created_before.FromDatetime(datetime.now(UTC) - self._reservation_age)
        until_s = monotonic_s() + BUDGET_S
        resolved = 0
        while True:
            page = self._peers.call(self._peers.wallet.ListReservations, request)
            for reservation in page.reservations:
                if monotonic_s() > until_s:
                    return resolved
                resolved += self._resolve(reservation)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return resolved

    def ledger(self, currency: str) -> int:
        """Check the sums over the whole ledger; deposits less everything that there is of them."""
        request = wallet_pb2.GetTotalsRequest(currency=currency)
        total = self._peers.call(self._peers.wallet.GetTotals, request)
        held = total.players + total.escrow + total.house
        difference = total.deposits - total.withdrawals - held
        meters.LEDGER_DIFFERENCE.labels(currency, "sum").set(difference)
        meters.LEDGER_DIFFERENCE.labels(currency, "balances").set(total.balance_difference)
        for account in ("players", "escrow", "house", "rake"):
            meters.BALANCES.labels(currency, account).set(getattr(total, account))
        if difference or total.balance_difference:
            logger.error(
                "ledger_difference",
                currency=currency,
                difference=difference,
                balance_difference=total.balance_difference,
            )
        return difference

    def _measure(self, shard: int) -> Differences:
        """One measurement. Raises Unavailable if the two could not be read together."""
        tables = internal_pb2.InspectMoneyRequest(shard=shard)
        escrow = wallet_pb2.InspectEscrowRequest(shard=shard)
        for _ in range(READINGS_MAX):
            # Tables first: what the ledger applies after that is still in the outbox as read.
            money = self._peers.call(self._peers.tables.InspectMoney, tables)
            ledger = self._peers.call(self._peers.wallet.InspectEscrow, escrow)
            self._parked(shard, ledger)
            if comparison.comparable(money, ledger):
                waiting = comparison.waiting(money, ledger)
                return comparison.differences(money, ledger, self._committed_by(waiting))
        raise Unavailable("NOT_COMPARABLE", "tables and ledger could not be read together")

    def _parked(self, shard: int, ledger: wallet_pb2.InspectEscrowResponse) -> None:
        meters.PARKED_NOW.labels(str(shard)).set(len(ledger.parked))
        tables = {each.table_id for each in ledger.parked}
        self._pause(tables, "an entry of this table could not be applied to the ledger")

    def _committed_by(
        self, entries: Iterable[wallet_pb2.LedgerEntry]
    ) -> dict[str, wallet_pb2.Reservation]:
        found = {}
        for entry in entries:
            if entry.WhichOneof("entry") == "commit":
                request = wallet_pb2.GetReservationRequest(
                    reservation_id=entry.commit.reservation_id
                )
                try:
                    answer = self._peers.call(self._peers.wallet.GetReservation, request)
                except NotFound:
                    continue
                found[request.reservation_id] = answer.reservation
        return found

    def _pause(self, table_ids: Iterable[str], reason: str) -> None:
        for table_id in sorted(table_ids):
            # A new id each time: an operator may have resumed it without settling what is wrong.
            pause = internal_pb2.PauseTableRequest(
                request_id=uuid7(), table_id=table_id, reason=reason
            )
            try:
                self._peers.call(self._peers.tables.PauseTable, pause)
            except DoorcardError as error:
                meters.FAULTS.labels("pause", error.reason).inc()
                logger.error("table_not_paused", table=table_id, reason=error.reason)

    def _resolve(self, reservation: wallet_pb2.Reservation) -> bool:
        request = internal_pb2.ResolveReservationRequest(
            table_id=reservation.table_id,
            reservation_id=reservation.reservation_id,
            sitting_id=reservation.sitting_id,
        )
        try:
            answer = self._peers.call(self._peers.tables.ResolveReservation, request)
        except DoorcardError as error:
            # One table that does not answer keeps nobody else's money waiting.
            meters.FAULTS.labels("resolve", error.reason).inc()
            logger.warning(
                "reservation_unresolved", table=reservation.table_id, reason=error.reason
            )
            return False
        meters.OLD_RESERVATIONS.labels("seated" if answer.seated else "released").inc()
        return True
