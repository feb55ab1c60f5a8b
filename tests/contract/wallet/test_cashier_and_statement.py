"""Deposits, withdrawals, balances, statements, and who may see and do what."""

import asyncio
from typing import Any

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import (
    AlreadyExists,
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
    PermissionDenied,
)
from services.wallet.money import AMOUNT_MAX
from tests.contract.wallet.conftest import OPERATOR, Outbox, Start, seat


async def test_a_deposit_repeated_happens_once_and_gets_the_first_answer(start: Start) -> None:
    async with start() as wallet:
        first = await wallet.deposit("anna", 100, request_id="d1")
        await wallet.deposit("anna", 50, request_id="d2")
        answers = await asyncio.gather(
            *(wallet.deposit("anna", 100, request_id="d1") for _ in range(20))
        )
        assert all(each == first for each in answers)
        assert (first.balance, await wallet.balance("anna")) == (100, (150, 0, 0))


async def test_the_same_new_deposit_many_times_at_once_happens_once(start: Start) -> None:
    async with start() as wallet:
        answers = await asyncio.gather(
            *(wallet.deposit("anna", 100, request_id="d1") for _ in range(50))
        )
        assert len({each.transfer_id for each in answers}) == 1
        assert await wallet.balance("anna") == (100, 0, 0)


@pytest.mark.parametrize(
    "other",
    [{"amount": 101}, {"player": "ben"}, {"currency": "USD"}, {"reference": "another"}],
)
async def test_a_request_id_with_other_content_is_refused(
    start: Start, other: dict[str, Any]
) -> None:
    async with start() as wallet:
        asked: dict[str, Any] = {"player": "anna", "amount": 100, "request_id": "d1"}
        await wallet.deposit(**asked)
        with pytest.raises(AlreadyExists) as caught:
            await wallet.deposit(**{**asked, **other})
        assert caught.value.reason == "ID_REUSED"
        with pytest.raises(AlreadyExists):
            await wallet.withdraw("anna", 100, request_id="d1")
        assert (await wallet.sound()).deposits == 100


async def test_one_request_id_for_many_players_at_once_serves_one(start: Start) -> None:
    async with start() as wallet:
        answers = await asyncio.gather(
            *(wallet.deposit(f"player-{n}", 100, request_id="d1") for n in range(10)),
            return_exceptions=True,
        )
        refused = [each for each in answers if isinstance(each, DoorcardError)]
        assert [each.reason for each in refused] == ["ID_REUSED"] * 9
        assert (await wallet.sound()).deposits == 100


