"""Every version reaches every stream once, in order; who is too slow gets the table anew."""

import asyncio
from typing import cast

import pytest
from doorcard.table.v1 import table_pb2

from services.runtime.clock import monotonic_s
from services.runtime.errors import NotFound, ResourceExhausted, Unavailable
from services.runtime.ids import uuid7
from services.table.hands.hands import Order
from services.table.store.store import Store
from services.table.store.stored import Commit
from services.table.streams import watchers
from services.table.streams.streams import OWN, Stream
from services.table.streams.watchers import Watchers
from services.table.tables.tables import Tables
from tests.unit.table.rooms import FakeRoom, passive


class Reader:
    """One stream with a reader that can be stopped."""

    def __init__(self, hub: Watchers, player_id: str = "", gateway: str = "") -> None:
        self.hub = hub
        self.stream: Stream = hub.open_gateway(gateway) if gateway else hub.open(player_id)
        self.messages: list[bytes] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.task = asyncio.create_task(self.stream.write_out(self.write))

    async def write(self, message: bytes) -> None:
        await self.reads.wait()
        self.messages.append(message)

    def frames(self) -> list[table_pb2.PlayResponseFrame]:
        """All that came."""
        return list(table_pb2.PlayResponse.FromString(b"".join(self.messages)).frames)

    def versions(self) -> list[tuple[str, int]]:
        """(snapshot or update, version) of all that came."""
        found = []
        for frame in self.frames():
            if frame.HasField("snapshot"):
                found.append(("snapshot", frame.snapshot.version))
            elif frame.HasField("update"):
                found.append(("update", frame.update.version))
        return found

    def check(self) -> int:
        """No gap and no repeat since the last snapshot; the version reached."""
        version, at_version = 0, 0
        for kind, seen in self.versions():
            if kind == "snapshot":
                version, at_version = seen, 0
            elif seen == version:
                at_version += 1
                assert at_version <= 1, "a third frame for one version"
            else:
                assert version in (0, seen - 1), "a gap"
                version, at_version = seen, 0
        return version

    async def close(self) -> None:
        self.hub.close(self.stream)
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def settled(*rooms: FakeRoom) -> None:
    """Let every task run until nothing moves."""
    for _ in range(50):
        await asyncio.sleep(0)
    for room in rooms:
        for tables in room.replicas:
            await tables.emptied()


def watching(room: FakeRoom, tables: Tables | None = None) -> Watchers:
    """Watchers over the room's store and one of its replicas."""
    return Watchers(cast(Store, room.store), tables or room.tables)


async def playing() -> FakeRoom:
    room = FakeRoom(seed=3)
    await room.create()
    await room.seat("anna", "ben", "carla")
    return room


async def test_a_stream_begins_with_a_snapshot_and_goes_on_with_updates() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, "anna")
    assert await hub.join(reader.stream, room.table_id, 0) == room.table.version
    await room.start_hand()
    await room.play_out()
    await settled(room)
    assert reader.versions()[0][0] == "snapshot"
    assert reader.check() == room.table.version
    await reader.close()


async def test_a_resume_sends_what_was_missed_and_nothing_twice() -> None:
    room = await playing()
    hub = watching(room)
    await room.start_hand()
    version = room.table.version
    await room.act()
    await room.act()
    reader = Reader(hub, "anna")
    await hub.join(reader.stream, room.table_id, version)
    await room.act()
    await settled(room)
    kinds = {kind for kind, _ in reader.versions()}
    assert kinds == {"update"}
    assert reader.versions()[0][1] == version + 1
    assert reader.check() == room.table.version
    await reader.close()


@pytest.mark.parametrize("ahead", [1, 1 << 40])
async def test_a_resume_from_the_future_or_the_distant_past_is_a_snapshot(ahead: int) -> None:
    room = await playing()
    hub = watching(room)
    for from_version in (1, room.table.version + ahead):
        reader = Reader(hub)
        await hub.join(reader.stream, room.table_id, from_version)
        await settled(room)
        assert reader.versions() == [("snapshot", room.table.version)]
        await reader.close()
    assert not room.store.closed


async def test_versions_of_another_replica_come_after_a_wake_up() -> None:
    room = await playing()
    hub = watching(room)
    other = room.replica("replica-2")
    readers = [Reader(hub, "anna"), Reader(hub)]
    for reader in readers:
        await hub.join(reader.stream, room.table_id, 0)
    room.tables = other
    await room.start_hand()
    await room.act()
    hub.woken(room.table_id, room.table.version - 1)
    hub.woken(room.table_id, room.table.version)
    await settled(room)
    for reader in readers:
        assert reader.check() == room.table.version
        await reader.close()


