"""Many players at many tables on one `Play` stream, against real servers."""

import asyncio
import random
from typing import Any
from uuid import uuid4

import grpc
import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from services.runtime.errors import Code, DoorcardError
from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.gateways import Gateway, frame
from tests.contract.table.replicas import Cluster, Seated, cluster

PLAYERS = ("web-anna", "web-ben", "web-carla")


async def opened(tables: Cluster, count: int, *, replicas: int = 1) -> tuple[list[str], Gateway]:
    """Tables where the three sit, and their gateway, which follows all of them."""
    for _ in range(replicas):
        await tables.add_replica()
    table_ids = [await tables.create(hand_pause_ms=50) for _ in range(count)]
    gateway = Gateway(tables.stub(), tables.room, ("web-",))
    for table_id in table_ids:
        results = await gateway.asked(*(gateway.join(table_id, each) for each in PLAYERS))
        assert all(each.version for each in results)
        for player in PLAYERS:
            await tables.take_seat(table_id, player)
    return table_ids, gateway


async def play(gateway: Gateway, table_ids: list[str], hands: int) -> None:
    """Everybody checks and calls at all tables at once, all of a round in one message."""
    first = {each: gateway.followed[each, PLAYERS[0]] for each in table_ids}
    acted: dict[str, tuple[str, int]] = {}

    def due() -> list[str]:
        return [
            table_id
            for table_id, seen in first.items()
            if seen.turn is not None
            and acted.get(table_id) != (seen.hand_id, seen.turn.turn)
            and len(seen.hands_ended) < hands
        ]

    while any(len(seen.hands_ended) < hands for seen in first.values()):
        await gateway.until(
            lambda: due() or all(len(seen.hands_ended) >= hands for seen in first.values())
        )
        frames = []
        for table_id in due():
            turn = first[table_id].turn
            assert turn is not None
            acted[table_id] = (first[table_id].hand_id, turn.turn)
            # Seats were taken in order.
            frames.append(gateway.act(table_id, PLAYERS[turn.seat], passive(turn)))
        for result in await gateway.asked(*frames):
            assert not result.HasField("refusal"), result


