"""Ends a worker that no longer hears the broker, so that it is started again.

When an acknowledgement fails just while the broker is lost, Celery takes note of the one and
never of the other: the worker then waits for ever on a connection that is gone. What tells is that
messages wait in the broker and none has come, for longer than any task may keep a child.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from redis import Redis

from services.runtime.clock import monotonic_s
from services.runtime.logs import logger
from services.settlement.broker import BROKER_AWAY

LOOK_EVERY_S: Final = 1.0
DEAF_AFTER_S: Final = 5.0
"""Without a message while some wait and all children are idle."""


class Hearing:
    """Of one worker's parent process.

    client: a connection of its own to the broker. queues: that the worker takes messages of.
    busy_s: how long a task may run. busy: whether any does. end: ends the process.
    """

    def __init__(
        self,
        client: Callable[[], Redis],
        queues: Iterable[str],
        *,
        busy_s: float,
        busy: Callable[[], bool],
        end: Callable[[], None],
    ) -> None:
        self._client = client
        self._queues = tuple(queues)
        self._busy_s = busy_s
        self._busy = busy
        self._end = end
        self._heard_s = monotonic_s()

    def heard(self, **_: Any) -> None:
        """A message came."""
        self._heard_s = monotonic_s()

    def run(self) -> None:
        """Look, for as long as the process lives."""
        while not self.deaf():
            time.sleep(LOOK_EVERY_S)
        logger.error("broker_not_heard", silent_s=round(monotonic_s() - self._heard_s, 1))
        self._end()

    def deaf(self) -> bool:
        """Whether messages wait that should have come. No while the broker does not answer."""
        patience_s = DEAF_AFTER_S + (self._busy_s if self._busy() else 0.0)
        if monotonic_s() - self._heard_s < patience_s:
            return False
        try:
            client = self._client()
            waiting = any(client.llen(queue) for queue in self._queues)
        except BROKER_AWAY:
            waiting = False
        if not waiting:
            self.heard()
        return waiting