async def test_commits_here_and_there_mix_without_gap_or_repeat() -> None:
    room = await playing()
    first, second = room.tables, room.replica("replica-2")
    hubs = [watching(room, first), watching(room, second)]
    readers = [Reader(hub, player) for hub in hubs for player in ("anna", "ben", "")]
    for reader in readers:
        await reader.hub.join(reader.stream, room.table_id, 0)
    await room.start_hand()
    for _ in range(60):
        if room.table.hand is None:
            await room.start_hand()
        room.tables = room.rng.choice([first, second])
        await room.act(*room.choose(room.to_act()[1]))
        for hub in hubs:
            if room.rng.random() < 0.7:
                hub.woken(room.table_id, room.table.version)
        if room.rng.random() < 0.3:
            await settled()
    for hub in hubs:
        hub.woken(room.table_id, room.table.version)
    await settled(room)
    for reader in readers:
        assert reader.check() == room.table.version
        await reader.close()


async def test_the_wake_up_of_a_commit_of_our_own_reads_nothing() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, "anna")
    await hub.join(reader.stream, room.table_id, 0)
    await room.start_hand()
    await settled(room)
    events_after, reads = room.store.events_after, []

    async def counted(table_id: str, version: int) -> list[tuple[int, bytes]] | None:
        reads.append(version)
        return await events_after(table_id, version)

    room.store.events_after = counted  # type: ignore[method-assign]
    for _ in range(3):
        # It comes before the answer to the commit.
        version = room.table.version + 1
        room.store.before_commit = lambda _, made=version: hub.woken(room.table_id, made)
        await room.act()
    await settled(room)
    assert not reads
    assert reader.check() == room.table.version
    await reader.close()


async def test_a_wake_up_during_a_commit_that_is_not_made_was_another_s() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, "anna")
    await hub.join(reader.stream, room.table_id, 0)
    await room.start_hand()
    player, want, hand_id = room.to_act()
    order = Order(player, "twice", hand_id, want.turn, passive(want), 0)

    def is_taken_elsewhere(_: Commit) -> None:
        room.write(lambda t: t.blob.seats[want.seat].remember(order.request, t.version + 1))
        hub.woken(room.table_id, room.table.version)

    room.store.before_commit = is_taken_elsewhere
    taken = await room.tables.act(room.table_id, order, monotonic_s())
    assert taken == room.table.version
    await settled(room)
    assert reader.versions()[-1] == ("snapshot", taken)
    await reader.close()


async def test_versions_while_a_table_is_joined_are_neither_lost_nor_doubled() -> None:
    room = await playing()
    hub = watching(room)
    await room.start_hand()
    load = room.store.load

    async def slow_load(table_id: str) -> object:
        found = await load(table_id)
        room.store.load = load  # type: ignore[method-assign]
        await room.act()
        await room.act()
        return found

    room.store.load = slow_load  # type: ignore[method-assign,assignment]
    room.tables._kept.drop(room.table_id)
    reader = Reader(hub, "anna")
    await hub.join(reader.stream, room.table_id, 0)
    await settled(room)
    assert reader.check() == room.table.version
    await reader.close()


async def test_a_gap_in_the_store_is_a_snapshot() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub)
    await hub.join(reader.stream, room.table_id, 0)
    room.tables = room.replica("replica-2")
    await room.start_hand()
    await room.act()
    room.store.events[room.table_id] = room.store.events[room.table_id][-1:]
    hub.woken(room.table_id, room.table.version)
    await settled(room)
    assert reader.versions()[-1] == ("snapshot", room.table.version)
    await room.act()
    hub.woken(room.table_id, room.table.version)
    await settled(room)
    assert reader.check() == room.table.version
    await reader.close()


async def test_a_store_that_was_away_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchers, "READ_AGAIN_S", 0.0)
    room = await playing()
    hub = watching(room)
    reader = Reader(hub)
    await hub.join(reader.stream, room.table_id, 0)
    events_after = room.store.events_after

    async def away(_table_id: str, _version: int) -> list[tuple[int, bytes]] | None:
        room.store.events_after = events_after  # type: ignore[method-assign]
        raise Unavailable("STORE_AWAY", "the store does not answer")

    room.store.events_after = away  # type: ignore[method-assign,assignment]
    room.tables = room.replica("replica-2")
    await room.start_hand()
    hub.woken(room.table_id, room.table.version)
    await settled(room)
    assert reader.check() == room.table.version
    await reader.close()


