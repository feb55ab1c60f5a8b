"""How many streams of one kind a caller has open, of which each has a few."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from services.runtime.auth import Caller
from services.runtime.errors import ResourceExhausted
from services.runtime.roles import Role

AFTER_MS: Final = 1000
A_GATEWAY: Final = ""
"""Behind it there are many, so that it has any number."""


class PerCaller:
    """The open streams of one kind. kind: for the message of a refusal, "streams of the lobby"."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._open: Counter[str] = Counter()

    @contextmanager
    def one_more(self, opened_by: str, most: int) -> Iterator[None]:
        """While one more is open. Raises ResourceExhausted (TOO_MANY_STREAMS)."""
        if opened_by != A_GATEWAY and self._open[opened_by] >= most:
            raise ResourceExhausted(
                "TOO_MANY_STREAMS", f"one has at most {most} {self._kind}", retry_after_ms=AFTER_MS
            )
        self._open[opened_by] += 1
        try:
            yield
        finally:
            self._open[opened_by] -= 1
            if not self._open[opened_by]:
                del self._open[opened_by]


def opener(caller: Caller) -> str:
    """Whom a stream counts for."""
    return A_GATEWAY if Role.SERVICE in caller.roles else caller.subject
