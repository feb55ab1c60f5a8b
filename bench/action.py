"""What an action costs: players on `Play` streams of their own or all on those of a few gateways,
six at a table who all see it, and every action committed to a Valkey that syncs each write.

The table service is the real process, as are shuffler and showdown; the wallet keeps reservations
in memory (`bench.stage.wallet`). CPU is that of the table service's processes alone, and holds
everything that hands need beside actions: decks, cards, rake, showdowns. The floor
(`bench.stage.floor`) is measured in turns with it. Where a figure has a limit and no floor, the
limit stands in its place. Players throw dice by `SEED`; decks are the shuffler's own.
"""

import statistics
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import Redis

from bench.row import Row, as_they_come, at_most, beside, within
from bench.stage.bare import BareTables
from bench.stage.pace import Pace
from bench.stage.players import SEATS
from bench.stage.playing import US, Played, Spent, playing, through_gateways
from bench.stage.processes import Room, Stage
from services.table.store.store import Store
from services.table.tables.sweep import Sweep
from tests import valkey
from tests.contract.table_store.stores import store_on

SEED: Final = 1909
TABLES: Final = 50
ROUNDS: Final = 5
RATE_S: Final = 5.0
UNLOADED: Final = 200
BUSY_ROOM: Final = 15_000
"""Actions a second of the largest room ever counted."""
CORES_MAX: Final = 6
CONTENDED_TABLES: Final = 20
SHORT_ROUNDS: Final = 3
DUE: Final = 50_000
SWEEP_SHARDS: Final = 8
ADDED_AT_ONCE: Final = 5_000
MS: Final = 1_000

ACTION_TIMES: Final = 1.1
GATEWAY_TIMES: Final = 0.4
P99_TIMES: Final = 5
BLOB_BYTES_MAX: Final = 2048
CONFLICT_TIMES: Final = 2.5
SWEEP_US_MAX: Final = 25


def rows() -> Iterator[Row]:
    """Every figure of actions and of the room that they make."""
    yield from as_they_come(_measured())


async def _measured() -> AsyncGenerator[Row]:
    async with Stage() as stage:
        room = await stage.room("small")
        async with (
            playing(stage, [room.first], TABLES, SEED) as played,
            through_gateways(stage, room.first, SEED) as through,
        ):
            async for row in _streams(stage, room, played, through):
                yield row
        yield await _conflicts(stage, room)
    yield await _sweep()