async def test_a_slow_reader_costs_the_table_nothing_and_gets_a_snapshot() -> None:
    room = await playing()
    hub = watching(room)
    slow, quick = Reader(hub, "anna"), Reader(hub, "ben")
    for reader in (slow, quick):
        reader.stream.limits = OWN._replace(queue_bytes=4096)
        await hub.join(reader.stream, room.table_id, 0)
    await settled(room)
    slow.reads.clear()
    for _ in range(2):
        await room.start_hand()
        await room.play_out()
        await settled(room)
        assert slow.stream.queued_bytes <= 4096
    slow.reads.set()
    await settled(room)
    assert [kind for kind, _ in slow.versions()].count("snapshot") == 2
    assert [kind for kind, _ in quick.versions()].count("snapshot") == 1
    for reader in (slow, quick):
        assert reader.check() == room.table.version
        await reader.close()


async def test_private_frames_go_to_their_player_alone() -> None:
    room = await playing()
    hub = watching(room)
    readers = {player: Reader(hub, player) for player in ("anna", "ben", "")}
    for reader in readers.values():
        await hub.join(reader.stream, room.table_id, 0)
    await room.start_hand()
    await settled(room)
    down = {
        player: sorted(
            (event.hand.dealt.seat, event.hand.dealt.card)
            for frame in reader.frames()
            for event in frame.update.events
            if event.hand.HasField("dealt") and not event.hand.dealt.up and event.hand.dealt.card
        )
        for player, reader in readers.items()
    }
    assert down[""] == []
    assert {seat for seat, _ in down["anna"]} == {room.table.seat_of("anna")}
    assert {seat for seat, _ in down["ben"]} == {room.table.seat_of("ben")}
    for reader in readers.values():
        await reader.close()


async def test_the_seat_is_connected_while_a_stream_of_its_player_is_open() -> None:
    room = await playing()
    hub = watching(room)

    def connected() -> bool:
        return bool(room.table.blob.seats[0].connection)

    first, second = Reader(hub, "anna"), Reader(hub, "anna")
    for reader in (first, second):
        await hub.join(reader.stream, room.table_id, 0)
    await settled(room)
    assert connected()
    await first.close()
    await settled(room)
    assert connected()
    await second.close()
    await settled(room)
    assert not connected()


async def test_who_fills_his_mailbox_is_gone_all_the_same_when_his_stream_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, "anna")
    await hub.join(reader.stream, room.table_id, 0)
    await settled(room)
    full, tell = [True, True], room.tables.connect

    async def connect(table_id: str, player_id: str) -> None:
        if full and full.pop():
            raise ResourceExhausted("MAILBOX_FULL", "too many wait")
        await tell(table_id, player_id)

    monkeypatch.setattr(watchers, "READ_AGAIN_S", 0)
    monkeypatch.setattr(room.tables, "connect", connect)
    await reader.close()
    assert room.tables.is_telling(room.table_id, "anna")
    await settled(room)
    assert not room.table.blob.seats[0].connection
    assert not room.tables.is_telling(room.table_id, "anna")


async def test_who_sits_down_with_his_stream_open_is_connected() -> None:
    room = FakeRoom()
    await room.create()
    hub = watching(room)
    away = watching(room, room.replica("replica-2"))
    here, there = Reader(hub, "anna"), Reader(away, "ben")
    await hub.join(here.stream, room.table_id, 0)
    await away.join(there.stream, room.table_id, 0)
    await room.seat("anna", "ben")
    away.woken(room.table_id, room.table.version)
    await settled(room)
    seats = room.table.blob.seats
    assert [seats[n].connection for n in (0, 1)] == ["replica-1", "replica-2"]
    for reader in (here, there):
        await reader.close()


async def test_a_drain_tells_every_stream_to_come_back_and_ends_it() -> None:
    room = await playing()
    hub = watching(room)
    readers = [Reader(hub, "anna"), Reader(hub)]
    for reader in readers:
        await hub.join(reader.stream, room.table_id, 0)
    await settled(room)
    await hub.drain()
    for reader in readers:
        await asyncio.wait_for(reader.task, 1)
        assert reader.frames()[-1].HasField("reconnect")
        await reader.close()
    await settled(room)
    # It was us who cut the stream: he is about to come back elsewhere.
    assert room.table.blob.seats[0].connection
    with pytest.raises(ResourceExhausted):
        hub.open("anna")


