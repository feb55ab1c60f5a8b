"""Shuffler, showdown or wallet is away in the middle of everything, against real servers: the table
waits, the clock stands still, the hand goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest
from doorcard.table.v1 import admin_pb2, admin_pb2_grpc, table_pb2

from services.runtime.channels import connect
from services.runtime.settings import ServiceSettings
from services.table.state.state import Table, TableStatus
from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.gates import Gate, LaterClock, gate_to
from tests.contract.table.replicas import Cluster, Seated, cluster

PLAYERS = ("anna", "ben")
Phase = Callable[["Scene"], Awaitable[None]]
STEP_MS = 5_000
ACTION_MS = 60_000


@dataclass
class Scene:
    """A table of two whose ways to the services can be shut."""

    tables: Cluster
    table_id: str
    gates: dict[str, Gate]
    clock: LaterClock
    streams: dict[int, Seated]

    @property
    def watcher(self) -> Seated:
        """One of the players."""
        return self.streams[0]

    async def table(self) -> Table:
        """As it is in the store."""
        return await self.tables.replicas[0].tables.read(self.table_id)

    async def pass_time(self, ms: int) -> None:
        """Time goes by, and the sweep looks."""
        self.clock.ahead_ms += ms
        await self.tables.replicas[0].tables.tick(self.table_id)

    async def act(self) -> bool:
        """The player to act checks, calls or brings in. Whether it is somebody's turn then."""
        turn = self.watcher.turn
        assert turn is not None
        actor = self.streams[turn.seat]
        await actor.until_turn(self.watcher.hand_id, turn.turn)
        result = await actor.act(passive(turn))
        assert not result.HasField("refusal"), result
        for stream in self.streams.values():
            await stream.until_version(result.version)
        return (await self.table()).clock_runs


@asynccontextmanager
async def scene(room: Room, server: valkey.Valkey) -> AsyncIterator[Scene]:
    """Two players at a table with rake, before their first hand."""
    async with AsyncExitStack() as stack:
        tables = await stack.enter_async_context(cluster(room, server))
        gates = {}
        for name in ("shuffler", "showdown", "wallet"):
            gate = await stack.enter_async_context(gate_to(tables.addresses[f"{name}_address"]))
            tables.addresses[f"{name}_address"] = gate.address
            gates[name] = gate
        await tables.add_replica()
        clock = LaterClock(tables.replicas[0])
        # Long after any sweep of this test: the hand begins when the test says so.
        table_id = await tables.create(rake_schedule_id="standard", hand_pause_ms=60_000)
        streams = {}
        for player in PLAYERS:
            seat = await tables.take_seat(table_id, player)
            streams[seat] = Seated(tables.stub(), room.metadata(player), table_id)
            await streams[seat].join()
        yield Scene(tables, table_id, gates, clock, streams)
        for stream in streams.values():
            stream.call.cancel()


def clocks(stream: Seated) -> list[bool]:
    """Every time that the clock was told to stand still (True) or to run."""
    return [
        event.clock.stopped
        for frame in stream.frames
        if frame.HasField("update")
        for event in frame.update.events
        if event.HasField("clock")
    ]


def timed_out(stream: Seated) -> bool:
    """Whether anybody was told to be out of time."""
    return any(
        event.hand.HasField("timed_out") for frame in stream.frames for event in frame.update.events
    )


async def begin(at: Scene) -> None:
    """The hand begins."""
    await at.pass_time(60_000)
    await at.watcher.until(lambda: at.watcher.turn is not None)


async def before_the_deal(at: Scene) -> None:
    """The button is still to be drawn and the deck to be made."""
    at.gates["shuffler"].away = True
    await at.pass_time(60_000)


async def between_root_and_cards(at: Scene) -> None:
    """The deck is made and its root is out; its cards are still to be drawn."""
    made: list[int] = []
    shut = at.gates["shuffler"]
    passes = shut._pass

    async def until_the_hands_own_deck(method: str, request: bytes, context: object) -> bytes:
        if method.endswith("CreateDeck"):
            made.append(1)
        # The first deck is only for the button.
        shut.away = len(made) == 2 and method.endswith("Draw")
        return await passes(method, request, context)

    shut._pass = until_the_hands_own_deck  # type: ignore[method-assign]
    await at.pass_time(60_000)
    shut._pass = passes  # type: ignore[method-assign]
    assert shut.away


async def between_streets(at: Scene) -> None:
    """Third street is over; the fourth cards are still to be drawn."""
    await begin(at)
    at.gates["shuffler"].away = True
    while await at.act():
        pass


async def before_seventh_street(at: Scene) -> None:
    """Sixth street is over; the last cards are still to be drawn."""
    await begin(at)
    while (hand := (await at.table()).hand) is not None and hand.street < 6:
        await at.act()
        await at.watcher.until(lambda: at.watcher.turn is not None)
    at.gates["shuffler"].away = True
    while await at.act():
        pass