async def _streams(stage: Stage, room: Room, played: Played, through: Pace) -> AsyncGenerator[Row]:
    """CPU at saturation through both kinds of streams, latency at half of it, the size of what is
    stored.
    """
    sizes = await _sizes(room, played)
    server = await stage.floor(
        room, blob_bytes=sizes.blob, event_bytes=sizes.event, push_bytes=sizes.push
    )
    bare, floor_pace = BareTables(server.address), Pace()
    await bare.open(floor_pace, TABLES, sizes.action)
    await floor_pace.flat_out(1.0)
    ours, floor, gateways = Spent(), Spent(), Spent()
    largest = sizes.blob_max
    for _ in range(ROUNDS):
        await ours.round(played.pace, [room.first])
        await floor.round(floor_pace, [server])
        await gateways.round(through, [room.first])
        largest = max(largest, (await _sizes(room, played)).blob_max)
    await bare.close()
    times = ours.times(floor)
    yield at_most("action_seat_streams", ours.us, "us CPU", floor.us, times, ACTION_TIMES)
    yield beside("action_rate_at_saturation", ours.rate, "actions/s", floor.rate)
    times = gateways.times(floor)
    yield at_most("action_gateway_streams", gateways.us, "us CPU", floor.us, times, GATEWAY_TIMES)
    yield beside("action_rate_through_gateways", gateways.rate, "actions/s", floor.rate)
    unloaded_ms = statistics.median(await played.pace.one_by_one(UNLOADED)) * MS
    took_s = await played.pace.at_rate(ours.rate / 2, RATE_S)
    p50_ms, p99_ms = (statistics.quantiles(took_s, n=100)[at - 1] * MS for at in (50, 99))
    yield beside("action_p50_at_half_rate", p50_ms, "ms", unloaded_ms)
    yield at_most(
        "action_p99_at_half_rate", p99_ms, "ms", unloaded_ms, p99_ms / unloaded_ms, P99_TIMES
    )
    took_s = await through.at_rate(gateways.rate / 2, RATE_S)
    through_ms = [statistics.quantiles(took_s, n=100)[at - 1] * MS for at in (50, 99)]
    yield beside("action_p50_through_gateways_at_half_rate", through_ms[0], "ms", unloaded_ms)
    yield beside("action_p99_through_gateways_at_half_rate", through_ms[1], "ms", unloaded_ms)
    yield within("action_blob_bytes", largest, "bytes", BLOB_BYTES_MAX)
    cores, bare_cores = (BUSY_ROOM * spent.us / US for spent in (gateways, floor))
    row = beside("room_cores", cores, "cores", bare_cores)
    yield Row({**row, "budget": f"<= {CORES_MAX} cores", "ok": cores <= CORES_MAX})


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes, on the average: what an action stores, what a watcher gets of it, what a player sends.

    blob_max: the largest.
    """

    blob: int
    event: int
    push: int
    action: int
    blob_max: int


async def _sizes(room: Room, played: Played) -> Sizes:
    async with Redis.from_url(room.redis_url) as redis:
        tables = [key async for key in redis.scan_iter("*:table:*")]
        streams = [key async for key in redis.scan_iter("*:events:*")]
        blobs = [len(await redis.hget(key, "b") or b"") for key in tables]
        last: list[Any] = [await redis.xrevrange(key, count=2) for key in streams]
    # Behind each record stands an empty one.
    events = [len(fields[b"e"]) for found in last for _, fields in found if fields[b"e"]]
    read = sum(table.bytes_read for table in played.tables)
    sent = statistics.mean(table.bytes_sent for table in played.tables)
    return Sizes(
        blob=round(statistics.mean(blobs)),
        event=round(statistics.mean(events)),
        push=read // played.pace.done // SEATS,
        action=round(sent * len(played.tables) / played.pace.done),
        blob_max=max(blobs),
    )


async def _conflicts(stage: Stage, room: Room) -> Row:
    """Players of one table at two replicas in turn, so that each finds the table changed by the
    other, against tables at one of them; the CPU of both replicas.
    """
    both = [room.first, await stage.second_replica(room)]
    contended, alone = Spent(), Spent()
    async with (
        playing(stage, both, CONTENDED_TABLES, SEED) as at_both,
        playing(stage, both[:1], CONTENDED_TABLES, SEED) as at_one,
    ):
        for _ in range(SHORT_ROUNDS):
            await contended.round(at_both.pace, both)
            await alone.round(at_one.pace, both)
    times = contended.times(alone)
    return at_most("action_conflict", contended.us, "us CPU", alone.us, times, CONFLICT_TIMES)


async def _sweep() -> Row:
    """CPU of claiming what is due, all of it at once, and of beginning a tick for each."""
    took_us = []
    with valkey.running() as server:
        async with store_on(server, shards=SWEEP_SHARDS) as store:
            ticked = 0

            async def tick(_table_id: str) -> None:
                nonlocal ticked
                ticked += 1

            for shard in range(SWEEP_SHARDS):
                await store.begin_opening(shard)
                await store.open_shard(shard, 1)
            for _ in range(SHORT_ROUNDS):
                _make_due(server, store)
                ticked, sweep = 0, Sweep(store, tick)
                began_s = time.process_time()
                # Nothing is done about what is due, so it is due again when its lease is over.
                while ticked < DUE:
                    await sweep.once()
                await sweep.stop()
                took_us.append((time.process_time() - began_s) / ticked * US)
    return within("action_sweep_us", statistics.median(took_us), "us CPU", SWEEP_US_MAX)


def _make_due(server: valkey.Valkey, store: Store) -> None:
    with server.client() as client:
        client.delete(*(f"{{t{shard}}}:deadlines" for shard in range(SWEEP_SHARDS)))
        for start in range(0, DUE, ADDED_AT_ONCE):
            pipeline = client.pipeline(transaction=False)
            for number in range(start, start + ADDED_AT_ONCE):
                table_id = f"due-{number}"
                pipeline.zadd(f"{{t{store.shard_of(table_id)}}}:deadlines", {table_id: number})
            pipeline.execute()
