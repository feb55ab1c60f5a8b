"""Who watches a table here, and how every version reaches each of them once, in order.

A stream has a version for each of its tables: what comes next is that plus one, or it is read from
the store, or the whole table is sent anew. Commits made here come at once; those of other replicas
by a wake-up, which is only a hint to look.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from doorcard.table.v1 import table_pb2
from prometheus_client import Counter, Gauge

from services.runtime.errors import Aborted, DoorcardError, NotFound, ResourceExhausted
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.state import views
from services.table.state.frames import Frames, addressed, unpack
from services.table.store.store import Store
from services.table.store.stored import epoch_of
from services.table.streams import reconnecting
from services.table.streams.places import NOWHERE, Hub, Joining, Place
from services.table.streams.streams import Stream
from services.table.streams.wakes import Wakes
from services.table.tables.tables import Tables

STREAMS_MAX: Final = 20_000
"""Streams of one process."""
STREAMS_PER_PLAYER_MAX: Final = 16
STREAMS_PER_GATEWAY_MAX: Final = 64
SPECTATING_UP_TO: Final = 15_000
"""With as many streams open no spectator gets another; the rest is for players."""
SPECTATING_PER_CALLER_MAX: Final = 64
SNAPSHOTS_KEPT: Final = 2048
TELLING_MAX: Final = 64
"""Tables that are told at once who has come or gone; the others wait."""
TELLING_TRIES_MAX: Final = 240
"""While a player's mailbox is full; with `READ_AGAIN_S` between them longer than any clock."""
READ_AGAIN_S: Final = 0.5
READS_MAX: Final = 100
"""Times in a row that a table is read again because it went on meanwhile."""
FILLS_MAX: Final = 8
"""Times in a row that who joins a table is left behind by the stream."""

WATCHERS: Final = Gauge(
    "doorcard_watchers", "Open streams: play, gateway or watch.", ["kind"], registry=REGISTRY
)
RESYNCS: Final = Counter(
    "doorcard_watcher_snapshots",
    "Snapshots by cause: join, gap, slow, ahead.",
    ["cause"],
    registry=REGISTRY,
)


