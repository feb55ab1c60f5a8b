"""Storing, finding and reading hands over the wire."""

import asyncio
from typing import Any

import psycopg
import pytest
from doorcard.history.v1 import history_pb2 as pb

from services.history.__main__ import MIGRATIONS
from services.runtime.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from services.runtime.ids import uuid7
from services.runtime.schema import upgrade
from tests import hand_records as hands
from tests.contract.history.conftest import SERVICE, Start

OPERATOR = ("olga", ["operator"])


def stored(*entries: pb.ArchiveEntry, epoch: int = 1, shard: int = 1) -> pb.StoreHandsRequest:
    return pb.StoreHandsRequest(shard=shard, epoch=epoch, entries=entries)


async def test_entries_that_are_archived_are_passed_over(archive: Start) -> None:
    first, second = hands.showdown(), hands.showdown()
    async with archive() as call:
        one, two, three = hands.entry(1, first), hands.entry(2), hands.entry(3, second)
        assert (await call("StoreHands", stored(one, two), *SERVICE)).archived_seq == 2
        assert (await call("StoreHands", stored(one, two, three), *SERVICE)).archived_seq == 3
        assert (await call("StoreHands", stored(one), *SERVICE)).archived_seq == 3
        progress = await call("GetArchiveProgress", pb.GetArchiveProgressRequest(shard=1), *SERVICE)
        assert (progress.epoch, progress.archived_seq) == (1, 3)
        listed = await call("ListHands", pb.ListHandsRequest())
        assert {hand.hand_id for hand in listed.hands} == {first.hand_id, second.hand_id}


async def test_doubled_drains_of_a_shard_keep_every_hand_once(
    archive: Start, archive_url: str
) -> None:
    entries = [hands.entry(seq, hands.showdown()) for seq in range(1, 21)]
    async with archive() as call:
        answers = await asyncio.gather(
            *(call("StoreHands", stored(*entries), *SERVICE) for _ in range(6))
        )
    assert [answer.archived_seq for answer in answers] == [20] * 6
    with psycopg.connect(archive_url) as connection:
        counted = connection.execute("SELECT count(*), count(DISTINCT seq) FROM hands").fetchone()
        assert counted == (20, 20)


async def test_a_gap_is_refused_and_nothing_of_the_batch_is_kept(archive: Start) -> None:
    hand = hands.showdown()
    async with archive() as call:
        with pytest.raises(FailedPrecondition) as refused:
            await call("StoreHands", stored(hands.entry(2, hand)), *SERVICE)
        assert (refused.value.reason, refused.value.metadata["archived_seq"]) == (
            "ARCHIVE_GAP",
            "0",
        )
        with pytest.raises(NotFound):
            await call("GetHand", pb.GetHandRequest(hand_id=hand.hand_id))


async def test_a_new_epoch_counts_from_one_and_an_ended_one_is_refused(archive: Start) -> None:
    async with archive() as call:
        await call("StoreHands", stored(hands.entry(1, hands.showdown())), *SERVICE)
        later = stored(hands.entry(1, hands.showdown()), epoch=2)
        assert (await call("StoreHands", later, *SERVICE)).archived_seq == 1
        with pytest.raises(FailedPrecondition, match="EPOCH_ENDED"):
            await call("StoreHands", stored(hands.entry(2, hands.showdown())), *SERVICE)


async def test_an_archived_hand_stays_as_it_first_came(archive: Start) -> None:
    hand = hands.showdown()
    async with archive() as call:
        await call.store(hand)
        void = hands.uncontested(hand.hand_id, void=True)
        await call("StoreHands", stored(hands.entry(1, void), epoch=2), *SERVICE)
        found = await call("GetHand", pb.GetHandRequest(hand_id=hand.hand_id))
        assert not found.hand.void


async def test_a_player_gets_his_view_and_strangers_get_nothing(archive: Start) -> None:
    hand = hands.showdown()
    request = pb.GetHandRequest(hand_id=hand.hand_id)
    async with archive() as call:
        await call.store(hand)
        seen = (await call("GetHand", request, "ben")).hand
        assert list(seen.players[1].cards) == hands.CARDS[2]
        assert list(seen.players[3].cards) == ["", "", "9h", "8d"]
        assert not seen.inputs
        assert not seen.sealed_deck
        with pytest.raises(PermissionDenied, match="NOT_DEALT_IN"):
            await call("GetHand", request, "eve")
        with pytest.raises(NotFound, match="HAND_NOT_FOUND"):
            await call("GetHand", pb.GetHandRequest(hand_id=uuid7()), "anna")
        with pytest.raises(InvalidArgument):
            await call("GetHand", pb.GetHandRequest(hand_id="1"), "anna")