async def before_the_rake(at: Scene) -> None:
    """Betting is over; the rake is still to be assessed."""
    await begin(at)
    at.gates["wallet"].away = True
    while await at.act():
        await at.watcher.until(lambda: at.watcher.turn is not None)


async def before_the_showdown(at: Scene) -> None:
    """Betting is over and the rake is known; the pots are still to be divided."""
    await begin(at)
    at.gates["showdown"].away = True
    while await at.act():
        await at.watcher.until(lambda: at.watcher.turn is not None)


PHASES = (
    before_the_deal,
    between_root_and_cards,
    between_streets,
    before_seventh_street,
    before_the_rake,
    before_the_showdown,
)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
async def test_for_a_minute_the_table_waits_and_then_the_hand_goes_on(
    room: Room, server: valkey.Valkey, phase: Phase
) -> None:
    async with scene(room, server) as at, asyncio.timeout(60):
        await phase(at)
        (away,) = [gate for gate in at.gates.values() if gate.away]
        table = await at.table()
        waiting_since = table.hand.inputs if table.hand is not None else None
        root = table.blob.hand.decks[0].root if table.blob.hand is not None else b""
        for _ in range(60_000 // STEP_MS):
            assert table.blob.waits_for
            assert not table.clock_runs
            assert sum(amount for _, _, amount in table.money()) == 400
            await at.pass_time(STEP_MS)
            table = await at.table()
        assert (table.hand.inputs if table.hand is not None else None) == waiting_since
        assert away.refused >= 60_000 // STEP_MS
        view = await at.tables.replicas[0].tables.view(at.table_id, "")
        assert not view.hand.HasField("turn")

        away.away = False
        version = table.version
        await at.pass_time(STEP_MS)
        table = await at.table()
        assert not table.blob.waits_for
        await at.watcher.until(lambda: at.watcher.version > version and not clocks(at.watcher)[-1])
        assert clocks(at.watcher) == [True, False]
        assert not timed_out(at.watcher)
        if table.hand is not None:
            assert table.blob.hand is not None
            assert root in (b"", table.blob.hand.decks[0].root)
            # Whoever is to act has his whole time.
            await at.watcher.until(lambda: at.watcher.turn is not None)
            now_ms = at.tables.replicas[0].store.now_ms()
            assert table.blob.due_ms - now_ms > ACTION_MS - 5_000
            while await at.act():
                await at.watcher.until(lambda: at.watcher.turn is not None)
        table = await at.table()
        assert table.hand is None
        assert not timed_out(at.watcher)
        assert len(at.watcher.hands_ended) == 1


@pytest.mark.parametrize(
    "phase", [before_the_deal, between_streets, before_the_rake], ids=lambda phase: phase.__name__
)
async def test_after_ten_minutes_an_operator_is_needed_and_enough(
    room: Room, server: valkey.Valkey, phase: Phase
) -> None:
    async with scene(room, server) as at, asyncio.timeout(60):
        await phase(at)
        (away,) = [gate for gate in at.gates.values() if gate.away]
        await at.pass_time(590_000)
        assert (await at.table()).blob.status is TableStatus.OPEN
        await at.pass_time(15_000)
        table = await at.table()
        assert table.blob.status is TableStatus.PAUSED
        assert sum(amount for _, _, amount in table.money()) == 400
        # It does not come back by itself.
        away.away = False
        await at.pass_time(60_000)
        assert (await at.table()).version == table.version

        channel = connect(at.tables.running[0].address, ServiceSettings())
        admin = admin_pb2_grpc.TableAdminServiceStub(channel)
        request = admin_pb2.TableAdminServiceResumeTableRequest(
            request_id="r1", table_id=at.table_id, reason="it is back"
        )
        await admin.ResumeTable(request, metadata=room.metadata("olga", ("operator",)))
        await channel.close()
        await at.pass_time(60_000)
        table = await at.table()
        assert table.blob.status is TableStatus.OPEN
        assert not table.blob.waits_for
        assert table.clock_runs == (phase is not before_the_rake)
        await at.watcher.until(lambda: at.watcher.version >= table.version)
        assert len(at.watcher.hands_ended) == (phase is before_the_rake)
        assert not timed_out(at.watcher)


async def test_an_answer_to_a_click_says_that_it_was_taken_though_the_table_waits(
    room: Room, server: valkey.Valkey
) -> None:
    async with scene(room, server) as at, asyncio.timeout(60):
        await between_streets(at)
        table = await at.table()
        turns = [
            event.turn.turn
            for frame in at.watcher.frames
            for event in frame.update.events
            if event.HasField("turn")
        ]
        results = [result for each in at.streams.values() for result in each.results.values()]
        assert max(result.version for result in results) == table.version
        # A second click for the decision that was taken, while the table waits.
        at.watcher.turn = table_pb2.Turn(turn=turns[-1], seat=0)
        late = await at.watcher.act(passive(table_pb2.Turn()))
        assert late.refusal.reason in ("STALE_TURN", "NOT_YOUR_TURN")
