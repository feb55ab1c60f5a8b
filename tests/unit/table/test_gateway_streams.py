"""Many players at many tables on one stream: a public frame comes once, a private one names its
player, and each of them has every version once, in order, whenever he came.
"""

import asyncio
import random

import msgspec
import pytest
from doorcard.table.v1 import table_pb2

from services.runtime.errors import NotFound, ResourceExhausted, Unavailable
from services.runtime.ids import uuid7
from services.table.state import views
from services.table.state.frames import Changed, addressed, framed, pack, unpack
from services.table.state.state import Table
from services.table.streams.streams import GATEWAY
from tests.unit.table.test_watchers import Reader, playing, settled, watching

PLAYERS = ("anna", "ben", "carla")


class Follower:
    """What one player of a gateway makes of its frames: every version once, in order."""

    def __init__(self, player_id: str, version: int = 0) -> None:
        self.player_id = player_id
        self.joined = False
        self.version = version
        self.own: list[int] = []
        """Versions of private frames."""
        self.public: list[int] = []
        self.snapshots = 0
        self.strengths: list[str] = []

    def see(self, frames: list[table_pb2.PlayResponseFrame]) -> None:
        """He follows the table from the first frame that names him."""
        for frame in frames:
            mine = self.player_id in frame.player_ids
            self.joined = self.joined or mine
            if not self.joined or (frame.player_ids and not mine):
                continue
            if frame.HasField("snapshot"):
                assert mine, "a snapshot is one player's"
                self.snapshots += 1
                self.version = frame.snapshot.version
            elif frame.HasField("update"):
                self._update(frame)

    def _update(self, frame: table_pb2.PlayResponseFrame) -> None:
        version = frame.update.version
        private = any(
            each.HasField("strength")
            or each.HasField("options_changed")
            or (each.hand.HasField("dealt") and not each.hand.dealt.up and each.hand.dealt.card)
            for each in frame.update.events
        )
        if not frame.update.events and frame.player_ids:
            assert version == self.version, "he is told that he is where he is not"
        elif private:
            assert version == self.version, "a private frame stands behind its public one"
            assert version not in self.own, "a private frame came twice"
            self.own.append(version)
        else:
            assert version == self.version + 1, f"{self.version} is followed by {version}"
            self.version = version
            self.public.append(version)


async def test_a_public_frame_comes_once_however_many_follow_the_table() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, gateway="web")
    for player in PLAYERS:
        await hub.join(reader.stream, room.table_id, 0, player)
    await settled(room)
    before = len(reader.frames())
    await room.start_hand()
    await settled(room)
    frames = reader.frames()[before:]
    public = [each.update.version for each in frames if not each.player_ids]
    assert public == sorted(set(public)), "a public frame came twice"
    for player in PLAYERS:
        own = [each for each in frames if list(each.player_ids) == [player]]
        down = [e.hand.dealt.card for f in own for e in f.update.events if e.hand.HasField("dealt")]
        assert len(down) == 2
        follower = Follower(player)
        follower.see(reader.frames())
        assert follower.version == room.table.version
        assert len(follower.own) == 1
    await reader.close()


async def test_no_player_is_sent_what_another_of_his_gateway_may_see() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, gateway="web")
    for player in (*PLAYERS[:2], views.PUBLIC):
        await hub.join(reader.stream, room.table_id, 0, player)
    await room.start_hand()
    await room.play_out()
    await settled(room)
    seats = {player: room.table.seat_of(player) for player in PLAYERS}
    for frame in reader.frames():
        for event in frame.update.events:
            dealt = event.hand.dealt
            if dealt.card and not dealt.up:
                (named,) = frame.player_ids
                assert seats[named] == dealt.seat
        for seat in frame.snapshot.hand.seats:
            (named,) = frame.player_ids
            assert not seat.down_cards or seats[named] == seat.seat
    audiences = {tuple(frame.player_ids) for frame in reader.frames()}
    assert audiences == {(), ("anna",), ("ben",), ("",)}
    await reader.close()


