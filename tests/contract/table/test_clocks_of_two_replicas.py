"""Deadlines over real servers: of an action and a time-out exactly one is taken, whichever replica
takes it; late clicks; a table that everybody has left; protection counted over tables.
"""

import asyncio
from importlib import resources
from uuid import uuid4

import pytest
import redis
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.game.wants import ActionKind
from services.runtime.clock import monotonic_s
from services.runtime.errors import FailedPrecondition
from services.table.hands.hands import Order
from services.table.state.turn_times import GRACE_MS
from services.table.store.allowances import KEEP_MS, Use
from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.gates import LaterClock
from tests.contract.table.replicas import Cluster, Seated, cluster
from tests.contract.table.test_typed_errors import error_of

ACTION_MS = 300


async def seated(tables: Cluster, table_id: str, *players: str) -> dict[int, Seated]:
    """Players with a stream at the first replica; seat -> stream."""
    streams = {}
    for player in players:
        seat = await tables.take_seat(table_id, player)
        streams[seat] = Seated(tables.stub(0), tables.room.metadata(player), table_id)
        await streams[seat].join()
    return streams


def kinds(stream: Seated) -> list[str]:
    """What happened in hands, as a player was told, in order."""
    return [
        str(event.hand.WhichOneof("event"))
        for frame in stream.frames
        if frame.HasField("update")
        for event in frame.update.events
        if event.HasField("hand")
    ]


