"""A load from the first table to the comparison of the books."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

import grpc
from doorcard.table.v1 import admin_pb2, admin_pb2_grpc, table_pb2, table_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from services.local import room_file
from services.local.audit import Auditor, Totals
from services.local.bots import insist
from services.local.keys import RoomKeys
from services.local.load.figures import Figures
from services.local.load.pace import AtRate, Pace, Thinking
from services.local.load.report import Report
from services.local.load.streams import GatewayStreams, SeatStreams, Streams
from services.local.load.tables import LoadTable
from services.runtime.auth import TokenSigner
from services.runtime.channels import connect
from services.runtime.errors import Aborted
from services.runtime.roles import Role
from services.runtime.settings import ServiceSettings

SEATS: Final = 6
CURRENCY: Final = "EUR"
RULEBOOK: Final = "interpoker"
STAKE: Final = "1/2"
BUY_IN: Final = 10_000_000
"""Minor units: deep enough that nobody goes broke."""
ACTION_MS: Final = 300_000
"""Nobody is late because the schedule lets him wait."""
OPENED_AT_ONCE: Final = 16
TOKEN_S: Final = 24 * 3600.0
LOOK_S: Final = 0.25
FINISH_S: Final = 60.0
DRAIN_S: Final = 300.0
PLAYERS: Final = "load-"
UNLIMITED: Final = {
    "TABLE_RATE_LIMITS": "seats.address=off, streams.address=off, calls.address=off"
}
"""All players of a load come from one address."""
OPENING: Final = "opening"
PLAYING: Final = "playing"


@dataclass(frozen=True, slots=True)
class Wish:
    """What load there is to be."""

    tables: int
    seconds: float
    gateways: int = 0
    """0: a stream for each player."""
    rate: float = 0.0
    """Actions a second; 0 for think times or flat out."""
    flat_out: bool = False
    seed: int = 0

    @property
    def pace(self) -> str:
        """Its name."""
        return "flat out" if self.flat_out else "rate" if self.rate else "thinking"


@dataclass(frozen=True, slots=True)
class Places:
    """Where a room is, and what signs tokens that it believes."""

    tables: tuple[str, ...]
    wallet: str
    history: str
    signer: TokenSigner

    @classmethod
    def of(cls, home: Path) -> "Places":
        """Of the room that runs in a data folder. Raises FileNotFoundError if none does."""
        found = room_file.read(home)
        services = found["services"]
        signer = RoomKeys(home / "keys").signer
        return cls(tuple(found["tables"]), services["wallet"], services["history"], signer)


@dataclass(slots=True)
class Progress:
    """How far a load is, for who watches it."""

    figures: Figures
    stage: str = OPENING
    opened: int = 0
    owed: int = 0
    seconds: float = 0.0


class Load:
    """One load on a running room. own_room: nobody else is in it, so its books are the load's.

    stop: set to end it before its time. look: called again and again while it runs. restarts: of
    the room's processes.
    """

    def __init__(
        self,
        places: Places,
        wish: Wish,
        stop: asyncio.Event,
        look: Callable[[Progress], None],
        *,
        own_room: bool,
        restarts: Callable[[], dict[str, int]] = dict,
    ) -> None:
        self._places = places
        self._wish = wish
        self._stop = stop
        self._look = look
        self._own_room = own_room
        self._restarts = restarts
        self._figures = Figures()
        self._progress = Progress(self._figures)
        self._rng = random.Random(wish.seed)  # noqa: S311 (dice, no secret)
        self._pace = _pace_of(wish, self._rng)
        self._tables: list[LoadTable] = []
        self._operator = self._token("load-operator", Role.OPERATOR)
        self._run = uuid4().hex[:8]
        self._deposited = 0

    async def run(self) -> Report:
        """Open, play, finish the hands, close the tables, compare. Raises DoorcardError."""
        settings = ServiceSettings(service="load")
        tables = connect(self._places.tables, settings)
        wallet = connect(self._places.wallet, settings)
        history = connect(self._places.history, settings)
        auditor = Auditor(
            tables, wallet, history, self._token("load-auditor", Role.SERVICE, Role.AUDITOR)
        )
        watching = asyncio.create_task(self._keep_looking())
        try:
            before = await auditor.totals(CURRENCY)
            async with self._streams() as streams:
                await self._open(tables, wallet, streams)
                report = await self._play(streams)
                await self._finish(tables)
            return await self._compare(report, auditor, before)
        finally:
            watching.cancel()
            for channel in (tables, wallet, history):
                await channel.close()

    async def _open(
        self, tables: grpc.aio.Channel, wallet: grpc.aio.Channel, streams: Streams
    ) -> None:
        free = asyncio.Semaphore(OPENED_AT_ONCE)

        async def one(number: int) -> None:
            async with free:
                if not self._stop.is_set():
                    await self._open_one(number, tables, wallet, streams)
                    self._progress.opened += 1

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._wish.tables):
                    group.create_task(one(number))
        except ExceptionGroup as faults:  # of many for the same reason, one is said
            raise faults.exceptions[0] from None

    async def _open_one(
        self, number: int, tables: grpc.aio.Channel, wallet: grpc.aio.Channel, streams: Streams
    ) -> None:
        stub = table_pb2_grpc.TableServiceStub(tables)
        request = table_pb2.CreateTableRequest(
            request_id=str(uuid4()),
            name=f"Load {number + 1}",
            rulebook=RULEBOOK,
            stake_name=STAKE,
            seats=SEATS,
            currency=CURRENCY,
            rake_schedule_id="standard",
            action_ms=ACTION_MS,
        )
        answer = await insist(stub.CreateTable, request, self._operator)
        table_id = answer.table.config.table_id
        players = [f"{PLAYERS}{self._run}-{number}-{seat}" for seat in range(SEATS)]
        dice = random.Random(self._rng.getrandbits(64))  # noqa: S311 (dice, no secret)
        table = LoadTable(table_id, players, self._pace, self._figures, dice)
        self._tables.append(table)
        await streams.join(table)
        ledger = wallet_pb2_grpc.WalletServiceStub(wallet)
        for seat, player in enumerate(players):
            deposit = wallet_pb2.DepositRequest(
                request_id=str(uuid4()), player_id=player, amount=BUY_IN, currency=CURRENCY
            )
            await insist(ledger.Deposit, deposit, self._operator)
            self._deposited += BUY_IN
            take = table_pb2.TakeSeatRequest(
                request_id=str(uuid4()), table_id=table_id, seat=seat, buy_in=BUY_IN
            )
            await insist(stub.TakeSeat, take, self._token(player, Role.PLAYER))

    async def _play(self, streams: Streams) -> Report:
        progress, figures, wish = self._progress, self._figures, self._wish
        loop = asyncio.get_running_loop()
        progress.stage, began_s, opened = PLAYING, loop.time(), streams.opened
        if not self._stop.is_set():
            self._pace.start()
        while (left_s := began_s + wish.seconds - loop.time()) > 0 and not self._stop.is_set():
            progress.seconds = loop.time() - began_s
            figures.reconnects = streams.opened - opened
            await _unless(self._stop, min(left_s, LOOK_S))
        seconds = loop.time() - began_s
        return Report(
            tables=len(self._tables),
            players=len(self._tables) * SEATS,
            gateways=wish.gateways,
            pace=wish.pace,
            rate=wish.rate,
            seconds=round(seconds, 3),
            actions=figures.actions,
            actions_per_second=round(figures.actions / max(seconds, LOOK_S), 1),
            owed=self._pace.owed,
            p50_ms=figures.latencies.percentile_ms(0.5),
            p90_ms=figures.latencies.percentile_ms(0.9),
            p99_ms=figures.latencies.percentile_ms(0.99),
            p999_ms=figures.latencies.percentile_ms(0.999),
            max_ms=round(figures.latencies.max_s * 1000, 3),
            hands=figures.hands,
            refusals=dict(figures.refusals),
            resyncs=figures.resyncs,
            reconnects=figures.reconnects,
            seed=wish.seed,
            stopped=self._stop.is_set(),
        )

    async def _finish(self, channel: grpc.aio.Channel) -> None:
        """Everybody plays his hand to its end, at once, and the tables close."""
        self._progress.stage = "finishing"
        self._pace.hurry()
        stub = admin_pb2_grpc.TableAdminServiceStub(channel)
        free = asyncio.Semaphore(OPENED_AT_ONCE)

        async def close(table: LoadTable) -> None:
            request = admin_pb2.CloseTableRequest(
                request_id=str(uuid4()), table_id=table.table_id, reason="the load is over"
            )
            while True:
                try:
                    async with free:
                        await insist(stub.CloseTable, request, self._operator)
                    break
                except Aborted:
                    # Flat out, another replica's commits may come first again and again.
                    await asyncio.sleep(LOOK_S)
            await table.closed.wait()

        try:
            async with asyncio.timeout(FINISH_S + len(self._tables) / OPENED_AT_ONCE):
                await asyncio.gather(*map(close, self._tables))
        except TimeoutError:
            self._figures.failed("the tables did not close in time")

    async def _compare(self, report: Report, auditor: Auditor, before: Totals) -> Report:
        self._progress.stage = "comparing"
        if not await auditor.until_drained(DRAIN_S):
            self._figures.failed("the outboxes were not drained in time")
        after = await auditor.totals(CURRENCY)
        found = replace(
            report,
            restarts=self._restarts(),
            escrow_difference=await auditor.escrow_difference(
                CURRENCY, {table.table_id for table in self._tables}
            ),
            ledger_difference=after.held - before.held - self._deposited if self._own_room else 0,
            balance_difference=after.balance_difference,
        )
        for what, wrong in (
            ("escrow does not match the tables", found.escrow_difference),
            ("the ledger does not match what was deposited", found.ledger_difference),
            ("balances do not match their transfers", found.balance_difference),
            ("a process of the room was started again", found.restarts),
        ):
            if wrong:
                self._figures.failed(what)
        return replace(found, faults=tuple(self._figures.faults))

    def _streams(self) -> SeatStreams | GatewayStreams:
        settings, wish, seeds = ServiceSettings(service="load"), self._wish, self._places.tables
        if not wish.gateways:
            token = self._operator
            return SeatStreams(
                seeds,
                lambda address: connect(address, settings, lambda: token),
                lambda player: self._token(player, Role.PLAYER),
                self._figures,
            )
        gateway = self._token("load-gateway", Role.SERVICE, act_for=[PLAYERS])
        return GatewayStreams(
            seeds,
            lambda address: connect(address, settings, lambda: gateway),
            wish.gateways,
            self._figures,
        )

    def _token(self, subject: str, *roles: Role, act_for: Sequence[str] = ()) -> str:
        return self._places.signer.mint(subject, roles, TOKEN_S, act_for)

    async def _keep_looking(self) -> None:
        while True:
            self._progress.owed = self._pace.owed
            self._look(self._progress)
            await asyncio.sleep(LOOK_S)


def _pace_of(wish: Wish, rng: random.Random) -> Pace:
    if wish.flat_out:
        return Pace()
    return AtRate(wish.rate) if wish.rate else Thinking(rng)


async def _unless(stop: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until it stops."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
