"""Which rake schedule a table pins: for its game and stake, under the house's own rule."""

from typing import Any, cast

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.auth import Caller, enter_call
from services.runtime.roles import Role
from services.table.server import TableServer
from tests.unit.table.rooms import FakeRoom


async def pinned(room: FakeRoom, **fields: Any) -> wallet_pb2.RakeSchedule:
    """The schedule of a table that an operator creates."""
    nothing = cast(Any, None)
    server = TableServer(cast(Any, room.store), room.tables, nothing, room.wallet)
    request = table_pb2.CreateTableRequest(
        request_id="create-1", name="Nine", seats=6, currency="EUR", **fields
    )
    enter_call(Caller("olga", frozenset({Role.OPERATOR})), "")
    answer = await server.CreateTable(request, nothing)
    room.table_id = answer.table.config.table_id
    return wallet_pb2.RakeSchedule.FromString(room.table.blob.config.rake_schedule)


@pytest.mark.parametrize(
    ("rulebook", "stake", "game", "small_bet"),
    [
        ("eight-or-better", "1/2", game_pb2.GAME_HI_LO, 100),
        ("modern/razz", "5/10", game_pb2.GAME_RAZZ, 500),
        ("triopoker", "0.25/0.50", game_pb2.GAME_HIGH, 25),
    ],
)
async def test_a_schedule_is_asked_for_by_game_and_stake(
    rulebook: str, stake: str, game: int, small_bet: int
) -> None:
    room = FakeRoom()
    found = await pinned(room, rulebook=rulebook, stake_name=stake, rake_schedule_id="default")
    assert found.schedule_id == "default"
    assert [(each.game, each.small_bet) for each in room.wallet.schedules_asked] == [
        (game, small_bet)
    ]


@pytest.mark.parametrize(
    ("rulebook", "scheduled", "expected"),
    [
        # E rakes hands that end on third street, whatever a schedule says; modern never does.
        ("eight-or-better", True, False),
        ("modern", False, True),
        ("triopoker", False, False),
        ("triopoker", True, True),
    ],
)
async def test_the_rulebooks_word_on_third_street_goes_before_the_schedules(
    rulebook: str, scheduled: bool, expected: bool
) -> None:
    room = FakeRoom()
    room.wallet.no_rake_on_third = scheduled
    found = await pinned(room, rulebook=rulebook, stake_name="1/2", rake_schedule_id="default")
    assert found.no_rake_on_third is expected


async def test_without_a_schedule_none_is_asked_for() -> None:
    room = FakeRoom()
    assert await pinned(room, rulebook="club", stake_name="5/10") == wallet_pb2.RakeSchedule()
    assert room.wallet.schedules_asked == []
