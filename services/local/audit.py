"""Compares what the tables, the ledger and the archive say about the same money and hands."""

import asyncio
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

import grpc
from doorcard.history.v1 import history_pb2, history_pb2_grpc
from doorcard.table.v1 import internal_pb2, internal_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from services.local.bots import insist

POLL_S: Final = 0.2
PAGE: Final = 100


@dataclass(frozen=True, slots=True)
class Totals:
    """The ledger's sums in one currency, minor units."""

    players: int
    escrow: int
    house: int
    rake: int
    balance_difference: int

    @property
    def held(self) -> int:
        """Everything that the room holds."""
        return self.players + self.escrow + self.house


class Auditor:
    """Asks the services with a service's token; changes nothing."""

    def __init__(
        self,
        table: grpc.aio.Channel,
        wallet: grpc.aio.Channel,
        history: grpc.aio.Channel,
        token: str,
    ) -> None:
        self._tables = internal_pb2_grpc.TableInternalServiceStub(table)
        self._wallet = wallet_pb2_grpc.WalletServiceStub(wallet)
        self._history = history_pb2_grpc.HistoryServiceStub(history)
        self._token = token

    async def totals(self, currency: str) -> Totals:
        """The ledger's sums."""
        request = wallet_pb2.GetTotalsRequest(currency=currency)
        found = await insist(self._wallet.GetTotals, request, self._token)
        return Totals(
            found.players, found.escrow, found.house, found.rake, found.balance_difference
        )

    async def shards(self) -> int:
        """Number of shards of the room."""
        request = wallet_pb2.GetRoomSettingsRequest()
        return (await insist(self._wallet.GetRoomSettings, request, self._token)).shards

    async def until_drained(self, timeout_s: float) -> bool:
        """Wait until every outbox entry is applied and archived; False if that takes too long."""
        pending = set(range(await self.shards()))
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while pending:
            for shard in sorted(pending):
                if await self._drained(shard):
                    pending.discard(shard)
            if pending and asyncio.get_running_loop().time() > deadline_s:
                return False
            if pending:
                await asyncio.sleep(POLL_S)
        return True

    async def escrow_difference(self, currency: str, only: Container[str] | None = None) -> int:
        """Sum of the differences between escrow and chips at the tables, sitting by sitting; `only`
        at tables with these ids.

        Only meaningful once everything is drained and nobody plays there.
        """
        difference = 0
        for shard in range(await self.shards()):
            money = await self._money(shard)
            request = wallet_pb2.InspectEscrowRequest(shard=shard)
            ledger = await insist(self._wallet.InspectEscrow, request, self._token)
            at_tables = {
                sitting.sitting_id: sitting.amount
                for table in money.tables
                if table.currency == currency and (only is None or table.table_id in only)
                for sitting in table.sittings
            }
            posted = {
                each.sitting_id: each.amount
                for each in ledger.escrow
                if each.currency == currency and (only is None or each.table_id in only)
            }
            for sitting in at_tables.keys() | posted.keys():
                difference += abs(at_tables.get(sitting, 0) - posted.get(sitting, 0))
        return difference

    async def archived_hands(self, table_ids: Iterable[str]) -> set[str]:
        """Ids of the hands of these tables that the archive holds."""
        found: set[str] = set()
        for table_id in table_ids:
            page_token = ""
            while True:
                request = history_pb2.ListHandsRequest(
                    table_id=table_id, page_size=PAGE, page_token=page_token
                )
                page = await insist(self._history.ListHands, request, self._token)
                found.update(hand.hand_id for hand in page.hands)
                page_token = page.next_page_token
                if not page_token:
                    break
        return found

    async def _drained(self, shard: int) -> bool:
        money = await self._money(shard)
        if money.last_seq == 0:
            return True
        progress = await insist(
            self._wallet.GetProgress, wallet_pb2.GetProgressRequest(shard=shard), self._token
        )
        archive = await insist(
            self._history.GetArchiveProgress,
            history_pb2.GetArchiveProgressRequest(shard=shard),
            self._token,
        )
        return money.last_seq == progress.progress.applied_seq == archive.archived_seq

    async def _money(self, shard: int) -> internal_pb2.InspectMoneyResponse:
        request = internal_pb2.InspectMoneyRequest(shard=shard)
        return await insist(self._tables.InspectMoney, request, self._token)
