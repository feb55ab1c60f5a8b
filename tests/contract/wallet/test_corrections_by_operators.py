"""Adjustments and reversals: new entries with a reason and an operator, never a changed row."""

import asyncio
from typing import Any

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import (
    AlreadyExists,
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from services.wallet.money import AMOUNT_MAX
from tests.contract.wallet.conftest import OPERATOR, Start, Wallet, refused, two_seats


async def hand_transfer(wallet: Wallet) -> str:
    """Id of the only hand's transfer."""
    return str(wallet.sql("SELECT id FROM journal WHERE kind = 5")[0][0])


async def test_an_adjustment_moves_money_between_player_and_house_with_reason_and_name(
    start: Start,
) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        up = await wallet.adjust(30, "goodwill", player_id="anna")
        assert up.balance == 130
        down = await wallet.adjust(-50, "booked twice", player_id="anna")
        assert down.balance == 80
        found = await wallet.sound()
        assert (found.players, found.house, found.rake) == (80, 20, 0)
        line = (await wallet.statement("anna")).transfers[0]
        assert (line.kind, line.amount, line.balance, line.reason) == (
            pb.TRANSFER_KIND_ADJUSTMENT,
            -50,
            80,
            "booked twice",
        )
        whole = await wallet.transfer(down.transfer_id)
        assert (whole.made_by, whole.reason) == ("olga", "booked twice")


async def test_an_adjustment_repeated_happens_once(start: Start) -> None:
    async with start() as wallet:
        answers = await asyncio.gather(
            *(wallet.adjust(10, player_id="anna", request_id="a1") for _ in range(20))
        )
        assert len({each.transfer_id for each in answers}) == 1
        assert await wallet.balance("anna") == (10, 0, 0)
        other: dict[str, Any]
        for other in ({"amount": 11}, {"reason": "another"}, {"player_id": "ben"}):
            asked: dict[str, Any] = {"amount": 10, "player_id": "anna", "request_id": "a1", **other}
            await refused(wallet.adjust(**asked), AlreadyExists, "ID_REUSED")


async def test_an_adjustment_takes_only_what_is_available(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        await wallet.reserve("anna", 80, "sitting-1")
        call = wallet.adjust(-21, player_id="anna", request_id="a1")
        error = await refused(call, FailedPrecondition, "INSUFFICIENT_FUNDS")
        assert error.metadata["available"] == "20"
        await wallet.deposit("anna", 1)
        assert (await wallet.adjust(-21, player_id="anna", request_id="a1")).balance == 80
        await wallet.deposit("anna", AMOUNT_MAX - 80)
        await refused(wallet.adjust(1, player_id="anna"), FailedPrecondition, "BALANCE_LIMIT")
        await wallet.sound()


async def test_a_sittings_escrow_can_be_adjusted_to_the_chips_at_its_table(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, _ = await two_seats(wallet)
        assert (await wallet.adjust(-7, sitting_id=anna)).balance == 93
        assert (await wallet.adjust(2, sitting_id=anna)).balance == 95
        await refused(wallet.adjust(-96, sitting_id=anna), FailedPrecondition, "INSUFFICIENT_FUNDS")
        await refused(
            wallet.adjust(1, sitting_id=anna, currency="USD"),
            FailedPrecondition,
            "CURRENCY_DIFFERS",
        )
        await refused(wallet.adjust(1, sitting_id="nobody"), NotFound, "SITTING_UNKNOWN")
        assert not (await wallet.apply([outbox.cash_out(anna, "anna", 95)])).parked
        await refused(wallet.adjust(1, sitting_id=anna), FailedPrecondition, "SITTING_ENDED")
        assert (await wallet.sound()).house == 5


async def test_a_deposit_is_taken_back_once(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 5)
        deposit = await wallet.deposit("anna", 100)
        answers = await asyncio.gather(
            *(wallet.reverse(deposit.transfer_id, "charged back") for _ in range(10)),
            return_exceptions=True,
        )
        done = [each for each in answers if isinstance(each, pb.ReverseTransferResponse)]
        assert len(done) == 1
        assert {each.reason for each in answers if isinstance(each, DoorcardError)} == {
            "ALREADY_REVERSED"
        }
        assert await wallet.balance("anna") == (5, 0, 0)
        line = (await wallet.statement("anna")).transfers[0]
        assert (line.amount, line.balance, line.reverses_transfer_id, line.reason) == (
            -100,
            5,
            deposit.transfer_id,
            "charged back",
        )
        original = await wallet.transfer(deposit.transfer_id)
        assert original.reversed_by_transfer_id == done[0].transfer_id
        assert (await wallet.sound()).deposits == 5


async def test_a_withdrawal_and_an_adjustment_are_taken_back(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        out = await wallet.withdraw("anna", 60)
        more = await wallet.adjust(9, player_id="anna")
        for transfer in (out, more):
            await wallet.reverse(transfer.transfer_id)
        assert await wallet.balance("anna") == (100, 0, 0)
        found = await wallet.sound()
        assert (found.withdrawals, found.house) == (0, 0)


async def test_a_reversal_repeated_gets_the_first_answer(start: Start) -> None:
    async with start() as wallet:
        deposit = await wallet.deposit("anna", 100)
        first = await wallet.reverse(deposit.transfer_id, request_id="r1")
        assert await wallet.reverse(deposit.transfer_id, request_id="r1") == first
        await refused(
            wallet.reverse(deposit.transfer_id, "another reason", request_id="r1"),
            AlreadyExists,
            "ID_REUSED",
        )


async def test_what_was_spent_cannot_be_taken_back_until_it_is_there_again(start: Start) -> None:
    async with start() as wallet:
        deposit = await wallet.deposit("anna", 100)
        await wallet.withdraw("anna", 1)
        call = wallet.reverse(deposit.transfer_id, request_id="r1")
        await refused(call, FailedPrecondition, "INSUFFICIENT_FUNDS")
        await wallet.deposit("anna", 1)
        await wallet.reverse(deposit.transfer_id, request_id="r1")
        await wallet.sound()


async def test_a_hand_goes_back_in_the_players_own_accounts(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        await wallet.apply([outbox.hand({anna: -30, ben: 28}, rake=2)])
        hand = await hand_transfer(wallet)
        await refused(wallet.reverse(hand), FailedPrecondition, "INSUFFICIENT_FUNDS")
        outbox.entries = [outbox.cash_out(anna, "anna", 70), outbox.cash_out(ben, "ben", 128)]
        await wallet.apply(outbox.entries)
        await wallet.reverse(hand, "the deck was marked")
        assert [await wallet.balance(each) for each in ("anna", "ben")] == [(100, 0, 0)] * 2
        found = await wallet.sound()
        assert (found.house, found.escrow) == (0, 0)
        line = (await wallet.statement("anna")).transfers[0]
        assert (line.kind, line.amount, line.balance) == (pb.TRANSFER_KIND_REVERSAL, 30, 100)


async def test_what_moves_chips_cannot_be_taken_back(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        await wallet.apply([outbox.hand({}), outbox.cash_out(ben, "ben", 100)])
        of_sitting = await wallet.adjust(1, sitting_id=anna)
        for kind in (3, 4, 5):
            ((entry,),) = wallet.sql(
                f"SELECT min(id) FROM journal WHERE kind = {kind} AND table_id IS NOT NULL"
            )
            if entry is not None:
                await refused(wallet.reverse(str(entry)), FailedPrecondition, "NOT_REVERSIBLE")
        await refused(wallet.reverse(of_sitting.transfer_id), FailedPrecondition, "NOT_REVERSIBLE")
        deposit = await wallet.deposit("carl", 1)
        back = await wallet.reverse(deposit.transfer_id)
        await refused(wallet.reverse(back.transfer_id), FailedPrecondition, "NOT_REVERSIBLE")
        await refused(wallet.reverse("999999"), NotFound, "TRANSFER_UNKNOWN")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"amount": 0}, "BAD_AMOUNT"),
        ({"amount": 2**53}, "BAD_AMOUNT"),
        ({"amount": -(2**53)}, "BAD_AMOUNT"),
        ({"currency": "XXX"}, "UNKNOWN_CURRENCY"),
        ({"player_id": "a b"}, "BAD_PLAYER_ID"),
        ({"request_id": ""}, "BAD_REQUEST_ID"),
        ({"reason": ""}, "BAD_REASON"),
        ({"reason": "   "}, "BAD_REASON"),
        ({"reason": "x" * 257}, "BAD_REASON"),
        ({"reason": "a\0b"}, "BAD_REASON"),
        ({"player_id": None}, "BAD_TARGET"),
        ({"player_id": None, "sitting_id": ""}, "BAD_REQUEST_ID"),
    ],
)
async def test_a_malformed_adjustment_is_refused_and_writes_nothing(
    start: Start, changed: dict[str, Any], reason: str
) -> None:
    fields: dict[str, Any] = {
        "request_id": "a1",
        "player_id": "anna",
        "amount": 1,
        "currency": "EUR",
        "reason": "why",
        **changed,
    }
    async with start() as wallet:
        request = pb.AdjustBalanceRequest(**fields)
        await refused(wallet.call("AdjustBalance", request, *OPERATOR), InvalidArgument, reason)
        for transfer_id in ("", "x", "-1", "1" * 19):
            await refused(wallet.reverse(transfer_id), InvalidArgument, "BAD_TRANSFER_ID")
        for table in ("journal", "accounts", "requests"):
            assert wallet.sql(f"SELECT count(*) FROM {table}") == [(0,)]


async def test_only_operators_correct(start: Start) -> None:
    async with start() as wallet:
        deposit = await wallet.deposit("anna", 1)
        requests = {
            "AdjustBalance": pb.AdjustBalanceRequest(player_id="anna"),
            "ReverseTransfer": pb.ReverseTransferRequest(transfer_id=deposit.transfer_id),
            "CloseAccount": pb.CloseAccountRequest(player_id="anna"),
            "ReopenAccount": pb.ReopenAccountRequest(player_id="anna"),
        }
        for method, request in requests.items():
            for role in ("player", "service", "auditor", "cashier"):
                call = wallet.call(method, request, "anna", [role], act_for=["*"])
                await refused(call, PermissionDenied, "ROLE_NOT_ALLOWED")


async def test_a_player_sees_his_own_lines_of_a_transfer_and_no_names(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        await wallet.apply([outbox.hand({anna: -30, ben: 28}, rake=2)])
        hand = await hand_transfer(wallet)
        whole = await wallet.transfer(hand)
        assert [line.amount for line in whole.lines] == [30, 28, 2]
        assert [line.credit.purpose for line in whole.lines] == [
            pb.ACCOUNT_PURPOSE_CONTROL,
            pb.ACCOUNT_PURPOSE_ESCROW,
            pb.ACCOUNT_PURPOSE_HOUSE,
        ]
        assert whole.source_id == outbox.last_id
        assert (whole.table_id, whole.hand_id) != ("", "")
        seen = await wallet.transfer(hand, "anna", ["player"])
        assert [line.debit.owner for line in seen.lines] == [anna]
        assert (seen.made_by, seen.source_id) == ("", "")
        await refused(wallet.transfer(hand, "carl", ["player"]), NotFound, "TRANSFER_UNKNOWN")
        shared = whole.lines[2].credit.owner
        await refused(wallet.transfer(hand, shared, ["player"]), NotFound, "TRANSFER_UNKNOWN")


async def test_accounts_are_listed_in_pages_by_owner_purpose_and_currency(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, _ = await two_seats(wallet)
        await wallet.deposit("anna", 3, "XTS")

        async def listed(**fields: Any) -> list[tuple[str, str, int]]:
            found: list[tuple[str, str, int]] = []
            token = ""
            while True:
                request = pb.ListAccountsRequest(page_size=2, page_token=token, **fields)
                page = await wallet.call("ListAccounts", request, "audrey", ["auditor"])
                found += [(each.owner, each.currency, each.balance) for each in page.accounts]
                token = page.next_page_token
                if not token:
                    return found

        assert await listed(owner="anna") == [("anna", "EUR", 0), ("anna", "XTS", 3)]
        assert await listed(owner="anna", currency="XTS") == [("anna", "XTS", 3)]
        assert await listed(owner=anna) == [(anna, "EUR", 100)]
        escrow = await listed(purpose=pb.ACCOUNT_PURPOSE_ESCROW)
        assert [each[2] for each in escrow] == [100, 100]
        assert len(await listed()) == wallet.sql("SELECT count(*) FROM accounts")[0][0]
        assert outbox.seq == 2
