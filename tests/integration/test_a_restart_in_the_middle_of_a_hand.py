"""A room that is stopped in the middle of a hand goes on with the same hand and the same cards."""

import signal
from pathlib import Path

import pytest
from doorcard.table.v1 import table_pb2

from tests.choices import passive
from tests.integration.rooms import Client, client, command, player_to_act

pytestmark = pytest.mark.timeout(180)
PLAYERS = ("anna", "ben")
HALF_WAY = 5
ACTIONS_MAX = 40


@pytest.mark.parametrize(
    "end",
    [
        signal.SIGINT,
        # Nobody tells the processes: those of a killed room end by their leashes.
        pytest.param(signal.SIGKILL, marks=pytest.mark.deep),
    ],
)
async def test_the_hand_goes_on(home: Path, end: signal.Signals) -> None:
    with command(home, "up", "--free-ports") as first:
        async with client(first.until_up()) as at:
            table_id = await at.create_table()
            await at.sit_down(table_id, PLAYERS)
            view = await played_on(at, table_id, until_street=HALF_WAY)
            assert view.hand.street == HALF_WAY
            before = [await at.view(table_id, viewer) for viewer in ("", *PLAYERS)]
        first.interrupt(end)
        assert first.wait() == (130 if end is signal.SIGINT else -end), first.output()

    # A killed room leaves its `room.json`, which the next one must replace.
    (home / "room.json").unlink(missing_ok=True)
    with command(home, "up", "--free-ports") as second:
        async with client(second.until_up()) as at:
            after = [await at.view(table_id, viewer) for viewer in ("", *PLAYERS)]
            assert [each.hand.hand_id for each in after] == [view.hand.hand_id] * 3
            assert [seen(each) for each in after] == [seen(each) for each in before]
            await played_on(at, table_id)
            view = await at.until(table_id, lambda table: table.hands == 2)
            assert sum(seat.stack for seat in view.seats) + sum(
                seat.put_in for seat in view.hand.seats
            ) == 200 * len(PLAYERS)
        assert second.stop() == 130, second.output()
        assert second.left_running() == []


async def played_on(at: Client, table_id: str, until_street: int = 0) -> table_pb2.TableView:
    """Check and call until a street, or until the hand is over."""
    hand_id = ""
    for number in range(ACTIONS_MAX):
        view = await at.turn(table_id)
        hand_id = hand_id or view.hand.hand_id
        if view.hand.street == until_street or view.hand.hand_id != hand_id:
            return view
        await at.act(view, player_to_act(view), passive(view.hand.turn), at=number % 2)
    raise AssertionError("the hand does not end")


def seen(view: table_pb2.TableView) -> table_pb2.TableView:
    """What must outlive a restart: all but the clock, which begins anew, and the version."""
    kept = table_pb2.TableView()
    kept.CopyFrom(view)
    kept.version = 0
    for field in ("deadline", "countdown_from", "renewed"):
        kept.hand.turn.ClearField(field)
    return kept
