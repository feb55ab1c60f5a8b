"""One room per data folder at a time."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

LOOK_S: Final = 0.1
IN_USE: Final = (
    "is in use by another room; DOORCARD_HOME names another folder, and `doorcard load --running`"
    " loads the room that runs"
)


class HomeInUseError(Exception):
    """Another room, or what is left of one, uses the data folder."""


@asynccontextmanager
async def home_lock(
    home: Path, wait_s: float = 20.0, on_wait: Callable[[float], None] = lambda _wait_s: None
) -> AsyncIterator[int]:
    """Hold the data folder; gives the file descriptor of the lock.

    Processes that inherit the descriptor hold the folder too: after a room was killed, the next one
    waits here until the last of its processes is gone. `on_wait` is told once that we wait, and for
    how long at most. Raises HomeInUseError after `wait_s`.
    """
    home.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        late_s = time.monotonic() + wait_s
        told = False
        while not _locked(descriptor):
            if not told:
                told = True
                on_wait(wait_s)
            if time.monotonic() > late_s:
                raise HomeInUseError(f"{home} {IN_USE}")
            await asyncio.sleep(LOOK_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
