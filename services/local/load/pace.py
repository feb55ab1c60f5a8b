"""When tables act: after thinking as people do, as soon as they can, or so many times a second.

Times are seconds of the running loop's clock.
"""

import asyncio
import math
import random
from typing import Final, Protocol

THINK_MEDIAN_S: Final = 3.6
THINK_95_S: Final = 13.0
"""95th percentile; both of decisions in real play, whose logarithms are nearly normal."""
THINK_MAX_S: Final = 60.0
NORMAL_95: Final = 1.6449
THINK_SIGMA: Final = math.log(THINK_95_S / THINK_MEDIAN_S) / NORMAL_95


class Acting(Protocol):
    """A table where somebody is to act."""

    def act(self, due_s: float) -> bool:
        """Have him act, in an action that was due then; False if nobody is to act any more."""


class Pace:
    """As soon as they can. It is told of every table where it is somebody's turn."""

    def __init__(self) -> None:
        self._waiting: dict[Acting, asyncio.TimerHandle | None] = {}
        """In the order of their turns; with a timer, those that act when it goes off."""
        self._started = False
        self._hurried = False

    @property
    def owed(self) -> int:
        """Actions that are due and for which no table was free."""
        return 0

    def turned(self, table: Acting) -> None:
        """It is somebody's turn there."""
        if table in self._waiting:
            return
        self._waiting[table] = None
        if self._hurried:
            self._all_act()
        elif self._started:
            self._look()

    def start(self) -> None:
        """Nobody acts before."""
        self._started = True
        self._look()

    def hurry(self) -> None:
        """From now on everybody acts as soon as he can."""
        self._hurried = True
        self._all_act()

    def _look(self) -> None:
        """Somebody waits who did not, or the time has come for one of them."""
        self._all_act()

    def _all_act(self) -> None:
        while self._waiting:
            self._next_acts(asyncio.get_running_loop().time())

    def _next_acts(self, due_s: float) -> bool:
        table = next(iter(self._waiting))
        timer = self._waiting.pop(table)
        if timer is not None:
            timer.cancel()
        return table.act(due_s)


class Thinking(Pace):
    """After a time that people need; an action is due when its player has thought."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for table, timer in self._waiting.items():
            if timer is None:
                due_s = loop.time() + think_s(self._rng)
                self._waiting[table] = loop.call_at(due_s, self._thought, table, due_s)

    def _thought(self, table: Acting, due_s: float) -> None:
        del self._waiting[table]
        table.act(due_s)


class AtRate(Pace):
    """So many actions a second over all tables, by a schedule that waits for nobody: an action that
    finds no table free stays due, and its table is late by all the time until it acts.
    """

    def __init__(self, per_s: float) -> None:
        super().__init__()
        self._per_s = per_s
        self._began_s = 0.0
        self._sent = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def owed(self) -> int:
        """Actions that are due and for which no table was free."""
        if not self._began_s or self._hurried:
            return 0
        passed_s = asyncio.get_running_loop().time() - self._began_s
        return max(0, int(passed_s * self._per_s) + 1 - self._sent)

    def start(self) -> None:
        """The first action is due now."""
        self._began_s = asyncio.get_running_loop().time()
        super().start()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and not self._hurried:
            due_s = self._began_s + self._sent / self._per_s
            if due_s > loop.time():
                if self._timer is None:
                    self._timer = loop.call_at(due_s, self._goes_off)
                return
            self._sent += self._next_acts(due_s)

    def _goes_off(self) -> None:
        self._timer = None
        self._look()


def think_s(rng: random.Random) -> float:
    """How long a player thinks."""
    return min(THINK_MAX_S, rng.lognormvariate(math.log(THINK_MEDIAN_S), THINK_SIGMA))