async def test_a_withdrawal_leaves_what_is_set_aside(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        await wallet.reserve("anna", 80, "sitting-1")
        with pytest.raises(FailedPrecondition) as caught:
            await wallet.withdraw("anna", 21, request_id="w1")
        assert caught.value.reason == "INSUFFICIENT_FUNDS"
        await wallet.withdraw("anna", 20)
        assert await wallet.balance("anna") == (0, 80, 0)
        await wallet.deposit("anna", 21)
        assert (await wallet.withdraw("anna", 21, request_id="w1")).balance == 80
        found = await wallet.sound()
        assert (found.deposits, found.withdrawals) == (121, 41)


async def test_of_many_withdrawals_at_once_none_goes_below_zero(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        answers = await asyncio.gather(
            *(wallet.withdraw("anna", 30) for _ in range(30)), return_exceptions=True
        )
        assert sum(isinstance(each, pb.WithdrawResponse) for each in answers) == 3
        assert await wallet.balance("anna") == (10, 0, 0)


async def test_a_balance_has_a_limit_and_the_refusal_is_remembered(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", AMOUNT_MAX)
        for _ in range(2):
            with pytest.raises(FailedPrecondition) as caught:
                await wallet.deposit("anna", 1, request_id="d2")
            assert caught.value.reason == "BALANCE_LIMIT"
            await wallet.withdraw("anna", 10)


async def test_a_statement_has_signed_amounts_and_a_running_balance(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 500, reference="card 1")
        anna = await seat(wallet, outbox, "anna", 200)
        ben = await seat(wallet, outbox, "ben", 100)
        outbox.hand({anna: 50, ben: -50})
        outbox.cash_out(anna, "anna", 250)
        await wallet.apply(outbox.entries)
        await wallet.withdraw("anna", 100)
        page = await wallet.statement("anna")
        assert [(each.kind, each.amount, each.balance) for each in page.transfers] == [
            (pb.TRANSFER_KIND_WITHDRAWAL, -100, 650),
            (pb.TRANSFER_KIND_CASH_OUT, 250, 750),
            (pb.TRANSFER_KIND_BUY_IN, -200, 500),
            (pb.TRANSFER_KIND_DEPOSIT, 200, 700),
            (pb.TRANSFER_KIND_DEPOSIT, 500, 500),
        ]
        assert page.transfers[1].table_id == page.transfers[2].table_id != ""
        assert page.transfers[4].reference == "card 1"
        assert page.transfers[0].at.seconds > 0
        assert not page.next_page_token


async def test_a_statement_pages_through_all_currencies_or_one(start: Start) -> None:
    async with start() as wallet:
        for amount in range(1, 8):
            await wallet.deposit("anna", amount, "EUR" if amount % 2 else "XTS")
        for currency, amounts in (("", range(7, 0, -1)), ("EUR", (7, 5, 3, 1)), ("USD", ())):
            found: list[int] = []
            token = ""
            while True:
                page = await wallet.statement(
                    "anna", currency=currency, page_size=2, page_token=token
                )
                found += [each.amount for each in page.transfers]
                token = page.next_page_token
                if not token:
                    break
            assert found == list(amounts)


async def test_a_player_sees_his_own_money_only(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        about_anna = pb.GetBalanceRequest(player_id="anna")
        seen = await wallet.call("GetBalance", about_anna, "anna", ["player"])
        assert seen.balances[0].available == 100
        for who, roles in (OPERATOR, ("audrey", ("auditor",))):
            assert await wallet.call("GetBalance", about_anna, who, roles) == seen
        gateway = await wallet.call(
            "GetBalance", about_anna, "gateway", ["service"], act_for=["an"]
        )
        assert gateway == seen
        with pytest.raises(PermissionDenied) as caught:
            await wallet.call("GetBalance", about_anna, "ben", ["player"])
        assert caught.value.reason == "NOT_YOUR_PLAYER"
        with pytest.raises(PermissionDenied):
            await wallet.call("GetBalance", about_anna, "gateway", ["service"], act_for=["b"])
        with pytest.raises(PermissionDenied):
            await wallet.call(
                "ListTransfers", pb.ListTransfersRequest(player_id="anna"), "ben", ["player"]
            )


async def test_only_operators_and_cashiers_of_the_player_move_cash(start: Start) -> None:
    async with start() as wallet:
        request = pb.DepositRequest(request_id="d1", player_id="anna", amount=1, currency="EUR")
        for who, roles, more in (
            ("anna", ["player"], {}),
            ("audrey", ["auditor"], {}),
            ("table-1", ["service"], {}),
            ("gateway", ["service"], {"act_for": ["*"]}),
            ("gateway", ["service", "player"], {"act_for": ["*"]}),
            ("cashier", ["cashier"], {}),
            ("cashier", ["cashier"], {"act_for": ["b"]}),
        ):
            with pytest.raises(PermissionDenied):
                await wallet.call("Deposit", request, who, roles, **more)
        answer = await wallet.call("Deposit", request, "cashier", ["cashier"], act_for=["an"])
        assert answer.balance == 1
        assert wallet.sql("SELECT made_by FROM journal") == [("cashier",)]


@pytest.mark.parametrize(
    ("changed", "field", "reason"),
    [
        ({"amount": 0}, "amount", "BAD_AMOUNT"),
        ({"amount": -1}, "amount", "BAD_AMOUNT"),
        ({"amount": 2**53}, "amount", "BAD_AMOUNT"),
        ({"currency": "XXX"}, "currency", "UNKNOWN_CURRENCY"),
        ({"currency": "eur"}, "currency", "UNKNOWN_CURRENCY"),
        ({"currency": ""}, "currency", "UNKNOWN_CURRENCY"),
        ({"player_id": ""}, "player_id", "BAD_PLAYER_ID"),
        ({"player_id": "a b"}, "player_id", "BAD_PLAYER_ID"),
        ({"request_id": ""}, "request_id", "BAD_REQUEST_ID"),
        ({"request_id": "x" * 65}, "request_id", "BAD_REQUEST_ID"),
        ({"reference": "x" * 129}, "reference", "BAD_REFERENCE"),
        ({"reference": "\0"}, "reference", "BAD_REFERENCE"),
    ],
)
@pytest.mark.parametrize("method", ["Deposit", "Withdraw"])
async def test_malformed_cash_is_refused_and_writes_nothing(
    start: Start, method: str, changed: dict[str, Any], field: str, reason: str
) -> None:
    fields: dict[str, Any] = {
        "request_id": "d1",
        "player_id": "anna",
        "amount": 1,
        "currency": "EUR",
        **changed,
    }
    kind = pb.DepositRequest if method == "Deposit" else pb.WithdrawRequest
    async with start() as wallet:
        with pytest.raises(InvalidArgument) as caught:
            await wallet.call(method, kind(**fields), *OPERATOR)
        assert caught.value.reason == reason
        assert [each[0] for each in caught.value.violations] == [field]
        assert wallet.sql("SELECT count(*) FROM journal") == [(0,)]
        assert wallet.sql("SELECT count(*) FROM accounts") == [(0,)]


async def test_malformed_pages_and_shards_are_refused(start: Start) -> None:
    async with start() as wallet:
        for fields in (
            {"page_size": -1},
            {"page_size": 501},
            {"page_token": "x"},
            {"page_token": "1" * 19},
            {"currency": "XXX"},
        ):
            with pytest.raises(InvalidArgument):
                await wallet.statement("anna", **fields)
        for shard in (-1, 8):
            with pytest.raises(InvalidArgument) as caught:
                await wallet.inspect(shard)
            assert caught.value.reason == "BAD_SHARD"
