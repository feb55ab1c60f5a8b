"""Every process that has to do with money, killed at every step of it: the room goes on and no chip
is lost, made or counted twice.

A process that comes by a fail point kills itself there, or stands still while another is killed and
then goes on with what it was doing.
"""

import os
import signal
import zlib
from collections.abc import Iterator
from typing import Final

import pytest

from services.runtime.failpoints import POINTS
from tests.chaos.scenes import Scene, scene_of

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


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One room for all of it."""
    with scene_of() as made:
        yield made


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
    room = scene.room
    itself = victim in ("child", owner_of(point))
    async with scene.case(zlib.crc32(f"{point} {victim}".encode())) as going, going.going_on():
        room.arm(point, "SIGSTOP" if not itself else "" if victim == "child" else "SIGKILL group")
        await room.reached(point)
        if not itself:
            halted = await room.halted()
            try:
                await room.kill(victim)
            finally:
                os.kill(halted, signal.SIGCONT)
