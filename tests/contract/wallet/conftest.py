"""A wallet that really serves, on a database of its own, and what tests say to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb
from doorcard.wallet.v1 import wallet_pb2_grpc
from grpc import aio

from services.runtime.errors import DoorcardError
from services.runtime.postgres import Database
from services.runtime.schema import upgrade
from services.runtime.server import serving
from services.runtime.shards import shard_of
from services.wallet.opening import MIGRATIONS, LedgerDatabase
from services.wallet.schedules import Schedules
from services.wallet.server import SERVICE_NAME, WalletServicer
from services.wallet.settings import WalletSettings
from services.wallet.upkeep import Upkeep
from tests.conftest import Room
from tests.postgres import Cluster

SHARDS = 8
TABLE = "5f0c2d6e-6d3c-4b53-9a52-3a1a0f6d1c01"
SHARD = shard_of(TABLE, SHARDS)
_TABLES = [f"5f0c2d6e-6d3c-4b53-9a52-{number:012x}" for number in range(1000)]
OTHER_TABLE = next(table for table in _TABLES if shard_of(table, SHARDS) == SHARD)
"""Another table of the same shard."""
FAR_TABLE = next(table for table in _TABLES if shard_of(table, SHARDS) != SHARD)
"""A table of another shard."""

OPENED_S = 30.0
SERVICE = ("table-1", ("service",))
OPERATOR = ("olga", ("operator",))


@dataclass
class Wallet:
    """A client of one wallet server. Calls raise DoorcardError."""

    room: Room
    stub: "wallet_pb2_grpc.WalletServiceAsyncStub"
    url: str
    """Of the database, for looking behind the ledger's back."""
    address: str = ""
    """Where it serves."""

    async def call(
        self, method: str, request: Any, who: str, roles: Sequence[str], **more: Any
    ) -> Any:
        """Call as `who` with these roles."""
        timeout = more.pop("timeout", 10)
        metadata = self.room.metadata(who, roles, **more)
        try:
            return await getattr(self.stub, method)(request, metadata=metadata, timeout=timeout)
        except aio.AioRpcError as error:
            raise DoorcardError.from_rpc(error) from None

    async def deposit(
        self, player: str, amount: int, currency: str = "EUR", request_id: str = "", **more: Any
    ) -> pb.DepositResponse:
        request = pb.DepositRequest(
            request_id=request_id or str(uuid4()),
            player_id=player,
            amount=amount,
            currency=currency,
            **more,
        )
        answer: pb.DepositResponse = await self.call("Deposit", request, *OPERATOR)
        return answer

    async def withdraw(
        self, player: str, amount: int, currency: str = "EUR", request_id: str = ""
    ) -> pb.WithdrawResponse:
        request = pb.WithdrawRequest(
            request_id=request_id or str(uuid4()),
            player_id=player,
            amount=amount,
            currency=currency,
        )
        answer: pb.WithdrawResponse = await self.call("Withdraw", request, *OPERATOR)
        return answer

    async def reserve(
        self, player: str, amount: int, sitting: str, reservation: str = "", **more: Any
    ) -> pb.Reservation:
        fields = {"table_id": TABLE, "currency": "EUR", **more}
        request = pb.ReserveBuyInRequest(
            reservation_id=reservation or str(uuid4()),
            player_id=player,
            sitting_id=sitting,
            amount=amount,
            **fields,
        )
        answer: pb.ReserveBuyInResponse = await self.call("ReserveBuyIn", request, *SERVICE)
        return answer.reservation

    async def reservation(self, reservation_id: str) -> pb.Reservation:
        request = pb.GetReservationRequest(reservation_id=reservation_id)
        answer: pb.GetReservationResponse = await self.call("GetReservation", request, *SERVICE)
        return answer.reservation

    async def open_epoch(
        self, expected: int = 0, shard: int = SHARD, request_id: str = ""
    ) -> pb.OpenEpochResponse:
        request = pb.OpenEpochRequest(
            request_id=request_id or str(uuid4()), shard=shard, expected_epoch=expected
        )
        answer: pb.OpenEpochResponse = await self.call("OpenEpoch", request, *SERVICE)
        return answer

    async def apply(
        self, entries: Iterable[pb.LedgerEntry], epoch: int = 1, shard: int = SHARD
    ) -> pb.ApplyEntriesResponse:
        request = pb.ApplyEntriesRequest(shard=shard, epoch=epoch, entries=entries)
        answer: pb.ApplyEntriesResponse = await self.call("ApplyEntries", request, *SERVICE)
        return answer

    async def adjust(self, amount: int, reason: str = "a mistake", **fields: Any) -> Any:
        """An adjustment by the operator; give `player_id` or `sitting_id`."""
        request = pb.AdjustBalanceRequest(
            **{"request_id": str(uuid4()), "currency": "EUR", **fields},
            amount=amount,
            reason=reason,
        )
        return await self.call("AdjustBalance", request, *OPERATOR)

    async def reverse(
        self, transfer_id: str, reason: str = "a mistake", request_id: str = ""
    ) -> pb.ReverseTransferResponse:
        request = pb.ReverseTransferRequest(
            request_id=request_id or str(uuid4()), transfer_id=transfer_id, reason=reason
        )
        answer: pb.ReverseTransferResponse = await self.call("ReverseTransfer", request, *OPERATOR)
        return answer

    async def transfer(
        self, transfer_id: str, who: str = OPERATOR[0], roles: Sequence[str] = OPERATOR[1]
    ) -> pb.GetTransferResponse:
        request = pb.GetTransferRequest(transfer_id=transfer_id)
        answer: pb.GetTransferResponse = await self.call("GetTransfer", request, who, roles)
        return answer

    async def close(self, player: str, currency: str = "EUR", request_id: str = "") -> str:
        """Close an account; the id of the record."""
        request = pb.CloseAccountRequest(
            request_id=request_id or str(uuid4()),
            player_id=player,
            currency=currency,
            reason="he asked for it",
        )
        answer: pb.CloseAccountResponse = await self.call("CloseAccount", request, *OPERATOR)
        return answer.transfer_id

    async def pay_back(
        self, escrow: Iterable[pb.SittingEscrow], epoch: int, shard: int = SHARD
    ) -> pb.PayBackEscrowResponse:
        request = pb.PayBackEscrowRequest(
            request_id=str(uuid4()), shard=shard, epoch=epoch, sittings=escrow
        )
        answer: pb.PayBackEscrowResponse = await self.call("PayBackEscrow", request, *SERVICE)
        return answer

    async def parked(self, **fields: Any) -> list[pb.ParkedEntry]:
        answer: pb.ListParkedEntriesResponse = await self.call(
            "ListParkedEntries", pb.ListParkedEntriesRequest(**fields), *OPERATOR
        )
        return list(answer.entries)

    async def retry(self, table_id: str = TABLE) -> pb.RetryParkedEntriesResponse:
        request = pb.RetryParkedEntriesRequest(request_id=str(uuid4()), table_id=table_id)
        answer: pb.RetryParkedEntriesResponse = await self.call(
            "RetryParkedEntries", request, *OPERATOR
        )
        return answer

    async def resolve(self, entry_id: str, reason: str = "never happened") -> pb.ParkedEntry:
        request = pb.ResolveParkedEntryRequest(
            request_id=str(uuid4()), entry_id=entry_id, reason=reason
        )
        answer: pb.ResolveParkedEntryResponse = await self.call(
            "ResolveParkedEntry", request, *OPERATOR
        )
        return answer.entry

    async def upkeep(self, rounds: int = 2, time_zone: str = "UTC") -> None:
        """Seal everything there is and audit every account, as a second wallet would."""
        database = Database(self.url, "upkeep")
        await database.open()
        try:
            keeper = Upkeep(LedgerDatabase(WalletSettings()), every_s=1, time_zone=time_zone)
            for _ in range(rounds):
                await keeper.round(database)
        finally:
            await database.close()

    async def verify(self, **fields: Any) -> list[pb.VerifyLedgerResponse]:
        """Every page."""
        pages: list[pb.VerifyLedgerResponse] = []
        token = ""
        while not pages or token:
            request = pb.VerifyLedgerRequest(page_token=token, **fields)
            pages.append(await self.call("VerifyLedger", request, "audrey", ["auditor"]))
            token = pages[-1].next_page_token
        return pages

    async def faults(self, **fields: Any) -> list[tuple[int, str]]:
        """(kind, row) of everything that is not as it was written."""
        pages = await self.verify(**fields)
        return [(each.kind, each.row) for page in pages for each in page.faults]

    async def inspect(self, shard: int = SHARD) -> pb.InspectEscrowResponse:
        answer: pb.InspectEscrowResponse = await self.call(
            "InspectEscrow", pb.InspectEscrowRequest(shard=shard), *SERVICE
        )
        return answer

    async def escrow(self) -> dict[str, int]:
        """Posted escrow by sitting."""
        return {each.sitting_id: each.amount for each in (await self.inspect()).escrow}

    async def balance(self, player: str, currency: str = "EUR") -> tuple[int, int, int]:
        """(available, pending, in play)."""
        answer = await self.call("GetBalance", pb.GetBalanceRequest(), player, ["player"])
        for each in answer.balances:
            if each.currency == currency:
                return each.available, each.pending, each.in_play
        return 0, 0, 0

    async def statement(self, player: str, **fields: Any) -> pb.ListTransfersResponse:
        answer: pb.ListTransfersResponse = await self.call(
            "ListTransfers", pb.ListTransfersRequest(**fields), player, ["player"]
        )
        return answer

    async def totals(self, currency: str = "EUR", *, recount: bool = False) -> pb.GetTotalsResponse:
        request = pb.GetTotalsRequest(currency=currency, recount=recount)
        answer: pb.GetTotalsResponse = await self.call("GetTotals", request, *OPERATOR)
        return answer

    async def sound(self, currency: str = "EUR") -> pb.GetTotalsResponse:
        """Totals that add up, and are the same when everything is counted anew."""
        found = await self.totals(currency)
        assert found == await self.totals(currency, recount=True)
        held = found.players + found.escrow + found.house
        assert found.deposits - found.withdrawals == held, found
        assert found.balance_difference == 0
        return found

    def sql(self, statement: str) -> list[Any]:
        """Behind the ledger's back, as the database's superuser."""
        with psycopg.connect(self.url) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@dataclass
