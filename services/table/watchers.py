"""Who watches a table here, and how every version reaches each of them once, in order.

A stream has a version for each of its tables: what comes next is that plus one, or it is read from
the store, or the whole table is sent anew. Commits made here come at once; those of other replicas
by a wake-up, which is only a hint to look.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final

import msgspec
from doorcard.table.v1 import table_pb2
from prometheus_client import Counter, Gauge

from services.runtime.errors import DoorcardError, ResourceExhausted
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table import views
from services.table.store import Store
from services.table.stored import epoch_of
from services.table.streams import Stream
from services.table.tables import Tables
from services.table.wakes import Wakes

STREAMS_MAX: Final = 20_000
"""Streams of one process."""
STREAMS_PER_PLAYER_MAX: Final = 16
SPECTATING_UP_TO: Final = 15_000
"""With as many streams open no spectator gets another; the rest is for players."""
SPECTATING_PER_CALLER_MAX: Final = 64
TABLES_PER_STREAM_MAX: Final = 64
HELD_MAX: Final = 256
"""Versions that are held back while a table is being joined."""
RECONNECT_AFTER_MS: Final = 100
OWN_WAKE_S: Final = 0.02
"""How long a wake-up of a table that is being changed here waits for the commit's own answer."""
READ_AGAIN_S: Final = 0.5
READS_MAX: Final = 100
"""Times in a row that a table is read again because it went on meanwhile."""

WATCHERS: Final = Gauge(
    "doorcard_watchers", "Open streams: play or watch.", ["kind"], registry=REGISTRY
)
RESYNCS: Final = Counter(
    "doorcard_watcher_snapshots",
    "Snapshots by cause: join, gap, slow, ahead.",
    ["cause"],
    registry=REGISTRY,
)

Frames = Mapping[str, bytes]

_unpack: Final = msgspec.msgpack.Decoder(dict[str, bytes]).decode


