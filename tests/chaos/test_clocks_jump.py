"""Wall clocks that jump, ahead and back, in one process after the other: the room goes on.

The clocks are other ones for that process only; time that is measured (monotonic) is not touched.
"""

import asyncio
import zlib
from collections.abc import Iterator
from typing import Final

import pytest

from tests.chaos.rooms import FAKETIME
from tests.chaos.scenes import Scene, scene_of

pytestmark = [pytest.mark.deep, pytest.mark.timeout(240)]

CLOCKS: Final = (
    "table",
    "wallet",
    "history",
    "settlement-worker",
    "settlement-beat",
    "valkey",
    "broker",
)
JUMP_S: Final = 300
"""Within the life of a token: who refuses expired ones is right to."""
TAKEN_UP_S: Final = 1.2
"""Until the process has seen it."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One room for all of it."""
    assert FAKETIME.exists(), "make deploy-tools installs it (Debian: faketime)"
    with scene_of(clocks=CLOCKS) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "ahead_s"),
    [(name, ahead_s) for name in CLOCKS for ahead_s in (-JUMP_S, JUMP_S)],
)
def test_a_clock_jumps(scene: Scene, name: str, ahead_s: int) -> None:
    async def work() -> None:
        async with scene.case(zlib.crc32(f"{name} {ahead_s}".encode())) as case:
            try:
                async with case.going_on():
                    scene.room.set_clock(name, ahead_s)
                    await asyncio.sleep(TAKEN_UP_S)
                # All of it once more while the clock is wrong, with everything settled by it.
                async with case.going_on():
                    pass
            finally:
                scene.room.set_clock(name, 0)
            # And back again.
            await asyncio.sleep(TAKEN_UP_S)
            async with case.going_on():
                pass

    scene.host.run(work())
