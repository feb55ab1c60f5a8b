"""Entries that could not be applied: listed whole, tried again in order, resolved with a reason."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from tests.contract.wallet.conftest import (
    OPERATOR,
    OTHER_TABLE,
    TABLE,
    Outbox,
    Start,
    Wallet,
    refused,
    two_seats,
)


async def parked_table(wallet: Wallet) -> tuple[Outbox, str, str]:
    """anna loses more than her escrow holds; what follows waits behind it."""
    outbox, anna, ben = await two_seats(wallet)
    outbox.hand({anna: -130, ben: 130})
    outbox.hand({anna: -1, ben: 1})
    outbox.cash_out(anna, "anna", 0)
    answer = await wallet.apply(outbox.entries)
    assert [each.reason for each in answer.parked] == ["ESCROW_OVERDRAWN"] + ["BEHIND_PARKED"] * 2
    return outbox, anna, ben


async def test_parked_entries_are_listed_whole_in_pages(start: Start) -> None:
    async with start() as wallet:
        outbox, _, _ = await parked_table(wallet)
        found: list[pb.ParkedEntry] = []
        token = ""
        while True:
            request = pb.ListParkedEntriesRequest(page_size=2, page_token=token)
            page = await wallet.call("ListParkedEntries", request, "audrey", ["auditor"])
            found += page.entries
            token = page.next_page_token
            if not token:
                break
        assert [each.content for each in found] == outbox.entries
        assert [(each.epoch, each.seq) for each in found] == [(1, 3), (1, 4), (1, 5)]
        assert all(each.parked.seconds and not each.HasField("resolved") for each in found)
        assert await wallet.parked(table_id=OTHER_TABLE) == []
        assert len(await wallet.parked(table_id=TABLE.upper())) == 3


async def test_a_retry_applies_in_order_once_the_cause_is_gone(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await parked_table(wallet)
        answer = await wallet.retry()
        assert not answer.applied
        assert [each.reason for each in answer.parked] == [
            "ESCROW_OVERDRAWN",
            "BEHIND_PARKED",
            "BEHIND_PARKED",
        ]
        await wallet.adjust(31, "the top-up that was lost", sitting_id=anna)
        answer = await wallet.retry()
        assert [each.seq for each in answer.applied] == [3, 4, 5]
        assert not answer.parked
        assert await wallet.escrow() == {ben: 231}
        assert await wallet.parked() == []
        resolved = await wallet.parked(include_resolved=True)
        assert {(each.resolution, each.resolved_by) for each in resolved} == {("APPLIED", "olga")}
        await refused(wallet.retry(), NotFound, "NOTHING_PARKED")
        assert not (await wallet.apply([outbox.cash_out(ben, "ben", 231)])).parked
        await wallet.sound()


async def test_a_retry_stops_at_the_first_that_still_cannot_be_applied(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        hand_id = str(uuid4())
        await wallet.apply([outbox.hand({anna: -1, ben: 1}, hand_id=hand_id)])
        outbox.entries.clear()
        outbox.hand({anna: -100, ben: 100})
        outbox.hand({anna: -1, ben: 1}, hand_id=hand_id)
        outbox.hand({anna: -1, ben: 1})
        await wallet.apply(outbox.entries)
        await wallet.adjust(5, sitting_id=anna)
        answer = await wallet.retry()
        assert [each.seq for each in answer.applied] == [4]
        assert [each.reason for each in answer.parked] == ["HAND_SETTLED_BEFORE", "BEHIND_PARKED"]
        assert await wallet.escrow() == {anna: 4, ben: 201}
        await wallet.resolve(answer.parked[0].entry_id, "settled before")
        assert [each.seq for each in (await wallet.retry()).applied] == [6]
        assert await wallet.escrow() == {anna: 3, ben: 202}
        await wallet.sound()


async def test_many_retries_at_once_apply_each_once(start: Start) -> None:
    async with start() as one, start() as two:
        _, anna, ben = await parked_table(one)
        await one.adjust(31, sitting_id=anna)
        answers = await asyncio.gather(
            *(wallet.retry() for wallet in (one, two) * 5), return_exceptions=True
        )
        applied = [each for each in answers if isinstance(each, pb.RetryParkedEntriesResponse)]
        assert len(applied) == 1
        assert all(isinstance(each, NotFound) for each in answers if each not in applied)
        assert await one.escrow() == {ben: 231}


async def test_a_resolved_entry_is_never_applied_and_keeps_its_content(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await parked_table(wallet)
        first = outbox.entries[0]
        resolved = await wallet.resolve(first.entry_id, "a bug of the table")
        assert (resolved.resolution, resolved.resolved_by) == ("a bug of the table", "olga")
        assert resolved.content == first
        assert await wallet.resolve(first.entry_id, "a bug of the table") == resolved
        await refused(
            wallet.resolve(first.entry_id, "another"), FailedPrecondition, "ALREADY_RESOLVED"
        )
        await refused(wallet.resolve(str(uuid4())), NotFound, "ENTRY_UNKNOWN")
        answer = await wallet.retry()
        assert [each.seq for each in answer.applied] == [4]
        assert [each.reason for each in answer.parked] == ["AMOUNT_DIFFERS"]
        assert await wallet.escrow() == {anna: 99, ben: 101}


async def test_other_tables_of_the_shard_go_on_meanwhile(start: Start) -> None:
    async with start() as wallet:
        outbox, _, _ = await parked_table(wallet)
        outbox.entries.clear()
        await wallet.deposit("carl", 50)
        elsewhere = await wallet.reserve("carl", 50, "carl-1", table_id=OTHER_TABLE)
        outbox.commit(elsewhere.reservation_id, table=OTHER_TABLE)
        outbox.cash_out("carl-1", "carl", 50, table=OTHER_TABLE)
        assert not (await wallet.apply(outbox.entries)).parked
        assert await wallet.balance("carl") == (50, 0, 0)


async def test_parked_entries_outlive_their_epoch(start: Start) -> None:
    async with start() as wallet:
        _, anna, ben = await parked_table(wallet)
        await wallet.open_epoch(1)
        behind = Outbox().hand({anna: -1, ben: 1})
        parked = (await wallet.apply([behind], epoch=2)).parked
        assert [each.reason for each in parked] == ["BEHIND_PARKED"]
        await wallet.adjust(32, sitting_id=anna)
        answer = await wallet.retry()
        assert [(each.epoch, each.seq) for each in answer.applied][:2] == [(1, 3), (1, 4)]


async def test_who_may_do_what_with_parked_entries(start: Start) -> None:
    async with start() as wallet:
        await wallet.call("ListParkedEntries", pb.ListParkedEntriesRequest(), "s", ["service"])
        requests: dict[str, Any] = {
            "RetryParkedEntries": pb.RetryParkedEntriesRequest(),
            "ResolveParkedEntry": pb.ResolveParkedEntryRequest(),
        }
        for method, request in requests.items():
            for role in ("service", "auditor", "player", "cashier"):
                with pytest.raises(PermissionDenied):
                    await wallet.call(method, request, "someone", [role])


async def test_malformed_requests_are_refused(start: Start) -> None:
    async with start() as wallet:
        await refused(wallet.retry("x"), InvalidArgument, "BAD_UUID")
        await refused(wallet.resolve("x"), InvalidArgument, "BAD_UUID")
        await refused(wallet.resolve(str(uuid4()), ""), InvalidArgument, "BAD_REASON")
        for token in ("x", "1.1", "1.1.x", "99999999.1.1"):
            await refused(wallet.parked(page_token=token), InvalidArgument, "BAD_PAGE")
        await refused(wallet.parked(page_size=501), InvalidArgument, "BAD_PAGE")
        retry = pb.RetryParkedEntriesRequest(table_id=TABLE)
        await refused(
            wallet.call("RetryParkedEntries", retry, *OPERATOR), InvalidArgument, "BAD_REQUEST_ID"
        )
