"""`make soak`: bots and guests play in a room while it is hit in every way, at random from a seed.

Prints what goes on, and at the end a table. Exit status 1 if anything differs, a request had two
effects, or nothing went on for too long.
"""

import argparse
import asyncio
import json
import os
import random
import secrets
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from services.client import TableLost
from services.local.access import open_access
from services.local.bots import Access, Bot, Tally
from services.runtime.errors import DoorcardError
from services.runtime.roles import Role
from tests.chaos.faults import Faults
from tests.chaos.life import CURRENCY, Life
from tests.chaos.proof import Proof, proof_of
from tests.chaos.rooms import FAKETIME, FaultyRoom
from tests.integration.rooms import BIN, Client, Hosted, Places, client, new_home

TWINS: Final = ("wallet", "settlement-worker", "settlement-beat")
CLOCKS: Final = ("table", "wallet", "settlement-worker", "settlement-beat", "broker")
TABLES: Final = 3
BOTS: Final = 4
"""At each table."""
BUY_IN: Final = 4000
GUESTS: Final = 2
"""At a time, each at a table of his own."""
PAUSE_S: Final = (0.5, 4.0)
"""Between two faults."""
TELL_S: Final = 15.0
LOOK_S: Final = 0.2
STALL_MAX_S: Final = 90.0
"""Nobody waits longer for anything, whatever was hit."""
LEAVE_S: Final = 180.0
PENDING_S: Final = 180.0
TOKEN_S: Final = 24 * 3600.0


@dataclass
class Found:
    """What the soak found."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    hands: int = 0
    actions: int = 0
    visits: int = 0
    doubled: int = 0
    reopened: int = 0
    begun_anew: Counter[str] = field(default_factory=Counter)
    """Bots and guests that lost their table, by what they heard."""
    longest_stall_s: float = 0.0
    differences: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Nothing differs and nobody waited too long."""
        return not self.differences and self.longest_stall_s <= STALL_MAX_S


class Soak:
    """One run in a room."""

    def __init__(
        self, room: FaultyRoom, at: Client, access: Access, console: Console, found: Found
    ) -> None:
        self._room = room
        self._at = at
        self._access = access
        self._console = console
        self._found = found
        self._rng = random.Random(found.seed)
        self._life = Life(at, random.Random(self._rng.random()))
        self._tally = Tally()
        self._faults = Faults(room, random.Random(self._rng.random()), CLOCKS)
        self._tables: dict[int, str] = {}
        """Number -> its id now; below zero they are the guests'."""
        self._making: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._bots: set[Bot] = set()
        self._over = asyncio.Event()

    async def run(self, minutes: float) -> None:
        """Play and hit, then stop hitting and let everybody go home."""
        players = [
            asyncio.create_task(self._bot(number, each), name=f"bot {number}-{each}")
            for number in range(1, TABLES + 1)
            for each in range(BOTS)
        ]
        players += [
            asyncio.create_task(self._guests(-each), name=f"guests {each}")
            for each in range(1, GUESTS + 1)
        ]
        watching = asyncio.create_task(self._watch(time.monotonic()))
        for task in players:
            task.add_done_callback(self._ended)
        try:
            await self._hit(time.monotonic() + 60 * minutes)
            await self._go_home(players)
        finally:
            for task in (watching, *players):
                task.cancel()
            await asyncio.gather(*players, return_exceptions=True)
        self._count()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._found.differences.append(f"{task.get_name()}: {error!r}"[:400])
            self._console.print(self._found.differences[-1], highlight=False, soft_wrap=True)

    @property
    def held(self) -> dict[str, int]:
        """Deposits less withdrawals of everybody."""
        ours = self._tally.deposits - self._tally.withdrawals
        return {CURRENCY: self._life.held[CURRENCY] + ours}

    # Hitting

    async def _hit(self, until_s: float) -> None:
        while time.monotonic() < until_s:
            await asyncio.sleep(self._rng.uniform(*PAUSE_S))
            await self._faults.one()

    async def _go_home(self, players: list["asyncio.Task[None]"]) -> None:
        self._room.disarm()
        self._room.lines.mend_all()
        await self._room.all_run()
        self._over.set()
        for bot in self._bots:
            bot.leave()
        _, stuck = await asyncio.wait(players, timeout=LEAVE_S)
        self._found.differences += [f"{each.get_name()} could not go home" for each in stuck]

    # Playing

    async def _bot(self, number: int, each: int) -> None:
        life = 0
        while not self._over.is_set():
            life += 1
            table_id = await self._table(number)
            name = f"bot-{number}-{each}-{life}"
            token = self._room.signer.mint(name, [Role.PLAYER], TOKEN_S)
            rng = random.Random(self._rng.random())
            bot = Bot(name, token, self._access, self._tally, rng)
            self._bots.add(bot)
            try:
                await bot.run(table_id, BUY_IN, CURRENCY)
            except TableLost as lost:
                await self._lost(number, table_id, lost.error)
            except DoorcardError as error:
                await self._lost(number, table_id, error)
            finally:
                self._bots.discard(bot)

    async def _guests(self, number: int) -> None:
        while not self._over.is_set():
            table_id = await self._table(number)
            try:
                await self._life.visit(table_id)
                self._found.visits += 1
            except DoorcardError as error:
                await self._lost(number, table_id, error)

    async def _table(self, number: int) -> str:
        async with self._making[number]:
            if number not in self._tables:
                self._tables[number] = await self._life.create_table(
                    name=f"Table {number}", seats=BOTS + 2, action_ms=15_000
                )
            return self._tables[number]

    async def _lost(self, number: int, table_id: str, error: DoorcardError) -> None:
        """It is gone with the tables' Redis; as an operator would, we make another."""
        if error.reason not in self._found.begun_anew:
            self._console.print(f"began anew: {error}", highlight=False, soft_wrap=True)
        self._found.begun_anew[error.reason] += 1
        if error.reason == "TABLE_UNKNOWN" and self._tables.get(number) == table_id:
            del self._tables[number]
        await asyncio.sleep(LOOK_S)

    # Telling

    async def _watch(self, began_s: float) -> None:
        told_s = time.monotonic()
        moved: dict[str, tuple[int, float]] = {}
        while True:
            await asyncio.sleep(LOOK_S)
            self._count()
            now_s = time.monotonic()
            for what in ("actions", "visits"):
                figure = getattr(self._found, what)
                before, since_s = moved.get(what, (-1, now_s))
                if figure != before or self._over.is_set():
                    moved[what] = figure, now_s
                self._found.longest_stall_s = max(self._found.longest_stall_s, now_s - since_s)
            if now_s - told_s >= TELL_S:
                told_s = now_s
                self._console.print(
                    f"{now_s - began_s:5.0f} s  {self._found.hands} hands,"
                    f" {self._found.visits} visits, {self._found.faults.total()} faults,"
                    f" longest stall {self._found.longest_stall_s:.1f} s; {self._faults.last}",
                    highlight=False,
                    soft_wrap=True,
                )

    def _count(self) -> None:
        found = self._found
        found.faults = self._faults.done
        found.hands = len(self._tally.hands_seen)
        found.actions = self._tally.actions
        found.doubled = self._life.doubled


