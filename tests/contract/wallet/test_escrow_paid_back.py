"""Escrow that lost its seat with its shard's epoch: back to its player, once."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
)
from services.runtime.ids import uuid5_of
from tests.contract.wallet.conftest import (
    FAR_TABLE,
    OTHER_TABLE,
    Start,
    Wallet,
    refused,
    two_seats,
)


async def reopened(wallet: Wallet) -> list[pb.SittingEscrow]:
    """anna and ben hold escrow, and a new epoch has begun."""
    await two_seats(wallet)
    return list((await wallet.open_epoch(1)).escrow)


async def test_a_sitting_without_a_seat_is_paid_back_and_ends(start: Start) -> None:
    async with start() as wallet:
        anna, ben = await reopened(wallet)
        answer = await wallet.pay_back([anna], epoch=2)
        assert list(answer.paid_sitting_ids) == [anna.sitting_id]
        assert await wallet.balance("anna") == (100, 0, 0)
        assert await wallet.escrow() == {ben.sitting_id: 100}
        line = (await wallet.statement("anna")).transfers[0]
        assert (line.kind, line.amount, line.balance) == (pb.TRANSFER_KIND_PAYBACK, 100, 100)
        source = uuid5_of("payback", anna.sitting_id, 2)
        assert (await wallet.transfer(line.transfer_id)).source_id == source
        with pytest.raises(FailedPrecondition):
            await wallet.reserve("anna", 1, anna.sitting_id)
        await wallet.sound()


async def test_it_is_paid_once_however_often_it_is_asked_for(start: Start) -> None:
    async with start() as one, start() as two:
        escrow = await reopened(one)
        answers = await asyncio.gather(
            *(wallet.pay_back(escrow, epoch=2) for wallet in (one, two) * 5)
        )
        assert all(len(each.paid_sitting_ids) == 2 for each in answers)
        assert await one.balance("anna") == (100, 0, 0)
        assert await one.escrow() == {}
        await one.sound()


async def test_tables_with_parked_entries_keep_their_escrow(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        await wallet.deposit("carl", 9)
        reservation = await wallet.reserve("carl", 9, "carl-1", table_id=OTHER_TABLE)
        outbox.commit(reservation.reservation_id, table=OTHER_TABLE)
        bad = outbox.hand({anna: -500, ben: 500})
        await wallet.apply(outbox.entries)
        escrow = (await wallet.open_epoch(1)).escrow
        answer = await wallet.pay_back(escrow, epoch=2)
        assert list(answer.paid_sitting_ids) == ["carl-1"]
        assert set(answer.held_sitting_ids) == {anna, ben}
        assert await wallet.escrow() == {anna: 100, ben: 100}
        await wallet.resolve(bad.entry_id)
        answer = await wallet.pay_back(escrow, epoch=2)
        assert len(answer.paid_sitting_ids) == 3
        assert await wallet.escrow() == {}
        await wallet.sound()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"amount": 99}, "AMOUNT_DIFFERS"),
        ({"amount": 101}, "AMOUNT_DIFFERS"),
        ({"player_id": "ben"}, "PLAYER_DIFFERS"),
        ({"table_id": OTHER_TABLE}, "TABLE_DIFFERS"),
        ({"currency": "USD"}, "CURRENCY_DIFFERS"),
        ({"sitting_id": "nobody"}, "SITTING_UNKNOWN"),
        ({"amount": 0}, "BAD_AMOUNT"),
        ({"amount": 2**53}, "BAD_AMOUNT"),
        ({"currency": "XXX"}, "UNKNOWN_CURRENCY"),
        ({"table_id": "x"}, "BAD_UUID"),
        ({"table_id": FAR_TABLE}, "WRONG_SHARD"),
    ],
)
async def test_one_that_is_not_as_it_is_said_to_be_stops_the_whole_request(
    start: Start, changed: dict[str, Any], reason: str
) -> None:
    async with start() as wallet:
        anna, ben = await reopened(wallet)
        for field, value in changed.items():
            setattr(anna, field, value)
        with pytest.raises((FailedPrecondition, InvalidArgument)) as caught:
            await wallet.pay_back([ben, anna], epoch=2)
        assert caught.value.reason == reason
        assert sorted((await wallet.escrow()).values()) == [100, 100]


async def test_only_in_the_present_epoch_and_only_while_it_is_unchanged(start: Start) -> None:
    async with start() as wallet:
        anna, ben = await reopened(wallet)
        for epoch in (1, 3):
            await refused(wallet.pay_back([anna], epoch=epoch), Aborted, "EPOCH_MOVED")
        await wallet.adjust(1, sitting_id=anna.sitting_id)
        await refused(wallet.pay_back([anna], epoch=2), FailedPrecondition, "AMOUNT_DIFFERS")
        await refused(wallet.pay_back([ben, ben], epoch=2), InvalidArgument, "BAD_BATCH")
        many = [
            pb.SittingEscrow(
                sitting_id=str(uuid4()),
                player_id="anna",
                table_id=ben.table_id,
                amount=1,
                currency="EUR",
            )
            for _ in range(501)
        ]
        await refused(wallet.pay_back(many, epoch=2), InvalidArgument, "BAD_BATCH")
        await wallet.pay_back([ben], epoch=2)
        await wallet.open_epoch(2)
        call = wallet.pay_back([ben], epoch=3)
        await refused(call, FailedPrecondition, "SITTING_ENDED")


async def test_pending_reservations_are_part_of_a_shards_inspection(start: Start) -> None:
    async with start() as wallet:
        await two_seats(wallet)
        await wallet.deposit("carl", 50)
        here = await wallet.reserve("carl", 20, "carl-1")
        await wallet.reserve("carl", 10, "carl-2", table_id=FAR_TABLE)
        again = await wallet.reserve("carl", 5, "carl-1")
        assert list((await wallet.inspect()).pending) == [here, again]
        await refused(
            wallet.reserve("carl", 16, "carl-1"), FailedPrecondition, "INSUFFICIENT_FUNDS"
        )
