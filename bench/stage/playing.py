"""Tables that are played on a stage, and what rounds of their play take."""

import statistics
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from bench.stage.cpu import cpu_s
from bench.stage.gateways import open_gateway_tables
from bench.stage.pace import Pace
from bench.stage.players import Door, PlayedTable, open_tables
from bench.stage.processes import Server, Stage

WARM_S: Final = 3.0
"""Some hands, so that the tables do not keep step."""
ROUND_S: Final = 2.0
GATEWAYS: Final = 2
GATEWAY_TABLES: Final = 200
US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Played:
    """Tables that are played by their pace."""

    pace: Pace
    tables: list[PlayedTable]
    door: Door
    """Where they were opened."""


@asynccontextmanager
async def playing(
    stage: Stage, servers: Sequence[Server], tables: int, seed: int
) -> AsyncGenerator[Played]:
    """Tables of six that have played for a while."""
    doors = [Door(server.address, stage.keys.signer) for server in servers]
    pace = Pace()
    opened = await open_tables(pace, doors, tables, seed)
    try:
        await pace.flat_out(WARM_S)
        yield Played(pace, opened, doors[0])
    finally:
        for table in opened:
            await table.close()
        for door in doors:
            await door.close()


@asynccontextmanager
async def through_gateways(stage: Stage, server: Server, seed: int) -> AsyncGenerator[Pace]:
    """As `playing`, with all players on the streams of gateways."""
    door, pace = Door(server.address, stage.keys.signer), Pace()
    gateways, _ = await open_gateway_tables(pace, door, GATEWAYS, GATEWAY_TABLES, seed)
    try:
        await pace.flat_out(WARM_S)
        yield pace
    finally:
        for gateway in gateways:
            await gateway.close()
        await door.close()


@dataclass(slots=True)
class Spent:
    """What rounds of play took, one item a round."""

    cpu_s: list[float] = field(default_factory=list)
    """Of one action."""
    per_s: list[float] = field(default_factory=list)
    """Actions."""

    async def round(self, pace: Pace, servers: Sequence[Server]) -> None:
        """Everybody acts as soon as he can."""
        pids = [server.pid for server in servers]
        began_s, before_s = time.perf_counter(), cpu_s(pids)
        actions = await pace.flat_out(ROUND_S)
        self.cpu_s.append((cpu_s(pids) - before_s) / actions)
        self.per_s.append(actions / (time.perf_counter() - began_s))

    @property
    def us(self) -> float:
        """CPU microseconds of an action."""
        return statistics.median(self.cpu_s) * US

    @property
    def rate(self) -> float:
        """Actions a second."""
        return statistics.median(self.per_s)

    def times(self, floor: "Spent") -> float:
        """CPU as a multiple of the floor's."""
        pairs = zip(self.cpu_s, floor.cpu_s, strict=True)
        return statistics.median(mine / other for mine, other in pairs)