async def test_three_players_play_at_two_tables_on_one_stream(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        table_ids, gateway = await opened(tables, 2)
        await play(gateway, table_ids, 2)
        for table_id in table_ids:
            for player in PLAYERS:
                assert len(gateway.followed[table_id, player].hands_ended) >= 2
        public = [
            (each.table_id, each.update.version)
            for each in gateway.frames
            if each.HasField("update") and not each.player_ids
        ]
        assert len(public) == len(set(public)), "a public frame came twice"
        for each in gateway.frames:
            for event in each.update.events:
                if event.hand.dealt.card and not event.hand.dealt.up:
                    assert len(each.player_ids) == 1
        for request_id in gateway.results:
            assert len(gateway.named[request_id]) == 1
        gateway.call.cancel()


async def test_one_player_has_many_tables_on_his_own_stream(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        table_ids = [await tables.create() for _ in range(10)]
        for table_id in table_ids:
            await tables.take_seat(table_id, "anna")
            await tables.take_seat(table_id, "ben")
        streams = {}
        for player in ("anna", "ben"):
            stream = Seated(tables.stub(), room.metadata(player), "")
            seen = {table_id: Seated(tables.stub(), (), table_id) for table_id in table_ids}
            for view in seen.values():
                view.call.cancel()
            await stream.call.write(
                table_pb2.PlayRequest(
                    frames=[
                        frame(table_id, "", join=table_pb2.JoinTable()) for table_id in table_ids
                    ]
                )
            )
            streams[player] = (stream, seen)

        async def read(player: str, done: Any) -> None:
            stream, seen = streams[player]
            async with asyncio.timeout(20):
                while not done(seen):
                    message = await stream.call.read()
                    assert isinstance(message, table_pb2.PlayResponse)
                    for each in message.frames:
                        seen[each.table_id].take(each)

        for player in streams:
            await read(player, lambda seen: all(view.turn for view in seen.values()))
        acted = 0
        for player, (stream, seen) in streams.items():
            frames = []
            for table_id, view in seen.items():
                own = view.snapshots[-1]
                seat = next(s.seat for s in own.seats if s.player_id == player)
                if view.turn is not None and view.turn.seat == seat:
                    act = table_pb2.PlayAction(
                        hand_id=view.hand_id, turn=view.turn.turn, action=passive(view.turn)
                    )
                    frames.append(frame(table_id, "", act=act))
            await stream.call.write(table_pb2.PlayRequest(frames=frames))
            acted += len(frames)
        assert acted == len(table_ids)
        for player in streams:
            await read(player, lambda seen: all(view.turn.turn >= 1 for view in seen.values()))
        for stream, seen in streams.values():
            for view in seen.values():
                assert not any(result.HasField("refusal") for result in view.results.values())
            stream.call.cancel()


async def test_a_gateway_acts_for_its_own_players_only(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1)
        await gateway.until(lambda: gateway.followed[table_id, PLAYERS[0]].turn)
        seen = gateway.followed[table_id, PLAYERS[0]]
        assert seen.turn is not None
        act = table_pb2.PlayAction(
            hand_id=seen.hand_id, turn=seen.turn.turn, action=passive(seen.turn)
        )
        foreign, nobody, unjoined, nowhere = await gateway.asked(
            frame(table_id, "other-anna", join=table_pb2.JoinTable()),
            frame(table_id, "", act=act),
            frame(table_id, "web-dan", act=act),
            frame("", PLAYERS[0], act=act),
        )
        assert (foreign.refusal.code, foreign.refusal.reason) == (7, "NOT_YOUR_PLAYER")
        assert (nobody.refusal.code, nobody.refusal.reason) == (7, "PLAYER_NOT_NAMED")
        assert (unjoined.refusal.code, unjoined.refusal.reason) == (9, "NOT_JOINED")
        assert nowhere.refusal.code == 3
        # A spectator of the gateway sees what all see.
        (watched,) = await gateway.asked(gateway.join(table_id, ""))
        assert watched.version
        (snapshot,) = gateway.followed[table_id, ""].snapshots
        assert not any(seat.down_cards for seat in snapshot.hand.seats)
        assert not snapshot.hand.strength
        own = Seated(tables.stub(), room.metadata(PLAYERS[0]), table_id)
        await own.join()
        other = frame(table_id, PLAYERS[1], act=act)
        await own.call.write(table_pb2.PlayRequest(frames=[other]))
        await own.until(lambda: other.request_id in own.results)
        assert own.results[other.request_id].refusal.reason == "NOT_YOUR_PLAYER"
        player = room.metadata("web", ("player",), act_for=("web-",))
        with pytest.raises(grpc.RpcError) as caught:
            await tables.stub().Play(metadata=player).read()
        assert DoorcardError.from_rpc(caught.value).code is Code.PERMISSION_DENIED
        gateway.call.cancel()
        own.call.cancel()


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_gateway_that_is_cut_resumes_every_player_without_gap_or_repeat(
    room: Room, server: valkey.Valkey, seed: int
) -> None:
    rng = random.Random(seed)
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1, replicas=2)
        await gateway.until(lambda: gateway.followed[table_id, PLAYERS[0]].turn)
        watcher = Gateway(tables.stub(1), room)
        began = gateway.followed[table_id, PLAYERS[0]].version
        await watcher.asked(watcher.join(table_id, "", began))
        for _ in range(8):
            for _ in range(rng.randrange(1, 4)):
                await one_action(gateway, table_id)
            gateway.call.cancel()
            gateway = Gateway(tables.stub(rng.randrange(2)), room, ("web-",), resumes=gateway)
            joins = [
                gateway.join(table_id, each, gateway.followed[table_id, each].version)
                for each in rng.sample(PLAYERS, 3)
            ]
            for result in await gateway.asked(*joins):
                assert not result.HasField("refusal"), result
        last = max(each.version for each in gateway.followed.values())
        await gateway.until(lambda: all(f.version >= last for f in gateway.followed.values()))
        await watcher.until(lambda: watcher.followed[table_id, ""].version >= last)
        full = [each for each in watcher.followed[table_id, ""].public if began < each <= last]
        assert full == list(range(began + 1, last + 1))
        for each in gateway.followed.values():
            assert len(each.snapshots) <= 1, "a resume became a snapshot"
            assert [v for v in each.public if began < v <= last] == full, each.player_id
        gateway.call.cancel()
        watcher.call.cancel()


async def one_action(gateway: Gateway, table_id: str) -> None:
    """Whoever is to act checks or calls."""
    seen = gateway.followed[table_id, PLAYERS[0]]
    await gateway.until(lambda: seen.turn)
    turn = seen.turn
    assert turn is not None
    (result,) = await gateway.asked(gateway.act(table_id, PLAYERS[turn.seat], passive(turn)))
    assert not result.HasField("refusal") or result.refusal.reason == "STALE_TURN", result


async def test_doubled_stale_and_reordered_requests_of_a_gateway(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1)
        seen = gateway.followed[table_id, PLAYERS[0]]
        await gateway.until(lambda: seen.turn)
        turn = seen.turn
        assert turn is not None
        player = PLAYERS[turn.seat]
        right = gateway.act(table_id, player, passive(turn), request_id="once")
        stale = gateway.act(table_id, player, passive(turn), request_id="late")
        later = gateway.act(table_id, player, passive(turn), request_id="early", turn=turn.turn + 9)
        other = frame(
            table_id, PLAYERS[(turn.seat + 1) % 3], request_id="once-other", act=right.act
        )
        changed = table_pb2.PlayRequestFrame()
        changed.CopyFrom(right)
        changed.act.turn += 1
        await gateway.send(later, right, right, stale)
        await gateway.until(lambda: {"once", "late", "early"} <= gateway.results.keys())
        version = gateway.results["once"].version
        assert version
        assert gateway.results["late"].refusal.reason == "STALE_TURN"
        assert gateway.results["early"].refusal.reason == "STALE_TURN"
        (again,) = await gateway.asked(right)
        assert again.version == version
        (by_another,) = await gateway.asked(other)
        assert by_another.refusal.reason in ("STALE_TURN", "NOT_YOUR_TURN")
        gateway.results.clear()
        (reused,) = await gateway.asked(changed)
        assert reused.refusal.reason == "ID_REUSED"
        gateway.call.cancel()


async def test_a_spammer_of_the_gateway_costs_nobody_his_turn(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1)
        seen = gateway.followed[table_id, PLAYERS[0]]
        for _ in range(6):
            await gateway.until(lambda: seen.turn)
            turn = seen.turn
            assert turn is not None
            acts = PLAYERS[turn.seat]
            spammer = PLAYERS[(turn.seat + 1) % 3]
            spam = [
                frame(
                    table_id,
                    spammer,
                    act=table_pb2.PlayAction(
                        hand_id=seen.hand_id,
                        turn=turn.turn,
                        action=game_pb2.Action(kind=game_pb2.ACTION_KIND_FOLD),
                    ),
                )
                for _ in range(300)
            ]
            act = gateway.act(table_id, acts, passive(turn))
            results = await gateway.asked(*spam, act)
            assert not results[-1].HasField("refusal"), results[-1]
            reasons = {each.refusal.reason for each in results[:-1]}
            assert "MAILBOX_FULL" in reasons
            assert reasons <= {"MAILBOX_FULL", "NOT_YOUR_TURN", "STALE_TURN"}
        gateway.call.cancel()


async def test_presence_follows_the_gateways_word_and_its_stream(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1)
        watcher = Seated(tables.stub(), room.metadata("olga"), table_id)
        await watcher.join()
        connected = {seat.player_id: seat.connected for seat in watcher.snapshots[-1].seats}

        def told(wanted: dict[str, bool]) -> bool:
            for each in watcher.frames:
                for event in each.update.events:
                    if event.HasField("seat_changed"):
                        seat = event.seat_changed.seat
                        connected[seat.player_id] = seat.connected
            return connected == wanted

        await watcher.until(lambda: told(dict.fromkeys(PLAYERS, True)))
        (gone,) = await gateway.asked(
            frame(table_id, PLAYERS[0], presence=table_pb2.Presence(connected=False))
        )
        assert not gone.HasField("refusal")
        await watcher.until(lambda: told({**dict.fromkeys(PLAYERS, True), PLAYERS[0]: False}))
        await gateway.asked(
            frame("", PLAYERS[0], presence=table_pb2.Presence(connected=True)),
            frame(table_id, PLAYERS[1], part=table_pb2.PartTable()),
        )
        await watcher.until(lambda: told({**dict.fromkeys(PLAYERS, True), PLAYERS[1]: False}))
        gateway.call.cancel()
        await watcher.until(lambda: told(dict.fromkeys(PLAYERS, False)))
        watcher.call.cancel()


async def test_too_many_frames_end_the_stream_and_other_limits_are_answers(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1)
        playing = next(iter(tables.replicas[0].watchers._streams))
        playing.limits = playing.limits._replace(players=3, tables=1)
        crowded, far = await gateway.asked(
            gateway.join(table_id, "web-dan"), gateway.join(str(uuid4()), PLAYERS[0])
        )
        assert (crowded.refusal.code, crowded.refusal.reason) == (8, "TOO_MANY_PLAYERS")
        assert (far.refusal.code, far.refusal.reason) == (8, "TOO_MANY_TABLES")
        # None of them is taken, so what he follows goes on until the stream ends.
        await gateway.send(*[frame(table_id, PLAYERS[0], join=table_pb2.JoinTable())] * 1025)
        with pytest.raises(grpc.RpcError) as caught:
            await gateway.until(lambda: False)
        assert DoorcardError.from_rpc(caught.value).code is Code.INVALID_ARGUMENT


async def test_a_gateway_that_does_not_read_slows_nobody_and_is_resynced(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), quick = await opened(tables, 1)
        known = set(tables.replicas[0].watchers._streams)
        narrow = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1024)]
        async with grpc.aio.insecure_channel(tables.running[0].address, options=narrow) as channel:
            slow = Gateway(table_pb2_grpc.TableServiceStub(channel), room, ("web-",))
            await slow.asked(*(slow.join(table_id, each) for each in PLAYERS))
            (stream,) = set(tables.replicas[0].watchers._streams) - known
            stream.limits = stream.limits._replace(queue_bytes=32 * 1024)
            lost = 0
            for hands in range(2, 40, 2):
                await play(quick, [table_id], hands)
                assert stream.queued_bytes <= stream.limits.queue_bytes
                lost += bool(stream.lost)
                if lost:
                    break
            assert lost, "everything that was not read had room"
            last = quick.followed[table_id, PLAYERS[0]].version
            await slow.until(lambda: all(f.version >= last for f in slow.followed.values()))
            for followed in slow.followed.values():
                assert len(followed.snapshots) == 2
            slow.call.cancel()
        quick.call.cancel()
