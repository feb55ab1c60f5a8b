"""The demo: bots play hands at real tables through every service, then everything must add up."""

import asyncio
import contextlib
import random
import secrets
import urllib.request
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from doorcard.table.v1 import table_pb2, table_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from services.local.access import open_access
from services.local.audit import Auditor, Totals
from services.local.bots import Access, Bot, Tally, insist, mails_are_asked
from services.local.live import Figures, LiveView
from services.local.mail_sink import kept
from services.local.room import Room
from services.local.summary import Summary, percentile_ms
from services.runtime.channels import connect
from services.runtime.roles import Role
from services.runtime.settings import ServiceSettings

CURRENCY: Final = "EUR"
BOTS_PER_TABLE: Final = 5
BUY_IN_BIG_BETS: Final = 20
"""Where the rulebook names no smallest buy-in."""
HAND_PAUSE_MS: Final = 20
TOKEN_TTL_S: Final = 24 * 3600
LOOK_EVERY_S: Final = 0.25
SETTLE_TIMEOUT_S: Final = 120.0
LEAVE_TIMEOUT_S: Final = 60.0
SECONDS_PER_HAND_MAX: Final = 3.0
"""A demo that is slower than this, and a minute, has got stuck."""


@dataclass(frozen=True, slots=True)
class DemoTable:
    """A table that the demo opens: its rulebook and one of the rulebook's stakes."""

    name: str
    rulebook: str
    stake: str


TABLES: Final = (
    DemoTable("Kings Corner", "club", "5/10"),
    DemoTable("Third Street", "club", "5/10"),
    DemoTable("Door Card", "triopoker", "5/10"),
    DemoTable("The Wheel", "eight-or-better", "1/2"),
)


async def run_demo(
    room: Room,
    hands: int,
    *,
    console: Console,
    seed: int | None = None,
    tables: Sequence[DemoTable] = TABLES,
) -> Summary:
    """Play at least `hands` hands in a running room, settle everything and compare.

    Raises DoorcardError where the room refuses what a demo needs; never leaves a bot seated.
    """
    seed = secrets.randbits(32) if seed is None else seed
    console.print(f"demo: {hands} hands, seed {seed}", highlight=False)
    tally, figures = Tally(), Figures(hands_wanted=hands, stage="playing")
    async with open_access(room, "demo", "demo-operator") as access, _auditor(room) as auditor:
        demo = _Demo(room, access, auditor, tally, figures, random.Random(seed))  # noqa: S311 (dice)
        with LiveView(console, tally, figures) as view:
            return await demo.run(hands, tables, view, seed)


