"""Tables that need something of a service at the same moment ask in one message; a service that is
away, or of an older release, is no other for that.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from tests import valkey
from tests.conftest import Room
from tests.contract.table.gates import Gate, LaterClock, gate_to
from tests.contract.table.replicas import Cluster, cluster

TABLES = 6


@dataclass
class Scene:
    """Tables of two before their first hand, and what came to the shuffler's gate."""

    tables: Cluster
    ids: list[str]
    gate: Gate
    clock: LaterClock
    asked: list[str]

    async def pass_time(self, ms: int) -> None:
        """Time goes by, and the sweep looks at all tables at once."""
        self.clock.ahead_ms += ms
        tick = self.tables.replicas[0].tables.tick
        await asyncio.gather(*(tick(table_id) for table_id in self.ids))

    async def dealt(self) -> list[bool]:
        """Whether each table waits for an action in a hand."""
        found = []
        for table_id in self.ids:
            table = await self.tables.replicas[0].tables.read(table_id)
            found.append(table.hand is not None and table.clock_runs and not table.blob.waits_for)
        return found


@asynccontextmanager
async def scene(
    room: Room, server: valkey.Valkey, unknown: tuple[str, ...] = ()
) -> AsyncIterator[Scene]:
    """unknown: methods that the shuffler does not have."""
    async with (
        cluster(room, server) as tables,
        gate_to(tables.addresses["shuffler_address"]) as gate,
    ):
        asked: list[str] = []
        passes = gate._pass

        async def noted(method: str, request: bytes, context: Any) -> bytes:
            name = method.rpartition("/")[2]
            asked.append(name)
            if name in unknown:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "of an older release")
            return await passes(method, request, context)

        gate._pass = noted  # type: ignore[method-assign]
        tables.addresses["shuffler_address"] = gate.address
        await tables.add_replica()
        clock = LaterClock(tables.replicas[0])
        ids = [await tables.create(seats=2, hand_pause_ms=60_000) for _ in range(TABLES)]
        for table_id in ids:
            for player in ("anna", "ben"):
                await tables.take_seat(table_id, player)
        yield Scene(tables, ids, gate, clock, asked)


async def test_hands_that_begin_at_once_are_dealt_by_fewer_messages(
    room: Room, server: valkey.Valkey
) -> None:
    async with scene(room, server) as at, asyncio.timeout(30):
        await at.pass_time(60_000)
        assert await at.dealt() == [True] * TABLES
        assert "BatchDeal" in at.asked
        # A deck and a card for the button, a deck and the first cards for the hand: each table.
        assert len(at.asked) < 4 * TABLES


async def test_all_of_a_message_wait_for_a_shuffler_that_is_away_and_go_on(
    room: Room, server: valkey.Valkey
) -> None:
    async with scene(room, server) as at, asyncio.timeout(30):
        at.gate.away = True
        await at.pass_time(60_000)
        await at.pass_time(5_000)
        assert await at.dealt() == [False] * TABLES
        assert "BatchDeal" in at.asked
        at.gate.away = False
        await at.pass_time(5_000)
        assert await at.dealt() == [True] * TABLES


async def test_a_shuffler_of_an_older_release_deals_one_by_one(
    room: Room, server: valkey.Valkey
) -> None:
    async with scene(room, server, unknown=("BatchDeal",)) as at, asyncio.timeout(30):
        await at.pass_time(60_000)
        assert await at.dealt() == [True] * TABLES
        assert at.asked.count("CreateDeck") == 2 * TABLES
