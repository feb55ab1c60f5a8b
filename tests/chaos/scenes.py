"""A room that many cases share: two players at one table, guests that come and go at another."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from tests.chaos.life import BANKROLL, CURRENCY, Life
from tests.chaos.proof import Proof, proof_of
from tests.chaos.rooms import FaultyRoom
from tests.integration.rooms import Hosted, Places, client, new_home

CASE_S: Final = 120.0


class Scene:
    """The room, and its two tables."""

    def __init__(self, host: Hosted, room: FaultyRoom) -> None:
        self.host: Final = host
        self.room: Final = room
        self.tables: list[str] = []

    @asynccontextmanager
    async def case(self, seed: int, timeout_s: float = CASE_S) -> AsyncIterator["Case"]:
        """What happens in the block must leave the room sound; it is hurt nowhere afterwards."""
        print(f"seed {seed}")
        room = self.room
        async with (
            asyncio.timeout(timeout_s),
            client(Places.of(room.home)) as at,
            proof_of(room) as proof,
        ):
            life = Life(at, random.Random(seed))
            await room.all_run()
            life.held[CURRENCY] = await proof.held(CURRENCY)
            if not self.tables:
                self.tables = await _set_up(life)
            try:
                yield Case(life, proof, self.tables)
            finally:
                room.disarm()
                room.lines.mend_all()
            await room.all_run()
            await proof.sound(life.held)
            await proof.nothing_pending(10.0)


class Case:
    """What a case has to do with."""

    def __init__(self, life: Life, proof: Proof, tables: list[str]) -> None:
        self.life: Final = life
        self.proof: Final = proof
        self.guests_at: Final = tables[0]
        self.played_at: Final = tables[1]

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """A visit and a hand begin; both are over when the block is left."""
        visit = asyncio.create_task(self.life.visit(self.guests_at))
        hand = asyncio.create_task(self.life.hand(self.played_at))
        try:
            yield
            await asyncio.gather(visit, hand)
        finally:
            visit.cancel()
            hand.cancel()


@contextmanager
def scene_of(**options: Any) -> Iterator[Scene]:
    """A scene for the life of the block; options are `FaultyRoom`'s."""
    with new_home() as home:
        host = Hosted(home)
        room = FaultyRoom(home, on_change=host.changes.append, **options)
        try:
            host.enter(room)
            yield Scene(host, room)
        finally:
            host.close()


async def _set_up(life: Life) -> list[str]:
    tables = [await life.create_table(name=name) for name in ("Guests", "Players")]
    for player in ("anna", "ben"):
        await life.deposit(player, BANKROLL)
        await life.take_seat(tables[1], player, BANKROLL)
    return tables
