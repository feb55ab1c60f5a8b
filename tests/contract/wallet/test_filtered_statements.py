"""Statements narrowed down by kind, time, table and currency, in pages that stay cheap."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import InvalidArgument
from services.wallet.ledger import statement
from tests.contract.wallet.conftest import (
    OTHER_TABLE,
    TABLE,
    Outbox,
    Start,
    Wallet,
    refused,
)

DAYS = 40
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


async def whole(wallet: Wallet, size: int = 3, **fields: Any) -> list[pb.Transfer]:
    found: list[pb.Transfer] = []
    token = ""
    while True:
        page = await wallet.statement("anna", page_size=size, page_token=token, **fields)
        assert len(page.transfers) <= size
        found += page.transfers
        token = page.next_page_token
        if not token:
            return found


async def test_by_kind_and_table(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "SCAN_MAX", 2)
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        for number, table in enumerate((TABLE, OTHER_TABLE, TABLE), 1):
            for _ in range(4):
                await wallet.deposit("anna", 100)
            await wallet.deposit("anna", number, "XTS")
            sitting = str(uuid4())
            reservation = await wallet.reserve("anna", number, sitting, table_id=table)
            outbox.commit(reservation.reservation_id, table=table)
            outbox.cash_out(sitting, "anna", number, table=table)
            await wallet.apply(outbox.entries)
        buy_ins = await whole(wallet, kinds=[pb.TRANSFER_KIND_BUY_IN])
        assert [each.amount for each in buy_ins] == [-3, -2, -1]
        at_table = await whole(wallet, table_id=TABLE)
        assert [each.amount for each in at_table] == [3, -3, 1, -1]
        both = await whole(wallet, table_id=TABLE, kinds=[pb.TRANSFER_KIND_CASH_OUT])
        assert [each.amount for each in both] == [3, 1]
        everything = await whole(wallet, size=50)
        assert [each.amount for each in await whole(wallet)] == [each.amount for each in everything]
        assert len(everything) == 21
        assert await whole(wallet, currency="XTS", kinds=[pb.TRANSFER_KIND_BUY_IN]) == []


async def test_by_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "OUT_OF_STEP", timedelta(hours=30))
    async with start() as wallet:
        await wallet.deposit("anna", 1)
        # One line a day, numbered in order; a few carry the time of the day after.
        wallet.sql(
            "WITH anna AS (SELECT id FROM accounts WHERE owner = 'anna'), made AS ("
            " INSERT INTO journal (kind, source, at) SELECT 1, n::text,"
            f" timestamptz '{NOW.isoformat()}' + make_interval(days => n - {DAYS}"
            f" + (n % 7 = 0)::int * 1) FROM generate_series(1, {DAYS}) n ORDER BY n RETURNING id)"
            " INSERT INTO transfers (entry, line, debit, credit, amount, player, balance, kind)"
            " SELECT made.id, 0, 0, anna.id, 1, anna.id, 1, 1 FROM made, anna"
        )
        lines = await whole(wallet, size=50, until=pb.Transfer().at, kinds=[])
        assert lines == []
        lines = await whole(wallet, size=50)
        for first, last in ((0, DAYS), (10, 20), (13, 15), (0, 1), (38, 40), (20, 20), (30, 60)):
            since, until = (NOW + timedelta(days=each - DAYS) for each in (first, last))
            asked = pb.ListTransfersRequest()
            asked.since.FromDatetime(since)
            asked.until.FromDatetime(until)
            found = await whole(wallet, since=asked.since, until=asked.until)
            expected = [
                each.transfer_id
                for each in lines
                if since <= each.at.ToDatetime(tzinfo=UTC) < until
            ]
            assert [each.transfer_id for each in found] == expected, (first, last)


async def test_malformed_filters_are_refused(start: Start) -> None:
    async with start() as wallet:
        bad = pb.Transfer()
        bad.at.seconds = 10**15
        for fields, reason in (
            ({"kinds": [0]}, "BAD_KIND"),
            ({"kinds": [99]}, "BAD_KIND"),
            ({"table_id": "x"}, "BAD_UUID"),
            ({"since": bad.at}, "INVALID_FIELD"),
            ({"until": bad.at}, "INVALID_FIELD"),
        ):
            await refused(wallet.statement("anna", **fields), InvalidArgument, reason)