class Outbox:
    """Makes the entries of a shard as the table's commit script would: numbered and linked."""

    seq: int = 0
    last_id: str = ""
    entries: list[pb.LedgerEntry] = field(default_factory=list)

    def add(self, *, table: str = TABLE, currency: str = "EUR", **work: Any) -> pb.LedgerEntry:
        self.seq += 1
        entry = pb.LedgerEntry(
            seq=self.seq,
            entry_id=str(uuid4()),
            previous_entry_id=self.last_id,
            table_id=table,
            currency=currency,
            **work,
        )
        self.last_id = entry.entry_id
        self.entries.append(entry)
        return entry

    def commit(self, reservation_id: str, **more: Any) -> pb.LedgerEntry:
        return self.add(commit=pb.ReservationCommit(reservation_id=reservation_id), **more)

    def release(self, reservation_id: str, **more: Any) -> pb.LedgerEntry:
        return self.add(release=pb.ReservationRelease(reservation_id=reservation_id), **more)

    def hand(
        self, nets: dict[str, int], rake: int = 0, hand_id: str = "", **more: Any
    ) -> pb.LedgerEntry:
        settlement = pb.HandSettlement(
            hand_id=hand_id or str(uuid4()),
            nets=[pb.SittingNet(sitting_id=key, amount=value) for key, value in nets.items()],
            rake=rake,
        )
        return self.add(hand=settlement, **more)

    def cash_out(self, sitting: str, player: str, amount: int, **more: Any) -> pb.LedgerEntry:
        return self.add(
            cash_out=pb.CashOut(sitting_id=sitting, player_id=player, amount=amount), **more
        )


