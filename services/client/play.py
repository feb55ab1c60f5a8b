"""Tables on `Play` streams, each at the replica that owns it.

Every table that is followed has its last version here. When its owner changes, or its stream
breaks, it is joined on another stream from that version on, so nothing is missing and nothing comes
twice; only then the old stream parts with it. Requests go to the stream of their table and are sent
again, under the same request id, until they are answered or their time is over.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final
from uuid import uuid4

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.client.link import Link
from services.client.progress import Progress, Verdict
from services.client.routes import Metadata, Routes, pause_s
from services.runtime.errors import (
    DeadlineExceeded,
    DoorcardError,
    FailedPrecondition,
    ResourceExhausted,
    Unavailable,
    code_of,
    of_code,
)

ATTEMPT_S: Final = 5.0
"""An answer that is not there by then is asked for again."""
REQUEST_S: Final = 30.0
TRIES_MAX: Final = 40
FAULTS_MAX: Final = 3
"""Streams in a row that end with an error that will not pass, before it is raised."""
QUEUE_MAX: Final = 10_000
"""Frames that wait to be read; beyond that nothing is read from the room."""
RETRY_AFTER_MAX_S: Final = 5.0

Frame = table_pb2.PlayRequestFrame


class TableLost(Exception):  # noqa: N818 (what happened, in plain words)
    """A table is followed no longer: the room refuses it for good."""

    def __init__(self, table_id: str, player_id: str, error: DoorcardError) -> None:
        super().__init__(f"table {table_id}: {error}")
        self.table_id = table_id
        self.player_id = player_id
        self.error = error


class _Following:
    """A table that a viewer follows, and the stream it is on."""

    def __init__(self, table_id: str, player_id: str, from_version: int) -> None:
        self.table_id = table_id
        self.player_id = player_id
        self.progress = Progress(from_version)
        self.link: Link | None = None
        self.left: Link | None = None
        """Where it was before, until it is joined where it is now."""
        self.parting: Link | None = None
        """Where it is to be joined as soon as he has parted with it there."""
        self.join_id = ""
        self.failures = 0
        self.joined = asyncio.Event()
        self.ever_joined = False
        self.present = True
        self.refusal: DoorcardError | None = None


class RoutedPlay:
    """Plays at any number of tables.

    gateway: its token has the service role, and every call names the player it is for; else it is a
    player's own and `player_id` stays empty everywhere. metadata: of the streams, where the
    channels of `routes` carry no token of their own. Use it as `async with`; read all the time, or
    answers wait too.
    """

    def __init__(self, routes: Routes, *, gateway: bool = False, metadata: Metadata = ()) -> None:
        self.routes: Final = routes
        self._metadata = metadata
        self.streams_opened = 0
        self._gateway = gateway
        self._following: dict[tuple[str, str], _Following] = {}
        self._viewers: dict[str, dict[str, _Following]] = {}
        """The same by table, then player."""
        self._joins: dict[str, _Following] = {}
        self._links: dict[str, Link] = {}
        self._finishing: set[Link] = set()
        """Streams that only send what they have, and receive answers."""
        self._answers: dict[str, tuple[Link, asyncio.Future[int]]] = {}
        self._came: asyncio.Queue[table_pb2.PlayResponseFrame | Exception] = asyncio.Queue(
            QUEUE_MAX
        )
        self._messages = 0
        self._faults = 0
        self._closed = False

    async def __aenter__(self) -> "RoutedPlay":
        self.routes.changed.add(self._place_all)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        self.routes.changed.discard(self._place_all)
        await asyncio.gather(*(link.close() for link in (*self._links.values(), *self._finishing)))

    async def join(self, table_id: str, player_id: str = "", from_version: int = 0) -> None:
        """Follow a table from a version on, or with a snapshot first; returns when it is joined.

        Raises DoorcardError: what the room refuses for good, DeadlineExceeded.
        """
        key = (table_id, player_id)
        following = self._following.get(key)
        if following is None:
            following = self._following[key] = _Following(table_id, player_id, from_version)
            self._viewers.setdefault(table_id, {})[player_id] = following
            self._place(following)
        try:
            async with asyncio.timeout(REQUEST_S):
                await following.joined.wait()
        except TimeoutError:
            self.part(table_id, player_id)
            raise DeadlineExceeded("NOT_JOINED", "the table could not be joined") from None
        if following.refusal is not None:
            raise following.refusal

    def part(self, table_id: str, player_id: str = "") -> None:
        """Follow a table no longer. The seat stays, as with a lost connection."""
        following = self._forget(table_id, player_id)
        if following is None:
            return
        self._joins.pop(following.join_id, None)
        for link in (following.link, following.left):
            if link is not None:
                self._leave(following, link)

    async def act(
        self,
        table_id: str,
        hand_id: str,
        turn: int,
        action: game_pb2.Action,
        *,
        player_id: str = "",
        request_id: str = "",
    ) -> int:
        """Act in a hand; the version of the commit. Raises what `request` raises."""
        act = table_pb2.PlayAction(hand_id=hand_id, turn=turn, action=action)
        return await self.request(
            Frame(request_id=request_id, table_id=table_id, player_id=player_id, act=act)
        )

    async def request(self, frame: Frame) -> int:
        """Anything but a join or a part, at a table that is followed; the version it led to.

        Without a request id it gets one. Raises DoorcardError: a refusal, or after 30 seconds the
        last reason why there was no answer.
        """
        frame.request_id = frame.request_id or str(uuid4())
        loop = asyncio.get_running_loop()
        end_s, tries = loop.time() + REQUEST_S, 0
        while True:
            tries += 1
            try:
                return await self._ask(frame)
            except DoorcardError as error:
                passes = error.retriable or error.reason == "NOT_JOINED"
                wait_s = min(RETRY_AFTER_MAX_S, (error.retry_after_ms or 0) / 1000) + pause_s(tries)
                if not passes or tries >= TRIES_MAX or loop.time() + wait_s > end_s:
                    raise
            await asyncio.sleep(wait_s)

    async def be_present(self, table_id: str, player_id: str, *, connected: bool) -> None:
        """On a gateway's stream: whether the player is connected to it. A join says that he is."""
        following = self._following[table_id, player_id]
        following.present = connected
        await self.request(_presence(following))

    async def read(self) -> table_pb2.PlayResponseFrame:
        """The next snapshot or update, in order for each table. On a gateway's stream it names the
        players that it is for and that have not seen it.

        Raises TableLost, and DoorcardError when streams are refused for good.
        """
        came = await self._came.get()
        if isinstance(came, Exception):
            raise came
        return came

    async def __aiter__(self) -> AsyncIterator[table_pb2.PlayResponseFrame]:
        while True:
            yield await self.read()

    def version(self, table_id: str, player_id: str = "") -> int:
        """The last version that came of a table that is followed."""
        return self._following[table_id, player_id].progress.version

    # Requests

    async def _ask(self, frame: Frame) -> int:
        following = self._following.get((frame.table_id, frame.player_id))
        if following is None:
            # It may be lost at any moment, before anybody was told.
            raise FailedPrecondition("NOT_JOINED", "the table is not followed: join it first")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(ATTEMPT_S):
                await following.joined.wait()
                link = following.link
                if following.refusal is not None or link is None:
                    raise following.refusal or Unavailable("STREAM_LOST", "the stream has ended")
                self._answers[frame.request_id] = (link, answer)
                link.ask(frame)
                return await answer
        except TimeoutError:
            raise DeadlineExceeded("NO_ANSWER", "no answer came in time") from None
        finally:
            self._answers.pop(frame.request_id, None)

    def _answered(self, link: Link, frame: table_pb2.PlayResponseFrame) -> None:
        result = frame.result
        key = (frame.table_id, frame.player_ids[0] if frame.player_ids else "")
        if link.parting.get(key) == result.request_id:
            self._parted(link, key)
            return
        following = self._joins.pop(result.request_id, None)
        refusal = _error_of(result.refusal) if result.HasField("refusal") else None
        if following is not None:
            self._joined(following, refusal)
            return
        _, answer = self._answers.get(result.request_id, (None, None))
        if answer is None or answer.done():
            return
        if refusal is None:
            answer.set_result(result.version)
        else:
            answer.set_exception(refusal)

    # Streams

    async def _received(self, link: Link, message: table_pb2.PlayResponse) -> None:
        self._messages += 1
        number = self._messages
        for frame in message.frames:
            if frame.HasField("result"):
                self._answered(link, frame)
            elif frame.HasField("reconnect"):
                self._ended(link, Unavailable("SERVER_STOPS", frame.reconnect.reason))
            elif not self._is_new(link, frame, number):
                continue
            else:
                await self._came.put(frame)

    def _is_new(self, link: Link, frame: table_pb2.PlayResponseFrame, number: int) -> bool:
        """Whether somebody has not seen it; on a gateway's stream it is cut down to those."""
        if not self._gateway:
            following = self._following.get((frame.table_id, ""))
            return following is not None and self._is_next(
                link, following, frame, number, named=True
            )
        named = bool(frame.player_ids)
        here = self._viewers.get(frame.table_id, {})
        new = [
            viewer
            for viewer in (list(frame.player_ids) if named else list(here))
            if (following := here.get(viewer)) is not None
            and self._is_next(link, following, frame, number, named=named)
        ]
        del frame.player_ids[:]
        frame.player_ids.extend(new)
        return bool(new)

    def _forget(self, table_id: str, player_id: str) -> _Following | None:
        following = self._following.pop((table_id, player_id), None)
        if following is not None:
            here = self._viewers[table_id]
            del here[player_id]
            if not here:
                del self._viewers[table_id]
        return following

    def _is_next(
        self,
        link: Link,
        following: _Following,
        frame: table_pb2.PlayResponseFrame,
        number: int,
        *,
        named: bool,
    ) -> bool:
        if following.link is not link:
            return False
        progress = following.progress
        if frame.HasField("snapshot"):
            return progress.snapshot(frame.snapshot.version, named=named) is Verdict.NEW
        verdict = progress.update(frame.update.version, number, named=named)
        if verdict is Verdict.GAP:
            self._ended(link, Unavailable("VERSIONS_MISSING", "the stream left versions out"))
        return verdict is Verdict.NEW

    def _ended(self, link: Link, error: DoorcardError) -> None:
        """A stream is over: what was on it goes elsewhere, what it owed is asked again."""
        if self._links.get(link.address) is not link:
            return
        self._finish(link)
        self.routes.suspect(link.address)
        for waiting_for, answer in self._answers.values():
            if waiting_for is link and not answer.done():
                answer.set_exception(Unavailable("STREAM_LOST", "the stream has ended"))
        passes = error.retriable or isinstance(error, ResourceExhausted)
        self._faults = 0 if passes else self._faults + 1
        if self._faults >= FAULTS_MAX:
            self._fail(error)
            return
        for following in self._following.values():
            if following.left is link:
                following.left = None
            if link in (following.link, following.parting):
                self._unjoin(following)
                self._place_later(following)

    def _fail(self, error: DoorcardError) -> None:
        for following in self._following.values():
            following.refusal = error
            following.joined.set()
        self._following.clear()
        self._viewers.clear()
        self._tell(error)

    def _tell(self, error: Exception) -> None:
        if self._came.full():
            # Whoever does not read must not miss why nothing comes any more.
            self._came.get_nowait()
        self._came.put_nowait(error)

    # Places

    def _place_all(self) -> None:
        for following in list(self._following.values()):
            if following.link is not None:
                self._place(following)

    def _place(self, following: _Following) -> None:
        """Join the table where it belongs, unless it is there already."""
        link = self._link(self.routes.address_of(following.table_id))
        if following.link is link:
            return
        left = following.link
        if following.joined.is_set():
            following.left = left
        elif left is not None:
            self._leave(following, left)
        self._unjoin(following)
        if following.left is link:
            # He is still there.
            following.left = None
            self._leave(following, link)
            link = self._link(link.address)
        loop = asyncio.get_running_loop()
        part_id = link.parting.get((following.table_id, following.player_id))
        if part_id is not None:
            # Versions from before are still on their way: joined now, they would look like a gap.
            following.parting = link
            loop.call_later(ATTEMPT_S, self._not_parted, part_id, following, link)
            return
        following.link = link
        following.join_id = str(uuid4())
        self._joins[following.join_id] = following
        following.progress.joining(gateway=self._gateway)
        link.send(
            Frame(
                request_id=following.join_id,
                table_id=following.table_id,
                player_id=following.player_id,
                join=table_pb2.JoinTable(from_version=following.progress.version),
            )
        )
        loop.call_later(ATTEMPT_S, self._unanswered, following.join_id, following, link)

    def _unanswered(self, join_id: str, following: _Following, link: Link) -> None:
        """A stream on which a join is not answered is as good as lost."""
        if self._joins.get(join_id) is following:
            self._ended(link, DeadlineExceeded("NO_ANSWER", "no answer came in time"))

    def _parted(self, link: Link, key: tuple[str, str]) -> None:
        """Nothing more comes to him from before."""
        del link.parting[key]
        following = self._following.get(key)
        if following is not None and following.parting is link:
            following.parting = None
            self._place(following)

    def _not_parted(self, part_id: str, following: _Following, link: Link) -> None:
        """A part that is waited for and not answered is no better than such a join."""
        key = (following.table_id, following.player_id)
        if self._following.get(key) is not following or following.parting is not link:
            return
        if link.parting.get(key) == part_id:
            self._ended(link, DeadlineExceeded("NO_ANSWER", "no answer came in time"))

    def _place_later(self, following: _Following) -> None:
        following.failures += 1

        def again() -> None:
            key = (following.table_id, following.player_id)
            placed = following.link or following.parting
            if not self._closed and self._following.get(key) is following and not placed:
                self._place(following)

        # The first time at once: another replica is there.
        wait_s = pause_s(following.failures - 1) if following.failures > 1 else 0.0
        asyncio.get_running_loop().call_later(wait_s, again)

    def _joined(self, following: _Following, refusal: DoorcardError | None) -> None:
        left, following.left = following.left, None
        if refusal is None:
            self._faults = following.failures = 0
            if following.link is not None:
                self.routes.trust(following.link.address)
            following.joined.set()
            following.ever_joined = True
            if left is not None:
                self._leave(following, left)
            if following.link is not None and not following.present:
                following.link.send(_presence(following))
            return
        self._unjoin(following)
        if refusal.retriable or isinstance(refusal, ResourceExhausted):
            self._place_later(following)
            return
        self._forget(following.table_id, following.player_id)
        following.refusal = refusal
        following.joined.set()
        if following.ever_joined:
            self._tell(TableLost(following.table_id, following.player_id, refusal))

    def _unjoin(self, following: _Following) -> None:
        self._joins.pop(following.join_id, None)
        following.link = following.parting = None
        following.joined.clear()

    def _leave(self, following: _Following, link: Link) -> None:
        """Its old stream parts with the table, and ends with its last one."""
        if self._links.get(link.address) is not link:
            return
        table_id, player_id = following.table_id, following.player_id
        part_id = link.parting[table_id, player_id] = str(uuid4())
        link.send(
            Frame(
                request_id=part_id,
                table_id=table_id,
                player_id=player_id,
                part=table_pb2.PartTable(),
            )
        )
        here = self._following.values()
        if not any(link in (each.link, each.left, each.parting) for each in here):
            self._finish(link)

    def _finish(self, link: Link) -> None:
        del self._links[link.address]
        self._finishing = {each for each in self._finishing if not each.over}
        self._finishing.add(link)
        link.finish()

    def _link(self, address: str) -> Link:
        link = self._links.get(address)
        if link is None:
            channel = self.routes.channel(address)
            link = self._links[address] = Link(
                address, channel, self._metadata, self._received, self._ended
            )
            self.streams_opened += 1
        return link


def _presence(following: _Following) -> Frame:
    return Frame(
        request_id=str(uuid4()),
        table_id=following.table_id,
        player_id=following.player_id,
        presence=table_pb2.Presence(connected=following.present),
    )


def _error_of(refusal: table_pb2.Refusal) -> DoorcardError:
    error = of_code(code_of(refusal.code), refusal.reason, refusal.message)
    error.metadata = dict(refusal.metadata)
    after_ms = error.metadata.get("retry_after_ms")
    error.retry_after_ms = int(after_ms) if after_ms else None
    return error
