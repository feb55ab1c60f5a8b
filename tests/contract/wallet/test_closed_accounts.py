"""A closed account takes part in nothing until an operator opens it again."""

from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import AlreadyExists, FailedPrecondition, NotFound
from tests.contract.wallet.conftest import OPERATOR, Outbox, Start, refused, seat


async def test_a_closed_account_refuses_everything_with_a_typed_error(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        deposit = await wallet.withdraw("anna", 100)
        await wallet.close("anna")
        before = wallet.sql("SELECT count(*) FROM transfers")
        for call in (
            wallet.deposit("anna", 1),
            wallet.withdraw("anna", 1),
            wallet.reserve("anna", 1, "sitting-1"),
            wallet.adjust(1, player_id="anna"),
            wallet.reverse(deposit.transfer_id),
        ):
            await refused(call, FailedPrecondition, "ACCOUNT_CLOSED")
        assert wallet.sql("SELECT count(*) FROM transfers") == before
        answer = await wallet.call("GetBalance", pb.GetBalanceRequest(), "anna", ["player"])
        assert answer.balances[0].closed
        await wallet.deposit("anna", 1, "XTS")


async def test_it_opens_again_and_both_are_on_record(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 1)
        await wallet.withdraw("anna", 1)
        closed = await wallet.close("anna", request_id="c1")
        assert await wallet.close("anna", request_id="c1") == closed
        await refused(wallet.close("anna", "USD", request_id="c1"), AlreadyExists, "ID_REUSED")
        await refused(wallet.close("anna"), FailedPrecondition, "ACCOUNT_CLOSED")
        reopen = pb.ReopenAccountRequest(
            request_id="o1", player_id="anna", currency="EUR", reason="he came back"
        )
        await wallet.call("ReopenAccount", reopen, *OPERATOR)
        await wallet.deposit("anna", 1)
        reopen.request_id = "o2"
        await refused(
            wallet.call("ReopenAccount", reopen, *OPERATOR),
            FailedPrecondition,
            "ACCOUNT_NOT_CLOSED",
        )
        record = await wallet.transfer(closed)
        assert (record.kind, record.made_by, record.reason) == (
            pb.TRANSFER_KIND_CLOSING,
            "olga",
            "he asked for it",
        )


async def test_only_an_empty_account_closes(start: Start) -> None:
    async with start() as wallet:
        await refused(wallet.close("anna"), NotFound, "ACCOUNT_UNKNOWN")
        outbox = Outbox()
        await wallet.open_epoch()
        anna = await seat(wallet, outbox, "anna", 50)
        await refused(wallet.close("anna"), FailedPrecondition, "ACCOUNT_NOT_EMPTY")
        await wallet.apply(outbox.entries)
        assert await wallet.balance("anna") == (0, 0, 50)
        await refused(wallet.close("anna"), FailedPrecondition, "ACCOUNT_NOT_EMPTY")
        await wallet.apply([outbox.cash_out(anna, "anna", 50)])
        await wallet.withdraw("anna", 50)
        await wallet.close("anna")
        await wallet.sound()