async def test_a_gateway_reads_as_its_player_and_as_no_other(archive: Start) -> None:
    hand = hands.showdown()
    request = pb.GetHandRequest(hand_id=hand.hand_id)
    gateway: dict[str, Any] = {"who": "gateway", "roles": ["service"], "act_for": ["b"]}
    async with archive() as call:
        await call.store(hand)
        headers = [("x-doorcard-player", "ben")]
        seen = (await call("GetHand", request, headers=headers, **gateway)).hand
        assert list(seen.players[1].cards) == hands.CARDS[2]
        with pytest.raises(PermissionDenied, match="NOT_YOUR_PLAYER"):
            await call("GetHand", request, headers=[("x-doorcard-player", "anna")], **gateway)
        with pytest.raises(PermissionDenied, match="PLAYER_NOT_NAMED"):
            await call("GetHand", request, **gateway)


async def test_staff_read_whole_hands_and_leave_a_trace(archive: Start, archive_url: str) -> None:
    hand = hands.showdown()
    async with archive() as call:
        await call.store(hand)
        seen = (await call("GetHand", pb.GetHandRequest(hand_id=hand.hand_id), *OPERATOR)).hand
        assert list(seen.players[1].cards) == hands.CARDS[2]
        assert not seen.sealed_deck
        await call("ListHands", pb.ListHandsRequest(player_id="ben"), "aud", ["auditor"])
    with psycopg.connect(archive_url) as connection:
        traces = connection.execute(
            "SELECT subject, hand_id::text, player_id FROM staff_reads ORDER BY read_id"
        ).fetchall()
    assert traces == [("olga", hand.hand_id, None), ("aud", None, "ben")]


async def test_a_service_sees_of_a_table_what_the_rail_saw(archive: Start) -> None:
    async with archive() as call:
        await call.store(hands.showdown())
        request = pb.ListHandsRequest(table_id=hands.TABLE)
        (seen,) = (await call("ListHands", request, *SERVICE)).hands
        assert [list(player.cards) for player in seen.players][1:3] == [
            ["", "", "3d"],
            ["", "", "3c", "8c", "8h", "6s", ""],
        ]
        with pytest.raises(InvalidArgument):
            await call("ListHands", pb.ListHandsRequest(), *SERVICE)


async def test_lists_go_newest_first_in_pages_without_gap_or_repeat(archive: Start) -> None:
    played = [hands.showdown(ended_ms=hands.STARTED_MS + 1000 * (n // 2)) for n in range(11)]
    other = hands.showdown(table_id=uuid7())
    async with archive() as call:
        await call.store(*played, other)
        listed: list[pb.HandRecord] = []
        token = ""
        while True:
            request = pb.ListHandsRequest(table_id=hands.TABLE, page_size=4, page_token=token)
            page = await call("ListHands", request, "dan")
            listed += page.hands
            token = page.next_page_token
            if not token:
                break
        assert len(listed) == 11
        assert {hand.hand_id for hand in listed} == {hand.hand_id for hand in played}
        ended = [hand.ended.ToMilliseconds() for hand in listed]
        assert ended == sorted(ended, reverse=True)
        everywhere = await call("ListHands", pb.ListHandsRequest(page_size=100), "dan")
        assert len(everywhere.hands) == 12


async def test_a_list_is_of_the_caller_s_own_hands(archive: Start) -> None:
    async with archive() as call:
        await call.store(hands.showdown())
        assert not (await call("ListHands", pb.ListHandsRequest(), "eve")).hands
        with pytest.raises(PermissionDenied):
            await call("ListHands", pb.ListHandsRequest(player_id="anna"), "eve")
        for bad in ("rubbish", "e30=", "\N{SNOWMAN}"):
            with pytest.raises(InvalidArgument, match="page_token"):
                await call("ListHands", pb.ListHandsRequest(page_token=bad), "eve")
        with pytest.raises(InvalidArgument, match="page_size"):
            await call("ListHands", pb.ListHandsRequest(page_size=101), "eve")


@pytest.mark.parametrize(
    "method", ["StoreHands", "GetArchiveProgress", "ClaimEmailRequests", "CompleteEmailRequest"]
)
async def test_players_and_staff_may_not_call_what_is_settlement_s(
    archive: Start, method: str
) -> None:
    async with archive() as call:
        for role in ("player", "operator", "auditor"):
            with pytest.raises(PermissionDenied, match="ROLE_NOT_ALLOWED"):
                await call(method, getattr(pb, f"{method}Request")(), "anna", [role])


def test_the_schema_is_brought_up_to_date_any_number_of_times(archive_url: str) -> None:
    upgrade(archive_url, MIGRATIONS)
    with psycopg.connect(archive_url) as connection:
        connection.execute("SELECT * FROM hands").fetchall()
        connection.execute("INSERT INTO staff_reads (subject) VALUES ('x')")
        with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
            connection.execute("DELETE FROM staff_reads")
