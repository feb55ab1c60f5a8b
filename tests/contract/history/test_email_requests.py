"""Asking for a hand by e-mail: once, for one's own hands, to one's own address."""

import asyncio
from typing import Any

import psycopg
import pytest
from doorcard.history.v1 import history_pb2 as pb
from google.protobuf.duration_pb2 import Duration

from services.runtime.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from services.runtime.ids import uuid7
from tests import hand_records as hands
from tests.contract.history.conftest import SERVICE, Caller, Start

ANNA = {"email": "anna@example.net"}
LEASE = Duration(seconds=30)
LONG = Duration(seconds=2**53)
STATES = "SELECT state, reason, token_address FROM email_requests"


async def ask(
    call: Caller, hand: pb.HandRecord, request_id: str = "r1", who: str = "anna", email: str = ""
) -> pb.RequestHandEmailResponse:
    request = pb.RequestHandEmailRequest(request_id=request_id, hand_id=hand.hand_id)
    answer = await call("RequestHandEmail", request, who, email=email or f"{who}@example.net")
    assert isinstance(answer, pb.RequestHandEmailResponse)
    return answer


async def claim(call: Caller, limit: int = 10, lease_s: int = 30) -> list[pb.EmailRequest]:
    request = pb.ClaimEmailRequestsRequest(limit=limit, lease=Duration(seconds=lease_s))
    return list((await call("ClaimEmailRequests", request, *SERVICE)).requests)


async def complete(call: Caller, claimed: pb.EmailRequest, *, sent: bool, attempt: int = 0) -> int:
    request = pb.CompleteEmailRequestRequest(
        email_request_id=claimed.email_request_id,
        attempt=attempt or claimed.attempt,
        outcome=pb.EMAIL_STATE_SENT if sent else pb.EMAIL_STATE_FAILED,
        reason="" if sent else "SMTP_UNREACHABLE",
    )
    answer = await call("CompleteEmailRequest", request, *SERVICE)
    return int(answer.state)


async def overdue(archive_url: str, column: str = "due_at") -> None:
    """As if an hour and more had passed for every request that waits."""
    async with await psycopg.AsyncConnection.connect(archive_url) as connection:
        statement = f"UPDATE email_requests SET {column} = {column} - interval '2 hours'"
        await connection.execute(statement.encode())