async def test_a_drain_gives_who_is_to_act_a_full_new_clock() -> None:
    room = await playing()
    hub = watching(room)
    await room.start_hand()
    player, want, _ = room.to_act()
    reader = Reader(hub, player)
    await hub.join(reader.stream, room.table_id, 0)
    room.store.ms += 5000
    await hub.drain()
    assert room.table.blob.due_ms == room.store.ms + 10_000
    assert room.to_act()[1].turn == want.turn
    await reader.close()


@pytest.mark.parametrize("dead", [True, False])
async def test_who_comes_back_from_a_dead_replica_gets_a_full_new_clock(dead: bool) -> None:
    room = await playing()
    await room.start_hand()
    player, _, _ = room.to_act()
    await room.connect(player)
    due_ms = room.table.blob.due_ms
    room.store.ms += 5000
    if dead:
        room.store.live.remove("replica-1")
    await room.connect(player, room.replica("replica-2"))
    assert room.table.blob.due_ms == due_ms + 5000 * dead


async def test_streams_and_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, "anna")
    reader.stream.limits = OWN._replace(tables=0)
    with pytest.raises(ResourceExhausted):
        await hub.join(reader.stream, room.table_id, 0)
    monkeypatch.setattr(watchers, "STREAMS_PER_PLAYER_MAX", 1)
    with pytest.raises(ResourceExhausted):
        hub.open("anna")
    await reader.close()
    assert not hub._hubs
    hub.close(hub.open("anna"))


async def test_one_spectator_takes_nobody_elses_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    room = await playing()
    hub = watching(room)
    monkeypatch.setattr(watchers, "SPECTATING_PER_CALLER_MAX", 2)
    streams = [hub.open("", "eve") for _ in range(2)]
    with pytest.raises(ResourceExhausted):
        hub.open("", "eve")
    streams += [hub.open("", "mallory"), *(hub.open("") for _ in range(9)), hub.open("eve")]
    monkeypatch.setattr(watchers, "SPECTATING_UP_TO", len(streams))
    with pytest.raises(ResourceExhausted):
        hub.open("")
    streams.append(hub.open("anna"))
    for stream in streams:
        hub.close(stream)
    assert not hub._opened
    hub.close(hub.open("", "eve"))


async def test_streams_that_come_and_go_leave_the_room_to_ticks_and_actions() -> None:
    room = await playing()
    hub = watching(room)
    await room.start_hand()
    player, _, _ = room.to_act()
    for _ in range(20):
        readers = [Reader(hub, player) for _ in range(8)]
        await asyncio.gather(*(hub.join(each.stream, room.table_id, 0) for each in readers))
        for each in readers:
            await each.close()
    before = len(room.store.commits)
    strangers = [Reader(hub, f"stranger-{n}") for n in range(200)]
    await asyncio.gather(*(hub.join(each.stream, room.table_id, 0) for each in strangers))
    await room.act()
    await settled(room)
    assert len(room.store.commits) <= before + 3
    assert not any(seat.connection for seat in room.table.blob.seats.values())
    for each in strangers:
        await each.close()


async def test_a_second_stream_at_another_replica_is_known_when_the_first_closes() -> None:
    room = await playing()
    other = room.replica("replica-2")
    hubs = [watching(room), watching(room, other)]
    readers = [Reader(hub, "anna") for hub in hubs]
    for reader, hub in zip(readers, hubs, strict=True):
        await hub.join(reader.stream, room.table_id, 0)
        await settled(room)
    assert room.table.blob.seats[0].connection == "replica-2"
    await readers[1].close()
    await settled(room)
    hubs[0].woken(room.table_id, room.table.version)
    await settled(room)
    assert room.table.blob.seats[0].connection == "replica-1"
    await readers[0].close()
    await settled(room)
    assert not room.table.blob.seats[0].connection


async def test_an_unknown_table_leaves_nothing_behind() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, "anna")
    with pytest.raises(NotFound):
        await hub.join(reader.stream, uuid7(), 0)
    assert not hub._hubs
    assert not reader.stream.tables
    await reader.close()
