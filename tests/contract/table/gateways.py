"""A gateway: one `Play` stream for many players, and what each of them makes of it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from tests.conftest import Room
from tests.contract.table.replicas import PATIENCE_S


@dataclass
class Followed:
    """One table as one player of a gateway has it; every version once and in order."""

    player_id: str
    joined: bool = False
    version: int = 0
    hand_id: str = ""
    turn: table_pb2.Turn | None = None
    hands_ended: list[str] = field(default_factory=list)
    snapshots: list[table_pb2.TableView] = field(default_factory=list)
    events: list[table_pb2.TableEvent] = field(default_factory=list)
    public: list[int] = field(default_factory=list)
    """Versions of frames for all."""

    def see(self, frame: table_pb2.PlayResponseFrame) -> None:
        """Take a frame that is his: after the first that names him, also those for everybody."""
        mine = self.player_id in frame.player_ids
        kind = frame.WhichOneof("frame")
        if kind == "result":
            return
        self.joined = self.joined or mine
        if not self.joined or (frame.player_ids and not mine):
            return
        if kind == "snapshot":
            self.snapshots.append(frame.snapshot)
            self.version = frame.snapshot.version
            hand = frame.snapshot.hand
            self.hand_id = hand.hand_id
            self.turn = hand.turn if hand.HasField("turn") else None
        elif kind == "update":
            version = frame.update.version
            assert version in (self.version, self.version + 1), "a gap or a repeat"
            if version == self.version + 1:
                self.public.append(version)
            else:
                assert mine, "a version came twice"
            self.version = version
            for event in frame.update.events:
                self._see(event)

    def _see(self, event: table_pb2.TableEvent) -> None:
        self.events.append(event)
        kind = event.WhichOneof("event")
        if kind == "hand_started":
            self.hand_id, self.turn = event.hand_started.hand_id, None
        elif kind == "turn":
            self.turn = event.turn
        elif kind == "hand_ended":
            self.hands_ended.append(event.hand_ended)
            self.turn = None


class Gateway:
    """One stream; followed: (table, player) -> what he has. resumes: one whose stream is over, and
    whose players come back on this one.
    """

    def __init__(
        self,
        stub: "table_pb2_grpc.TableServiceAsyncStub",
        room: Room,
        act_for: Iterable[str] = ("*",),
        resumes: "Gateway | None" = None,
    ) -> None:
        metadata = room.metadata("web", ("service",), act_for=tuple(act_for))
        self.call = stub.Play(metadata=metadata)
        self.followed: dict[tuple[str, str], Followed] = resumes.followed if resumes else {}
        for each in self.followed.values():
            each.joined = False
        self.results: dict[str, table_pb2.RequestResult] = {}
        self.named: dict[str, list[str]] = {}
        """Request -> whom its result names."""
        self.frames: list[table_pb2.PlayResponseFrame] = []
        self.messages = 0

    async def send(self, *frames: table_pb2.PlayRequestFrame) -> None:
        """All of them in one message."""
        await self.call.write(table_pb2.PlayRequest(frames=frames))

    async def asked(self, *frames: table_pb2.PlayRequestFrame) -> list[table_pb2.RequestResult]:
        """Send frames in one message; what became of them."""
        await self.send(*frames)
        await self.until(lambda: all(each.request_id in self.results for each in frames))
        return [self.results[each.request_id] for each in frames]

    def join(self, table_id: str, player_id: str, version: int = 0) -> table_pb2.PlayRequestFrame:
        """A join; what he had of the table before stays."""
        had = self.followed.setdefault((table_id, player_id), Followed(player_id, version=version))
        # Versions go on until the server takes the join: they would be missing.
        assert not had.joined, "he follows the table on this stream already"
        return frame(table_id, player_id, join=table_pb2.JoinTable(from_version=version))

    def act(
        self, table_id: str, player_id: str, action: game_pb2.Action, **changes: Any
    ) -> table_pb2.PlayRequestFrame:
        """An action for the decision that the player saw last."""
        seen = self.followed[table_id, player_id]
        assert seen.turn is not None
        fields = {"hand_id": seen.hand_id, "turn": seen.turn.turn, "action": action}
        request_id = changes.pop("request_id", "")
        act = table_pb2.PlayAction(**{**fields, **changes})
        return frame(table_id, player_id, request_id=request_id, act=act)

    async def until(self, done: Callable[[], Any]) -> None:
        """Read until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                message = await self.call.read()
                assert isinstance(message, table_pb2.PlayResponse), "the stream ended"
                self.messages += 1
                for each in message.frames:
                    self.take(each)

    def take(self, each: table_pb2.PlayResponseFrame) -> None:
        """See one frame."""
        self.frames.append(each)
        if each.HasField("result"):
            self.results[each.result.request_id] = each.result
            self.named[each.result.request_id] = list(each.player_ids)
        for (table_id, _), followed in self.followed.items():
            if table_id == each.table_id:
                followed.see(each)


def frame(
    table_id: str, player_id: str, *, request_id: str = "", **what: Any
) -> table_pb2.PlayRequestFrame:
    """A frame with an id of its own."""
    return table_pb2.PlayRequestFrame(
        request_id=request_id or str(uuid4()), table_id=table_id, player_id=player_id, **what
    )
