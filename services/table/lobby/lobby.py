"""The lobby as this replica knows it: the lines of all tables, read by one task for all who ask.

What is stored is read whole, shard by shard: each second while somebody watches, and whenever
somebody asks, who waits for a reading that began after he did, so that he sees everything that was
committed before. However many ask, readings come one at a time and leave most of the time to the
tables. Nobody asks, nothing is read.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple, Protocol

from doorcard.table.v1 import table_pb2
from prometheus_client import Histogram

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.faults import Loop, passed_over
from services.table.lobby.lobby_filters import Fits
from services.table.state.lobby_lines import Line, read_line
from services.table.state.state import player_digest
from services.table.store.store import Store

SHARDS_AT_ONCE: Final = 8
EVERY_S: Final = 1.0
"""Between two readings while somebody watches, and after one that failed."""
REST: Final = 4
"""After a reading nothing is read for so many times as long as it took, at most `EVERY_S`."""

READING: Final = Histogram(
    "doorcard_lobby_reading_seconds",
    "Time that one reading of the lobbies of all shards took.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
    registry=REGISTRY,
)


class Place(NamedTuple):
    """Where a table stands in the order of the lobby."""

    shard: int
    table_id: str
    """Empty before the first of the shard."""


FIRST: Final = Place(0, "")
"""Before all tables."""
Worth = Callable[[table_pb2.TableSummary], tuple[int, ...]]


class Change(NamedTuple):
    """What a reading found different in a shard: ids of tables, those that are gone among them."""

    shard: int
    table_ids: Collection[str]


class Watcher(Protocol):
    """Who is told of every reading."""

    def begins(self) -> None:
        """A reading begins."""

    def saw(self, change: Change) -> None:
        """A shard was read."""

    def seen(self) -> None:
        """All shards were."""

    @property
    def watches(self) -> bool:
        """Whether it wants to be told at all."""


class Lobby:
    """The lines, by shard and table. `run` reads them."""

    def __init__(self, store: Store) -> None:
        self.watcher: Watcher | None = None
        self._store = store
        self._lines: list[dict[str, Line]] = [{} for _ in range(store.shards)]
        self._ids: list[list[str]] = [[] for _ in range(store.shards)]
        """The keys of `_lines`, ascending."""
        self._seats: dict[bytes, set[Place]] = {}
        """`player_digest` -> tables where somebody like that has a seat."""
        self._asked = asyncio.Event()
        self._next: asyncio.Future[None] | None = None
        """Done when the reading that has not begun yet is over."""

    async def fresh(self) -> None:
        """Return when all is known that was committed before this call.

        Raises Unavailable when the store does not answer.
        """
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        self._asked.set()
        await asyncio.shield(self._next)

    def ids(self, shard: int) -> Sequence[str]:
        """The tables of a shard, ascending. Not to be kept over an await."""
        return self._ids[shard]

    def line(self, place: Place) -> Line | None:
        """A table's line, None if there is none."""
        return self._lines[place.shard].get(place.table_id)

    async def found(self, fits: Fits, after: Place, limit: int) -> list[tuple[Place, Line]]:
        """The first tables after a place that fit, at most so many, by shard and id."""
        found: list[tuple[Place, Line]] = []
        async for part in self._shards_from(after):
            found += [each for each in part if fits(each[1].summary)]
            if len(found) >= limit:
                break
        return found[:limit]

    async def best(self, fits: Fits, worth: Worth, limit: int) -> list[Place]:
        """Of all tables that fit those with the least `worth`, at most so many."""
        best: list[tuple[tuple[int, ...], Place]] = []
        async for part in self._shards_from(FIRST):
            here = [(worth(line.summary), place) for place, line in part if fits(line.summary)]
            best = nsmallest(limit, [*best, *here])
        return [place for _, place in best]

    async def _shards_from(self, after: Place) -> AsyncIterator[list[tuple[Place, Line]]]:
        """The tables after a place, a shard at a time: between two, others have their turn."""
        for shard in range(after.shard, len(self._ids)):
            ids, lines = self._ids[shard], self._lines[shard]
            first = bisect_right(ids, after.table_id) if shard == after.shard else 0
            yield [(Place(shard, each), lines[each]) for each in ids[first:]]
            await asyncio.sleep(0)

    def seats_of(self, player_id: str) -> list[Place]:
        """Tables where the player has a seat, in order; now and then one where another has."""
        return sorted(self._seats.get(player_digest(player_id), ()))

    def watch(self) -> None:
        """Somebody watches from now on: do not wait for the next second."""
        self._asked.set()

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await self._wait()
            self._asked.clear()
            waited, self._next = self._next, None
            began_s = monotonic_s()
            try:
                await self._read()
            except DoorcardError as error:
                logger.warning("lobby_not_read", reason=error.reason)
                if waited is not None:
                    waited.set_exception(error)
                    # Nobody may wait for it any more; that is no fault.
                    waited.exception()
                await asyncio.sleep(EVERY_S)
                continue
            took_s = monotonic_s() - began_s
            READING.observe(took_s)
            if waited is not None:
                waited.set_result(None)
            await asyncio.sleep(min(REST * took_s, EVERY_S))

    async def _wait(self) -> None:
        watched = self.watcher is not None and self.watcher.watches
        try:
            async with asyncio.timeout(EVERY_S if watched else None):
                await self._asked.wait()
        except TimeoutError:
            return

    async def _read(self) -> None:
        if self.watcher is not None:
            self.watcher.begins()
        shards = range(self._store.shards)
        for start in range(0, len(shards), SHARDS_AT_ONCE):
            part = shards[start : start + SHARDS_AT_ONCE]
            stored = await asyncio.gather(*(self._store.lobby_of(shard) for shard in part))
            for shard, lines in zip(part, stored, strict=True):
                with passed_over(Loop.LOBBY, shard):
                    self._take(shard, lines)
                # Others have their turn between two shards.
                await asyncio.sleep(0)
        if self.watcher is not None:
            self.watcher.seen()

    def _take(self, shard: int, stored: dict[str, bytes]) -> None:
        known = self._lines[shard]
        changed, others = [], False
        for table_id, text in stored.items():
            before = known.get(table_id)
            if before is None or before.stored != text:
                try:
                    line = read_line(text)
                except ValueError:
                    logger.error("lobby_line_broken", table=table_id)
                    continue
                known[table_id] = line
                others = others or before is None
                changed.append(table_id)
                self._seat(Place(shard, table_id), before, line)
        for table_id in known.keys() - stored.keys():
            self._seat(Place(shard, table_id), known.pop(table_id), None)
            others = True
            changed.append(table_id)
        if others:
            self._ids[shard] = sorted(known)
        if self.watcher is not None:
            self.watcher.saw(Change(shard, changed))

    def _seat(self, place: Place, before: Line | None, now: Line | None) -> None:
        had = set(before.players) if before is not None else set()
        has = set(now.players) if now is not None else set()
        for player in had - has:
            places = self._seats[player]
            places.discard(place)
            if not places:
                del self._seats[player]
        for player in has - had:
            self._seats.setdefault(player, set()).add(place)
