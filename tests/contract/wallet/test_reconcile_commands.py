"""`doorcard ledger reconcile` and `resolve`: a real ledger against tables as they are staged."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from doorcard.table.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    internal_pb2,
    internal_pb2_grpc,
    table_pb2,
    table_pb2_grpc,
)
from doorcard.wallet.v1 import wallet_pb2 as pb
from grpc import aio

from services.runtime.errors import NotFound
from services.runtime.server import serving
from services.runtime.settings import ServiceSettings
from tests.contract.wallet.conftest import (
    SHARD,
    SHARDS,
    TABLE,
    Outbox,
    Start,
    Wallet,
    two_seats,
)
from tests.contract.wallet.test_ledger_commands import doorcard


class StagedTables(
    internal_pb2_grpc.TableInternalServiceServicer,
    table_pb2_grpc.TableServiceServicer,
):
    """One table with these chips, by sitting."""

    def __init__(self, chips: dict[str, int]) -> None:
        self.chips = chips
        self.outbox: list[pb.LedgerEntry] = []
        self.last_seq = 2
        self.state: Any = table_pb2.TABLE_STATE_PAUSED
        self.resumed: list[str] = []

    async def InspectMoney(self, request: Any, _context: Any) -> Any:  # noqa: N802
        if request.shard != SHARD:
            return internal_pb2.InspectMoneyResponse()
        table = internal_pb2.TableMoney(table_id=TABLE, currency="EUR")
        for sitting_id, amount in self.chips.items():
            table.sittings.add(sitting_id=sitting_id, amount=amount)
        return internal_pb2.InspectMoneyResponse(
            epoch=1, last_seq=self.last_seq, tables=[table], entries=self.outbox
        )

    async def GetTable(self, request: Any, _context: Any) -> Any:  # noqa: N802
        if request.table_id != TABLE:
            raise NotFound("TABLE_UNKNOWN", "there is no such table")
        return table_pb2.GetTableResponse(table=table_pb2.TableView(state=self.state))


class StagedAdmin(admin_pb2_grpc.TableAdminServiceServicer):
    """Remembers why tables were resumed."""

    def __init__(self, tables: StagedTables) -> None:
        self._tables = tables

    async def ResumeTable(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self._tables.resumed.append(request.reason)
        return admin_pb2.TableAdminServiceResumeTableResponse(version=1)


@asynccontextmanager
async def played(
    start: Start,
) -> AsyncIterator[tuple[Wallet, StagedTables, "Command", Outbox, tuple[str, str]]]:
    """anna and ben sit with 100 each, at a table and in the ledger."""
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        # What the commands do not call is not there.
        tables = StagedTables({anna: 100, ben: 100})  # type: ignore[abstract]
        admin = StagedAdmin(tables)  # type: ignore[abstract]

        async def register(server: aio.Server) -> list[str]:
            internal_pb2_grpc.add_TableInternalServiceServicer_to_server(tables, server)
            table_pb2_grpc.add_TableServiceServicer_to_server(tables, server)
            admin_pb2_grpc.add_TableAdminServiceServicer_to_server(admin, server)
            return ["doorcard.table.v1.TableService"]

        settings = wallet.room.settings(ServiceSettings, service="table")
        async with serving(settings, register) as running:
            yield wallet, tables, Command(wallet, running.address), outbox, (anna, ben)


class Command:
    """`doorcard ledger ARGUMENTS` against both."""

    def __init__(self, wallet: Wallet, tables: str) -> None:
        self._wallet = wallet
        self._tables = tables

    async def __call__(self, *arguments: str, role: str = "operator") -> tuple[int, str]:
        return await doorcard(self._wallet, *arguments, roles=(role,), tables=self._tables)

    async def found(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        status, text = await self("reconcile", *arguments, "--json", role="auditor")
        return status, json.loads(text)


async def test_what_is_equal_ends_with_status_0_and_sums_of_every_currency(start: Start) -> None:
    async with played(start) as (wallet, _, command, _, _):
        await wallet.deposit("carl", 5, "JPY")
        status, found = await command.found()
        assert (status, found["ok"], found["differences"], found["parked"]) == (0, True, [], [])
        assert [(each["currency"], each["difference"]) for each in found["sums"]] == [
            ("EUR", 0),
            ("JPY", 0),
        ]
        status, text = await command("reconcile")
        assert status == 0
        assert "all is equal" in text
        status, found = await command.found("--recount", "--shard", str(SHARD))
        assert (status, found["sums"]) == (0, [])


async def test_what_differs_is_told_by_table_currency_and_sitting_and_not_corrected(
    start: Start,
) -> None:
    async with played(start) as (wallet, tables, command, _, (anna, ben)):
        tables.chips[ben] = 103
        before = await wallet.escrow()
        status, found = await command.found()
        assert status == 1
        assert found["tables"] == [{"table_id": TABLE, "currency": "EUR", "difference": 3}]
        assert found["differences"] == [
            {"table_id": TABLE, "currency": "EUR", "sitting_id": ben, "amount": 3}
        ]
        status, text = await command("reconcile", "--table", TABLE)
        assert status == 1
        assert f"table {TABLE} differs by 3 EUR" in text
        assert f"sitting {ben}: +3 at the table" in text
        assert await wallet.escrow() == before
        assert not tables.resumed
        other = next(each for each in range(SHARDS) if each != SHARD)
        assert (await command.found("--shard", str(other)))[0] == 0
        for none in (-1, SHARDS):
            status, text = await command("reconcile", "--shard", str(SHARD), "--shard", str(none))
            assert status == 2
            assert f"there is no shard {none}; the room has shards 0 to {SHARDS - 1}" in text
        tables.chips = {anna: 100, ben: 100}
        assert (await command.found())[0] == 0


async def test_a_difference_is_resolved_by_adjusting_and_then_with_a_reason_on_record(
    start: Start,
) -> None:
    async with played(start) as (wallet, tables, command, _, (_, ben)):
        tables.chips[ben] = 103
        resolve = ("resolve", "--table", TABLE, "--reason", "a misdeal, paid by the house")
        status, text = await command(*resolve)
        assert status == 1
        adjust = f"adjust --sitting {ben} --amount 3 --currency EUR"
        assert f"doorcard ledger {adjust}" in text
        assert not tables.resumed, "nothing goes on while it differs"
        assert wallet.sql("SELECT count(*) FROM journal WHERE kind = 12") == [(0,)]
        assert (await command(*adjust.split(), "--reason", "misdeal"))[0] == 0
        status, text = await command(*resolve, "--stay-paused")
        assert (status, tables.resumed) == (0, [])
        status, text = await command(*resolve)
        transfer_id = text.split()[3]
        said = f"ledger transfer {transfer_id}: a misdeal, paid by the house"
        assert (status, tables.resumed) == (0, [said])
        transfer = await wallet.transfer(transfer_id)
        assert (transfer.made_by, transfer.reason) == ("olga", "a misdeal, paid by the house")
        assert (await command.found())[0] == 0


async def test_parked_entries_are_counted_in_and_come_first(start: Start) -> None:
    async with played(start) as (wallet, tables, command, outbox, (anna, ben)):
        bad = outbox.hand({anna: -200, ben: 200})
        await wallet.apply(outbox.entries)
        tables.last_seq = 3
        tables.chips = {anna: -100, ben: 300}
        status, found = await command.found()
        assert (status, found["parked"]) == (0, [{"table_id": TABLE, "entries": 1}])
        status, text = await command("resolve", "--table", TABLE, "--reason", "x")
        assert (status, "1 entries are parked" in text) == (1, True)
        await wallet.resolve(bad.entry_id)
        assert (await command.found())[0] == 1, "what it did at the table is not in the ledger"


async def test_what_cannot_be_compared_is_not_said_to_be_well(start: Start) -> None:
    async with played(start) as (_, tables, command, _, _):
        tables.last_seq = 1  # the ledger is past the tables
        status, found = await command.found()
        assert (status, found["ok"]) == (2, False)
        assert found["not_compared"] == [{"shard": SHARD, "reason": "NOT_COMPARABLE"}]
        status, text = await command("resolve", "--table", TABLE, "--reason", "x")
        assert (status, "NOT_COMPARABLE" in text) == (2, True)


async def test_a_table_that_plays_has_nothing_to_resolve_and_only_operators_do(
    start: Start,
) -> None:
    async with played(start) as (_, tables, command, _, _):
        resolve = ("resolve", "--table", TABLE, "--reason", "x")
        status, text = await command(*resolve, role="auditor")
        assert (status, "ROLE_NOT_ALLOWED" in text) == (2, True)
        tables.state = table_pb2.TABLE_STATE_OPEN
        status, text = await command(*resolve)
        assert (status, "not paused" in text) == (2, True)
        status, _ = await command("resolve", "--table", "x", "--reason", "x")
        assert status == 2
        assert not tables.resumed
