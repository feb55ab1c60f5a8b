"""What must hold after any fault: nothing lost, nothing twice, nobody waits.

Measured as `doorcard ledger reconcile` and the reconciler do it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from doorcard.history.v1 import history_pb2_grpc
from doorcard.table.v1 import internal_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from services.local.audit import Auditor
from services.local.room import Room
from services.runtime.channels import call_sync, connect, connect_sync
from services.runtime.roles import Role
from services.runtime.settings import ServiceSettings
from services.settlement import measuring
from services.settlement.peers import Peers, Response

DRAINED_S: Final = 60.0
CONFIRM_S: Final = 1.0
CALL_S: Final = 10.0
TRIES_MAX: Final = 20
"""A service that was just killed may be asked before anybody has noticed."""
ROLES: Final = (Role.SERVICE, Role.AUDITOR, Role.OPERATOR)


class PatientPeers(Peers):
    """Peers that are asked again until they are back."""

    def call(self, method: Callable[..., Response], request: Any) -> Response:
        """As that of `Peers`."""
        return call_sync(method, request, timeout_s=self.timeout_s, attempts=TRIES_MAX)


class Proof:
    """Looks at a room from outside, past all relays."""

    def __init__(self, peers: Peers, auditor: Auditor) -> None:
        self._peers = peers
        self._auditor = auditor

    async def sound(self, held: Mapping[str, int]) -> None:
        """Everything is drained, and tables, ledger and our own count agree to the last chip.

        held: currency -> deposits less withdrawals, as the clients counted them.
        """
        assert await self._auditor.until_drained(DRAINED_S), "an outbox is not drained"
        await asyncio.to_thread(self._compare, held)

    async def held(self, currency: str) -> int:
        """Deposits less withdrawals, as the ledger counts them."""
        return await asyncio.to_thread(self._held, currency)

    async def nothing_pending(self, timeout_s: float) -> None:
        """Every reservation has come to an end."""
        async with asyncio.timeout(timeout_s):
            while await asyncio.to_thread(self.pending):
                await asyncio.sleep(0.2)

    def pending(self) -> int:
        """Reservations that have not ended, up to a page."""
        request = wallet_pb2.ListReservationsRequest(page_size=500)
        page = self._peers.call(self._peers.wallet.ListReservations, request)
        return len(page.reservations)

    def epochs(self) -> list[int]:
        """Of every shard, as the ledger has them."""
        return [
            self._peers.call(
                self._peers.wallet.GetProgress, wallet_pb2.GetProgressRequest(shard=shard)
            ).progress.epoch
            for shard in range(self._shards())
        ]

    def _shards(self) -> int:
        asked = wallet_pb2.GetRoomSettingsRequest()
        return self._peers.call(self._peers.wallet.GetRoomSettings, asked).shards

    def _compare(self, held: Mapping[str, int]) -> None:
        assert not (found := self._differences()), found
        for currency, ours in held.items():
            assert self._held(currency) == ours, currency

    def _held(self, currency: str) -> int:
        totals = measuring.sums(self._peers, currency).totals
        return totals.deposits - totals.withdrawals

    def _differences(self) -> list[str]:
        found = []
        for shard in range(self._shards()):
            measured = measuring.confirmed(self._peers, shard, CONFIRM_S)
            found += [f"{at}: {amount}" for at, amount in measured.differences.items()]
            found += [f"{table}: {count} parked" for table, count in measured.parked.items()]
        for currency in measuring.currencies(self._peers):
            sums = measuring.sums(self._peers, currency, recount=True)
            if sums.difference or sums.balance_difference:
                found.append(f"{currency}: {sums.difference}, {sums.balance_difference}")
        return found


@asynccontextmanager
async def proof_of(room: Room) -> AsyncIterator[Proof]:
    """For the life of the block."""
    settings = ServiceSettings(service="test")
    token = room.signer.mint("chaos", ROLES, 3600)
    wallet = connect_sync(room.address("wallet"), settings, token=lambda: token)
    tables = connect_sync(room.table_addresses, settings, token=lambda: token)
    history = connect_sync(room.address("history"), settings, token=lambda: token)
    peers = PatientPeers(
        internal_pb2_grpc.TableInternalServiceStub(tables),
        wallet_pb2_grpc.WalletServiceStub(wallet),
        history_pb2_grpc.HistoryServiceStub(history),
        CALL_S,
    )
    to_tables = connect(room.table_addresses, settings)
    to_wallet = connect(room.address("wallet"), settings)
    to_history = connect(room.address("history"), settings)
    try:
        yield Proof(peers, Auditor(to_tables, to_wallet, to_history, token))
    finally:
        for channel in (to_tables, to_wallet, to_history):
            await channel.close()
        for each in (wallet, tables, history):
            each.close()