Start = Callable[..., AbstractAsyncContextManager[Wallet]]


@pytest.fixture(scope="session")
def ledger_template(postgres_cluster: Cluster) -> str:
    """A database with the ledger's schema, to be copied."""
    url = postgres_cluster.create()
    upgrade(url, MIGRATIONS)
    return url


@pytest.fixture
def ledger_url(postgres_cluster: Cluster, ledger_template: str) -> Iterator[str]:
    """An empty ledger."""
    url = postgres_cluster.create(template=ledger_template)
    yield url
    postgres_cluster.drop(url)


@pytest.fixture
def start(room: Room, ledger_url: str) -> Start:
    """Starts a wallet in this process; several may share the ledger."""

    @asynccontextmanager
    async def started(
        url: str = ledger_url, *, opens: bool = True, **fields: Any
    ) -> AsyncIterator[Wallet]:
        settings = room.settings(
            WalletSettings,
            wallet_database_url=url,
            **{"shards": SHARDS, "wallet_seal_every_seconds": 60, **fields},
        )
        ledger = LedgerDatabase(settings)
        servicer = WalletServicer(ledger, Schedules(), settings)
        upkeep = Upkeep(
            ledger, every_s=settings.wallet_seal_every_seconds, time_zone=settings.time_zone
        )

        async def register(server: aio.Server) -> list[str]:
            wallet_pb2_grpc.add_WalletServiceServicer_to_server(servicer, server)
            return [SERVICE_NAME]

        async with (
            serving(
                settings, register, background=[ledger.open, upkeep.run], on_stop=ledger.close
            ) as running,
            aio.insecure_channel(running.address) as channel,
        ):
            if opens:
                async with asyncio.timeout(OPENED_S):
                    await ledger._opened.wait()
            stub = wallet_pb2_grpc.WalletServiceStub(channel)
            yield Wallet(room, stub, url, running.address)

    return started


async def two_seats(wallet: Wallet, stack: int = 100) -> tuple[Outbox, str, str]:
    """An open shard where anna and ben sit, each with `stack`."""
    outbox = Outbox()
    await wallet.open_epoch()
    anna, ben = [await seat(wallet, outbox, player, stack) for player in ("anna", "ben")]
    await wallet.apply(outbox.entries)
    outbox.entries.clear()
    return outbox, anna, ben


async def refused(call: Awaitable[Any], kind: type[DoorcardError], reason: str) -> DoorcardError:
    """The error of a call that must fail so."""
    with pytest.raises(kind) as caught:
        await call
    assert caught.value.reason == reason
    return caught.value


async def seat(wallet: Wallet, outbox: Outbox, player: str, stack: int) -> str:
    """A player with `stack` in escrow and nothing else; the sitting's id. Entries wait in the
    outbox.
    """
    await wallet.deposit(player, stack)
    sitting = str(uuid4())
    reservation = await wallet.reserve(player, stack, sitting)
    outbox.commit(reservation.reservation_id)
    return sitting
