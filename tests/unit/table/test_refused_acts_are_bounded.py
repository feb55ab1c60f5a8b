"""Unary actions that are refused: each costs a look into the store; a player has only so many."""

from typing import Any, cast
from uuid import uuid4

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.runtime.auth import Caller, enter_call
from services.runtime.errors import DoorcardError
from services.runtime.roles import Role
from services.table.server import TableServer
from services.table.store.store import Store
from services.table.streams.budgets import PLAYER, Budgets
from services.table.streams.watchers import Watchers
from tests.unit.table.rooms import FakeRoom, passive

MORE = 50
"""Beyond what a player has."""


async def served() -> tuple[FakeRoom, TableServer]:
    """A room with a hand of two, and the server before it, whose budgets do not come back."""
    room = FakeRoom(seed=4)
    await room.create()
    await room.seat("anna", "ben")
    await room.start_hand()
    store = cast(Store, room.store)
    server = TableServer(store, room.tables, Watchers(store, room.tables), cast(Any, room.wallet))
    server._refusals = Budgets(lambda: 1000.0)
    return room, server


async def act(room: FakeRoom, server: TableServer, player: str, turn: int = -1) -> str:
    """An action of his for this decision, or for one that is long over; why it was refused."""
    _, want, hand_id = room.to_act()
    request = table_pb2.ActRequest(
        request_id=str(uuid4()),
        table_id=room.table_id,
        hand_id=hand_id if turn >= 0 else str(uuid4()),
        turn=max(turn, 0),
        action=game_pb2.Action(kind=cast(Any, int(passive(want)))),
    )
    try:
        await server.Act(request, cast(Any, None))
    except DoorcardError as error:
        return error.reason
    return ""


async def test_stale_actions_stop_costing_the_store_anything() -> None:
    room, server = await served()
    enter_call(Caller("anna", frozenset({Role.PLAYER}), ()), "")
    said = [await act(room, server, "anna") for _ in range(PLAYER.burst)]
    assert set(said) == {"STALE_TURN"}
    reads = room.store.reads
    said = [await act(room, server, "anna") for _ in range(MORE)]
    assert set(said) == {"RATE_LIMITED"}
    assert room.store.reads == reads


async def test_another_player_of_the_same_gateway_has_his_own() -> None:
    room, server = await served()
    player, want, _ = room.to_act()
    other = {"anna": "ben", "ben": "anna"}[player]
    for name, count in ((other, PLAYER.burst + 1), (player, 1)):
        enter_call(Caller("gate", frozenset({Role.SERVICE}), ("*",)), name)
        said = [
            await act(room, server, name, want.turn if name == player else -1) for _ in range(count)
        ]
        assert said[-1] == ("" if name == player else "RATE_LIMITED")


async def test_actions_that_are_taken_cost_nothing() -> None:
    room, server = await served()
    server._refusals = Budgets(lambda: 1000.0)
    taken = 0
    while taken < 8 and room.table.hand is not None:
        player, want, _ = room.to_act()
        enter_call(Caller(player, frozenset({Role.PLAYER}), ()), "")
        assert await act(room, server, player, want.turn) == ""
        taken += 1
    assert not server._refusals._full_at_s


def test_a_look_at_a_budget_takes_nothing() -> None:
    budgets = Budgets(lambda: 1000.0)
    for _ in range(PLAYER.burst):
        for _ in range(2):
            budgets.check(("", "anna"))
        budgets.refused(("", "anna"))
    with pytest.raises(DoorcardError):
        budgets.check(("", "anna"))
    budgets.refused(("", "anna"))
    budgets.check(("", "ben"))