async def test_at_the_deadline_either_the_action_is_taken_or_the_time_out_and_never_both(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        await tables.add_replica()
        table_id = await tables.create(action_ms=ACTION_MS)
        streams = await seated(tables, table_id, "anna", "ben")
        watcher, players = streams[0], ("anna", "ben")
        other = tables.replicas[1]
        taken, refused = 0, 0
        for around_ms in (-200, -15, -5, 0, 5, 15, 600, 0, -5, 5):
            await watcher.until(lambda: watcher.turn is not None)
            assert watcher.turn is not None
            turn, hand_id = watcher.turn, watcher.hand_id
            kind = ActionKind(passive(turn).kind)
            order = Order(players[turn.seat], f"r{taken}-{refused}", hand_id, turn.turn, kind, 0)
            until_ms = turn.deadline.ToMilliseconds() + GRACE_MS + around_ms
            await asyncio.sleep((until_ms - other.store.now_ms()) / 1000)
            outs = kinds(watcher).count("timed_out")
            acting = other.tables.act(table_id, order, monotonic_s())
            await asyncio.wait([acting])
            error = acting.exception()
            version = 0 if error is not None else acting.result()
            if error is None:
                taken += 1
            else:
                assert isinstance(error, FailedPrecondition)
                assert error.reason == "STALE_TURN"
                refused += 1
            await watcher.until(
                lambda: watcher.hand_id != hand_id or watcher.turn != turn  # noqa: B023
            )
            await watcher.until_version(version)
            assert kinds(watcher).count("timed_out") - outs == (not version)
            if not version:
                # Out of time twice in a row he would sit out.
                await other.tables.sit_back(table_id, players[turn.seat])
        # Where both are possible both happen.
        assert taken
        assert refused
        for stream in streams.values():
            stream.call.cancel()


async def test_a_stream_lost_in_the_countdown_and_opened_again_elsewhere_gives_its_time_once(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        await tables.add_replica()
        clock = LaterClock(*tables.replicas)
        table_id = await tables.create(rulebook="eight-or-better", stake_name="1/2", action_ms=0)
        streams = {}
        for player in ("anna", "ben"):
            seat = await tables.take_seat(table_id, player, buy_in=1000)
            streams[seat] = Seated(tables.stub(0), room.metadata(player), table_id)
            await streams[seat].join()
        await streams[0].until(lambda: streams[0].turn is not None)
        assert streams[0].turn is not None
        slow = streams[0].turn.seat
        watcher, player = streams[1 - slow], ("anna", "ben")[slow]
        await watcher.until(lambda: watcher.turn is not None)
        assert watcher.turn is not None
        first = watcher.turn
        shown = first.deadline.ToMilliseconds() - first.countdown_from.ToMilliseconds()
        assert shown == 20_000

        async def lost_and_back(stream: Seated, at: int) -> Seated:
            stream.call.cancel()
            await watcher.until(lambda: connected(watcher, slow) is False)
            clock.ahead_ms += 1_000
            fresh = Seated(tables.stub(at), room.metadata(player), table_id)
            await fresh.join()
            await watcher.until(lambda: connected(watcher, slow) is True)
            return fresh

        clock.ahead_ms += 12_000
        fresh = await lost_and_back(streams[slow], at=1)
        await watcher.until(lambda: watcher.turn is not None and bool(watcher.turn.renewed))
        assert watcher.turn.renewed == "reconnected"
        assert watcher.turn.turn == first.turn
        came_back_ms = watcher.turn.deadline.ToMilliseconds() - 20_000
        assert 0 <= tables.replicas[1].store.now_ms() - came_back_ms < 5_000
        again = watcher.turn
        clock.ahead_ms += 1_000
        fresh = await lost_and_back(fresh, at=0)
        assert watcher.turn == again
        for stream in (fresh, watcher):
            stream.call.cancel()


def connected(stream: Seated, seat: int) -> bool | None:
    """Whether a player is connected, as was told last; None for never."""
    said = [
        event.seat_changed.seat.connected
        for frame in stream.frames
        for event in frame.update.events
        if event.HasField("seat_changed") and event.seat_changed.seat.seat == seat
    ]
    return said[-1] if said else None


async def test_a_click_for_a_decision_or_a_hand_that_is_over_changes_nothing_at_any_replica(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        await tables.add_replica()
        table_id = await tables.create()
        streams = await seated(tables, table_id, "anna", "ben")
        watcher, players = streams[0], ("anna", "ben")

        async def click(
            at: int, player: str, hand_id: str, turn: int, action: game_pb2.Action
        ) -> str:
            request = table_pb2.ActRequest(
                request_id=str(uuid4()),
                table_id=table_id,
                hand_id=hand_id,
                turn=turn,
                action=action,
            )
            error = await error_of(tables.stub(at).Act(request, metadata=room.metadata(player)))
            return error.reason

        await watcher.until(lambda: watcher.turn is not None)
        assert watcher.turn is not None
        first, first_hand = watcher.turn, watcher.hand_id
        while not watcher.hands_ended:
            turn = watcher.turn
            assert turn is not None
            actor = streams[turn.seat]
            await actor.until_turn(watcher.hand_id, turn.turn)
            result = await actor.act(passive(turn))
            await watcher.until_version(result.version)
            version = (await tables.replicas[0].tables.read(table_id)).version
            for at in (0, 1):
                said = await click(at, players[turn.seat], first_hand, turn.turn, passive(turn))
                assert said == "STALE_TURN"
            if not watcher.hands_ended:
                assert (await tables.replicas[1].tables.read(table_id)).version == version
                await watcher.until(lambda: watcher.turn is not None)
        await watcher.until(lambda: watcher.turn is not None and watcher.hand_id != first_hand)
        version = (await tables.replicas[0].tables.read(table_id)).version
        for at in (0, 1):
            said = await click(at, players[first.seat], first_hand, first.turn, passive(first))
            assert said == "STALE_TURN"
        assert (await tables.replicas[0].tables.read(table_id)).version == version
        for stream in streams.values():
            stream.call.cancel()


@pytest.mark.parametrize("rulebook", ["club", "triopoker"])
async def test_a_table_that_everybody_has_left_ends_its_hand_and_is_never_due_again(
    room: Room, server: valkey.Valkey, rulebook: str
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        await tables.add_replica()
        stake = {"club": "5/10", "triopoker": "0.10/0.20"}[rulebook]
        table_id = await tables.create(rulebook=rulebook, stake_name=stake, action_ms=100)
        streams = await seated(tables, table_id, "anna", "ben", "carla")
        watching = tables.stub(1).WatchTable(
            table_pb2.WatchTableRequest(table_id=table_id), metadata=room.metadata("olga")
        )
        spectator = Seated(tables.stub(1), room.metadata("olga"), table_id)
        for stream in streams.values():
            stream.call.cancel()
        while not spectator.hands_ended:
            message = await watching.read()
            assert isinstance(message, table_pb2.WatchTableResponse)
            for frame in message.frames:
                spectator.take(frame)
        table = await tables.replicas[0].tables.read(table_id)
        while table.hand is not None or len(table.ready()) > 1:
            await spectator_step(watching, spectator)
            table = await tables.replicas[0].tables.read(table_id)
        assert "timed_out" in kinds(spectator)
        assert sum(amount for _, _, amount in table.money()) == 600
        shard = tables.replicas[0].store.shard_of(table_id)
        with redis.Redis.from_url(server.url) as store:
            due = store.zscore(f"{{t{shard}}}:deadlines", table_id)
        # Nothing but the seats that they lose some day.
        assert due is None or float(str(due)) > tables.replicas[0].store.now_ms() + 60_000
        watching.cancel()
        spectator.call.cancel()


async def spectator_step(watching: object, spectator: Seated) -> None:
    """One message of a spectator's stream."""
    message = await watching.read()  # type: ignore[attr-defined]
    for frame in message.frames:
        spectator.take(frame)


async def test_an_allowance_is_exact_over_replicas_and_expires(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        await tables.add_replica()
        here, there = (replica.store.allowances for replica in tables.replicas)
        uses = [Use("anna", "2026-11-30", f"hand:{turn}") for turn in range(3)]
        assert await here.take(uses[0], 2)
        # Tried again, here or by another replica, it counts once.
        assert await here.take(uses[0], 2)
        assert await there.take(uses[0], 2)
        assert await there.take(uses[1], 2)
        assert not await here.take(uses[2], 2)
        # What another replica has counted stays.
        await there.give_back(uses[0])
        assert not await here.take(uses[2], 2)
        await here.give_back(uses[0])
        assert await here.take(uses[2], 2)
        # Another player and another day have their own.
        assert await here.take(uses[0]._replace(player_id="ben"), 2)
        assert await here.take(uses[0]._replace(day="2026-12-01"), 2)
        with redis.Redis.from_url(server.url) as store:
            keys = store.keys("{room}:protection:*")
            assert isinstance(keys, list)
            assert len(keys) == 3
            for key in keys:
                left = store.pttl(key)
                assert isinstance(left, int)
                assert 0 < left <= KEEP_MS
                assert b"anna" not in key


async def test_protection_is_counted_over_all_tables_of_a_player(
    room: Room, server: valkey.Valkey
) -> None:
    house = resources.files("services.game") / "rulebooks" / "triopoker.toml"
    toml = house.read_text().replace("protection_per_day = 4", "protection_per_day = 1")
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        outcomes: dict[str, list[str]] = {"anna": [], "ben": []}
        # Of three times one of the two is out of time twice.
        for _ in range(3):
            table_id = await tables.create(
                rulebook="", rulebook_toml=toml, stake_name="0.10/0.20", action_ms=100
            )
            streams = await seated(tables, table_id, *outcomes)
            player, outcome = await out_of_time_after_the_bring_in(streams)
            outcomes[list(outcomes)[list(streams).index(player)]].append(outcome)
            for stream in streams.values():
                stream.call.cancel()
        for each in outcomes.values():
            assert each == ["protected", "folded", "folded"][: len(each)]


async def out_of_time_after_the_bring_in(streams: dict[int, Seated]) -> tuple[int, str]:
    """A hand in which who has to bring in does nothing and the other completes: the first one's
    seat, and what came of it.
    """
    watcher = next(iter(streams.values()))
    await watcher.until(lambda: watcher.turn is not None)
    assert watcher.turn is not None
    slow = watcher.turn.seat
    await watcher.until(lambda: watcher.turn is not None and watcher.turn.turn == 1)
    assert watcher.turn is not None
    actor = streams[watcher.turn.seat]
    await actor.until_turn(watcher.hand_id, 1)
    wager = watcher.turn.legal.wagers[0]
    result = await actor.act(game_pb2.Action(kind=watcher.turn.legal.wager_kind, amount=wager))
    assert result.version
    await watcher.until(lambda: watcher.hands_ended)
    return slow, "protected" if "protected" in kinds(watcher) else "folded"