async def soak(room: FaultyRoom, minutes: float, seed: int, console: Console) -> Found:
    """All of it in a room that runs: what was found."""
    found = Found(seed)
    async with (
        client(Places.of(room.home)) as at,
        open_access(room, "soak", "soak-operator") as access,
        proof_of(room) as proof,
    ):
        run = Soak(room, at, access, console, found)
        await run.run(minutes)
        console.print("settling and comparing", highlight=False)
        await _compare(room, proof, run.held, found)
    return found


async def _compare(room: FaultyRoom, proof: Proof, held: dict[str, int], found: Found) -> None:
    try:
        await proof.nothing_pending(PENDING_S)
    except TimeoutError:
        found.differences.append(f"{proof.pending()} reservations do not end")
    try:
        await proof.sound(held)
    except (AssertionError, DoorcardError) as error:
        found.differences.append(str(error).partition("\n")[0])
    epochs = await asyncio.to_thread(proof.epochs)
    found.reopened = sum(epoch - 1 for epoch in epochs if epoch)
    for command in (("ledger", "reconcile", "--recount"), ("ledger", "verify")):
        status, said = await asyncio.to_thread(_command, room.home, *command)
        if status:
            found.differences.append(f"doorcard {' '.join(command)}: {status} {said}")


def _command(home: Path, *arguments: str) -> tuple[int, str]:
    """Exit status of a `doorcard` command, and what it says is wrong."""
    done = subprocess.run(
        [BIN / "doorcard", *arguments, "--json"],
        env={**os.environ, "DOORCARD_HOME": str(home)},
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return done.returncode or 1, done.stderr.strip()
    wrong = {key: value for key, value in answer.items() if key != "sums" and value}
    return done.returncode, json.dumps(wrong)


def tell(found: Found, console: Console) -> None:
    """The table."""
    table = Table(title=f"soak, seed {found.seed}", box=None, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for kind, count in sorted(found.faults.items()):
        table.add_row(kind, str(count))
    for what, figure in (
        ("faults", found.faults.total()),
        ("hands", found.hands),
        ("actions", found.actions),
        ("visits from deposit to withdrawal", found.visits),
        ("requests doubled", found.doubled),
        ("shards reopened", found.reopened),
        ("players who began anew", found.begun_anew.total()),
        ("longest stall, s", f"{found.longest_stall_s:.1f}"),
        ("differences", len(found.differences)),
    ):
        table.add_row(what, str(figure))
    console.print(table)
    for reason, count in found.begun_anew.items():
        console.print(f"  began anew after {reason}: {count}", highlight=False)
    for each in found.differences:
        console.print(f"  {each}", highlight=False, soft_wrap=True)
    console.print("OK" if found.well else "NOT OK", highlight=False)


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    asked = parser.parse_args()
    console = Console()
    if not FAKETIME.exists():
        console.print("libfaketime is missing: make deploy-tools installs it (Debian: faketime)")
        return 2
    console.print(f"soak: {asked.minutes:g} minutes, seed {asked.seed}", highlight=False)
    with new_home() as home:
        host = Hosted(home)
        room = FaultyRoom(home, twins=TWINS, clocks=CLOCKS, on_change=host.changes.append)
        try:
            host.enter(room)
            found = host.run(soak(room, asked.minutes, asked.seed, console))
        finally:
            host.close()
    tell(found, console)
    return 0 if found.well else 1


if __name__ == "__main__":
    sys.exit(main())
