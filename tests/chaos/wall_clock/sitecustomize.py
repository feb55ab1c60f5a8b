"""Another wall clock for a Python process: as many seconds ahead as `WALL_CLOCK_FILE` says.

On the path of a process it is imported before anything else. Seen by our own code and by those
libraries that compare times of different machines: Celery and tokens. gRPC is left with the
machine's own, since its core has that anyway and a deadline is made of both. (libfaketime is no
good for this: under it Python's own `sleep` fails.)
"""

import datetime
import os
import sys
import time
from typing import Any

LOOK_S = 0.1
SEEN_BY = ("services", "celery", "kombu", "jwt")

_file = os.environ["WALL_CLOCK_FILE"]
_time, _time_ns, _datetime = time.time, time.time_ns, datetime.datetime
_seen: list[float] = [0.0, 0]
"""When the file was read last, on the monotonic clock; and what it said."""


def _ahead_s() -> int:
    """For whoever called our caller."""
    if sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] not in SEEN_BY:
        return 0
    if time.monotonic() - _seen[0] > LOOK_S:
        with open(_file, encoding="ascii") as content:
            _seen[:] = time.monotonic(), int(content.read())
    return int(_seen[1])


class _Kind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _datetime)


class _Shifted(datetime.datetime, metaclass=_Kind):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.fromtimestamp(_time() + _ahead_s(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.fromtimestamp(_time() + _ahead_s(), datetime.UTC).replace(tzinfo=None)


_Shifted.__name__ = _Shifted.__qualname__ = "datetime"
_Shifted.__module__ = "datetime"
time.time = lambda: _time() + _ahead_s()
time.time_ns = lambda: _time_ns() + _ahead_s() * 1_000_000_000
datetime.datetime = _Shifted  # type: ignore[misc]
