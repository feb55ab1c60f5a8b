"""`kill -9` of any process in the middle of a demo: the room goes on and everything adds up."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from rich.console import Console

from services.local.demo import run_demo
from services.local.room import Room
from services.local.summary import Summary
from tests.integration.rooms import Client, Hosted, Places, client, new_home, until

pytestmark = pytest.mark.timeout(240)
HANDS = 16
DEMO_S = 200.0
SHORT = ("table", "table-2", "settlement-worker", "settlement-beat", "wallet")
DEEP = ("shuffler", "showdown", "history", "valkey", "postgres", "broker", "smtp")


@pytest.fixture(scope="module")
def hosted() -> Iterator[tuple[Hosted, Room]]:
    """One room for all kills, one demo in it for each."""
    with new_home() as folder:
        host = Hosted(folder)
        try:
            yield host, host.start()
        finally:
            host.close()


@pytest.mark.parametrize(
    "name", [*SHORT, *(pytest.param(name, marks=pytest.mark.deep) for name in DEEP)]
)
def test_the_room_goes_on_without(hosted: tuple[Hosted, Room], name: str) -> None:
    host, room = hosted
    restarts = room.restarts().get(name, 0)
    summary, hands = host.run(demo_with_a_kill(room, name))
    assert summary.ok, summary
    assert room.restarts().get(name, 0) == restarts + 1, host.story(name)
    assert room.pid(name), host.story(name)
    assert summary.settled_hands == summary.hands >= HANDS > hands
    assert summary.ledger_difference == summary.escrow_difference == 0
    assert summary.mails_sent == summary.mails_asked


async def demo_with_a_kill(room: Room, name: str) -> tuple[Summary, int]:
    """Kill a process while hands are in progress: the summary, and the hands over by then."""
    console = Console(quiet=True)
    async with asyncio.timeout(DEMO_S), client(Places.of(room.home)) as at:
        earlier = await at.tables_in_play()
        demo = asyncio.create_task(run_demo(room, HANDS, console=console))
        try:
            hands = await until_the_middle(at, earlier)
            pid = room.pid(name)
            assert pid, "it does not run"
            os.kill(pid, signal.SIGKILL)
            summary = await demo
        finally:
            demo.cancel()
    return summary, hands


async def until_the_middle(at: Client, earlier: dict[str, int]) -> int:
    """Some hands of this demo are over and one is in progress: how many are over."""

    async def some() -> dict[str, int]:
        tables = await at.tables_in_play()
        ours = {table_id: hands for table_id, hands in tables.items() if table_id not in earlier}
        return ours if sum(ours.values()) > HANDS // 3 else {}

    ours = await until(some)
    await at.turn(max(ours, key=lambda table_id: ours[table_id]))
    return sum(hands - 1 for hands in ours.values())