@pytest.mark.parametrize("seed", range(6))
async def test_who_joins_resumes_and_parts_at_random_has_every_version_once(seed: int) -> None:
    rng = random.Random(seed)
    room = await playing()
    first, second = room.tables, room.replica("replica-2")
    hub = watching(room, first)
    reader = Reader(hub, gateway="web")
    followers = {viewer: Follower(viewer) for viewer in (*PLAYERS, "stranger", "")}
    seen = dict.fromkeys(followers, 0)

    async def look(viewer: str) -> None:
        await settled(room)
        followers[viewer].see(reader.frames()[seen[viewer] :])
        seen[viewer] = len(reader.frames())

    for _ in range(120):
        if room.table.hand is None:
            await room.start_hand()
        room.tables = rng.choice([first, first, second])
        await room.act(*room.choose(room.to_act()[1]))
        if rng.random() < 0.5:
            hub.woken(room.table_id, room.table.version)
        viewer = rng.choice(list(followers))
        if not hub.follows(reader.stream, room.table_id, viewer):
            if rng.random() < 0.4:
                seen[viewer] = len(reader.frames())
                joining = hub.join(reader.stream, room.table_id, followers[viewer].version, viewer)
                waited = asyncio.ensure_future(joining)
                await asyncio.sleep(0) if rng.random() < 0.5 else await waited
        elif rng.random() < 0.2:
            await look(viewer)
            hub.part(reader.stream, room.table_id, viewer)
            followers[viewer].joined = False
        if rng.random() < 0.2:
            await settled(room)
    hub.woken(room.table_id, room.table.version)
    await asyncio.sleep(0.05)
    for viewer, follower in followers.items():
        if hub.follows(reader.stream, room.table_id, viewer):
            await look(viewer)
            assert follower.version == room.table.version
    await reader.close()


@pytest.mark.parametrize("seed", range(6))
async def test_resumes_after_cuts_are_without_gap_or_repeat(seed: int) -> None:
    rng = random.Random(seed)
    room = await playing()
    hub = watching(room)
    full = Reader(hub, "anna")
    await hub.join(full.stream, room.table_id, 0)
    await settled(room)
    began = room.table.version
    followers = {player: Follower(player, began) for player in PLAYERS}
    reader = Reader(hub, gateway="web")
    for player in PLAYERS:
        await hub.join(reader.stream, room.table_id, began, player)
    for _ in range(60):
        if room.table.hand is None:
            await room.start_hand()
        await room.act(*room.choose(room.to_act()[1]))
        if rng.random() < 0.2:
            # What was not yet written is lost with the stream.
            frames = reader.frames()
            await reader.close()
            for follower in followers.values():
                follower.see(frames)
                follower.joined = False
            await room.act(*room.choose(room.to_act()[1])) if room.table.hand else None
            reader = Reader(hub, gateway="web")
            order = rng.sample(PLAYERS, 3)
            await asyncio.gather(
                *(
                    hub.join(reader.stream, room.table_id, followers[each].version, each)
                    for each in order
                )
            )
        elif rng.random() < 0.3:
            await settled(room)
    await settled(room)
    for follower in followers.values():
        follower.see(reader.frames())
        assert follower.version == room.table.version
        if follower.snapshots == 0:
            assert follower.public == list(range(began + 1, room.table.version + 1))
    await reader.close()
    await full.close()


async def test_a_slow_gateway_has_a_bounded_queue_and_gets_snapshots_table_by_table() -> None:
    room = await playing()
    hub = watching(room)
    tables = [room.table_id]
    for number in range(3):
        await room.create(request_id=f"more-{number}")
        await room.seat(*PLAYERS)
        tables.append(room.table_id)
    reader = Reader(hub, gateway="web")
    reader.stream.limits = GATEWAY._replace(queue_bytes=16_384, snapshots_bytes=4096)
    for table_id in tables:
        for player in PLAYERS:
            await hub.join(reader.stream, table_id, 0, player)
    await settled(room)
    reader.reads.clear()
    for _ in range(2):
        for room.table_id in tables:
            await room.start_hand()
            await room.play_out()
            await settled(room)
            assert reader.stream.queued_bytes <= 16_384
    written = len(reader.messages)
    reader.reads.set()
    await settled(room)
    assert max(map(len, reader.messages[written:])) < 2 * 16_384
    for table_id in tables:
        for player in PLAYERS:
            follower = Follower(player)
            follower.see([each for each in reader.frames() if each.table_id == table_id])
            assert follower.version == room.store.tables[table_id].version
            assert follower.snapshots == 2
    await reader.close()


async def test_presence_is_each_players_own_and_lost_with_the_stream() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, gateway="web")

    def connected() -> list[str]:
        return [s.player_id for s in room.table.blob.seats.values() if s.connection]

    for player in PLAYERS[:2]:
        await hub.join(reader.stream, room.table_id, 0, player)
    await settled(room)
    assert connected() == ["anna", "ben"]
    hub.be_present(reader.stream, room.table_id, "anna", connected=False)
    await settled(room)
    assert connected() == ["ben"]
    hub.be_present(reader.stream, room.table_id, "anna", connected=True)
    hub.part(reader.stream, room.table_id, "ben")
    await settled(room)
    assert connected() == ["anna"]
    await reader.close()
    await settled(room)
    assert connected() == []
    assert not hub._hubs


