"""The lobby: what is listed and watched, what it costs whoever is slow, and the last hands."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.game.rulebook import UNITS_MAX
from services.runtime.errors import InvalidArgument, ResourceExhausted, Unavailable
from services.table.lobby import lobby_watching
from services.table.lobby.lobby import FIRST, Lobby, Place
from services.table.lobby.lobby_filters import everything, fits_of
from services.table.lobby.lobby_watching import LobbyWatching
from services.table.state import statistics
from services.table.state.lobby_lines import line_of, read_line
from services.table.state.state import Recent, player_digest
from services.table.store.store import Store
from tests.unit.table.rooms import FakeRoom

Watch = AsyncIterator[bytes]


class Lines:
    """A store that has nothing but lines."""

    def __init__(self, shards: int = 3) -> None:
        self.shards = shards
        self.stored: list[dict[str, bytes]] = [{} for _ in range(shards)]
        self.readings = 0
        self.away = False

    async def lobby_of(self, shard: int) -> dict[str, bytes]:
        if self.away:
            raise Unavailable("STORE_AWAY", "the store does not answer")
        self.readings += shard == 0
        return dict(self.stored[shard])

    def put(self, shard: int, table_id: str, *players: str, **fields: Any) -> None:
        """Another line of a table."""
        summary = table_pb2.TableSummary(players=len(players), **fields)
        summary.config.table_id, summary.config.seats = table_id, 6
        summary.state = fields.get("state", table_pb2.TABLE_STATE_OPEN)
        digests = b"".join(map(player_digest, players))
        self.stored[shard][table_id] = (
            bytes((len(players),)) + digests + summary.SerializeToString()
        )


@contextlib.asynccontextmanager
async def reading(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lobby]:
    """A lobby that reads them; when it would wait for a second, it does not."""
    monkeypatch.setattr("services.table.lobby.lobby.EVERY_S", 0.002)
    lobby = Lobby(cast(Store, lines))
    task = asyncio.create_task(lobby.run())
    try:
        yield lobby
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def next_of(watch: Watch) -> table_pb2.WatchLobbyResponse:
    """The next message."""
    async with asyncio.timeout(5):
        return table_pb2.WatchLobbyResponse.FromString(await anext(watch))


async def picture_of(watch: Watch) -> set[str]:
    """The tables of the whole first picture."""
    found: set[str] = set()
    while True:
        message = await next_of(watch)
        found.update(each.config.table_id for each in message.tables)
        if message.complete:
            return found


async def test_who_asks_sees_all_that_was_stored_before(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    async with reading(lines, monkeypatch) as lobby:
        for number in range(20):
            lines.put(number % 3, f"t{number:02}")
            await lobby.fresh()
            assert len(await lobby.found(everything, FIRST, 100)) == number + 1
        del lines.stored[0]["t00"]
        await lobby.fresh()
        assert lobby.line(Place(0, "t00")) is None


async def test_however_many_ask_at_once_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    async with reading(lines, monkeypatch) as lobby:
        await lobby.fresh()
        before = lines.readings
        await asyncio.gather(*(lobby.fresh() for _ in range(500)))
        assert lines.readings - before == 1


async def test_nobody_asks_and_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    async with reading(lines, monkeypatch) as lobby:
        await lobby.fresh()
        before = lines.readings
        for _ in range(50):
            await asyncio.sleep(0.0005)
        assert lines.readings == before


async def test_who_asks_while_the_store_is_away_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    async with reading(lines, monkeypatch) as lobby:
        lines.away = True
        with pytest.raises(Unavailable):
            await lobby.fresh()
        lines.away = False
        await lobby.fresh()


async def test_pages_neither_repeat_nor_miss_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    for number in range(30):
        lines.put(number % 3, f"t{number:02}")
    stays = {f"t{number:02}" for number in range(30)} - {"t03", "t04", "t29"}
    async with reading(lines, monkeypatch) as lobby:
        seen: list[str] = []
        after = FIRST
        while True:
            await lobby.fresh()
            page = await lobby.found(everything, after, 4)
            seen += [place.table_id for place, _ in page]
            if len(page) < 4:
                break
            after = page[-1][0]
            # Meanwhile tables go, the last one of the page among them, and others come.
            for gone in ("t03", "t04", "t29", after.table_id):
                if gone not in stays:
                    for shard in lines.stored:
                        shard.pop(gone, None)
            lines.put(len(seen) % 3, f"t{len(seen):02}a")
        assert len(seen) == len(set(seen))
        assert stays <= set(seen)


async def test_a_players_seats_follow_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    lines.put(2, "b", "anna", "ben")
    lines.put(0, "c", "anna")
    async with reading(lines, monkeypatch) as lobby:
        await lobby.fresh()
        assert lobby.seats_of("anna") == [Place(0, "c"), Place(2, "b")]
        lines.put(2, "b", "ben")
        del lines.stored[0]["c"]
        await lobby.fresh()
        assert lobby.seats_of("anna") == []
        assert lobby.seats_of("ben") == [Place(2, "b")]


async def test_a_watcher_gets_the_picture_and_then_what_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = Lines()
    lines.put(0, "a", "anna")
    lines.put(1, "b")
    async with reading(lines, monkeypatch) as lobby:
        watch = LobbyWatching(lobby).watch(table_pb2.LobbyFilter(players_min=1))
        assert await picture_of(watch) == {"a"}
        lines.put(1, "b", "ben")
        message = await next_of(watch)
        assert [each.config.table_id for each in message.tables] == ["b"]
        lines.put(0, "a")
        message = await next_of(watch)
        assert (list(message.gone), list(message.tables)) == (["a"], [])
        lines.stored[1].clear()
        assert list((await next_of(watch)).gone) == ["b"]


async def test_a_first_picture_comes_in_short_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    for number in range(500):
        lines.put(number % 3, f"t{number}")
    async with reading(lines, monkeypatch) as lobby:
        watch = LobbyWatching(lobby).watch(None)
        sizes = []
        while True:
            message = await next_of(watch)
            sizes.append(len(message.tables))
            if message.complete:
                break
        assert sizes == [200, 200, 100]


async def test_who_joins_later_gets_the_picture_and_what_came_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = Lines()
    lines.put(0, "a")
    async with reading(lines, monkeypatch) as lobby:
        watching = LobbyWatching(lobby)
        first = watching.watch(None)
        known = await picture_of(first)
        for number in range(12):
            lines.put(number % 3, f"t{number}")
            if number % 4 == 3:
                del lines.stored[number % 3][f"t{number}"]
                lines.put(0, "a", hands=number)
            await next_of(first)
            later = watching.watch(None)
            known = await picture_of(later)
            while known != (await_all := {each for shard in lines.stored for each in shard}):
                message = await next_of(later)
                known |= {each.config.table_id for each in message.tables}
                known -= set(message.gone)
            assert known == await_all
            await cast(Any, later).aclose()


async def test_all_who_watch_the_same_share_one_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby_watching, "VIEWS_MAX", 2)
    lines = Lines()
    async with reading(lines, monkeypatch) as lobby:
        watching = LobbyWatching(lobby)
        wanted = table_pb2.LobbyFilter(currency="EUR")
        watches = [watching.watch(wanted) for _ in range(5)]
        watches.append(watching.watch(None))
        for watch in watches:
            assert await picture_of(watch) == set()
        lines.put(0, "a")
        assert await next_of(watches[-1])
        with pytest.raises(ResourceExhausted) as refused:
            await anext(watching.watch(table_pb2.LobbyFilter(currency="USD")))
        assert refused.value.reason == "TOO_MANY_FILTERS"
        # The whole lobby is to be had all the same.
        watches.append(watching.watch(table_pb2.LobbyFilter()))
        assert await picture_of(watches[-1])
        for watch in watches:
            await cast(Any, watch).aclose()
        assert not watching.watches


async def test_one_caller_has_a_few_watches_and_a_gateway_any_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lobby_watching, "WATCHING_PER_CALLER_MAX", 2)
    async with reading(Lines(), monkeypatch) as lobby:
        watching = LobbyWatching(lobby)
        watches = [watching.watch(None, each) for each in ("anna", "anna", "ben", "", "", "")]
        for watch in watches:
            assert await picture_of(watch) == set()
        with pytest.raises(ResourceExhausted) as refused:
            await anext(watching.watch(None, "anna"))
        assert refused.value.reason == "TOO_MANY_STREAMS"
        await cast(Any, watches[0]).aclose()
        watches[0] = watching.watch(None, "anna")
        assert await picture_of(watches[0]) == set()
        for watch in watches:
            await cast(Any, watch).aclose()


async def test_who_is_too_slow_calls_again_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lobby_watching, "CHANGES_KEPT_MAX", 3)
    lines = Lines()
    async with reading(lines, monkeypatch) as lobby:
        watching = LobbyWatching(lobby)
        slow, quick = watching.watch(None), watching.watch(None)
        await picture_of(slow)
        await picture_of(quick)
        for number in range(5):
            lines.put(0, "a", hands=number + 1)
            assert (await next_of(quick)).tables[0].hands == number + 1
        message = await next_of(slow)
        assert message.HasField("reconnect")
        with pytest.raises(StopAsyncIteration):
            await anext(slow)


async def test_watchers_are_sent_elsewhere_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(Lines(), monkeypatch) as lobby:
        watching = LobbyWatching(lobby)
        watch = watching.watch(None)
        await picture_of(watch)
        watching.drain()
        assert (await next_of(watch)).HasField("reconnect")
        with pytest.raises(ResourceExhausted):
            await anext(watching.watch(None))


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("small_bet_min", {"small_bet_min": -1}),
        ("small_bet_max", {"small_bet_min": 10, "small_bet_max": 5}),
        ("seats", {"seats": 1}),
        ("free_seats_min", {"free_seats_min": 9}),
        ("players_per_fourth_street_min", {"players_per_fourth_street_min": 101}),
        ("currency", {"currency": "eur"}),
        ("rulebook", {"rulebook": "x" * 65}),
        ("games", {"games": [0]}),
        ("states", {"states": [99]}),
        ("formats", {"formats": [1] * 17}),
    ],
)
def test_a_filter_says_which_of_its_fields_is_wrong(field: str, fault: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as raised:
        fits_of(table_pb2.LobbyFilter(**fault))
    assert raised.value.reason == "BAD_FILTER"
    assert raised.value.violations[0][0] == f"filter.{field}"


def test_every_field_of_a_filter_is_looked_at() -> None:
    summary = table_pb2.TableSummary(
        state=table_pb2.TABLE_STATE_OPEN,
        players=4,
        average_pot=50,
        hands_per_hour=60,
        players_per_fourth_street=40,
    )
    config = summary.config
    config.game = game_pb2.GAME_HIGH
    config.rulebook, config.currency, config.seats = "club", "XTS", 6
    config.stake.small_bet = 5
    config.format.kind = table_pb2.FORMAT_KIND_CASH
    fitting: dict[str, Any] = {
        "games": [game_pb2.GAME_HIGH],
        "rulebook": "club",
        "currency": "XTS",
        "small_bet_min": 5,
        "small_bet_max": 5,
        "seats": 6,
        "free_seats_min": 2,
        "players_min": 4,
        "states": [table_pb2.TABLE_STATE_OPEN],
        "average_pot_min": 50,
        "hands_per_hour_min": 60,
        "players_per_fourth_street_min": 40,
        "formats": [table_pb2.FORMAT_KIND_CASH],
    }
    assert set(fitting) == {field.name for field in table_pb2.LobbyFilter.DESCRIPTOR.fields}
    others: dict[str, Any] = {
        "games": [game_pb2.GAME_RAZZ],
        "rulebook": "tour",
        "currency": "EUR",
        "small_bet_min": 6,
        "small_bet_max": 4,
        "seats": 8,
        "free_seats_min": 3,
        "players_min": 5,
        "states": [table_pb2.TABLE_STATE_PAUSED],
        "average_pot_min": 51,
        "hands_per_hour_min": 61,
        "players_per_fourth_street_min": 41,
        "formats": [table_pb2.FORMAT_KIND_TIMED],
    }
    assert fits_of(table_pb2.LobbyFilter(**fitting))(summary)
    for field, other in others.items():
        assert fits_of(table_pb2.LobbyFilter(**{field: fitting[field]}))(summary)
        assert not fits_of(table_pb2.LobbyFilter(**{field: other}))(summary), field


def test_closed_tables_are_shown_only_to_who_asks_for_them() -> None:
    closed = table_pb2.TableSummary(state=table_pb2.TABLE_STATE_CLOSED)
    assert not fits_of(table_pb2.LobbyFilter())(closed)
    assert fits_of(table_pb2.LobbyFilter(states=[table_pb2.TABLE_STATE_CLOSED]))(closed)
    assert everything(closed)


# What is stored, and the last hands


async def test_a_line_shows_who_sits_to_nobody() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna", "ben")
    stored = room.store.lobby[room.table_id]
    assert stored == line_of(room.table)
    line = read_line(stored)
    assert line.players == (player_digest("anna"), player_digest("ben"))
    assert line.summary.players == 2
    assert b"anna" not in stored
    # As it was stored before players were in it.
    assert read_line(line.summary.SerializeToString()).summary == line.summary


@pytest.mark.parametrize("text", [b"", b"\x09", b"\x08abc", b"\x00\x0a\xff"])
def test_what_is_no_line_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
        read_line(text)


async def test_statistics_are_those_of_the_hands_that_were_played() -> None:
    room = FakeRoom()
    await room.create(hand_pause_ms=500)
    await room.seat("anna", "ben", "carl", "dora")
    assert statistics.shown(room.table) == (0, 0, 0)
    pots, spans, dealt, fourth = [], [], 0, 0
    for _ in range(5):
        table = await room.start_hand()
        assert table.hand is not None
        assert table.blob.hand is not None
        hands = len(table.hand.seats)
        began_ms, seen, there = table.blob.hand.started_ms, 0, hands
        version = table.version
        room.store.ms += 1700
        await room.play_out(room.choose)
        for event in room.events(version=version):
            if event.hand.WhichOneof("event") == "folded":
                there -= 1
            if event.hand.street == 4:
                seen = there
        pots.append(pot_of(room))
        spans.append(room.store.ms - began_ms)
        dealt, fourth = dealt + hands, fourth + seen
    shown = read_line(room.store.lobby[room.table_id]).summary
    assert abs(shown.average_pot - sum(pots) / 5) <= 1
    assert abs(shown.hands_per_hour - 3_600_000 / (sum(spans) / 5 + 500)) <= 1
    assert abs(shown.players_per_fourth_street - 100 * fourth / dealt) <= 1


def pot_of(room: FakeRoom) -> int:
    """The whole pot of the hand that was settled last."""
    record = next(each.hand for each in reversed(room.store.outbox) if each.HasField("hand"))
    return sum(pot.amount for pot in record.pots)


async def test_a_void_hand_counts_for_nothing() -> None:
    room = FakeRoom()
    await room.create()
    await room.seat("anna", "ben")
    await room.start_hand()
    await room.void()
    assert room.table.blob.recent is None


def test_what_is_kept_of_the_last_hands_is_small_whatever_the_stakes() -> None:
    most = statistics.SCALE * UNITS_MAX
    kept = Recent(
        statistics.LAST_HANDS, most, statistics.SCALE * statistics.SPAN_MAX_MS, 2048, 2048
    )
    assert len(msgspec.msgpack.encode(kept)) <= 24
