"""Fail points: named places in the code where tests kill or halt a process.

They do nothing unless `DOORCARD_FAIL_POINTS` names a folder when the process starts, and then only
where a file of a point's name lies in it. The first process that comes by takes the file, whatever
other replicas do, and sends itself the signal that is written in it (SIGKILL for an empty one).
A test sees that a point was reached by the file's absence.
"""

import os
import signal
from pathlib import Path
from typing import Final

VARIABLE: Final = "DOORCARD_FAIL_POINTS"

_folder: Final = os.environ.get(VARIABLE, "")


def reach(name: str) -> None:
    """The process is at the point `name`, words joined by dots: "drain.applied"."""
    if _folder:
        _take(Path(_folder), name)


def _take(folder: Path, name: str) -> None:
    taken = folder / f"{name}.{os.getpid()}"
    try:
        (folder / name).rename(taken)
    except FileNotFoundError:
        return
    wanted = taken.read_text().strip() or "SIGKILL"
    taken.unlink()
    os.kill(os.getpid(), signal.Signals[wanted])