async def test_players_whose_stream_we_cut_stay_connected_and_are_excused() -> None:
    room = await playing()
    hub = watching(room)
    await room.start_hand()
    player, want, _ = room.to_act()
    reader = Reader(hub, gateway="web")
    await hub.join(reader.stream, room.table_id, 0, player)
    await settled(room)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(room.store, "load", away)
        patched.setattr(room.store, "version", away)
        reader.stream.lose(room.table_id)
        with pytest.raises(Unavailable):
            await reader.task
        await reader.close()
        await settled(room)
    number = room.table.seat_of(player)
    assert number is not None
    assert room.table.blob.seats[number].connection
    room.pass_time()
    await room.tables.tick(room.table_id)
    assert room.to_act()[1].turn == want.turn, "he has a full new clock"


async def away(_table_id: str) -> None:
    raise Unavailable("STORE_AWAY", "the store does not answer")


async def test_gateway_streams_are_bounded() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, gateway="web")
    reader.stream.limits = GATEWAY._replace(players=1, tables=1, tables_of_player=1)
    await hub.join(reader.stream, room.table_id, 0, "anna")
    await hub.join(reader.stream, room.table_id, 0, "anna")
    with pytest.raises(ResourceExhausted, match="players"):
        await hub.join(reader.stream, room.table_id, 0, "ben")
    with pytest.raises(ResourceExhausted, match="tables"):
        await hub.join(reader.stream, uuid7(), 0, "anna")
    await reader.close()


async def test_an_unknown_table_leaves_nothing_behind_and_the_stream_open() -> None:
    room = await playing()
    hub = watching(room)
    reader = Reader(hub, gateway="web")
    await hub.join(reader.stream, room.table_id, 0, "anna")
    with pytest.raises(NotFound):
        await hub.join(reader.stream, uuid7(), 0, "anna")
    assert reader.stream.tables == {room.table_id}
    assert hub.follows(reader.stream, room.table_id, "anna")
    await reader.close()
    assert not reader.stream.following


async def test_snapshots_are_kept_as_long_as_the_version_stands() -> None:
    room = await playing()
    hub = watching(room)
    shown: list[str] = []
    view = views.view

    def counted(table: Table, viewer: str) -> table_pb2.TableView:
        shown.append(viewer)
        return view(table, viewer)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(views, "view", counted)
        for _ in range(5):
            reader = Reader(hub)
            await hub.join(reader.stream, room.table_id, 0)
            await settled(room)
            assert reader.versions() == [("snapshot", room.table.version)]
            await reader.close()
        assert shown == [""]
        await room.start_hand()
        reader = Reader(hub)
        await hub.join(reader.stream, room.table_id, 0)
        await settled(room)
        assert reader.versions() == [("snapshot", room.table.version)]
        await reader.close()
        assert shown == ["", ""]


def test_a_record_of_an_earlier_release_names_its_player_when_it_is_read() -> None:
    response = table_pb2.PlayResponse()
    response.frames.add(table_id="t").update.version = 7
    bare = response.SerializeToString()
    record = msgspec.msgpack.encode({"": bare, "anna": bare, "ben": b"", "?carla": b""})
    frames = unpack(record, "t", 7)
    assert frames[""] == bare
    assert frames["ben"] == frames["?carla"] == b""
    (named,) = table_pb2.PlayResponse.FromString(frames["anna"]).frames
    assert list(named.player_ids) == ["anna"]
    again = unpack(msgspec.msgpack.encode(dict(frames)), "t", 7)
    assert again["anna"] == frames["anna"]


@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 300, 20_000])
def test_frames_are_put_around_events_without_decoding_them(size: int) -> None:
    announced = table_pb2.TableEvent.Announced(text="x" * size)
    event, said = table_pb2.TableEvent(announced=announced), views.encoded(announced=announced)
    table_id, version, at_ms = uuid7(), (3 << 32) + 7, 1_700_000_000_123
    told = {views.PUBLIC: views.Told(said), "anna": views.Told(b"", "anna", said)}
    changed = Changed(at_ms, views.events(list(told.values()), joined=("anna", "ben")))
    frames = unpack(pack(changed), table_id, version)
    assert frames == framed(changed, table_id, version)
    assert frames["ben"] == frames["?anna"] == b""
    for audience in told:
        (seen,) = table_pb2.PlayResponse.FromString(frames[audience]).frames
        made = table_pb2.PlayResponseFrame(table_id=table_id)
        made.update.version = version
        made.update.at.FromMilliseconds(at_ms)
        made.update.events.append(event)
        made.player_ids.extend([audience] if audience else [])
        assert seen == made
        assert frames[audience] == table_pb2.PlayResponse(frames=[made]).SerializeToString()


@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 300, 20_000])
def test_a_frame_is_addressed_without_decoding_it(size: int) -> None:
    response = table_pb2.PlayResponse()
    frame = response.frames.add(table_id="t")
    frame.snapshot.announcement = "x" * size
    for viewer in ("", "anna", "p" * 64):
        (seen,) = table_pb2.PlayResponse.FromString(
            addressed(response.SerializeToString(), viewer)
        ).frames
        assert list(seen.player_ids) == [viewer]
        seen.ClearField("player_ids")
        assert seen == frame
