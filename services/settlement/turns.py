"""One at a time among the children of a worker: whoever finds the turn taken has nothing to do.

A file lock, because the kernel gives it back when its holder is killed. Between workers nothing is
locked: doubled work is harmless, only wasted.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Turns:
    """Turns by name, kept as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def turn(self, name: str) -> Iterator[bool]:
        """True while the turn is ours, False if another has it."""
        file = os.open(self._folder / f"{name}.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(file)
