"""What a room costs by its size: an action among 50, 500 and 5,000 open tables, the memory of
tables and idle streams, and the syncing of every write.

Memory is what there is more of after so many tables or streams, divided by their number: Redis'
own account of what it holds, and the pages of the table service's process.
"""

import statistics
from collections.abc import AsyncGenerator, Iterator
from typing import Final

from redis.asyncio import Redis

from bench.row import Row, as_they_come, at_most, beside, within
from bench.stage.cpu import resident_bytes
from bench.stage.players import Door, hold_open, hold_streams
from bench.stage.playing import Played, Spent, playing
from bench.stage.processes import Room, Server, Stage

SEED: Final = 1909
TABLES: Final = 50
OPEN_TABLES: Final = (500, 5_000)
HANDS: Final = 3
"""Played at each table, so that Redis holds the last one beside the present."""
IDLE_TABLES: Final = 300
IDLE_STREAMS: Final = 1_000
ROUNDS: Final = 3
UNLOADED: Final = 200
MS: Final = 1_000
KIB: Final = 1024

TABLES_TIMES: Final = 1.2
IDLE_TABLE_MAX: Final = 4 * KIB
TABLE_IN_PLAY_MAX: Final = 20 * KIB
IDLE_STREAM_MAX: Final = 32 * KIB


def rows() -> Iterator[Row]:
    """Every figure of a room's size."""
    yield from as_they_come(_measured())


async def _measured() -> AsyncGenerator[Row]:
    async with Stage() as stage:
        small, large = await stage.room("small"), await stage.room("large")
        async with (
            playing(stage, [small.first], TABLES, SEED) as few,
            playing(stage, [large.first], TABLES, SEED) as many,
        ):
            yield await _table_in_play(small, few)
            yield await _idle_tables(small, few.door)
            yield await _idle_streams(small.first, few)
            async for row in _open_tables(small, few, large, many):
                yield row
        yield await _syncing(stage, small)


async def _table_in_play(room: Room, played: Played) -> Row:
    """What Redis holds of a table where hands are played: the blob, and the events of two hands."""
    while min(table.hands for table in played.tables) < HANDS:
        await played.pace.flat_out(1.0)
    async with Redis.from_url(room.redis_url) as redis:
        keys = [
            key
            for table in played.tables
            for kind in ("table", "events")
            async for key in redis.scan_iter(f"*:{kind}:{table.table_id}")
        ]
        held = [await redis.memory_usage(key, samples=0) or 0 for key in keys]
    return within("room_table_in_play", sum(held) / TABLES, "bytes in Redis", TABLE_IN_PLAY_MAX)


async def _idle_tables(room: Room, door: Door) -> Row:
    """Tables without a hand, whose events Redis has dropped, as it does after a minute."""
    async with Redis.from_url(room.redis_url) as redis:
        before = await _used_bytes(redis)
        for _ in range(IDLE_TABLES):
            table_id = await door.create(2)
            async for key in redis.scan_iter(f"*:events:{table_id}"):
                await redis.delete(key)
        grown = await _used_bytes(redis) - before
    return within("room_idle_table", grown / IDLE_TABLES, "bytes in Redis", IDLE_TABLE_MAX)


async def _used_bytes(redis: Redis) -> int:
    return int((await redis.info("memory"))["used_memory"])


async def _idle_streams(server: Server, played: Played) -> Row:
    """Streams of players who look on; nothing happens at their tables."""
    table_ids = [await played.door.create(2) for _ in range(TABLES)]
    before = resident_bytes(server.pid)
    await hold_streams(played.door, table_ids, IDLE_STREAMS)
    grown = resident_bytes(server.pid) - before
    return within("room_idle_stream", grown / IDLE_STREAMS, "bytes in the process", IDLE_STREAM_MAX)


async def _open_tables(small: Room, few: Played, large: Room, many: Played) -> AsyncGenerator[Row]:
    """The same tables in a room that has many more open, each with a hand in progress."""
    for count in OPEN_TABLES:
        held, before = sum(OPEN_TABLES[: OPEN_TABLES.index(count)]), resident_bytes(large.first.pid)
        more = count - max(held, TABLES)
        await hold_open(many.door, more)
        grown = resident_bytes(large.first.pid) - before
        alone, among = Spent(), Spent()
        for _ in range(ROUNDS):
            await alone.round(few.pace, [small.first])
            await among.round(many.pace, [large.first])
        name = f"room_cost_{count}_tables"
        yield at_most(name, among.us, "us CPU", alone.us, among.times(alone), TABLES_TIMES)
    yield within("room_open_table", grown / more, "bytes in the process", TABLE_IN_PLAY_MAX)


async def _syncing(stage: Stage, synced: Room) -> Row:
    """One action with nothing else going on, where each write is synced, beside one where all of a
    second are.
    """
    every_second = await stage.room("every-second", appendfsync="everysec")
    async with (
        playing(stage, [synced.first], TABLES, SEED) as always,
        playing(stage, [every_second.first], TABLES, SEED) as seldom,
    ):
        took_s: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for each, played in zip(took_s, (always, seldom), strict=True):
                each.extend(await played.pace.one_by_one(UNLOADED // ROUNDS))
    always_ms, seldom_ms = (statistics.median(each) * MS for each in took_s)
    return beside("room_appendfsync_always", always_ms, "ms an action", seldom_ms)
