"""Whole club games over gRPC, with tables, ledger, settlement and reconciler."""

from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.reopening.rooms import CURRENCY, Scene, scene
from tests.contract.wallet.conftest import Start

PLAYERS = ("anna", "ben", "carla")
BUY_IN = 200
HANDS_MAX = 200


def bold(turn: table_pb2.Turn) -> game_pb2.Action:
    """The largest wager there is, else a call."""
    if not turn.legal.wagers:
        return passive(turn)
    return game_pb2.Action(kind=turn.legal.wager_kind, amount=turn.legal.wagers[-1])


async def registered(at: Scene, agreed: table_pb2.TableFormat) -> str:
    """A club game where all but the last player have a seat; he has money for one."""
    table_id = await at.tables.create(
        format=agreed, action_ms=300_000, hand_pause_ms=20, seats=len(PLAYERS)
    )
    for player in PLAYERS:
        await at.wallet.deposit(player, BUY_IN, CURRENCY)
    for player in PLAYERS[:-1]:
        await at.tables.take_seat(table_id, player)
    return table_id


async def act(
    at: Scene, view: table_pb2.TableView, choose: Callable[[table_pb2.Turn], Any]
) -> None:
    """Whoever's turn it is acts."""
    turn = view.hand.turn
    player = next(seat.player_id for seat in view.seats if seat.seat == turn.seat)
    request = table_pb2.ActRequest(
        request_id=str(uuid4()),
        table_id=view.config.table_id,
        hand_id=view.hand.hand_id,
        turn=turn.turn,
        action=choose(turn),
    )
    await at.stub.Act(request, metadata=at.tables.room.metadata(player))


async def play_on(at: Scene, table_id: str, choose: Callable[[table_pb2.Turn], Any]) -> None:
    """Everybody acts until the table is closed; after every hand all agrees."""
    hands = 0
    while True:
        view = await at.until(table_id, lambda view: view.hand.HasField("turn") or view.game.over)
        if view.game.over:
            return
        if view.hands > hands:
            hands = view.hands
            assert hands < HANDS_MAX
            assert await at.reconciled(at.shard_of(table_id)) == {}
        await act(at, view, choose)


async def balances(at: Scene) -> dict[str, tuple[int, int, int]]:
    """Player -> available, pending, in play."""
    return {player: await at.wallet.balance(player, CURRENCY) for player in PLAYERS}


async def test_a_freeze_out_from_registration_to_the_prizes_in_the_wallets(
    room: Room, start: Start, server: valkey.Valkey
) -> None:
    async with scene(room, start, cast(Any, server), replicas=1) as at:
        prizes = table_pb2.TableFormat(kind=table_pb2.FORMAT_KIND_FREEZE_OUT, prizes=[60, 40])
        table_id = await registered(at, prizes)
        # Before it begins a seat is given back with the whole buy-in, and taken again.
        leave = table_pb2.LeaveSeatRequest(request_id="leave", table_id=table_id)
        left = await at.stub.LeaveSeat(leave, metadata=room.metadata("ben"))
        assert left.left
        await at.agree(table_id)
        assert (await balances(at))["ben"] == (BUY_IN, 0, 0)
        for player in ("ben", "carla"):
            await at.tables.take_seat(table_id, player)
        view = await at.until(table_id, lambda view: view.game.HasField("started"))
        assert view.game.prize_pool == 3 * BUY_IN
        await at.agree(table_id)
        await play_on(at, table_id, bold)
        await at.agree(table_id)
        ranking = list((await at.view(table_id)).game.ranking)
        assert [each.stack for each in ranking] == [600, 0, 0]
        assert sum(each.prize for each in ranking) == 600
        assert ranking[0].prize == 360
        assert await balances(at) == {each.player_id: (each.prize, 0, 0) for each in ranking}
        assert (await at.wallet.sound(CURRENCY)).rake == 0
        # What the prizes moved is no hand: the archive has each hand that was dealt, and no other.
        assert len(at.archive.hands) == (await at.view(table_id)).hands
        await at.sound(at.shard_of(table_id))
        assert (await at.view(table_id)).state == table_pb2.TABLE_STATE_CLOSED


async def test_a_timed_game_ends_with_the_hand_that_runs_when_the_time_is_up(
    room: Room, start: Start, server: valkey.Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(room, start, cast(Any, server), replicas=1) as at:
        agreed = table_pb2.TableFormat(kind=table_pb2.FORMAT_KIND_TIMED)
        agreed.duration.FromSeconds(3600)
        table_id = await registered(at, agreed)
        await at.tables.take_seat(table_id, PLAYERS[-1])
        for _ in range(2):
            await at.play_hand(table_id)
        view = await at.until(table_id, lambda view: view.hand.HasField("turn"))
        lasts_s = view.game.until.seconds - view.game.started.seconds
        assert lasts_s == 3600
        now_ms = at.store.now_ms
        monkeypatch.setattr(at.store, "now_ms", lambda shard=0: now_ms(shard) + 3_600_000)
        hands = view.hands
        await play_on(at, table_id, passive)
        view = await at.view(table_id)
        assert (view.hands, view.state) == (hands, table_pb2.TABLE_STATE_CLOSED)
        await at.agree(table_id)
        ranking = list(view.game.ranking)
        stacks = [each.stack for each in ranking]
        assert stacks == sorted(stacks, reverse=True)
        assert sum(stacks) == sum(each.prize for each in ranking) == 600
        assert {each.prize for each in ranking if each.rank > 1} <= {0}
        assert await balances(at) == {each.player_id: (each.prize, 0, 0) for each in ranking}
        await at.sound(at.shard_of(table_id))