class _Demo:
    def __init__(
        self,
        room: Room,
        access: Access,
        auditor: Auditor,
        tally: Tally,
        figures: Figures,
        rng: random.Random,
    ) -> None:
        self._room = room
        self._access = access
        self._auditor = auditor
        self._tally = tally
        self._figures = figures
        self._rng = rng
        self._stub = table_pb2_grpc.TableServiceStub(access.tables[0])
        self._replicas = Replicas(room)
        self._table_ids: list[str] = []
        self._mails_before = len(kept(room.mail_folder))
        self._faults: list[str] = []

    async def run(
        self, hands: int, tables: Sequence[DemoTable], view: LiveView, seed: int
    ) -> Summary:
        before = await self._auditor.totals(CURRENCY)
        bots = [bot for table in tables for bot in await self._open(table)]
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await self._play(bots, hands, view)
        played_s = loop.time() - began_s
        await self._settle(view)
        return await self._summary(before, played_s, seed)

    async def _open(self, table: DemoTable) -> list[tuple[Bot, str, int]]:
        request = table_pb2.CreateTableRequest(
            request_id=str(uuid4()),
            name=table.name,
            rulebook=table.rulebook,
            stake_name=table.stake,
            seats=BOTS_PER_TABLE + 1,
            currency=CURRENCY,
            rake_schedule_id="standard",
            hand_pause_ms=HAND_PAUSE_MS,
        )
        answer = await insist(self._stub.CreateTable, request, self._access.operator_token)
        table_id, stake = answer.table.config.table_id, answer.table.config.stake
        buy_in = stake.buy_in_min or BUY_IN_BIG_BETS * stake.big_bet
        self._table_ids.append(table_id)
        return [
            (self._bot(f"bot-{len(self._table_ids)}-{number}"), table_id, buy_in)
            for number in range(1, BOTS_PER_TABLE + 1)
        ]

    def _bot(self, player_id: str) -> Bot:
        token = self._room.signer.mint(
            player_id,
            [Role.PLAYER],
            TOKEN_TTL_S,
            email=f"{player_id}@players.example",
            name=player_id,
        )
        rng = random.Random(self._rng.getrandbits(64))  # noqa: S311 (dice)
        return Bot(player_id, token, self._access, self._tally, rng, mail_every=5)

    async def _play(self, bots: Sequence[tuple[Bot, str, int]], hands: int, view: LiveView) -> None:
        """Let the bots play until enough hands are over; then all of them leave."""
        tasks = [
            asyncio.create_task(bot.run(table_id, buy_in, CURRENCY), name=bot.player_id)
            for bot, table_id, buy_in in bots
        ]
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + 60 + hands * SECONDS_PER_HAND_MAX
        try:
            while self._figures.hands < hands:
                await self._look(view)
                if any(task.done() for task in tasks):
                    break
                if loop.time() > deadline_s:
                    self._faults.append("the hands were not played in time")
                    break
                await asyncio.sleep(LOOK_EVERY_S)
            self._figures.stage = "leaving"
            for bot, _, _ in bots:
                bot.leave()
            _, stuck = await asyncio.wait(tasks, timeout=LEAVE_TIMEOUT_S + SETTLE_TIMEOUT_S)
            self._faults.extend(f"{task.get_name()} could not leave" for task in stuck)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for (bot, _, _), end in zip(bots, ended, strict=True):
            if isinstance(end, Exception):
                self._faults.append(f"{bot.player_id}: {end}")

    async def _settle(self, view: LiveView) -> None:
        self._figures.stage = "settling"
        await mails_are_asked()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + SETTLE_TIMEOUT_S
        if not await self._auditor.until_drained(SETTLE_TIMEOUT_S):
            self._faults.append("the outboxes were not drained in time")
        while self._mails() < self._tally.mails_asked and loop.time() < deadline_s:
            await self._look(view)
            await asyncio.sleep(LOOK_EVERY_S)
        await self._look(view)
        self._figures.stage = "done"

    async def _look(self, view: LiveView) -> None:
        figures = self._figures
        figures.hands = await self._hands()
        figures.mails = self._mails()
        figures.restarts = self._room.restarts()
        await self._replicas.look()
        figures.commits_by_replica = self._replicas.sums("doorcard_table_commits_total")
        figures.rake = (await self._auditor.totals(CURRENCY)).rake
        view.show()

    async def _hands(self) -> int:
        """Hands that are over, at the demo's tables."""
        over = 0
        for table_id in self._table_ids:
            request = table_pb2.GetTableRequest(table_id=table_id)
            view = (await insist(self._stub.GetTable, request, self._access.operator_token)).table
            over += view.hands - view.HasField("hand")
        return over

    def _mails(self) -> int:
        return len(kept(self._room.mail_folder)) - self._mails_before

    async def _summary(self, before: Totals, played_s: float, seed: int) -> Summary:
        after = await self._auditor.totals(CURRENCY)
        tally, hands = self._tally, await self._hands()
        settled = len(await self._auditor.archived_hands(self._table_ids))
        ledger = after.held - before.held - (tally.deposits - tally.withdrawals)
        escrow = await self._auditor.escrow_difference(CURRENCY)
        for what, wrong in (
            ("hands and archived hands differ", settled != hands),
            ("the ledger does not match the bots' own count", ledger != 0),
            ("escrow does not match the tables", escrow != 0),
            ("balances do not match their transfers", after.balance_difference != 0),
            ("mails are missing", self._mails() != tally.mails_asked),
        ):
            if wrong:
                self._faults.append(what)
        return Summary(
            hands=hands,
            actions=tally.actions,
            actions_per_second=round(tally.actions / played_s, 1) if played_s else 0.0,
            action_p50_ms=percentile_ms(tally.latencies_s, 0.5),
            action_p99_ms=percentile_ms(tally.latencies_s, 0.99),
            settled_hands=settled,
            commits_by_replica=self._replicas.sums("doorcard_table_commits_total"),
            conflicts=sum(self._replicas.sums("doorcard_table_conflicts_total").values()),
            ledger_difference=ledger,
            escrow_difference=escrow,
            rake_total=after.rake - before.rake,
            mails_sent=self._mails(),
            mails_asked=tally.mails_asked,
            refusals=dict(tally.refusals),
            restarts=self._room.restarts(),
            seed=seed,
            faults=tuple(self._faults),
            ok=not self._faults,
        )


