"""How many frames of a player's streams are taken that cost the room more than an answer: joins and
parts, presence, options; and unary actions that are refused.

Counted here, in memory, over all streams that he has at this replica: who opens another stream has
no more. Actions that are taken are bounded by the mailbox of their table.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from services.runtime.clock import MS_PER_S, monotonic_s
from services.runtime.errors import ResourceExhausted
from services.table.limits import limited
from services.table.store.buckets import Rate

PLAYER: Final = Rate(16, 256)
"""Of a player's: 64 tables joined at once on two devices, each with its options set."""
ITSELF: Final = Rate(1024, 8192)
"""Of a gateway that watches tables for no player: all that its stream may have, twice."""
KEPT_MAX: Final = 65_536
"""Budgets that are kept; the one that was used longest ago is full again when it is forgotten."""
LIMIT: Final = "frames.player"

Whose = tuple[str, str]
"""The gateway, "" for a player's own streams; and the player, "" for a gateway itself."""


class Budgets:
    """The budgets of a replica. now_s: a clock that never steps back."""

    def __init__(self, now_s: Callable[[], float] = monotonic_s) -> None:
        self._now_s = now_s
        self._full_at_s: OrderedDict[Whose, float] = OrderedDict()
        """When each is full again."""

    def take(self, whose: Whose, frames: int = 1) -> None:
        """Take one that costs as much as so many frames. Raises ResourceExhausted (RATE_LIMITED)
        where there is not as much left, and takes nothing.
        """
        self._full_at_s[whose] = self._after(whose, frames)
        self._full_at_s.move_to_end(whose)
        if len(self._full_at_s) > KEPT_MAX:
            self._full_at_s.popitem(last=False)

    def check(self, whose: Whose) -> None:
        """See that there is one left. Raises ResourceExhausted (RATE_LIMITED)."""
        self._after(whose, 1)

    def refused(self, whose: Whose) -> None:
        """Something of his was refused that was looked up; where nothing is left, so be it."""
        with suppress(ResourceExhausted):
            self.take(whose)

    def _after(self, whose: Whose, frames: int) -> float:
        rate = PLAYER if whose[1] else ITSELF
        now_s = self._now_s()
        full_at_s = max(now_s, self._full_at_s.get(whose, now_s)) + frames / rate.per_second
        wait_s = full_at_s - now_s - rate.burst / rate.per_second
        if wait_s > 0:
            raise limited(LIMIT, math.ceil(wait_s * MS_PER_S))
        return full_at_s


def pause_s(refused: int, players: int, most_s: float) -> float:
    """How long the next message of a stream is left unread after one with frames that were refused:
    as long as its players' budgets need for so many.
    """
    return min(most_s, refused / (PLAYER.per_second * max(1, players)))
