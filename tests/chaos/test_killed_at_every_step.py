"""Every process that has to do with money, killed at every step of it: the room goes on and no chip
is lost, made or counted twice.

A process that comes by a fail point kills itself there, or stands still while another is killed and
then goes on with what it was doing.
"""

import asyncio
import os
import random
import signal
import zlib
from collections.abc import Iterator
from typing import Final

import pytest

from services.runtime.failpoints import POINTS
from tests.chaos.life import BANKROLL, Life
from tests.chaos.proof import proof_of
from tests.chaos.rooms import FaultyRoom
from tests.integration.rooms import Hosted, Places, client, new_home

pytestmark = [pytest.mark.deep, pytest.mark.timeout(240)]

STEPS: Final = tuple(point for point in POINTS if not point.startswith("reopen."))
"""A reopening has a test of its own."""
VICTIMS: Final = (
    "table",
    "wallet",
    "history",
    "settlement-worker",
    "settlement-beat",
    "valkey",
    "broker",
    "postgres",
)
OWNERS: Final = {
    "wallet": "wallet",
    "archive": "history",
    "drain": "settlement-worker",
    "worker": "settlement-worker",
    "beat": "settlement-beat",
}
"""Whose points they are, by their first word; the others are the table's."""
CASE_S: Final = 120.0


@pytest.fixture(scope="module")
def scene() -> Iterator["Scene"]:
    """One room for all of it."""
    with new_home() as home:
        host = Hosted(home)
        room = FaultyRoom(home, on_change=host.changes.append)
        try:
            host.enter(room)
            yield Scene(host, room)
        finally:
            host.close()


class Scene:
    """A room in which two players have been dealt in and guests come and go."""

    def __init__(self, host: Hosted, room: FaultyRoom) -> None:
        self.host: Final = host
        self.room: Final = room
        self.held: dict[str, int] = {}
        self.tables: list[str] = []


def owner_of(point: str) -> str:
    """The process that comes by."""
    return OWNERS.get(point.partition(".")[0], "table")


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("point", STEPS)
def test_killed_at(scene: Scene, point: str, victim: str) -> None:
    scene.host.run(case(scene, point, victim))


@pytest.mark.parametrize("point", [each for each in STEPS if owner_of(each) == "settlement-worker"])
def test_a_child_of_the_worker_killed_at(scene: Scene, point: str) -> None:
    scene.host.run(case(scene, point, "child"))


async def case(scene: Scene, point: str, victim: str) -> None:
    """One visit and one hand with one death in them."""
    room, seed = scene.room, zlib.crc32(f"{point} {victim}".encode())
    print(f"seed {seed}")
    async with asyncio.timeout(CASE_S), client(Places.of(room.home)) as at:
        life = Life(at, random.Random(seed))
        life.held.update(scene.held)
        await room.all_run()
        if not scene.tables:
            scene.tables = await set_up(life)
        itself = victim in ("child", owner_of(point))
        room.arm(point, "SIGSTOP" if not itself else "" if victim == "child" else "SIGKILL group")
        visit = asyncio.create_task(life.visit(scene.tables[0]))
        hand = asyncio.create_task(life.hand(scene.tables[1]))
        try:
            await room.reached(point)
            if not itself:
                halted = await room.halted()
                try:
                    await room.kill(victim)
                finally:
                    os.kill(halted, signal.SIGCONT)
            await asyncio.gather(visit, hand)
        finally:
            room.disarm()
            visit.cancel()
            hand.cancel()
        scene.held = dict(life.held)
        await room.all_run()
        async with proof_of(room) as proof:
            await proof.sound(scene.held)
            await proof.nothing_pending(10.0)


async def set_up(life: Life) -> list[str]:
    """A table for guests and one where two play."""
    tables = [await life.create_table(name=name) for name in ("Guests", "Players")]
    for player in ("anna", "ben"):
        await life.deposit(player, BANKROLL)
        await life.take_seat(tables[1], player, BANKROLL)
    return tables
