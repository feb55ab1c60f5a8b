"""Top-ups from the wallet to the stack and back, with tables, ledger, settlement and reconciler."""

from typing import Any, cast
from uuid import uuid4

import grpc
import pytest
from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.errors import Code, DoorcardError
from tests import valkey
from tests.conftest import Room
from tests.contract.reopening.rooms import CURRENCY, Scene, scene
from tests.contract.wallet.conftest import Start

BUY_IN = 5000
"""The announced minimum of the stake."""


async def refused(call: Any) -> DoorcardError:
    """The typed error that a call ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        await call
    return DoorcardError.from_rpc(caught.value)


async def seated(at: Scene, *players: str, has: int) -> str:
    """A table under the announced minimum with players who have so much in all."""
    table_id = await at.tables.create(
        rulebook="triopoker", stake_name="5/10", action_ms=300_000, hand_pause_ms=20
    )
    for player in players:
        await at.wallet.deposit(player, has, CURRENCY)
        await at.tables.take_seat(table_id, player, buy_in=BUY_IN)
    return str(table_id)


async def top_up(at: Scene, table_id: str, player: str, amount: int, request_id: str = "") -> Any:
    """The answer to a TopUp."""
    request = table_pb2.TopUpRequest(
        request_id=request_id or str(uuid4()), table_id=table_id, amount=amount
    )
    return await at.stub.TopUp(request, metadata=at.tables.room.metadata(player))


async def test_what_is_held_agrees_with_the_ledger_at_every_step(
    room: Room, start: Start, server: valkey.Valkey
) -> None:
    async with scene(room, start, cast(Any, server), replicas=1) as at:
        table_id = await seated(at, "anna", "ben", has=8000)
        await at.until(table_id, lambda view: view.hand.HasField("turn"))
        await at.agree(table_id)
        held = await top_up(at, table_id, "anna", 3000, "t1")
        assert held.held == 3000
        assert await at.wallet.balance("anna", CURRENCY) == (0, 3000, BUY_IN)
        # Old or not, it is held and stays so.
        await at.agree(table_id)
        assert (await top_up(at, table_id, "anna", 3000, "t1")).held == 3000
        await at.play_hand(table_id)
        await at.agree(table_id)
        available, pending, in_play = await at.wallet.balance("anna", CURRENCY)
        assert (available, pending) == (0, 0)
        others = (await at.wallet.balance("ben", CURRENCY))[2]
        assert in_play + others == 2 * BUY_IN + 3000 - (await at.wallet.sound(CURRENCY)).rake
        again = await top_up(at, table_id, "anna", 3000, "t1")
        assert again.held == 0
        assert (await at.wallet.balance("anna", CURRENCY))[2] == in_play


async def test_lack_of_funds_is_told_and_the_same_request_may_be_tried_again(
    room: Room, start: Start, server: valkey.Valkey
) -> None:
    async with scene(room, start, cast(Any, server), replicas=1) as at:
        table_id = await seated(at, "anna", has=BUY_IN + 10)
        error = await refused(top_up(at, table_id, "anna", 11, "t1"))
        assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "INSUFFICIENT_FUNDS")
        await at.wallet.deposit("anna", 1, CURRENCY)
        assert (await top_up(at, table_id, "anna", 11, "t1")).held == 0
        await at.agree(table_id)
        assert await at.wallet.balance("anna", CURRENCY) == (0, 0, BUY_IN + 11)


async def test_leaving_in_the_hand_gives_back_what_is_held_and_the_stack_behind_it(
    room: Room, start: Start, server: valkey.Valkey
) -> None:
    async with scene(room, start, cast(Any, server), replicas=1) as at:
        table_id = await seated(at, "anna", "ben", has=8000)
        await at.until(table_id, lambda view: view.hand.HasField("turn"))
        await top_up(at, table_id, "anna", 3000)
        request = table_pb2.LeaveSeatRequest(request_id="leave", table_id=table_id)
        await at.stub.LeaveSeat(request, metadata=room.metadata("anna"))
        await at.until(table_id, lambda view: len(view.seats) == 1)
        await at.agree(table_id)
        available, pending, in_play = await at.wallet.balance("anna", CURRENCY)
        assert (pending, in_play) == (0, 0)
        assert 8000 - 150 <= available < 8000
        await at.sound(at.shard_of(table_id))


async def test_money_of_a_top_up_whose_process_died_goes_back(
    room: Room, start: Start, server: valkey.Valkey
) -> None:
    async with scene(room, start, cast(Any, server), replicas=1) as at:
        table_id = await seated(at, "anna", has=8000)
        (sitting,) = {s.sitting_id for s in await escrow_after_drain(at, table_id)}
        made = await at.wallet.reserve("anna", 3000, sitting, table_id=table_id, currency=CURRENCY)
        assert made.state == wallet_pb2.RESERVATION_STATE_PENDING
        await at.agree(table_id)
        assert await at.wallet.balance("anna", CURRENCY) == (3000, 0, BUY_IN)


async def escrow_after_drain(at: Scene, table_id: str) -> list[wallet_pb2.SittingEscrow]:
    """What the ledger has of the table, all applied."""
    await at.drain(table_id)
    return await at.escrow(table_id)