class Watchers:
    """The streams of this replica and the tables they watch."""

    def __init__(self, store: Store, tables: Tables) -> None:
        self.wakes: Final = Wakes(store, self.woken, self.gone)
        self._store = store
        self._tables = tables
        self._hubs: dict[str, _Hub] = {}
        self._streams: dict[Stream, tuple[str, str]] = {}
        """Open streams -> (kind, who opened it)."""
        self._opened: dict[tuple[str, str], int] = {}
        """(kind, who opened it) -> open streams."""
        self._presence: dict[tuple[str, str], bool] = {}
        """(table, player) whose presence is being told -> whether it has changed again."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        tables.published = self.committed
        tables.has_stream = self.has_stream

    # Streams

    def open(self, player_id: str, opened_by: str = "") -> Stream:
        """A stream of a player, or with "" of a spectator. Raises ResourceExhausted.

        opened_by: the spectator; "" for a gateway, behind which there are many.
        """
        most, of_one = SPECTATING_UP_TO, SPECTATING_PER_CALLER_MAX
        if player_id:
            most, of_one, opened_by = STREAMS_MAX, STREAMS_PER_PLAYER_MAX, player_id
        if self._draining or len(self._streams) >= most:
            raise ResourceExhausted(
                "TOO_MANY_STREAMS", "connect to another replica", retry_after_ms=RECONNECT_AFTER_MS
            )
        stream = Stream(player_id, self._resync)
        opener = (_kind(stream), opened_by)
        if opened_by and self._opened.get(opener, 0) >= of_one:
            raise ResourceExhausted(
                "TOO_MANY_STREAMS", f"one has at most {of_one} streams", retry_after_ms=1000
            )
        self._streams[stream] = opener
        self._opened[opener] = self._opened.get(opener, 0) + 1
        WATCHERS.labels(_kind(stream)).inc()
        return stream

    def close(self, stream: Stream) -> None:
        """The stream is gone."""
        opener = self._streams.pop(stream)
        self._opened[opener] -= 1
        if not self._opened[opener]:
            del self._opened[opener]
        WATCHERS.labels(_kind(stream)).dec()
        player_id = stream.player_id
        for table_id in list(stream.tables):
            self._leave(stream, table_id)
            # A stream that we cut is our fault: its player is about to come back elsewhere.
            if player_id and not self._draining and not self.has_stream(table_id, player_id):
                self._presence_changed(table_id, player_id)

    async def join(self, stream: Stream, table_id: str, from_version: int) -> int:
        """Send the table from a version on, or a snapshot first; the version that was reached.

        Raises NotFound (TABLE_UNKNOWN), ResourceExhausted.
        """
        hub = self._hubs.get(table_id)
        if table_id not in stream.tables and len(stream.tables) >= TABLES_PER_STREAM_MAX:
            raise ResourceExhausted(
                "TOO_MANY_TABLES", f"a stream has at most {TABLES_PER_STREAM_MAX} tables"
            )
        if hub is None:
            hub = self._hubs[table_id] = _Hub(table_id)
            self.wakes.watch(table_id)
        place = hub.places[stream] = _Place()
        stream.tables.add(table_id)
        try:
            version = await self._fill(hub, stream, place, from_version, cause="join")
        except BaseException:
            if hub.places.get(stream) is place:
                self._leave(stream, table_id)
            raise
        if stream.player_id:
            self._presence_changed(table_id, stream.player_id)
        return version

    def has_stream(self, table_id: str, player_id: str) -> bool:
        """Whether the player has the table open on a stream here."""
        hub = self._hubs.get(table_id)
        return hub is not None and any(s.player_id == player_id for s in hub.places)

    async def drain(self) -> None:
        """Tell every stream to connect again elsewhere, and end it.

        Whoever is to act gets a full new clock, since it is us who cut his stream.
        """
        self._draining = True
        excused = [
            self._excuse(hub.table_id, players)
            for hub in self._hubs.values()
            if (players := {stream.player_id for stream in hub.places if stream.player_id})
        ]
        await asyncio.gather(*excused)
        reconnect = table_pb2.Reconnect(
            reason="the server goes away", retry_after_ms=RECONNECT_AFTER_MS
        )
        for stream in list(self._streams):
            stream.answer(views.frame("", reconnect=reconnect))
            stream.end()

    # Versions

    def committed(self, table_id: str, version: int, frames: Frames) -> None:
        """A commit was made here."""
        hub = self._hubs.get(table_id)
        if hub is None or version <= hub.version:
            return
        hub.wanted = max(hub.wanted, version)
        if hub.version in (0, version - 1):
            self._deliver(hub, version, frames)
        else:
            self._catch_up(hub)

    def woken(self, table_id: str, version: int) -> None:
        """Another replica may have committed a version."""
        hub = self._hubs.get(table_id)
        if hub is None or version <= hub.version:
            return
        hub.wanted = max(hub.wanted, version)
        if hub.version and self._tables.busy(table_id):
            # Most likely our own commit, whose answer is still on its way.
            asyncio.get_running_loop().call_later(OWN_WAKE_S, self._catch_up, hub)
        elif hub.version:
            self._catch_up(hub)

    def gone(self, table_id: str) -> None:
        """The table was lost with its shard's epoch; who opens it anew learns that too."""
        hub = self._hubs.get(table_id)
        for stream in list(hub.places) if hub is not None else ():
            stream.lose(table_id)

    def _deliver(self, hub: "_Hub", version: int, frames: Frames) -> None:
        hub.version = version
        public = frames.get(views.PUBLIC, b"")
        for stream, place in hub.places.items():
            own = frames.get(stream.player_id) if stream.player_id else None
            if own == b"":
                self._presence_changed(hub.table_id, stream.player_id)
            place.take(hub.table_id, stream, version, public + own if own else public)

    def _catch_up(self, hub: "_Hub") -> None:
        if hub.wanted > hub.version and not hub.reading:
            hub.reading = True
            self._spawn(self._read(hub))

    async def _read(self, hub: "_Hub") -> None:
        """Bring the hub to the version it was told of."""
        try:
            for _ in range(READS_MAX):
                if hub.version >= hub.wanted or not hub.places:
                    return
                records = await self._store.events_after(hub.table_id, hub.version)
                if records is None:
                    hub.version = hub.wanted
                    for stream in hub.places:
                        stream.lose(hub.table_id)
                    return
                for version, record in records:
                    if version == hub.version + 1:
                        self._deliver(hub, version, _unpack(record))
                if not records:
                    return
        except DoorcardError as error:
            # Nobody wakes us again for a version that we were told of.
            logger.warning("events_not_read", table=hub.table_id, reason=error.reason)
            asyncio.get_running_loop().call_later(READ_AGAIN_S, self._catch_up, hub)
        finally:
            hub.reading = False

    async def _fill(
        self, hub: "_Hub", stream: Stream, place: "_Place", from_version: int, cause: str
    ) -> int:
        """Bring one place up to date; what is delivered meanwhile is held back and follows."""
        known, place.version = max(from_version, place.version), _JOINING
        frames, version = await self._since(hub.table_id, stream, from_version)
        if version < 0:
            table = await self._tables.read(hub.table_id)
            version = table.version
            snapshot = views.view(table, stream.player_id)
            frames = [views.frame(hub.table_id, snapshot=snapshot)]
            if table.blob.rebuilt is not None and 0 < epoch_of(known) < epoch_of(version):
                frames.append(views.rebuilt_update(table, table.blob.rebuilt))
            RESYNCS.labels(cause).inc()
        if hub.places.get(stream) is not place:
            return version
        stream.lost.discard(hub.table_id)
        for each in frames:
            stream.push(each)
        place.version = version
        held, place.held = place.held, []
        for at, bytes_held in held:
            place.take(hub.table_id, stream, at, bytes_held)
        if not hub.version:
            hub.version = version
        hub.wanted = max(hub.wanted, version)
        if hub.wanted > hub.version:
            self._catch_up(hub)
        return version

    async def _since(
        self, table_id: str, stream: Stream, from_version: int
    ) -> tuple[list[bytes], int]:
        """Frames after a version and the version they lead to; ([], -1) if a snapshot is needed."""
        if from_version <= 0:
            return [], -1
        present, records = await asyncio.gather(
            self._store.version(table_id), self._store.events_after(table_id, from_version)
        )
        if present is None or records is None:
            return [], -1
        if from_version > present[0]:
            # A client can claim any number; that the store lost versions shows itself elsewhere.
            RESYNCS.labels("ahead").inc()
            logger.warning("resume_ahead", table=table_id, version=present[0])
            return [], -1
        frames = []
        for _, record in records:
            by_viewer = _unpack(record)
            frames.append(by_viewer.get(views.PUBLIC, b""))
            if stream.player_id:
                frames.append(by_viewer.get(stream.player_id, b""))
        return frames, records[-1][0] if records else from_version

    async def _resync(self, stream: Stream, table_id: str) -> None:
        hub = self._hubs.get(table_id)
        place = hub.places.get(stream) if hub is not None else None
        if hub is None or place is None:
            return
        try:
            await self._fill(hub, stream, place, 0, cause="slow")
        except DoorcardError as error:
            logger.warning("resync_failed", table=table_id, reason=error.reason)
            stream.end(error)

    # Housekeeping

    def _leave(self, stream: Stream, table_id: str) -> None:
        stream.tables.discard(table_id)
        stream.lost.discard(table_id)
        hub = self._hubs[table_id]
        del hub.places[stream]
        if not hub.places:
            del self._hubs[table_id]
            self.wakes.forget(table_id)

    async def _excuse(self, table_id: str, players: set[str]) -> None:
        try:
            await self._tables.excuse(table_id, players)
        except DoorcardError as error:
            logger.info("clock_not_renewed", table=table_id, reason=error.reason)

    def _presence_changed(self, table_id: str, player_id: str) -> None:
        """Tell it; however often a stream comes and goes, one command at a time."""
        told = (table_id, player_id)
        if told in self._presence:
            self._presence[told] = True
        else:
            self._presence[told] = False
            self._spawn(self._tell_presence(told))

    async def _tell_presence(self, told: tuple[str, str]) -> None:
        try:
            again = True
            while again:
                self._presence[told] = False
                await self._tables.connect(*told)
                again = self._presence[told]
        except DoorcardError as error:
            logger.info("presence_not_told", table=told[0], reason=error.reason)
        finally:
            del self._presence[told]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_JOINING: Final = -1


class _Place:
    """Where one stream is in one table's versions."""

    __slots__ = ("held", "version")

    def __init__(self) -> None:
        self.version = _JOINING
        self.held: list[tuple[int, bytes]] = []

    def take(self, table_id: str, stream: Stream, version: int, frames: bytes) -> None:
        """The frames of a version, in order."""
        if self.version == _JOINING:
            if len(self.held) < HELD_MAX:
                self.held.append((version, frames))
        elif version == self.version + 1:
            self.version = version
            if table_id not in stream.lost:
                stream.push(frames)
        elif version > self.version:
            stream.lose(table_id)


class _Hub:
    """A table that is watched here."""

    __slots__ = ("places", "reading", "table_id", "version", "wanted")

    def __init__(self, table_id: str) -> None:
        self.table_id = table_id
        self.places: dict[Stream, _Place] = {}
        self.version = 0
        """Delivered to every place; 0 before the first was filled."""
        self.wanted = 0
        """The highest version that we were told of."""
        self.reading = False


def _kind(stream: Stream) -> str:
    return "play" if stream.player_id else "watch"
