"""The network between each two processes cut, swallowing everything, or slow: the room goes on."""

import asyncio
import zlib
from collections.abc import Iterator
from typing import Final

import pytest

from tests.chaos.rooms import SERVERS
from tests.chaos.scenes import Scene, scene_of

pytestmark = [pytest.mark.deep, pytest.mark.timeout(240)]

LINES: Final = sorted(
    {(client, each.removesuffix("-2")) for client, servers in SERVERS.items() for each in servers}
)
MODES: Final = ("cut", "swallow", "slow")
FAULT_S: Final = 3.0
"""Longer than most deadlines of a call between services."""
SLOW_S: Final = 0.1


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One room for all of it."""
    with scene_of() as made:
        yield made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("client", "server"), LINES)
def test_a_line(scene: Scene, client: str, server: str, mode: str) -> None:
    scene.host.run(hurt(scene, client, server, mode))


async def hurt(scene: Scene, client: str, server: str, mode: str) -> None:
    """The line is bad while a visit and a hand begin, then good again."""
    lines = scene.room.lines
    async with scene.case(zlib.crc32(f"{client} {server} {mode}".encode())) as case:
        if mode == "cut":
            lines.cut(client, server)
        elif mode == "swallow":
            lines.swallow(client, server)
        else:
            lines.slow(client, server, SLOW_S)
        async with case.going_on():
            await asyncio.sleep(FAULT_S)
            lines.mend(client, server)
