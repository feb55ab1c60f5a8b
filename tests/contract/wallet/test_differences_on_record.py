"""A settled difference goes on record under the seals; currencies are those of the accounts."""

from typing import Any
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from tests.contract.wallet.conftest import (
    FAR_TABLE,
    OPERATOR,
    TABLE,
    Start,
    Wallet,
    refused,
    two_seats,
)


async def record(wallet: Wallet, **fields: Any) -> str:
    request = pb.RecordResolutionRequest(
        **{
            "request_id": str(uuid4()),
            "table_id": TABLE,
            "epoch": 1,
            "applied_seq": 2,
            "reason": "the house pays for our fault",
            **fields,
        }
    )
    answer: pb.RecordResolutionResponse = await wallet.call("RecordResolution", request, *OPERATOR)
    return answer.transfer_id


async def test_it_moves_nothing_and_stands_in_the_journal_with_reason_and_operator(
    start: Start,
) -> None:
    async with start() as wallet:
        await two_seats(wallet)
        before = await wallet.sound()
        transfer_id = await record(wallet, table_id=TABLE.upper())
        found = await wallet.transfer(transfer_id)
        assert found.kind == pb.TRANSFER_KIND_RESOLUTION
        assert (found.table_id, found.made_by) == (TABLE, "olga")
        assert found.reason == "the house pays for our fault"
        assert found.reference.endswith("/1/2")
        assert not found.lines
        assert await wallet.sound() == before
        await wallet.upkeep()
        wallet.sql(
            "SET session_replication_role = replica;"
            f" UPDATE journal SET reason = 'nothing' WHERE id = {transfer_id}"
        )
        assert [row for _, row in await wallet.faults()] == [f"journal {transfer_id}"]


async def test_the_same_request_records_once(start: Start) -> None:
    async with start() as wallet:
        await two_seats(wallet)
        assert await record(wallet, request_id="r") == await record(wallet, request_id="r")
        await refused(record(wallet, request_id="r", reason="other"), AlreadyExists, "ID_REUSED")
        assert wallet.sql("SELECT count(*) FROM journal WHERE kind = 12") == [(1,)]


async def test_what_is_parked_or_unknown_or_not_yet_applied_is_not_settled(start: Start) -> None:
    async with start() as wallet:
        await refused(record(wallet), NotFound, "TABLE_UNKNOWN")
        outbox, anna, ben = await two_seats(wallet)
        await refused(record(wallet, table_id=FAR_TABLE), NotFound, "TABLE_UNKNOWN")
        for place in ({"applied_seq": 3}, {"epoch": 2, "applied_seq": 0}):
            await refused(record(wallet, **place), FailedPrecondition, "COMPARED_BEYOND")
        bad = outbox.hand({anna: -500, ben: 500})
        await wallet.apply(outbox.entries)
        await refused(record(wallet, request_id="r"), FailedPrecondition, "STILL_PARKED")
        await wallet.resolve(bad.entry_id)
        await record(wallet, request_id="r")


async def test_only_operators_record_and_only_with_a_reason(start: Start) -> None:
    async with start() as wallet:
        for role in ("service", "auditor", "player", "cashier"):
            with pytest.raises(PermissionDenied):
                await wallet.call("RecordResolution", pb.RecordResolutionRequest(), "x", [role])
        await refused(record(wallet, reason=""), InvalidArgument, "BAD_REASON")
        await refused(record(wallet, table_id="x"), InvalidArgument, "BAD_UUID")
        await refused(record(wallet, epoch=-1), InvalidArgument, "BAD_PLACE")


async def test_parked_entries_are_inspected_with_what_they_were_to_do(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        outbox.hand({anna: -500, ben: 500})
        outbox.cash_out(ben, "ben", 600)
        await wallet.apply(outbox.entries)
        found = await wallet.inspect()
        assert [each.content for each in found.parked] == outbox.entries
        assert found.progress.applied_seq == 4


async def test_every_currency_with_an_account_is_listed_and_no_other(start: Start) -> None:
    async with start() as wallet:

        async def currencies(role: str = "service") -> list[str]:
            request = pb.ListCurrenciesRequest()
            return list((await wallet.call("ListCurrencies", request, "w", [role])).currencies)

        assert await currencies() == []
        for currency in ("USD", "XTS", "EUR", "JPY", "EUR"):
            await wallet.deposit("anna", 5, currency)
        assert await currencies("auditor") == ["EUR", "JPY", "USD", "XTS"]
        # Money that somebody made by hand in a currency of its own is not overlooked.
        wallet.sql(
            "INSERT INTO accounts (purpose, owner, currency, balance)"
            " VALUES ('player', 'eve', 'GBP', 100)"
        )
        assert await currencies("operator") == ["EUR", "GBP", "JPY", "USD", "XTS"]
        await wallet.upkeep()
        assert (await wallet.totals("GBP")).balance_difference == 100
