"""Whether a player who is out of time is still protected today (docs/rules.md, 5).

It is counted before the time-out is committed, and given back where the player acted after all.
"""

from datetime import datetime, tzinfo

from services.game.hand import Act
from services.runtime.clock import MS_PER_S
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.table.draft.draft import Draft
from services.table.state.turn_times import Mark, mark_of
from services.table.store.allowances import Allowances, Use


class Claims:
    """The protections that one tick counts, in however many tries it takes."""

    def __init__(self, allowances: Allowances, zone: tzinfo) -> None:
        self._allowances = allowances
        self._zone = zone
        self._taken: set[Use] = set()
        self._needed: Use | None = None

    async def protect(self, draft: Draft) -> bool:
        """Whether the player to act, should he be out of time now, is still protected today.

        Where the count cannot be had he is: that it cannot is not his fault.
        """
        self._needed = None
        table, running = draft.table, draft.table.blob.hand
        want = table.hand.want if table.hand is not None and table.hand.protects else None
        if table.hand is None or running is None or not isinstance(want, Act):
            return True
        per_day = table.hand.setup.rulebook.protection_per_day
        if not per_day or mark_of(table, draft.now_ms) is not Mark.OUT:
            return True
        day = datetime.fromtimestamp(draft.now_ms / MS_PER_S, self._zone).date().isoformat()
        use = Use(table.blob.seats[want.seat].player_id, day, f"{running.hand_id}:{want.turn}")
        try:
            if not await self._allowances.take(use, per_day):
                return False
        except DoorcardError as error:
            logger.warning("protection_not_counted", table=table.table_id, reason=error.reason)
            return True
        self._taken.add(use)
        self._needed = use
        return True

    async def settle(self, *, committed: bool) -> None:
        """Give back what was not needed; all of it where nobody knows of a commit."""
        for use in self._taken - ({self._needed} if committed else set()):
            try:
                await self._allowances.give_back(use)
            except DoorcardError as error:
                logger.warning("protection_not_given_back", reason=error.reason)
