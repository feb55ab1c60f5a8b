"""Where the streams of a table are in its versions.

A stream has one place per table, however many of its players follow the table: a version comes once
on it for all of them. Who joins late is brought to where the stream is by frames of his own.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from services.table.state.frames import Frames, addressed
from services.table.state.views import PUBLIC
from services.table.streams.streams import Stream

HELD_MAX: Final = 256
"""Versions that are held back while a table is being joined."""
NOWHERE: Final = -1


class Joining:
    """A viewer on the way to the table's present."""

    __slots__ = ("frames", "held", "settled", "version")

    def __init__(self) -> None:
        self.settled: Final = asyncio.Event()
        """He has arrived, or is on this way no longer."""
        self.version = NOWHERE
        """Where `frames` lead to; NOWHERE while they are being read."""
        self.frames: Sequence[bytes] = ()
        self.held: list[tuple[int, Frames]] = []
        """What came meanwhile."""

    def between(self, version: int, end: int) -> list[Frames] | None:
        """The frames of every version after one up to another; None if any is missing."""
        by_version = dict(self.held)
        found = [by_version.get(at) for at in range(version + 1, end + 1)]
        complete = [each for each in found if each is not None]
        return complete if len(complete) == len(found) else None


class Place:
    """Where one stream is in one table's versions, and for whom it follows them."""

    __slots__ = ("joining", "present", "stream", "table_id", "version", "viewers")

    def __init__(self, stream: Stream, table_id: str) -> None:
        self.stream: Final = stream
        self.table_id: Final = table_id
        self.version = NOWHERE
        """Last version that went out; NOWHERE while nobody has arrived."""
        self.viewers: set[str] = set()
        """Who has arrived; `PUBLIC` for a spectator."""
        self.joining: dict[str, Joining] = {}
        """Who is on the way."""
        self.present: set[str] = set()
        """Players whose connection this is."""

    @property
    def followed_by(self) -> set[str]:
        """Everybody who has joined."""
        return self.viewers | self.joining.keys()

    def follows(self, viewer: str) -> bool:
        """Whether he has joined."""
        return viewer in self.viewers or viewer in self.joining

    def begin(self, viewer: str) -> Joining:
        """He joins, perhaps again: hold back what comes for him."""
        was_there = viewer in self.viewers
        self._drop(viewer)
        joining = self.joining[viewer] = Joining()
        if was_there and not self.viewers:
            self._emptied()
        return joining

    def forget(self, viewer: str) -> None:
        """He follows no longer."""
        was_there = viewer in self.viewers
        self._drop(viewer)
        if was_there and not self.viewers:
            self._emptied()

    def take(self, version: int, frames: Frames) -> None:
        """The frames of a version, in order."""
        for joining in self.joining.values():
            if len(joining.held) < HELD_MAX:
                joining.held.append((version, frames))
        self._advance(version, frames)

    def arrive(
        self,
        begun: Mapping[str, Joining],
        frames: Mapping[str, Sequence[bytes]],
        version: int,
    ) -> bool:
        """Everyone who began together has what brings him to a version. False: not to where the
        stream is; begin again.
        """
        arrived = {v: j for v, j in begun.items() if self.joining.get(v) is j}
        if not arrived:
            return True
        if self.version == NOWHERE:
            self._land(arrived, frames, version)
            return True
        everyone = True
        for viewer, joining in arrived.items():
            joining.version, joining.frames = version, frames[viewer]
            if not self._admit(viewer, joining):
                joining.version, everyone = NOWHERE, False
        return everyone

    def _land(
        self, arrived: Mapping[str, Joining], frames: Mapping[str, Sequence[bytes]], version: int
    ) -> None:
        """They are the first: where they are is where the stream is."""
        self.version = version
        held: Sequence[tuple[int, Frames]] = ()
        for viewer, joining in arrived.items():
            self._let_in(viewer)
            held = joining.held
            for each in frames[viewer]:
                self.stream.push(each)
        for at, came in held:
            self._advance(at, came)
        self._admit_waiting()

    def _emptied(self) -> None:
        """Nobody is left where the stream is; the nearest of those ahead of it begins anew."""
        self.version = NOWHERE
        ahead = {v: j for v, j in self.joining.items() if j.version != NOWHERE}
        if ahead:
            viewer = min(ahead, key=lambda each: ahead[each].version)
            first = ahead[viewer]
            self._land({viewer: first}, {viewer: first.frames}, first.version)

    def _advance(self, version: int, frames: Frames) -> None:
        if self.version == NOWHERE:
            return
        if version == self.version + 1:
            self.version = version
            if self.table_id not in self.stream.lost:
                self.stream.push(self._told(frames))
            if self.joining:
                self._admit_waiting()
        elif version > self.version:
            self.stream.lose(self.table_id)

    def _admit_waiting(self) -> None:
        for viewer, joining in list(self.joining.items()):
            if joining.version != NOWHERE and not self._admit(viewer, joining):
                self.stream.lose(self.table_id)

    def _admit(self, viewer: str, joining: Joining) -> bool:
        """Let him in if the stream is where he is or further; False if he would miss a version."""
        if joining.version > self.version:
            return True
        missed = joining.between(joining.version, self.version)
        if missed is None:
            return False
        self._let_in(viewer)
        if self.table_id in self.stream.lost:
            return True
        for each in joining.frames:
            self.stream.push(each)
        for frames in missed:
            self.stream.push(addressed(frames.get(PUBLIC, b""), viewer))
            if viewer != PUBLIC:
                self.stream.push(frames.get(viewer, b""))
        return True

    def _let_in(self, viewer: str) -> None:
        self._drop(viewer)
        self.viewers.add(viewer)

    def _drop(self, viewer: str) -> None:
        self.viewers.discard(viewer)
        joining = self.joining.pop(viewer, None)
        if joining is not None:
            joining.settled.set()

    def _told(self, frames: Frames) -> bytes:
        """What the stream is told of a version: what all see, then what its own players see."""
        public = frames.get(PUBLIC, b"")
        if len(frames) == 1:
            return public
        own = [each for v, each in frames.items() if v != PUBLIC and v in self.viewers]
        return b"".join((public, *own)) if own else public


class Hub:
    """A table that is watched here."""

    __slots__ = ("places", "present", "reading", "table_id", "version", "wanted")

    def __init__(self, table_id: str) -> None:
        self.table_id: Final = table_id
        self.places: dict[Stream, Place] = {}
        self.present: Counter[str] = Counter()
        """Player -> streams here that are his connection."""
        self.version = 0
        """Delivered to every place; 0 before the first was filled."""
        self.wanted = 0
        """The highest version that we were told of."""
        self.reading = False

    def appear(self, place: Place, player_id: str) -> None:
        """The place is a connection of the player."""
        if player_id not in place.present:
            place.present.add(player_id)
            self.present[player_id] += 1

    def vanish(self, place: Place, player_id: str) -> bool:
        """The place is his connection no longer; whether it was."""
        if player_id not in place.present:
            return False
        place.present.discard(player_id)
        self.present[player_id] -= 1
        if not self.present[player_id]:
            del self.present[player_id]
        return True