class Watchers:
    """The streams of this replica and the tables they watch."""

    def __init__(self, store: Store, tables: Tables, *, gateway_tick_s: float = 0.0) -> None:
        """gateway_tick_s: how long a busy gateway's stream waits for more to write at once."""
        self.wakes: Final = Wakes(store, self.woken, self.gone)
        self._store = store
        self._tables = tables
        self._gateway_tick_s = gateway_tick_s
        self._hubs: dict[str, Hub] = {}
        self._streams: dict[Stream, tuple[str, str]] = {}
        """Open streams -> (kind, who opened it)."""
        self._opened: dict[tuple[str, str], int] = {}
        """(kind, who opened it) -> open streams."""
        self._presence: dict[tuple[str, str], bool] = {}
        """(table, player) whose presence is being told -> whether it has changed again."""
        self._telling = asyncio.Semaphore(TELLING_MAX)
        self._snapshots: OrderedDict[tuple[str, str], tuple[int, bytes, bytes]] = OrderedDict()
        """(table, viewer) -> version, tag, encoded frame."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        tables.published = self.committed
        tables.not_committed = self.not_committed
        tables.has_stream = self.has_stream
        tables.is_telling = lambda table_id, player_id: (table_id, player_id) in self._presence

    # Streams

    def open(self, player_id: str, opened_by: str = "") -> Stream:
        """A stream of a player, or with "" of a spectator. Raises ResourceExhausted.

        opened_by: the spectator; "" for a gateway, behind which there are many.
        """
        if player_id:
            stream = Stream(player_id, self._resync)
            self._admit(stream, "play", player_id, STREAMS_MAX, STREAMS_PER_PLAYER_MAX)
        else:
            stream = Stream("", self._resync)
            self._admit(stream, "watch", opened_by, SPECTATING_UP_TO, SPECTATING_PER_CALLER_MAX)
        return stream

    def open_gateway(self, name: str) -> Stream:
        """A stream for many players of a gateway. Raises ResourceExhausted."""
        stream = Stream("", self._resync, gateway=name, tick_s=self._gateway_tick_s)
        self._admit(stream, "gateway", name, STREAMS_MAX, STREAMS_PER_GATEWAY_MAX)
        return stream

    def _admit(self, stream: Stream, kind: str, opened_by: str, most: int, of_one: int) -> None:
        if self._draining or len(self._streams) >= most:
            raise reconnecting.full()
        opener = (kind, opened_by)
        if opened_by and self._opened.get(opener, 0) >= of_one:
            raise ResourceExhausted(
                "TOO_MANY_STREAMS", f"one has at most {of_one} streams", retry_after_ms=1000
            )
        self._streams[stream] = opener
        self._opened[opener] = self._opened.get(opener, 0) + 1
        WATCHERS.labels(kind).inc()

    def close(self, stream: Stream) -> None:
        """The stream is gone."""
        opener = self._streams.pop(stream)
        self._opened[opener] -= 1
        if not self._opened[opener]:
            del self._opened[opener]
        WATCHERS.labels(opener[0]).dec()
        # A stream that we cut is our fault: its players are about to come back elsewhere.
        told = not (self._draining or stream.cut_by_us)
        for table_id in list(stream.tables):
            hub = self._hubs[table_id]
            for viewer in hub.places[stream].followed_by:
                self._part(hub, stream, viewer, told=told)

    # Who follows what on a stream

    def join(
        self, stream: Stream, table_id: str, from_version: int, player_id: str | None = None
    ) -> Coroutine[Any, Any, int]:
        """Send the table from a version on, or a snapshot first; the version that was reached.

        player_id: of a gateway's stream, "" for itself as a spectator. He follows the table when
        this returns. Raises ResourceExhausted at once; what is awaited, NotFound (TABLE_UNKNOWN).
        """
        viewer = stream.player_id if player_id is None else player_id
        self._check_limits(stream, table_id, viewer)
        hub = self._hubs.get(table_id)
        if hub is None:
            hub = self._hubs[table_id] = Hub(table_id)
            self.wakes.watch(table_id)
        place = hub.places.get(stream)
        if place is None:
            place = hub.places[stream] = Place(stream, table_id)
            stream.tables.add(table_id)
        stream.following.setdefault(viewer, set()).add(table_id)
        if viewer:
            hub.appear(place, viewer)
        return self._joined(hub, place, viewer, from_version, place.begin(viewer))

    async def _joined(
        self, hub: Hub, place: Place, viewer: str, from_version: int, joining: Joining
    ) -> int:
        try:
            version = await self._fill(hub, place, viewer, from_version, joining)
        except BaseException:
            if place.joining.get(viewer) is joining:
                self._part(hub, place.stream, viewer, told=True)
            raise
        if viewer:
            self._presence_changed(hub.table_id, viewer)
        return version

    def follows(self, stream: Stream, table_id: str, player_id: str) -> bool:
        """Whether the player, "" for a spectator, has joined the table on this stream."""
        return table_id in stream.following.get(player_id, ())

    def part(self, stream: Stream, table_id: str, player_id: str) -> int:
        """He follows the table no longer on this stream, as if its connection were lost; the last
        version that it was sent.
        """
        hub = self._hubs[table_id]
        version = hub.places[stream].version
        self._part(hub, stream, player_id, told=True)
        return max(version, 0)

    def be_present(self, stream: Stream, table_id: str, player_id: str, *, connected: bool) -> int:
        """A gateway's player has come or gone; the last version that the stream was sent."""
        hub = self._hubs[table_id]
        place = hub.places[stream]
        if connected:
            hub.appear(place, player_id)
        else:
            hub.vanish(place, player_id)
        self._presence_changed(table_id, player_id)
        return max(place.version, 0)

    def has_stream(self, table_id: str, player_id: str) -> bool:
        """Whether the player has the table open on a stream here."""
        hub = self._hubs.get(table_id)
        return hub is not None and player_id in hub.present

    def _check_limits(self, stream: Stream, table_id: str, viewer: str) -> None:
        limits, following = stream.limits, stream.following.get(viewer, ())
        if table_id not in stream.tables and len(stream.tables) >= limits.tables:
            raise ResourceExhausted(
                "TOO_MANY_TABLES", f"a stream has at most {limits.tables} tables"
            )
        if table_id not in following and viewer and len(following) >= limits.tables_of_player:
            raise ResourceExhausted(
                "TOO_MANY_TABLES", f"a player has at most {limits.tables_of_player} on a stream"
            )
        if not following and len(stream.following) >= limits.players:
            raise ResourceExhausted(
                "TOO_MANY_PLAYERS", f"a stream has at most {limits.players} players"
            )

    def _part(self, hub: Hub, stream: Stream, viewer: str, *, told: bool) -> None:
        place = hub.places[stream]
        place.forget(viewer)
        tables = stream.following[viewer]
        tables.discard(hub.table_id)
        if not tables:
            del stream.following[viewer]
        if not place.followed_by:
            del hub.places[stream]
            stream.tables.discard(hub.table_id)
            stream.lost.discard(hub.table_id)
        if hub.vanish(place, viewer) and told and viewer not in hub.present:
            self._presence_changed(hub.table_id, viewer)
        if not hub.places and self._hubs.get(hub.table_id) is hub:
            del self._hubs[hub.table_id]
            self.wakes.forget(hub.table_id)

    async def drain(self) -> None:
        """Tell every stream to connect again elsewhere, and end it.

        Whoever is to act gets a full new clock, since it is us who cut his stream.
        """
        self._draining = True
        excused = [
            self._excuse(hub.table_id, set(hub.present))
            for hub in self._hubs.values()
            if hub.present
        ]
        await asyncio.gather(*excused)
        reconnect = reconnecting.reconnect()
        for stream in list(self._streams):
            stream.answer(views.frame("", reconnect=reconnect))
            stream.end()

    # Versions

    def committed(self, table_id: str, version: int, frames: Frames) -> None:
        """A commit was made here."""
        hub = self._hubs.get(table_id)
        if hub is None:
            return
        self.wakes.committed(table_id, version)
        if version <= hub.version:
            return
        hub.wanted = max(hub.wanted, version)
        if hub.version in (0, version - 1):
            self._deliver(hub, version, frames)
        self._catch_up(hub)

    def not_committed(self, table_id: str) -> None:
        """A commit from here was not made, or nobody knows: what came meanwhile was another's."""
        hub = self._hubs.get(table_id)
        if hub is not None and hub.version:
            self._catch_up(hub)

    def woken(self, table_id: str, version: int) -> None:
        """Another replica may have committed a version."""
        hub = self._hubs.get(table_id)
        if hub is None or version <= hub.version:
            return
        hub.wanted = max(hub.wanted, version)
        # Most likely it is our own commit, whose answer is on its way: that says what is to do.
        if hub.version and not self._tables.is_committing(table_id):
            self._catch_up(hub)

    def gone(self, table_id: str) -> None:
        """The table was lost with its shard's epoch; who opens it anew learns that too."""
        hub = self._hubs.get(table_id)
        for stream in list(hub.places) if hub is not None else ():
            stream.lose(table_id)

    def _deliver(self, hub: Hub, version: int, frames: Frames) -> None:
        hub.version = version
        for place in hub.places.values():
            place.take(version, frames)
        if len(frames) > 1:
            for audience, own in frames.items():
                player_id = audience.removeprefix(views.UNKNOWN_STREAM)
                if not own and player_id in hub.present:
                    self._presence_changed(hub.table_id, player_id)

    def _catch_up(self, hub: Hub) -> None:
        if hub.wanted > hub.version and not hub.reading:
            hub.reading = True
            self._spawn(self._read(hub))

    async def _read(self, hub: Hub) -> None:
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
                        self._deliver(hub, version, unpack(record, hub.table_id, version))
                if not records:
                    return
        except DoorcardError as error:
            # Nobody wakes us again for a version that we were told of.
            logger.warning("events_not_read", table=hub.table_id, reason=error.reason)
            asyncio.get_running_loop().call_later(READ_AGAIN_S, self._catch_up, hub)
        finally:
            hub.reading = False

    # Who joins is brought to the present

    async def _fill(
        self, hub: Hub, place: Place, viewer: str, from_version: int, joining: Joining
    ) -> int:
        """What is delivered meanwhile is held back and follows."""
        for _ in range(FILLS_MAX):
            frames, version = await self._since(hub.table_id, place.stream, viewer, from_version)
            if version < 0:
                found, version = await self._snapshots_of(
                    hub.table_id, place.stream, {viewer: from_version}, cause="join"
                )
                frames = found[viewer]
            if hub.places.get(place.stream) is not place:
                return version
            if place.arrive({viewer: joining}, {viewer: frames}, version):
                self._known(hub, version)
                # So that the answer comes behind what brings him there.
                await joining.settled.wait()
                return version
        raise _left_behind()

    async def _since(
        self, table_id: str, stream: Stream, viewer: str, from_version: int
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
        if stream.gateway and not records:
            # From here on what all see is his too.
            return [views.reached(table_id, from_version, viewer)], from_version
        frames = []
        for version, record in records:
            by_viewer = unpack(record, table_id, version)
            public = by_viewer.get(views.PUBLIC, b"")
            frames.append(addressed(public, viewer) if stream.gateway else public)
            if viewer:
                frames.append(by_viewer.get(viewer, b""))
        return frames, records[-1][0] if records else from_version

    async def _resync(self, stream: Stream, table_id: str) -> None:
        """Everyone who follows the table on the stream gets a snapshot."""
        hub = self._hubs.get(table_id)
        place = hub.places.get(stream) if hub is not None else None
        if hub is None or place is None or not place.viewers:
            return
        known = dict.fromkeys(place.viewers, place.version)
        begun = {viewer: place.begin(viewer) for viewer in known}
        try:
            for _ in range(FILLS_MAX):
                frames, version = await self._snapshots_of(table_id, stream, known, cause="slow")
                if hub.places.get(stream) is not place:
                    return
                if place.arrive(begun, frames, version):
                    self._known(hub, version)
                    return
            raise _left_behind()
        except NotFound as error:
            self._take_away(hub, place, error)
        except DoorcardError as error:
            logger.warning("resync_failed", table=table_id, reason=error.reason)
            stream.end(error)
            stream.cut_by_us = True

    def _take_away(self, hub: Hub, place: Place, error: NotFound) -> None:
        """The table is no more: its players are told so, and other tables of the stream go on."""
        logger.warning("table_taken_away", table=hub.table_id, reason=error.reason)
        if not place.stream.gateway and place.stream.tables == {hub.table_id}:
            place.stream.end(error)
            return
        reconnect = table_pb2.Reconnect(reason=error.reason)
        place.stream.push(views.frame(hub.table_id, reconnect=reconnect))
        for viewer in place.followed_by:
            self._part(hub, place.stream, viewer, told=False)

    async def _snapshots_of(
        self, table_id: str, stream: Stream, known: Mapping[str, int], cause: str
    ) -> tuple[dict[str, list[bytes]], int]:
        """Viewer -> what shows him the table as it is, and its version.

        known: viewer -> the version that he knew; one of an earlier epoch is told what was lost.
        """
        kept, version = await self._kept_snapshots(table_id, known)
        RESYNCS.labels(cause).inc(len(known))
        shown = {viewer: [frame] for viewer, frame in kept.items()}
        if len(shown) < len(known):
            table = await self._tables.read(table_id)
            version, blob = table.version, table.blob
            for viewer, knew in known.items():
                frame = views.frame(table_id, snapshot=views.view(table, viewer))
                shown[viewer] = [frame]
                if table.stored is not None:
                    self._keep_snapshot(table_id, viewer, (version, table.stored.tag, frame))
                if blob.rebuilt is not None and 0 < epoch_of(max(knew, 0)) < epoch_of(version):
                    shown[viewer].append(views.rebuilt_update(table, blob.rebuilt))
        if stream.gateway:
            for viewer, frames in shown.items():
                shown[viewer] = [addressed(each, viewer) for each in frames]
        return shown, version

    async def _kept_snapshots(
        self, table_id: str, known: Mapping[str, int]
    ) -> tuple[dict[str, bytes], int]:
        """The snapshots that are still good, if all of them are: the store's version says so."""
        kept = {viewer: self._snapshots.get((table_id, viewer)) for viewer in known}
        if None in kept.values():
            return {}, NOWHERE
        present = await self._store.version(table_id)
        good = {
            viewer: each[2]
            for viewer, each in kept.items()
            if each is not None
            and each[:2] == present
            and epoch_of(max(known[viewer], 0)) in (0, epoch_of(each[0]))
        }
        if present is None or len(good) < len(kept):
            return {}, NOWHERE
        return good, present[0]

    def _keep_snapshot(self, table_id: str, viewer: str, kept: tuple[int, bytes, bytes]) -> None:
        self._snapshots[table_id, viewer] = kept
        self._snapshots.move_to_end((table_id, viewer))
        while len(self._snapshots) > SNAPSHOTS_KEPT:
            self._snapshots.popitem(last=False)

    def _known(self, hub: Hub, version: int) -> None:
        """The table has this version at least."""
        if not hub.version:
            hub.version = version
        hub.wanted = max(hub.wanted, version)
        self._catch_up(hub)

    # Who is there

    async def _excuse(self, table_id: str, players: Iterable[str]) -> None:
        try:
            await self._tables.excuse(table_id, set(players))
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
        tries = 0
        try:
            again = True
            while again:
                try:
                    async with self._telling:
                        self._presence[told] = False
                        await self._tables.connect(*told)
                    again = self._presence[told]
                except ResourceExhausted:
                    # Who fills his places in the mailbox is not there any longer for it.
                    tries += 1
                    if tries == TELLING_TRIES_MAX:
                        raise
                    await asyncio.sleep(READ_AGAIN_S)
        except DoorcardError as error:
            logger.info("presence_not_told", table=told[0], reason=error.reason)
        finally:
            del self._presence[told]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _left_behind() -> Aborted:
    return Aborted("TABLE_BUSY", "the table went on too fast to be joined", retry_after_ms=100)
