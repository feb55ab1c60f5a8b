"""CPU time and memory of other processes, all their threads together (Linux)."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_SCHEDULED: Final = 2


def cpu_s(pids: Iterable[int]) -> float:
    """Seconds that these processes have computed since they began.

    The clock of another process is named by its id as in clock_getcpuclockid(3): to the nanosecond,
    where /proc counts in hundredths.
    """
    return sum(time.clock_gettime((~pid << 3) | _SCHEDULED) for pid in pids)


def resident_bytes(pid: int) -> int:
    """Memory that a process has in use."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
