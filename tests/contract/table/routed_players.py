"""Players over `RoutedPlay` who check what they are shown: every version once, in order."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from doorcard.table.v1 import table_pb2

from services.client import RoutedPlay
from services.runtime.channels import connect
from services.runtime.errors import DoorcardError
from services.runtime.settings import ServiceSettings
from tests.choices import passive
from tests.conftest import Room


def dialler(room: Room, subject: str, roles: tuple[str, ...] = ("player",), **more: Any) -> Any:
    """Dials replicas with a token."""
    token = room.token(subject, roles, **more)

    def dial(address: str) -> grpc.aio.Channel:
        return connect(address, ServiceSettings(), lambda: token)

    return dial


@dataclass
class Sight:
    """What one player was shown of one table."""

    seat: int
    version: int = 0
    snapshots: int = 0
    hand_id: str = ""
    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    renewed: Counter[str] = field(default_factory=Counter)
    turn: table_pb2.Turn | None = None
    acted: tuple[str, int] = ("", 0)
    timed_out: int = 0
    voided: int = 0


class Player:
    """One `RoutedPlay` and the tables of its player, or with `gateway` of many players."""

    def __init__(self, play: RoutedPlay) -> None:
        self.play = play
        self.sights: dict[tuple[str, str], Sight] = {}
        self.refused: Counter[str] = Counter()
        self.think_s = 0.0
        self.changed = asyncio.Event()
        self._acting: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None

    async def sit(self, table_id: str, seat: int, player_id: str = "") -> None:
        """Follow a table where he has a seat."""
        self.sights[table_id, player_id] = Sight(seat)
        await self.play.join(table_id, player_id)

    async def run(self) -> None:
        """See and act until cancelled."""
        try:
            async for frame in self.play:
                for player_id in frame.player_ids or ("",):
                    if (frame.table_id, player_id) in self.sights:
                        self._see(frame, player_id)
                self.changed.set()
        except Exception as failure:
            self._failure = failure
            self.changed.set()

    async def until(self, done: Callable[[], bool], timeout_s: float = 30.0) -> None:
        """Wait until something was shown."""
        async with asyncio.timeout(timeout_s):
            while not done():
                if self._failure is not None:
                    raise self._failure
                self.changed.clear()
                await self.changed.wait()

    def _see(self, frame: table_pb2.PlayResponseFrame, player_id: str) -> None:
        sight = self.sights[frame.table_id, player_id]
        if frame.HasField("snapshot"):
            view = frame.snapshot
            sight.snapshots += 1
            sight.version, sight.hand_id = view.version, view.hand.hand_id
            sight.turn = view.hand.turn if view.hand.HasField("turn") else None
        else:
            update = frame.update
            assert update.version in (sight.version, sight.version + 1), "a gap or a repeat"
            sight.version = update.version
            for event in update.events:
                self._event(sight, event)
        turn = sight.turn
        # A turn that has a new deadline is told again.
        if turn is not None and turn.seat == sight.seat:
            sight.turn = None
            if sight.acted == (sight.hand_id, turn.turn):
                return
            sight.acted = (sight.hand_id, turn.turn)
            task = asyncio.create_task(self._act(frame.table_id, player_id, sight.hand_id, turn))
            self._acting.add(task)
            task.add_done_callback(self._acting.discard)

    def _event(self, sight: Sight, event: table_pb2.TableEvent) -> None:
        kind = event.WhichOneof("event")
        if kind == "hand_started":
            sight.hand_id = event.hand_started.hand_id
            sight.begun.append(sight.hand_id)
            sight.turn = None
        elif kind == "turn":
            sight.turn = event.turn
            if event.turn.renewed:
                sight.renewed[event.turn.renewed] += 1
        elif kind == "hand":
            sight.timed_out += event.hand.HasField("timed_out")
            sight.voided += bool(event.hand.ended)
        elif kind == "hand_ended":
            sight.ended.append(event.hand_ended)
            sight.turn = None

    async def _act(self, table_id: str, player_id: str, hand_id: str, turn: table_pb2.Turn) -> None:
        await asyncio.sleep(self.think_s)
        try:
            await self.play.act(table_id, hand_id, turn.turn, passive(turn), player_id=player_id)
        except DoorcardError as error:
            self.refused[error.reason] += 1
