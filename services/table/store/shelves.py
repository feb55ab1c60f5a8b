"""Lists of what the room keeps beside tables: `{room}:templates`, `{room}:schedules`, and
`{room}:announcements` of what not all tables have been told.

They only say where to look; what holds is stored under each object's own id (`documents`). A name
is listed before its object is stored and taken off after it is gone, so nothing is ever missed.
"""

from typing import Final

from services.runtime.errors import FailedPrecondition
from services.table.store.line import Argument, Script, Wire

LISTED_MAX: Final = 1000
LEASE_MS: Final = 5000
_TURN_KEY: Final = "{room}:turn"


class Shelves:
    """The lists. Everything waits for Redis, and raises Unavailable when it does not answer.

    shelve, turn: the scripts of these names. replica_id: whose turn it may be.
    """

    def __init__(self, line: Wire, shelve: Script, turn: Script, replica_id: str) -> None:
        self._line = line
        self._shelve = shelve
        self._turn = turn
        self._replica_id = replica_id

    async def put(self, shelf: str, name: str, value: str) -> None:
        """List a name. Raises FailedPrecondition (TOO_MANY)."""
        args: list[Argument] = [name, value, LISTED_MAX]
        if not await self._line.run(self._shelve, [_key(shelf)], args):
            raise FailedPrecondition(
                "TOO_MANY", f"at most {LISTED_MAX} of {shelf}", metadata={"max": str(LISTED_MAX)}
            )

    async def take_off(self, shelf: str, name: str) -> None:
        """List it no longer."""
        await self._line.ask("HDEL", _key(shelf), name)

    async def read(self, shelf: str) -> dict[str, str]:
        """Everything that is listed: name -> value."""
        flat = await self._line.ask("HGETALL", _key(shelf))
        texts = [each.decode() for each in flat]
        return dict(zip(texts[::2], texts[1::2], strict=True))

    async def my_turn(self) -> bool:
        """Whether this replica does what one replica is enough for, for the next seconds.

        Two may think so for a moment; whatever they do must be right twice.
        """
        args = (self._replica_id, LEASE_MS)
        return bool(await self._line.run(self._turn, (_TURN_KEY,), args, durable=False))


def _key(shelf: str) -> str:
    return f"{{room}}:{shelf}"
