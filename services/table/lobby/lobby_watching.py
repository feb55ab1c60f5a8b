"""Who watches the lobby: one view for all who want the same tables, encoded once.

A view keeps the messages of its last changes. A watcher is a place among them; who falls behind
what is kept is told to call again, and nobody waits for him.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Final

from doorcard.table.v1 import table_pb2
from prometheus_client import Gauge

from services.runtime.errors import ResourceExhausted
from services.runtime.metrics import REGISTRY
from services.table.lobby.lobby import Change, Lobby, Place
from services.table.lobby.lobby_filters import Fits, everything, fits_of
from services.table.state.lobby_lines import Line
from services.table.streams import reconnecting
from services.table.streams.per_caller import A_GATEWAY, PerCaller

WATCHING_MAX: Final = 20_000
WATCHING_PER_CALLER_MAX: Final = 8
VIEWS_MAX: Final = 64
"""Different filters at once; the whole lobby is always to be had."""
_FILTERED: Final = b"f"
_WHOLE: Final = (b"", _FILTERED)
"""The keys of an unset filter and of an empty one."""
TABLES_A_MESSAGE: Final = 200
PICTURE_LASTS: Final = 5
"""Changes for which who joins gets the same first picture, and the changes since."""
CHANGES_KEPT_MAX: Final = 30
"""Of a view: about so many seconds."""
BYTES_KEPT_MAX: Final = 4 * 1024 * 1024
"""Of a view; its last change is kept however long it is."""
TOO_MANY_AFTER_MS: Final = 1000

WATCHING: Final = Gauge(
    "doorcard_lobby_watchers", "Clients that watch the lobby here.", registry=REGISTRY
)


class View:
    """What everybody who watches with one filter is told."""

    def __init__(self, fits: Fits) -> None:
        self.watchers = 0
        self.begun = False
        """The reading that shows it all tables has begun."""
        self.complete = False
        """It is over."""
        self.lines: dict[str, Line] = {}
        """The tables that fit."""
        self.changes = 0
        """Counted since it is there."""
        self._fits = fits
        self._kept: deque[list[bytes]] = deque()
        self._changed: dict[str, None] = {}
        """Ids of tables that are other than they were told, in order."""
        self._next = asyncio.Event()
        self._drawing = asyncio.Lock()
        self._picture: tuple[int, list[bytes]] | None = None

    def saw(self, change: Change, lobby: Lobby) -> None:
        """A shard was read."""
        for table_id in change.table_ids if self.complete else lobby.ids(change.shard):
            line = lobby.line(Place(change.shard, table_id))
            if line is not None and self._fits(line.summary):
                self.lines[table_id] = line
            elif self.lines.pop(table_id, None) is None:
                continue
            self._changed[table_id] = None

    def seen(self) -> None:
        """All shards were read: watchers are told what changed."""
        if self.complete and self._changed:
            gone = [table_id for table_id in self._changed if table_id not in self.lines]
            there = [self.lines[each] for each in self._changed if each in self.lines]
            self._kept.append(_messages(there, gone))
            self.changes += 1
            if self._picture is not None and self.changes > self._picture[0] + PICTURE_LASTS:
                self._picture = None
            while len(self._kept) > 1 and self._is_too_much:
                self._kept.popleft()
        elif self.complete:
            return
        self.complete = True
        self._changed.clear()
        self.wake()

    def after(self, seen: int) -> list[bytes] | None:
        """The messages of the change after one, none after the last; None if they are not kept any
        more.
        """
        behind = self.changes - seen
        if not behind:
            return []
        return self._kept[-behind] if behind <= len(self._kept) else None

    async def picture(self) -> tuple[int, list[bytes]]:
        """The whole as it was after a change, and which; the last message says that it is whole.

        When many come at once it is made once, and not all at a time.
        """
        async with self._drawing:
            if self._picture is None or self.after(self._picture[0]) is None:
                lines, changes = list(self.lines.values()), self.changes
                messages = []
                for at in range(0, len(lines), TABLES_A_MESSAGE):
                    messages += _messages(lines[at : at + TABLES_A_MESSAGE], ())
                    await asyncio.sleep(0)
                whole = table_pb2.WatchLobbyResponse(complete=True).SerializeToString()
                # Encoded messages one after another are one message.
                messages[-1:] = [b"".join((*messages[-1:], whole))]
                self._picture = changes, messages
            return self._picture

    @property
    def next_change(self) -> asyncio.Event:
        """Set by the next change. Take it before looking."""
        return self._next

    def wake(self) -> None:
        """Everybody looks again."""
        self._next.set()
        self._next = asyncio.Event()

    @property
    def _is_too_much(self) -> bool:
        size = sum(len(message) for change in self._kept for message in change)
        return len(self._kept) > CHANGES_KEPT_MAX or size > BYTES_KEPT_MAX


class LobbyWatching:
    """The views of a replica, and the streams on them."""

    def __init__(self, lobby: Lobby) -> None:
        self._lobby = lobby
        self._views: dict[bytes, View] = {}
        self._opened = PerCaller("streams of the lobby")
        self.count = 0
        """Streams that are open."""
        self._draining = False
        lobby.watcher = self

    @property
    def watches(self) -> bool:
        """Whether anybody does."""
        return bool(self._views)

    def begins(self) -> None:
        """A reading begins."""
        for view in self._views.values():
            view.begun = True

    def saw(self, change: Change) -> None:
        """A shard was read."""
        for view in self._views.values():
            if view.begun:
                view.saw(change, self._lobby)

    def seen(self) -> None:
        """All shards were read."""
        for view in self._views.values():
            if view.begun:
                view.seen()

    async def watch(
        self, wanted: table_pb2.LobbyFilter | None, opened_by: str = A_GATEWAY
    ) -> AsyncIterator[bytes]:
        """Encoded messages for one watcher, until the server goes away or he is too slow.

        wanted: None for all tables. opened_by: who (`per_caller.opener`).
        Raises InvalidArgument (BAD_FILTER), ResourceExhausted (TOO_MANY_STREAMS, TOO_MANY_FILTERS).
        """
        with self._opened.one_more(opened_by, WATCHING_PER_CALLER_MAX):
            key, view = self._view(wanted)
            view.watchers += 1
            self.count += 1
            WATCHING.set(self.count)
            try:
                async for message in self._told(view):
                    yield message
            finally:
                self.count -= 1
                WATCHING.set(self.count)
                view.watchers -= 1
                if not view.watchers and self._views.get(key) is view:
                    del self._views[key]

    def drain(self) -> None:
        """Tell everybody to ask another replica."""
        self._draining = True
        for view in self._views.values():
            view.wake()

    def _view(self, wanted: table_pb2.LobbyFilter | None) -> tuple[bytes, View]:
        if self.count >= WATCHING_MAX or self._draining:
            raise reconnecting.full()
        # An empty filter leaves out closed tables, an unset one does not.
        key = b"" if wanted is None else _FILTERED + wanted.SerializeToString(deterministic=True)
        view = self._views.get(key)
        if view is None:
            fits = everything if wanted is None else fits_of(wanted)
            if len(self._views) >= VIEWS_MAX and key not in _WHOLE:
                raise ResourceExhausted(
                    "TOO_MANY_FILTERS",
                    "too many different filters are watched here",
                    retry_after_ms=TOO_MANY_AFTER_MS,
                )
            view = self._views[key] = View(fits)
            self._lobby.watch()
        return key, view

    async def _told(self, view: View) -> AsyncIterator[bytes]:
        while not (view.complete or self._draining):
            await view.next_change.wait()
        seen = view.changes
        if view.complete:
            seen, picture = await view.picture()
            for message in picture:
                yield message
        while not self._draining:
            changed = view.next_change
            while seen < view.changes:
                messages = view.after(seen)
                if messages is None:
                    slow = reconnecting.reconnect("too slow: call again for the whole picture")
                    yield _reconnect(slow)
                    return
                seen += 1
                for message in messages:
                    yield message
            if not self._draining:
                await changed.wait()
        yield _reconnect(reconnecting.reconnect())


def _messages(lines: list[Line], gone: Iterable[str]) -> list[bytes]:
    """Encoded, so that none is long; the last one has what is gone."""
    parts = [lines[at : at + TABLES_A_MESSAGE] for at in range(0, len(lines), TABLES_A_MESSAGE)]
    ids = list(gone)
    messages = [b"".join(line.told for line in part) for part in parts]
    messages += [
        table_pb2.WatchLobbyResponse(gone=ids[at : at + TABLES_A_MESSAGE]).SerializeToString()
        for at in range(0, len(ids), TABLES_A_MESSAGE)
    ]
    return messages


def _reconnect(reconnect: table_pb2.Reconnect) -> bytes:
    return table_pb2.WatchLobbyResponse(reconnect=reconnect).SerializeToString()
