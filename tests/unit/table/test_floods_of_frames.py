"""Who floods his stream with joins, parts, presence and options is refused beyond a budget, for
next to nothing, and is read more slowly; nobody else notices.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2
from grpc import aio

from services.runtime.auth import Caller, enter_call
from services.runtime.errors import Code, ResourceExhausted
from services.runtime.roles import Role
from services.table.streams import budgets, play_server
from services.table.streams.budgets import ITSELF, PLAYER, Budgets, pause_s
from services.table.streams.play_server import PlayServer
from services.table.streams.streams import GATEWAY, OWN
from tests.unit.table.rooms import FakeRoom
from tests.unit.table.test_watchers import playing, settled, watching

Sent = Mapping[str, Any]

FOLD = game_pb2.Action(kind=game_pb2.ACTION_KIND_FOLD)
JOIN = {"join": table_pb2.JoinTable()}
GONE = {"presence": table_pb2.Presence(connected=False)}
BACK = {"presence": table_pb2.Presence(connected=True)}


class Clock:
    """A clock that is set."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Player:
    """One Play stream whose client sends what it is given."""

    def __init__(
        self, server: PlayServer, subject: str, role: Role = Role.PLAYER, act_for: str = ""
    ) -> None:
        self.read = 0
        """Messages that were read from it."""
        self._sent: asyncio.Queue[table_pb2.PlayRequest] = asyncio.Queue()
        self._written: list[bytes] = []
        enter_call(Caller(subject, frozenset({role}), (act_for,) if act_for else ()), "")
        requests = self._requests()
        self._task = asyncio.create_task(server.play(lambda: anext(requests, aio.EOF), self._write))

    def send(self, table_id: str, frames: Iterable[Sent], player: str = "") -> None:
        """Send a message."""
        self._sent.put_nowait(
            table_pb2.PlayRequest(
                frames=[
                    table_pb2.PlayRequestFrame(
                        request_id=f"r{at}",
                        table_id=table_id,
                        player_id=player,
                        **frame,
                    )
                    for at, frame in enumerate(frames)
                ]
            )
        )

    def results(self) -> list[table_pb2.RequestResult]:
        """All answers that came."""
        frames = table_pb2.PlayResponse.FromString(b"".join(self._written)).frames
        return [each.result for each in frames if each.HasField("result")]

    def refusals(self) -> list[table_pb2.Refusal]:
        """All refusals that came."""
        return [each.refusal for each in self.results() if each.HasField("refusal")]

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _requests(self) -> AsyncIterator[table_pb2.PlayRequest]:
        while True:
            request = await self._sent.get()
            self.read += 1
            yield request

    async def _write(self, message: bytes) -> None:
        self._written.append(message)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the budgets, and no pauses in reading."""
    stopped = Clock()
    monkeypatch.setattr(play_server, "Budgets", lambda: Budgets(stopped))
    monkeypatch.setattr(play_server, "pause_s", lambda *_: 0.0)
    return stopped


async def opened() -> tuple[FakeRoom, PlayServer]:
    room = await playing()
    return room, PlayServer(room.tables, watching(room))


def test_a_budget_is_taken_from_and_comes_back_with_time() -> None:
    clock = Clock()
    mine = Budgets(clock)
    for _ in range(PLAYER.burst):
        mine.take(("", "anna"))
    for _ in range(3):
        with pytest.raises(ResourceExhausted) as refused:
            mine.take(("", "anna"))
        assert refused.value.reason == "RATE_LIMITED"
        assert refused.value.metadata == {"limit": "frames.player"}
    assert refused.value.retry_after_ms is not None
    clock.now_s += refused.value.retry_after_ms / 1000
    mine.take(("", "anna"))
    mine.take(("", "ben"))
    mine.take(("web", "anna"))


def test_a_player_at_64_tables_reconnects_twice_and_sets_his_options() -> None:
    mine = Budgets(Clock())
    for _ in range(3 * OWN.tables):
        mine.take(("", "anna"))


def test_a_gateway_may_watch_all_that_its_stream_has_room_for_twice() -> None:
    mine = Budgets(Clock())
    for _ in range(2 * GATEWAY.tables):
        mine.take(("web", ""))
    assert ITSELF.burst == 2 * GATEWAY.tables


def test_the_number_of_budgets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "KEPT_MAX", 2)
    mine = Budgets(Clock())
    mine.take(("", "anna"), PLAYER.burst)
    mine.take(("", "ben"), PLAYER.burst)
    mine.take(("", "carla"))
    with pytest.raises(ResourceExhausted):
        mine.take(("", "ben"))
    mine.take(("", "anna"))


def test_reading_pauses_as_long_as_the_budgets_need_and_no_longer_than_said() -> None:
    assert pause_s(8, 1, 1.0) == 8 / PLAYER.per_second
    assert pause_s(64, 1, 1.0) == 1.0
    assert pause_s(16, 100, 1.0) == pytest.approx(0.01)
    assert pause_s(1, 0, 1.0) == 1 / PLAYER.per_second


@pytest.mark.parametrize("kind", ["join", "presence", "part"])
async def test_a_flood_is_refused_beyond_the_budget_without_asking_the_store(
    clock: Clock, kind: str
) -> None:
    room, server = await opened()
    flooder = Player(server, "anna")
    floods: dict[str, list[Sent]] = {
        "join": [JOIN] * 64,
        "presence": [GONE, BACK] * 32,
        "part": [{"part": table_pb2.PartTable()}, JOIN] * 32,
    }
    flood = floods[kind]
    flooder.send(room.table_id, [JOIN])
    await settled(room)
    for _ in range(PLAYER.burst // 64):
        flooder.send(room.table_id, flood)
    await settled(room)
    reads, commits = room.store.reads, len(room.store.commits)
    before = len(flooder.results())
    for _ in range(20):
        flooder.send(room.table_id, flood)
    await settled(room)
    answers = flooder.results()[before:]
    assert len(answers) == 20 * 64
    assert {each.refusal.reason for each in answers} == {"RATE_LIMITED"}
    refusal = answers[0].refusal
    assert refusal.code == Code.RESOURCE_EXHAUSTED.value[0]
    assert int(refusal.metadata["retry_after_ms"]) > 0
    assert (room.store.reads, len(room.store.commits)) == (reads, commits)
    # His next stream has no more; another player has all of his own; time gives him more.
    again, other = Player(server, "anna"), Player(server, "ben")
    for each in (again, other):
        each.send(room.table_id, [JOIN])
    await settled(room)
    assert [each.reason for each in again.refusals()] == ["RATE_LIMITED"]
    assert not other.refusals()
    assert len(other.results()) == 1
    clock.now_s += 1
    again.send(room.table_id, [JOIN])
    await settled(room)
    assert not again.results()[-1].HasField("refusal")
    for each in (flooder, again, other):
        await each.close()


async def test_one_player_of_a_gateway_leaves_the_others_their_own_budget(clock: Clock) -> None:
    room, server = await opened()
    gateway = Player(server, "web", Role.SERVICE, "*")
    gateway.send(room.table_id, [JOIN] * (PLAYER.burst + 10), "anna")
    gateway.send(room.table_id, [JOIN], "ben")
    await settled(room)
    assert len(gateway.refusals()) == 10
    assert not gateway.results()[-1].HasField("refusal")
    assert clock.now_s
    await gateway.close()


async def test_presence_at_all_tables_costs_as_much_as_at_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []
    monkeypatch.setattr(Budgets, "take", lambda _self, _whose, frames=1: taken.append(frames))
    room, server = await opened()
    gateway = Player(server, "web", Role.SERVICE, "*")
    gateway.send(room.table_id, [JOIN], "anna")
    gateway.send(await room.create(request_id="another"), [JOIN], "anna")
    gateway.send("", [GONE], "anna")
    gateway.send("", [GONE], "carla")
    await settled(room)
    assert taken == [1, 1, 2, 1]
    await gateway.close()


async def test_acts_that_are_refused_later_slow_the_reading_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, server = await opened()
    monkeypatch.setattr(play_server, "pause_s", lambda *_: 3600.0)
    stale = {"act": table_pb2.PlayAction(hand_id=room.table_id, turn=1, action=FOLD)}
    flooder = Player(server, "anna")
    flooder.send(room.table_id, [JOIN])
    for _ in range(5):
        flooder.send(room.table_id, [stale])
        await settled(room)
    assert flooder.read == 3
    assert len(flooder.refusals()) == 2
    await flooder.close()


async def test_a_stream_that_floods_is_read_no_further_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, server = await opened()
    monkeypatch.setattr(play_server, "pause_s", lambda *_: 3600.0)
    calm, flooder = Player(server, "ben"), Player(server, "anna")
    calm.send(room.table_id, [JOIN] * 5)
    calm.send(room.table_id, [JOIN])
    for _ in range(PLAYER.burst // 64 + 3):
        flooder.send(room.table_id, [JOIN] * 64)
    await settled(room)
    assert calm.read == 2
    assert flooder.read == PLAYER.burst // 64 + 1
    for each in (calm, flooder):
        await each.close()