async def rows(archive_url: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(archive_url) as connection:
        return await (await connection.execute(STATES)).fetchall()


async def test_a_repeated_request_asks_once(archive: Start) -> None:
    hand = hands.showdown()
    async with archive() as call:
        await call.store(hand)
        answers = await asyncio.gather(*(ask(call, hand) for _ in range(5)))
        assert len({answer.email_request_id for answer in answers}) == 1
        assert len(await claim(call)) == 1
        with pytest.raises(AlreadyExists, match="REQUEST_ID_REUSED"):
            await ask(call, hands.showdown())
        # The same request_id of another player is another request.
        await ask(call, hand, who="carla")
        assert [each.player_id for each in await claim(call)] == ["carla"]


async def test_what_is_claimed_is_the_hand_as_that_player_may_see_it(archive: Start) -> None:
    hand = hands.showdown()
    async with archive() as call:
        await call.store(hand)
        await ask(call, hand, who="ben")
        (claimed,) = await claim(call)
        assert (claimed.address, claimed.attempt) == ("ben@example.net", 1)
        assert list(claimed.hand.players[1].cards) == hands.CARDS[2]
        assert list(claimed.hand.players[3].cards) == ["", "", "9h", "8d"]
        assert not claimed.hand.inputs
        assert not claimed.hand.sealed_deck


async def test_a_hand_on_its_way_is_accepted_and_mailed_when_it_arrives(
    archive: Start, archive_url: str
) -> None:
    hand = hands.showdown()
    async with archive() as call:
        await ask(call, hand)
        assert not await claim(call)
        await call.store(hand)
        (claimed,) = await claim(call)
        assert claimed.hand.hand_id == hand.hand_id


async def test_a_stranger_is_refused_or_ends_when_the_hand_arrives(
    archive: Start, archive_url: str
) -> None:
    here, coming = hands.showdown(), hands.showdown()
    async with archive() as call:
        await call.store(here)
        with pytest.raises(PermissionDenied, match="NOT_DEALT_IN"):
            await ask(call, here, who="eve")
        await ask(call, coming, who="eve")
        await call.store(coming, after=1)
        assert not await claim(call)
    assert await rows(archive_url) == [(pb.EMAIL_STATE_FAILED, "NOT_DEALT_IN", None)]


async def test_a_request_whose_hand_never_comes_ends(archive: Start, archive_url: str) -> None:
    async with archive() as call:
        await ask(call, hands.showdown())
        assert not await claim(call)
        await overdue(archive_url)
        await overdue(archive_url, "requested_at")
        assert not await claim(call)
    assert await rows(archive_url) == [(pb.EMAIL_STATE_FAILED, "HAND_NOT_FOUND", None)]


async def test_a_mail_goes_to_the_operator_s_address_or_else_to_the_token_s(
    archive: Start, archive_url: str
) -> None:
    hand = hands.showdown()

    def change(request_id: str, address: str) -> pb.SetMailAddressRequest:
        return pb.SetMailAddressRequest(request_id=request_id, player_id="anna", address=address)

    async with archive() as call:
        await call.store(hand)
        await call("SetMailAddress", change("s1", "set@example.org"), "olga", ["operator"])
        await ask(call, hand)
        (claimed,) = await claim(call)
        assert claimed.address == "set@example.org"
        await call("SetMailAddress", change("s2", ""), "olga", ["operator"])
        # A late repeat of the first change does not bring it back.
        await call("SetMailAddress", change("s1", "set@example.org"), "olga", ["operator"])
        await overdue(archive_url)
        (claimed,) = await claim(call)
        assert claimed.address == "anna@example.net"
        with pytest.raises(AlreadyExists):
            await call("SetMailAddress", change("s1", "x@example.org"), "olga", ["operator"])
        with pytest.raises(PermissionDenied):
            await call("SetMailAddress", change("s3", "x@example.org"), "anna")


@pytest.mark.parametrize(
    "email", ["", "nobody", "a@b, c@d.example", "a@b\r\nBcc: c@d.example", "<a@b.example>"]
)
async def test_without_a_plain_address_nothing_is_taken(archive: Start, email: str) -> None:
    hand = hands.showdown()
    async with archive() as call:
        request = pb.RequestHandEmailRequest(request_id="r1", hand_id=hand.hand_id)
        with pytest.raises(FailedPrecondition, match="NO_MAIL_ADDRESS"):
            await call("RequestHandEmail", request, email=email)
        if email:
            change = pb.SetMailAddressRequest(request_id="s1", player_id="anna", address=email)
            with pytest.raises(InvalidArgument, match="BAD_ADDRESS") as refused:
                await call("SetMailAddress", change, "olga", ["operator"])
            assert email not in str(refused.value)


async def test_a_gateway_s_own_address_is_not_its_player_s(archive: Start) -> None:
    request = pb.RequestHandEmailRequest(request_id="r1", hand_id=uuid7())
    async with archive() as call:
        with pytest.raises(FailedPrecondition, match="NO_MAIL_ADDRESS"):
            await call(
                "RequestHandEmail",
                request,
                "gateway",
                ["service"],
                act_for=["*"],
                email="gateway@example.net",
                headers=[("x-doorcard-player", "anna")],
            )


async def test_workers_share_requests_and_leases_come_back(
    archive: Start, archive_url: str
) -> None:
    hand = hands.showdown()
    async with archive() as call:
        await call.store(hand)
        for n in range(12):
            await ask(call, hand, f"r{n}")
        shares = await asyncio.gather(*(claim(call, limit=3) for _ in range(6)))
        taken = [each.email_request_id for share in shares for each in share]
        assert len(taken) == len(set(taken)) == 12
        assert not await claim(call)
        await overdue(archive_url)
        again = await claim(call, limit=100)
        assert {each.email_request_id for each in again} == set(taken)
        assert {each.attempt for each in again} == {2}


async def test_failures_are_tried_again_later_up_to_a_limit(
    archive: Start, archive_url: str
) -> None:
    hand = hands.showdown()
    async with archive(email_attempts_max=2) as call:
        await call.store(hand)
        await ask(call, hand)
        (first,) = await claim(call)
        assert await complete(call, first, sent=False) == pb.EMAIL_STATE_WAITING
        assert not await claim(call)  # it waits for its backoff
        await overdue(archive_url)
        (second,) = await claim(call)
        assert second.attempt == 2
        # The first try's late failure says nothing about the second.
        assert await complete(call, first, sent=False) == pb.EMAIL_STATE_WAITING
        assert await complete(call, second, sent=False) == pb.EMAIL_STATE_FAILED
        assert (await ask(call, hand)).state == pb.EMAIL_STATE_FAILED
    assert await rows(archive_url) == [(pb.EMAIL_STATE_FAILED, "SMTP_UNREACHABLE", None)]


async def test_a_last_try_whose_worker_died_ends_the_request(
    archive: Start, archive_url: str
) -> None:
    hand = hands.showdown()
    async with archive(email_attempts_max=1) as call:
        await call.store(hand)
        await ask(call, hand)
        await claim(call)
        await overdue(archive_url)
        assert not await claim(call)
    assert await rows(archive_url) == [(pb.EMAIL_STATE_FAILED, "ATTEMPTS_USED_UP", None)]


async def test_a_mail_sent_by_a_worker_whose_lease_lapsed_is_sent(
    archive: Start, archive_url: str
) -> None:
    hand = hands.showdown()
    async with archive() as call:
        await call.store(hand)
        await ask(call, hand)
        (first,) = await claim(call)
        await overdue(archive_url)
        (second,) = await claim(call)
        assert await complete(call, first, sent=True) == pb.EMAIL_STATE_SENT
        assert await complete(call, second, sent=False) == pb.EMAIL_STATE_SENT
        assert not await claim(call)
        assert (await ask(call, hand)).state == pb.EMAIL_STATE_SENT
    # The address is not kept longer than it is needed.
    assert await rows(archive_url) == [(pb.EMAIL_STATE_SENT, "", None)]


async def test_a_player_s_requests_are_bounded(archive: Start) -> None:
    hand = hands.showdown()
    async with archive(email_requests_per_hour=2) as call:
        await ask(call, hand, "r1")
        await ask(call, hand, "r2")
        with pytest.raises(ResourceExhausted, match="RATE_LIMITED") as refused:
            await ask(call, hand, "r3")
        assert refused.value.retry_after_ms
        await ask(call, hand, "r1")
        await ask(call, hand, "r1", who="ben")


async def test_malformed_requests_are_refused(archive: Start) -> None:
    async with archive() as call:
        bad: list[tuple[str, Any, tuple[Any, ...]]] = [
            ("RequestHandEmail", pb.RequestHandEmailRequest(request_id="", hand_id=uuid7()), ()),
            ("RequestHandEmail", pb.RequestHandEmailRequest(request_id="r", hand_id="x"), ()),
            ("ClaimEmailRequests", pb.ClaimEmailRequestsRequest(limit=0, lease=LEASE), SERVICE),
            ("ClaimEmailRequests", pb.ClaimEmailRequestsRequest(limit=1), SERVICE),
            ("ClaimEmailRequests", pb.ClaimEmailRequestsRequest(limit=1, lease=LONG), SERVICE),
            (
                "CompleteEmailRequest",
                pb.CompleteEmailRequestRequest(
                    email_request_id=uuid7(),
                    attempt=1,
                    outcome=pb.EMAIL_STATE_FAILED,
                    reason="550 no such user anna@example.net",
                ),
                SERVICE,
            ),
        ]
        for method, request, who in bad:
            with pytest.raises(InvalidArgument):
                await call(method, request, *(who or ("anna",)), **ANNA)
        unknown = pb.CompleteEmailRequestRequest(
            email_request_id=uuid7(), attempt=1, outcome=pb.EMAIL_STATE_SENT
        )
        with pytest.raises(NotFound):
            await call("CompleteEmailRequest", unknown, *SERVICE)