class Replicas:
    """Counters of the table replicas, summed over their restarts."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._ended: dict[tuple[str, str], int] = {}
        self._latest: dict[tuple[str, str], tuple[int, int]] = {}

    async def look(self) -> None:
        """Read the counters now; a replica that is away keeps its last figures."""
        for name, pid, url in self._room.table_metrics():
            with contextlib.suppress(OSError, ValueError):
                text = await asyncio.to_thread(_get, url)
                self._note(name, pid, text)

    def sums(self, metric: str) -> dict[str, int]:
        """Replica -> the counter's value over all its lives."""
        return {
            name: value + self._ended.get((name, found), 0)
            for (name, found), (_, value) in self._latest.items()
            if found == metric
        }

    def _note(self, name: str, pid: int, text: str) -> None:
        values: dict[str, int] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                counted = sample.labels.get("outcome", "committed") == "committed"
                if sample.name in COUNTERS and counted:
                    values[sample.name] = values.get(sample.name, 0) + int(sample.value)
        for metric, value in values.items():
            last_pid, last = self._latest.get((name, metric), (pid, 0))
            if last_pid != pid:
                self._ended[name, metric] = self._ended.get((name, metric), 0) + last
            self._latest[name, metric] = (pid, value)


COUNTERS: Final = frozenset({"doorcard_table_commits_total", "doorcard_table_conflicts_total"})


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=2.0) as answer:  # noqa: S310 (our own http address)
        return bytes(answer.read()).decode()


@contextlib.asynccontextmanager
async def _auditor(room: Room) -> AsyncIterator[Auditor]:
    settings = ServiceSettings(service="demo")
    token = room.signer.mint("demo-auditor", [Role.SERVICE, Role.AUDITOR], TOKEN_TTL_S)
    tables = connect(room.table_addresses, settings)
    wallet = connect(room.address("wallet"), settings)
    history = connect(room.address("history"), settings)
    try:
        yield Auditor(tables, wallet, history, token)
    finally:
        for channel in (tables, wallet, history):
            await channel.close()


def write_summary(summary: Summary, path: Path | None, console: Console) -> None:
    """Say how it went, and keep the figures where asked."""
    if path is not None:
        summary.write(path)
    console.print(
        f"{'OK' if summary.ok else 'NOT OK'}: {summary.hands} hands,"
        f" {summary.settled_hands} settled, {summary.actions} actions"
        f" ({summary.actions_per_second}/s, p50 {summary.action_p50_ms} ms,"
        f" p99 {summary.action_p99_ms} ms), rake {summary.rake_total},"
        f" mails {summary.mails_sent}/{summary.mails_asked},"
        f" ledger difference {summary.ledger_difference},"
        f" escrow difference {summary.escrow_difference}",
        highlight=False,
        soft_wrap=True,
    )
    for fault in summary.faults:
        console.print(f"  {fault}", highlight=False, soft_wrap=True)
