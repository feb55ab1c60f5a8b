"""Requests that are wrong get the right typed error and change nothing; repeated ones act once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import grpc
import pytest
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import internal_pb2, table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.auth import TokenSigner
from services.runtime.errors import DoorcardError
from tests.contract.table.replicas import Seated
from tests.integration.rooms import (
    Client,
    Command,
    Places,
    act_request,
    client,
    player_to_act,
)

Kind = game_pb2.ActionKind
Code = grpc.StatusCode
BRING_IN = game_pb2.Action(kind=Kind.ACTION_KIND_BRING_IN)
LATE_S = -3600.0


@dataclass(frozen=True)
class Waiting:
    """A table of three where somebody owes the bring-in, for hours."""

    table_id: str
    view: table_pb2.TableView
    opener: str
    """Who is to act."""
    other: str
    """Who is in the hand too."""


@pytest.fixture(scope="module")
def waiting(up: Command) -> Waiting:
    """One table for all requests that are to change nothing."""
    return uvloop.run(waiting_table(Places.of(up.home)))


async def waiting_table(places: Places) -> Waiting:
    async with client(places) as at:
        return await new_table(at)


async def new_table(at: Client) -> Waiting:
    """The first hand of three players that nobody else knows."""
    table_id = await at.create_table()
    players = [f"{name}-{uuid4().hex[:6]}" for name in ("anna", "ben", "carla")]
    await at.sit_down(table_id, players)
    view = await at.turn(table_id)
    opener = player_to_act(view)
    return Waiting(table_id, view, opener, next(each for each in players if each != opener))


def signed_by_a_stranger(player_id: str) -> list[tuple[str, str]]:
    """A token that looks like one of this room."""
    stranger = TokenSigner(Ed25519PrivateKey.generate(), "room-1")
    return [("authorization", f"Bearer {stranger.mint(player_id, ['player'], 600)}")]


# Whose token

Bearer = Callable[[Client, Waiting], list[tuple[str, str]]]
TOKENS: dict[str, tuple[Bearer, Code, str]] = {
    "none": (lambda at, on: [], Code.UNAUTHENTICATED, "TOKEN_MISSING"),
    "of nobody": (
        lambda at, on: [("authorization", "Bearer rubbish")],
        Code.UNAUTHENTICATED,
        "TOKEN_INVALID",
    ),
    "of another room": (
        lambda at, on: signed_by_a_stranger(on.opener),
        Code.UNAUTHENTICATED,
        "TOKEN_INVALID",
    ),
    "expired": (
        lambda at, on: at.bearer(on.opener, ttl_s=LATE_S),
        Code.UNAUTHENTICATED,
        "TOKEN_EXPIRED",
    ),
    "of a player who is not to act": (
        lambda at, on: at.bearer(on.other),
        Code.FAILED_PRECONDITION,
        "NOT_YOUR_TURN",
    ),
    "of a player without a seat": (
        lambda at, on: at.bearer("zoe"),
        Code.FAILED_PRECONDITION,
        "NOT_SEATED",
    ),
    "of another player, for the one to act": (
        lambda at, on: [*at.bearer(on.other), ("x-doorcard-player", on.opener)],
        Code.PERMISSION_DENIED,
        "NOT_YOUR_PLAYER",
    ),
    "for a player id that cannot be": (
        lambda at, on: [*at.bearer(on.other), ("x-doorcard-player", "no id!")],
        Code.INVALID_ARGUMENT,
        "BAD_PLAYER_ID",
    ),
    "of a gateway for other players": (
        lambda at, on: [
            *at.bearer("gateway", ("service",), act_for=("web:",)),
            ("x-doorcard-player", on.opener),
        ],
        Code.PERMISSION_DENIED,
        "NOT_YOUR_PLAYER",
    ),
    "of a gateway that names nobody": (
        lambda at, on: at.bearer("gateway", ("service",), act_for=("*",)),
        Code.PERMISSION_DENIED,
        "PLAYER_NOT_NAMED",
    ),
    "of an operator": (lambda at, on: at.operator, Code.PERMISSION_DENIED, "ROLE_NOT_ALLOWED"),
}


@pytest.mark.parametrize("token", TOKENS)
async def test_an_action_under_a_token(places: Places, waiting: Waiting, token: str) -> None:
    bearer, code, reason = TOKENS[token]
    async with unchanged(places, waiting) as at:
        asked = act_request(waiting.view, BRING_IN)
        await refused(at.tables[0].Act, asked, bearer(at, waiting), code, reason)


# What is asked

WRONG_ACTIONS: dict[str, tuple[Any, dict[str, Any], Code, str]] = {
    "an amount that is not offered": (
        game_pb2.Action(kind=Kind.ACTION_KIND_COMPLETE, amount=7), {},
        Code.FAILED_PRECONDITION, "ILLEGAL_AMOUNT",
    ),
    "no amount where one belongs": (
        game_pb2.Action(kind=Kind.ACTION_KIND_COMPLETE), {},
        Code.FAILED_PRECONDITION, "ILLEGAL_AMOUNT",
    ),
    "an amount where none belongs": (
        game_pb2.Action(kind=Kind.ACTION_KIND_BRING_IN, amount=2), {},
        Code.FAILED_PRECONDITION, "ILLEGAL_AMOUNT",
    ),
    "more than anybody has": (
        game_pb2.Action(kind=Kind.ACTION_KIND_COMPLETE, amount=2**53 - 1), {},
        Code.FAILED_PRECONDITION, "ILLEGAL_AMOUNT",
    ),
    "less than nothing": (
        game_pb2.Action(kind=Kind.ACTION_KIND_COMPLETE, amount=-5), {},
        Code.INVALID_ARGUMENT, "INVALID_FIELD",
    ),
    "more than there can be": (
        game_pb2.Action(kind=Kind.ACTION_KIND_COMPLETE, amount=2**62), {},
        Code.INVALID_ARGUMENT, "INVALID_FIELD",
    ),
    "a check": (
        game_pb2.Action(kind=Kind.ACTION_KIND_CHECK), {},
        Code.FAILED_PRECONDITION, "ILLEGAL_ACTION",
    ),
    "a fold of the bring-in": (
        game_pb2.Action(kind=Kind.ACTION_KIND_FOLD), {},
        Code.FAILED_PRECONDITION, "ILLEGAL_ACTION",
    ),
    "nothing": (game_pb2.Action(), {}, Code.INVALID_ARGUMENT, "INVALID_FIELD"),
    "a turn that never was": (BRING_IN, {"turn": 99}, Code.FAILED_PRECONDITION, "STALE_TURN"),
    "a turn before any": (BRING_IN, {"turn": -1}, Code.INVALID_ARGUMENT, "INVALID_FIELD"),
    "another hand": (
        BRING_IN, {"hand_id": str(uuid4())},
        Code.FAILED_PRECONDITION, "STALE_TURN",
    ),
    "an unknown table": (
        BRING_IN, {"table_id": str(uuid4())},
        Code.NOT_FOUND, "TABLE_UNKNOWN",
    ),
    "a table id that is none": (
        BRING_IN, {"table_id": "table one"},
        Code.INVALID_ARGUMENT, "BAD_UUID",
    ),
    "no table id": (BRING_IN, {"table_id": ""}, Code.INVALID_ARGUMENT, "BAD_UUID"),
    "a hand id that is none": (BRING_IN, {"hand_id": "1"}, Code.INVALID_ARGUMENT, "BAD_UUID"),
    "no hand id": (BRING_IN, {"hand_id": ""}, Code.INVALID_ARGUMENT, "BAD_UUID"),
    "no request id": (BRING_IN, {"request_id": ""}, Code.INVALID_ARGUMENT, "BAD_REQUEST_ID"),
    "a request id with blanks": (
        BRING_IN, {"request_id": "a b"},
        Code.INVALID_ARGUMENT, "BAD_REQUEST_ID",
    ),
    "a request id that is too long": (
        BRING_IN, {"request_id": "a" * 65},
        Code.INVALID_ARGUMENT, "BAD_REQUEST_ID",
    ),
}  # fmt: skip
"""What the player to act asks for: the action, what else is wrong, and what he is told."""


@pytest.mark.parametrize("wrong", WRONG_ACTIONS)
async def test_an_action_with(places: Places, waiting: Waiting, wrong: str) -> None:
    action, changes, code, reason = WRONG_ACTIONS[wrong]
    async with unchanged(places, waiting) as at:
        asked = act_request(waiting.view, action, **changes)
        for replica in at.tables:
            await refused(replica.Act, asked, at.bearer(waiting.opener), code, reason)


async def test_a_stream_refuses_in_the_words_of_the_calls(places: Places, waiting: Waiting) -> None:
    async with client(places) as at:
        stream = Seated(at.tables[1], at.bearer(waiting.opener), waiting.table_id)
        await stream.join()
        await at.until(
            waiting.table_id,
            lambda view: any(
                seat.connected for seat in view.seats if seat.player_id == waiting.opener
            ),
        )
        before = await at.view(waiting.table_id)
        for wrong, (action, changes, code, reason) in WRONG_ACTIONS.items():
            if "table_id" in changes or changes.get("request_id") == "":
                continue
            result = await stream.act(action, **changes)
            assert result.version == 0, wrong
            assert (result.refusal.code, result.refusal.reason) == (code.value[0], reason), wrong
        assert await at.view(waiting.table_id) == before
        stream.call.cancel()
        await at.until(waiting.table_id, lambda view: view.version > before.version)


# The other calls


@dataclass(frozen=True)
class Wrong:
    """A call that is wrong: how it is made, and what is answered."""

    method: Callable[[Client], Any]
    request: Callable[[Waiting], Any]
    bearer: Bearer
    code: Code
    reason: str
    fields: dict[str, Any] = field(default_factory=dict)


def by_a_player(at: Client, _on: Waiting) -> list[tuple[str, str]]:
    """Somebody who has no seat."""
    return at.bearer("zoe")


def take_seat(on: Waiting, **fields: Any) -> Any:
    """A buy-in as it should be, but for `fields`."""
    asked = {"request_id": str(uuid4()), "table_id": on.table_id, "buy_in": 200, **fields}
    return table_pb2.TakeSeatRequest(**asked)


def create_table(**fields: Any) -> Any:
    """A table as it should be, but for `fields`."""
    asked = {
        "request_id": str(uuid4()),
        "name": "Table one",
        "rulebook": "club",
        "stake_name": "5/10",
        "seats": 6,
        "currency": "XTS",
        **fields,
    }
    return table_pb2.CreateTableRequest(**asked)


OTHER_CALLS: dict[str, Wrong] = {
    "a view of an unknown table": Wrong(
        lambda at: at.tables[0].GetTable,
        lambda on: table_pb2.GetTableRequest(table_id=str(uuid4())),
        by_a_player, Code.NOT_FOUND, "TABLE_UNKNOWN",
    ),
    "a seat at an unknown table": Wrong(
        lambda at: at.tables[0].TakeSeat,
        lambda on: take_seat(on, table_id=str(uuid4())),
        by_a_player, Code.NOT_FOUND, "TABLE_UNKNOWN",
    ),
    "a seat without money": Wrong(
        lambda at: at.tables[0].TakeSeat,
        take_seat,
        by_a_player, Code.FAILED_PRECONDITION, "INSUFFICIENT_FUNDS",
    ),
    "a seat that is taken": Wrong(
        lambda at: at.tables[0].TakeSeat,
        lambda on: take_seat(on, seat=0),
        by_a_player, Code.FAILED_PRECONDITION, "SEAT_TAKEN",
    ),
    "a seat that the table has not": Wrong(
        lambda at: at.tables[0].TakeSeat,
        lambda on: take_seat(on, seat=6),
        by_a_player, Code.INVALID_ARGUMENT, "INVALID_FIELD",
    ),
    "a second seat": Wrong(
        lambda at: at.tables[0].TakeSeat,
        take_seat,
        lambda at, on: at.bearer(on.other), Code.FAILED_PRECONDITION, "ALREADY_SEATED",
    ),
    "a buy-in that is too small": Wrong(
        lambda at: at.tables[0].TakeSeat,
        lambda on: take_seat(on, buy_in=199),
        by_a_player, Code.FAILED_PRECONDITION, "BUY_IN_TOO_SMALL",
    ),
    "a buy-in that is too large": Wrong(
        lambda at: at.tables[0].TakeSeat,
        lambda on: take_seat(on, buy_in=201),
        by_a_player, Code.FAILED_PRECONDITION, "BUY_IN_TOO_LARGE",
    ),
    "a buy-in of nothing": Wrong(
        lambda at: at.tables[0].TakeSeat,
        lambda on: take_seat(on, buy_in=0),
        by_a_player, Code.INVALID_ARGUMENT, "INVALID_FIELD",
    ),
    "sitting out without a seat": Wrong(
        lambda at: at.tables[0].SitOut,
        lambda on: table_pb2.SitOutRequest(request_id=str(uuid4()), table_id=on.table_id),
        by_a_player, Code.FAILED_PRECONDITION, "NOT_SEATED",
    ),
    "a player's table": Wrong(
        lambda at: at.tables[0].CreateTable,
        lambda on: create_table(),
        by_a_player, Code.PERMISSION_DENIED, "ROLE_NOT_ALLOWED",
    ),
    "a table under no rulebook": Wrong(
        lambda at: at.tables[0].CreateTable,
        lambda on: create_table(rulebook="whist"),
        lambda at, on: at.operator, Code.INVALID_ARGUMENT, "BAD_TABLE",
    ),
    "a table of nine seats": Wrong(
        lambda at: at.tables[0].CreateTable,
        lambda on: create_table(seats=9),
        lambda at, on: at.operator, Code.INVALID_ARGUMENT, "BAD_TABLE",
    ),
    "the outbox, for a player": Wrong(
        lambda at: at.internal.ReadOutbox,
        lambda on: internal_pb2.ReadOutboxRequest(shard=0, limit=10),
        by_a_player, Code.PERMISSION_DENIED, "ROLE_NOT_ALLOWED",
    ),
    "the outbox, for an operator": Wrong(
        lambda at: at.internal.ReadOutbox,
        lambda on: internal_pb2.ReadOutboxRequest(shard=0, limit=10),
        lambda at, on: at.operator, Code.PERMISSION_DENIED, "ROLE_NOT_ALLOWED",
    ),
    "a player's own deposit": Wrong(
        lambda at: at.wallet.Deposit,
        lambda on: wallet_pb2.DepositRequest(
            request_id=str(uuid4()), player_id="zoe", amount=100, currency="XTS"
        ),
        by_a_player, Code.PERMISSION_DENIED, "ROLE_NOT_ALLOWED",
    ),
    "a page token that was never given out": Wrong(
        lambda at: at.tables[0].ListTables,
        lambda on: table_pb2.ListTablesRequest(page_token="page two"),
        by_a_player, Code.INVALID_ARGUMENT, "INVALID_FIELD",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", OTHER_CALLS)
async def test_a_call_for(places: Places, waiting: Waiting, wrong: str) -> None:
    case = OTHER_CALLS[wrong]
    async with unchanged(places, waiting) as at:
        asked, bearer = case.request(waiting), case.bearer(at, waiting)
        await refused(case.method(at), asked, bearer, case.code, case.reason)


# Once and only once


async def test_an_action_sent_again_acts_once_at_either_replica(places: Places) -> None:
    async with client(places) as at:
        on = await new_table(at)
        asked, bearer = act_request(on.view, BRING_IN), at.bearer(on.opener)
        first = await at.tables[0].Act(asked, metadata=bearer)
        after = await at.view(on.table_id)
        assert after.version == first.version
        for replica in (*at.tables, *at.tables):
            assert await replica.Act(asked, metadata=bearer) == first
        assert await at.view(on.table_id) == after
        brought_in = [seat.bet for seat in after.hand.seats if seat.bet]
        assert brought_in == [2]


async def test_an_action_sent_many_times_at_once_acts_once(places: Places) -> None:
    async with client(places) as at:
        on = await new_table(at)
        asked, bearer = act_request(on.view, BRING_IN), at.bearer(on.opener)
        # No more at once than may wait for a player.
        calls = [at.tables[number % 2].Act(asked, metadata=bearer) for number in range(6)]
        answers = [await call for call in calls]
        assert len({answer.version for answer in answers}) == 1
        assert (await at.view(on.table_id)).version == answers[0].version


async def test_replicas_with_old_caches_act_on_the_present_table(places: Places) -> None:
    async with client(places) as at:
        on = await new_table(at)
        view, player, seen = on.view, on.opener, []
        action = BRING_IN
        for number in range(6):
            # The replica that acts now has not seen what the other one has just committed.
            await at.tables[number % 2].Act(
                act_request(view, action), metadata=at.bearer(player), timeout=5
            )
            seen.append((view, player, action))
            view = await at.turn(on.table_id)
            player = player_to_act(view)
            check = view.hand.turn.legal.check
            kind = Kind.ACTION_KIND_CHECK if check else Kind.ACTION_KIND_CALL
            action = game_pb2.Action(kind=kind)
        for number, (old, old_player, old_action) in enumerate(seen):
            asked, bearer = act_request(old, old_action), at.bearer(old_player)
            for replica in at.tables:
                error = await refused(
                    replica.Act, asked, bearer, Code.FAILED_PRECONDITION, "STALE_TURN"
                )
                assert error.metadata["turn"] == str(view.hand.turn.turn), number
                assert error.metadata["seat"] == str(view.hand.turn.seat), number
        assert await at.view(on.table_id) == view


async def test_a_seat_asked_for_again_is_taken_and_paid_once(places: Places) -> None:
    async with client(places) as at:
        table_id = await at.create_table()
        player = f"dan-{uuid4().hex[:6]}"
        await at.deposit(player, 500)
        asked = table_pb2.TakeSeatRequest(request_id="sit-1", table_id=table_id, buy_in=200)
        answers = [
            await at.tables[number % 2].TakeSeat(asked, metadata=at.bearer(player))
            for number in range(4)
        ]
        assert len({(answer.seat, answer.sitting_id) for answer in answers}) == 1
        view = await at.view(table_id)
        assert [(seat.player_id, seat.stack) for seat in view.seats] == [(player, 200)]
        balance = await at.wallet.GetBalance(
            wallet_pb2.GetBalanceRequest(), metadata=at.bearer(player)
        )
        assert [each.available for each in balance.balances] == [300]


async def test_an_id_used_again_for_something_else_is_told_so(places: Places) -> None:
    async with client(places) as at:
        asked = create_table(request_id=f"table-{uuid4()}")
        made = await at.tables[0].CreateTable(asked, metadata=at.operator)
        again = await at.tables[1].CreateTable(asked, metadata=at.operator)
        assert again.table.config.table_id == made.table.config.table_id
        asked.seats = 4
        await refused(
            at.tables[1].CreateTable, asked, at.operator, Code.ALREADY_EXISTS, "TABLE_EXISTS"
        )
        player = f"eve-{uuid4().hex[:6]}"
        deposit = wallet_pb2.DepositRequest(
            request_id=f"deposit-{uuid4()}", player_id=player, amount=100, currency="XTS"
        )
        first = await at.wallet.Deposit(deposit, metadata=at.operator)
        assert await at.wallet.Deposit(deposit, metadata=at.operator) == first
        deposit.amount = 1_000_000
        await refused(at.wallet.Deposit, deposit, at.operator, Code.ALREADY_EXISTS, "ID_REUSED")


# How it is seen that nothing has changed


class unchanged:  # noqa: N801 (reads as a block)
    """A client, and at the end of the block the table is what it was, for everybody."""

    def __init__(self, places: Places, waiting: Waiting) -> None:
        self._client = Client(places)
        self._waiting = waiting
        self._before: list[table_pb2.TableView] = []

    async def __aenter__(self) -> Client:
        self._before = await self._views()
        return self._client

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            assert await self._views() == self._before
        await self._client.close()

    async def _views(self) -> list[table_pb2.TableView]:
        on, at = self._waiting, self._client
        viewers = ("", on.opener, on.other)
        return [
            await at.view(on.table_id, viewer, number % 2) for number, viewer in enumerate(viewers)
        ]


async def refused(
    method: Any, request: Any, metadata: Any, code: Code, reason: str
) -> DoorcardError:
    """The typed error of a call that must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        await method(request, metadata=metadata, timeout=5)
    error = DoorcardError.from_rpc(caught.value)
    assert (error.code, error.reason) == (code, reason), error
    assert error.message
    if code is Code.INVALID_ARGUMENT:
        assert error.violations, "it does not say which field"
    return error
