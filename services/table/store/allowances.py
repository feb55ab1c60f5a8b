"""What a player is allowed so many times a day, counted over all his tables.

So it is kept outside their shards: one hash for a player and a day of the room,
`{room}:protection:<day>:<player's digest>`, with a field for each decision that it was used at.
Asked again for the same decision, it counts once.
"""

import hashlib
from typing import Final, NamedTuple

from services.table.store.line import Script, Wire

KEEP_MS: Final = 48 * 3_600_000
"""A day's count is kept until no clock can be in that day any more."""


class Use(NamedTuple):
    """One use of one player at one decision."""

    player_id: str
    day: str
    """Of the room, ISO 8601."""
    decision: str
    """Hand and turn."""

    @property
    def key(self) -> str:
        """Where the player's day is counted."""
        player = hashlib.blake2b(self.player_id.encode(), digest_size=16).hexdigest()
        return f"{{room}}:protection:{self.day}:{player}"


class Allowances:
    """The counts in the store. Both methods raise Unavailable, Internal (STORE_FAULT).

    protect, unprotect: the scripts of these names. replica_id: who counts here.
    """

    def __init__(self, wire: Wire, protect: Script, unprotect: Script, replica_id: str) -> None:
        self._wire = wire
        self._protect = protect
        self._unprotect = unprotect
        self._replica_id = replica_id

    async def take(self, use: Use, per_day: int) -> bool:
        """Count it; False when the day's are used up."""
        args = (use.decision, self._replica_id, per_day, KEEP_MS)
        return bool(await self._wire.run(self._protect, (use.key,), args, durable=False))

    async def give_back(self, use: Use) -> None:
        """Count it no longer, if it was counted here."""
        args = (use.decision, self._replica_id)
        await self._wire.run(self._unprotect, (use.key,), args, durable=False)
