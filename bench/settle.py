"""Settlement against the same rows written by plain SQL; the ledger when it is short and long.

All run on one PostgreSQL with fsync on; what is compared runs in turns, the figures are medians.
The floor is one transaction of prepared INSERTs and UPDATEs, all sent at once. It knows the rows
beforehand: it loads, locks, checks and links nothing.

- `settle_batch_*`, `settle_entry`: batches of many hands, and one hand alone.
- `settle_tables_*`: hands a second at so many tables of one shard, against one table: all of them
  pay rake into the shard's house account.
- `settle_delay_500`, `settle_highest_rate`: hands offered at a steady rate and settled in batches
  as they come, while everything is sealed and audited beside: 99th percentile of the delay at 500
  a second, and the highest rate whose delay stays bounded.
- `settle_sealing`: rows sealed a second, against rows that are settled.
- `settle_statement_page`, `settle_totals`: after 1,000,000 transfers against after 1,000.
"""

import asyncio
import random
import statistics
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import psycopg
from doorcard.game.v1 import game_pb2
from doorcard.wallet.v1 import wallet_pb2 as pb

from bench.row import Row, as_they_come, at_least, at_most, beside
from services.runtime.ids import uuid7
from services.runtime.postgres import Database
from services.runtime.schema import upgrade
from services.wallet.ledger import (
    cashier,
    reservations,
    seals,
    settlement,
    shards,
    statement,
    totals,
)
from services.wallet.messages import entry_of
from services.wallet.opening import MIGRATIONS, LedgerDatabase
from services.wallet.settings import WalletSettings
from services.wallet.upkeep import Upkeep
from tests import postgres

TABLES: Final = 50
SEATS: Final = 6
STACK: Final = 10**9
BATCHES: Final = (50, 500)
ROUNDS: Final = 15
SHARES: Final = 0.7
LINES_FEW, LINES_MANY = 1_000, 1_000_000
PAGES: Final = 200
PAGE_GROWTH_MAX: Final = 1.5
PAGE: Final = 50
TABLES_OF: Final = (1, 10, 50)
TABLES_BATCH: Final = 50
OFFERED: Final = (500, 1_000, 2_000, 4_000, 8_000)
"""Hands a second."""
OFFERED_S: Final = 4.0
DRAIN_BATCH: Final = 50
DELAY_MAX_S: Final = 2.0
"""At the 99th percentile; above it a rate does not hold."""
SEAL_EVERY_S: Final = 0.5
ROWS_SETTLED: Final = 500 * (1 + SEATS + 1)
"""A second, at 500 hands: a journal entry, a transfer for each seat and one for the rake."""
TOTALS: Final = 100
SEED: Final = 7
MS: Final = 1000.0


def rows() -> Iterator[Row]:
    """Every figure of settlement and statements."""
    with postgres.running() as cluster:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            cluster.execute(f"ALTER SYSTEM RESET {setting}")
        cluster.execute("SELECT pg_reload_conf()")
        yield from as_they_come(_measured(cluster))


async def _measured(cluster: postgres.Cluster) -> AsyncGenerator[Row]:
    model = cluster.create()
    upgrade(model, MIGRATIONS)
    outbox = Outbox(random.Random(SEED))
    async with _open(model) as database:
        await _seat_everyone(database, outbox)
    ours, floor = cluster.create(template=model), cluster.create(template=model)
    for size in BATCHES:
        mine, plain = await _settle(ours, floor, outbox, size)
        ratio = statistics.median(b / a for a, b in zip(mine, plain, strict=True))
        rate, floor_rate = size / statistics.median(mine), size / statistics.median(plain)
        yield at_least(f"settle_batch_{size}", rate, "hands/s", floor_rate, ratio, SHARES)
    mine, plain = await _settle(ours, floor, outbox, 1)
    yield beside("settle_entry", MS * statistics.median(mine), "ms", MS * statistics.median(plain))
    async for row in _tables(ours, outbox):
        yield row
    async for row in _offered(ours, outbox):
        yield row
    async for row in _long_and_short(ours, cluster.create(template=model)):
        yield row


@asynccontextmanager
async def _open(url: str) -> AsyncGenerator[Database]:
    database = Database(url, "bench")
    await database.open()
    try:
        yield database
    finally:
        await database.close()


class Outbox:
    """Entries of one shard, with hands of `SEATS` players at `TABLES` tables."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._seq = 0
        self._last_id = ""
        self.tables: Final = [str(uuid4()) for _ in range(TABLES)]

    def sittings(self, table: int) -> list[str]:
        """Who sits at a table."""
        return [f"sitting-{table}-{seat}" for seat in range(SEATS)]

    def add(self, table: int, **work: Any) -> pb.LedgerEntry:
        """The next entry."""
        self._seq += 1
        entry = pb.LedgerEntry(
            seq=self._seq,
            entry_id=str(uuid4()),
            previous_entry_id=self._last_id,
            table_id=self.tables[table],
            currency="EUR",
            **work,
        )
        self._last_id = entry.entry_id
        return entry

    def hands(self, count: int, tables: int = TABLES) -> Iterator[pb.LedgerEntry]:
        """Raked hands at random ones of the first tables: five lose, one wins."""
        for _ in range(count):
            table = self._dice.randrange(tables)
            winner, *losers = self._dice.sample(self.sittings(table), SEATS)
            nets = {loser: -self._dice.randrange(1, 40) for loser in losers}
            won = -sum(nets.values())
            rake = won // 20 + 1
            nets[winner] = won - rake
            lines = [pb.SittingNet(sitting_id=key, amount=value) for key, value in nets.items()]
            dealt_in = [
                pb.SittingShare(sitting_id=key, contributed=max(-value, 40))
                for key, value in nets.items()
            ]
            hand = pb.HandSettlement(
                hand_id=uuid7(),
                nets=lines,
                rake=rake,
                dealt_in=dealt_in,
                stake="5/10",
                game=game_pb2.GAME_HIGH,
            )
            hand.ended.GetCurrentTime()
            yield self.add(table, hand=hand)


async def _seat_everyone(database: Database, outbox: Outbox) -> None:
    await shards.open_epoch(database, "open", 0, 0)
    entries = []
    for table, table_id in enumerate(outbox.tables):
        for seat, sitting in enumerate(outbox.sittings(table)):
            player, reservation = f"player-{seat}", str(uuid4())
            cash = cashier.Cash(str(uuid4()), player, STACK, "EUR", "", "bench")
            await cashier.deposit(database, cash)
            buy_in = reservations.BuyIn(reservation, player, table_id, sitting, STACK, "EUR")
            await reservations.reserve(database, buy_in, 0)
            commit = pb.ReservationCommit(reservation_id=reservation)
            entries.append(entry_of(outbox.add(table, commit=commit), 0, 1))
    await settlement.apply_entries(database, 0, 1, entries)


async def _settle(
    ours_url: str, floor_url: str, outbox: Outbox, size: int
) -> tuple[list[float], list[float]]:
    """Seconds for batches of `size`, entries decoded, and for their rows alone."""
    ours, floor = [], []
    async with (
        _open(ours_url) as database,
        await psycopg.AsyncConnection.connect(ours_url) as reader,
        await psycopg.AsyncConnection.connect(floor_url) as writer,
    ):
        for _ in range(ROUNDS):
            messages = list(outbox.hands(size))
            began_s = time.perf_counter()
            entries, progress = await _apply(database, messages)
            ours.append(time.perf_counter() - began_s)
            floor.append(await _write_plainly(writer, *await _rows_of(reader, entries), progress))
    return ours, floor


async def _apply(database: Database, messages: list[pb.LedgerEntry]) -> tuple[list[Any], Any]:
    """The entries as decoded, and how far the shard is applied."""
    entries = [entry_of(message, 0, 1) for message in messages]
    progress, parked = await settlement.apply_entries(database, 0, 1, entries)
    if parked:
        raise RuntimeError(f"{len(parked)} entries were parked: {parked[0].reason}")
    return entries, progress


async def _rows_of(
    reader: psycopg.AsyncConnection[Any], entries: list[Any]
) -> tuple[list[Any], list[Any], list[Any], dict[int, int]]:
    """What a batch wrote: journal, transfers, hands, and the change of each account's balance."""
    async with reader.transaction():
        cursor = await reader.execute(
            "SELECT id, kind, source, table_id, hand_id FROM journal WHERE hand_id = ANY(%s)"
            " ORDER BY id",
            ([entry.work.hand_id for entry in entries],),
        )
        journal = await cursor.fetchall()
        cursor = await reader.execute(
            "SELECT entry, line, debit, credit, amount, kind FROM transfers"
            " WHERE entry BETWEEN %s AND %s ORDER BY entry, line",
            (journal[0][0], journal[-1][0]),
        )
        transfers = await cursor.fetchall()
        cursor = await reader.execute(
            "SELECT entry, currency, game, stake, ended, rake, players, contributed FROM hands"
            " WHERE entry BETWEEN %s AND %s ORDER BY entry",
            (journal[0][0], journal[-1][0]),
        )
        hands = await cursor.fetchall()
    changes: dict[int, int] = {}
    for _, _, debit, credit, amount, _ in transfers:
        changes[debit] = changes.get(debit, 0) - amount
        changes[credit] = changes.get(credit, 0) + amount
    moved = {account: change for account, change in changes.items() if change}
    return journal, transfers, hands, moved


async def _write_plainly(
    writer: psycopg.AsyncConnection[Any],
    journal: list[Any],
    transfers: list[Any],
    hands: list[Any],
    changes: dict[int, int],
    progress: Any,
) -> float:
    """Seconds that the rows alone take."""
    began_s = time.perf_counter()
    async with writer.transaction(), writer.pipeline(), writer.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO journal (id, kind, source, table_id, hand_id) VALUES (%s, %s, %s, %s, %s)",
            journal,
        )
        await cursor.executemany(
            "INSERT INTO transfers (entry, line, debit, credit, amount, kind)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            transfers,
        )
        await cursor.executemany(
            "INSERT INTO hands (entry, currency, game, stake, ended, rake, players, contributed)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            hands,
        )
        await cursor.executemany(
            "UPDATE accounts SET balance = balance + %s WHERE id = %s",
            [(change, account) for account, change in changes.items()],
        )
        await cursor.execute(
            "UPDATE progress SET applied_seq = %s, applied_id = %s WHERE shard = 0",
            (progress.applied_seq, progress.applied_id),
        )
    return time.perf_counter() - began_s


async def _tables(url: str, outbox: Outbox) -> AsyncGenerator[Row]:
    """Hands a second at few and many tables of a shard, in turns."""
    took: dict[int, list[float]] = {tables: [] for tables in TABLES_OF}
    async with _open(url) as database:
        for _ in range(ROUNDS):
            for tables, times in took.items():
                messages = list(outbox.hands(TABLES_BATCH, tables))
                began_s = time.perf_counter()
                await _apply(database, messages)
                times.append(time.perf_counter() - began_s)
    rates = {tables: TABLES_BATCH / statistics.median(times) for tables, times in took.items()}
    for tables, rate in rates.items():
        yield beside(f"settle_tables_{tables}", rate, "hands/s", rates[TABLES_OF[0]])


async def _offered(url: str, outbox: Outbox) -> AsyncGenerator[Row]:
    """What becomes of steady rates, the lowest first, up to the first that does not hold."""
    highest = 0
    async with _open(url) as database, _kept(url):
        for rate in OFFERED:
            delay_s = await _delay_at(database, outbox, rate)
            if rate == OFFERED[0]:
                ratio = delay_s / DELAY_MAX_S
                yield at_most("settle_delay_500", delay_s, "s", DELAY_MAX_S, ratio, 1.0)
            if delay_s > DELAY_MAX_S:
                break
            highest = rate
    ratio = highest / OFFERED[0]
    yield at_least("settle_highest_rate", highest, "hands/s", OFFERED[0], ratio, 1.0)


async def _delay_at(database: Database, outbox: Outbox, rate: int) -> float:
    """99th percentile of seconds from a hand's end to the ledger, hands ending at a steady rate."""
    messages = list(outbox.hands(int(rate * OFFERED_S)))
    delays: list[float] = []
    began_s = time.perf_counter()
    while len(delays) < len(messages):
        ended = min(len(messages), int((time.perf_counter() - began_s) * rate))
        batch = messages[len(delays) : min(ended, len(delays) + DRAIN_BATCH)]
        if not batch:
            await asyncio.sleep(1 / rate)
            continue
        await _apply(database, batch)
        now_s = time.perf_counter() - began_s
        delays += [now_s - (len(delays) + each) / rate for each in range(len(batch))]
    return statistics.quantiles(delays, n=100)[-1]


@asynccontextmanager
async def _kept(url: str) -> AsyncGenerator[None]:
    """Sealed and audited all the while, as by a wallet of its own."""
    async with _open(url) as database:
        keeper = _keeper()

        async def keep() -> None:
            while True:
                await keeper.round(database)
                await asyncio.sleep(SEAL_EVERY_S)

        keeping = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.wait({keeping})
            if not keeping.cancelled():
                keeping.result()


def _keeper() -> Upkeep:
    return Upkeep(LedgerDatabase(WalletSettings()), every_s=SEAL_EVERY_S, time_zone="UTC")


async def _long_and_short(url: str, short_url: str) -> AsyncGenerator[Row]:
    """Statement and sums of a short ledger and of a long one, and how fast it is sealed."""
    async with _open(url) as database, _open(short_url) as short:
        await _seal_all(database)
        _write_long_statements(url, LINES_FEW, LINES_MANY)
        _write_long_statements(short_url, LINES_FEW)
        await _seal_all(short)
        began_s = time.perf_counter()
        rows_sealed = await _seal_all(database)
        rate = rows_sealed / (time.perf_counter() - began_s)
        yield at_least("settle_sealing", rate, "rows/s", ROWS_SETTLED, rate / ROWS_SETTLED, 1.0)
        yield await _page(database)
        for each in (url, short_url):
            _clean_up(each)
        yield await _totals(short, database)


async def _seal_all(database: Database) -> int:
    """Rows that were sealed."""
    up_to, count = await seals.horizon(database), 0
    while (made := await seals.seal(database, up_to, "UTC")) is not None:
        count += made.rows
    return count


async def _totals(short: Database, long: Database) -> Row:
    """Milliseconds for the sums of a long ledger against those of a short one, in turn."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(TOTALS):
        for database, times in zip((short, long), took, strict=True):
            began_s = time.perf_counter()
            found = await totals.totals(database, "EUR")
            times.append((time.perf_counter() - began_s) * MS)
            if found.deposits - found.withdrawals != found.players + found.escrow + found.house:
                raise RuntimeError("the ledger does not add up")
    few, many = map(statistics.median, took)
    ratio = statistics.median(each / floor for floor, each in zip(*took, strict=True))
    return at_most("settle_totals", many, "ms", few, ratio, PAGE_GROWTH_MAX)


async def _page(database: Database) -> Row:
    """Milliseconds for a page in the middle of a statement of 1,000,000 lines against 1,000."""
    took: dict[str, list[float]] = {"few": [], "many": []}
    euros = statement.Filters(currency="EUR")
    for _ in range(PAGES):
        for player, times in took.items():
            newest, _ = await statement.lines(database, player, euros, None, 1)
            middle = newest[0].entry - LINES_FEW // 2
            began_s = time.perf_counter()
            found, _ = await statement.lines(database, player, euros, middle, PAGE)
            times.append((time.perf_counter() - began_s) * MS)
            if len(found) != PAGE:
                raise RuntimeError(f"a page of {len(found)} lines")
    few, many = (statistics.median(took[player]) for player in ("few", "many"))
    return at_most("settle_statement_page", many, "ms", few, many / few, PAGE_GROWTH_MAX)


def _write_long_statements(url: str, *lengths: int) -> None:
    with psycopg.connect(url) as connection:
        for player, lines in zip(("few", "many"), lengths, strict=False):
            connection.execute(_LONG_STATEMENT, {"player": player, "lines": lines})
    _clean_up(url)


def _clean_up(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


_LONG_STATEMENT: Final = """
WITH player AS (
    INSERT INTO accounts (purpose, owner, currency, balance)
    VALUES ('player', %(player)s, 'EUR', %(lines)s) RETURNING id
), outside AS (
    INSERT INTO accounts (purpose, owner, currency, balance)
    VALUES ('paid_in', %(player)s, 'EUR', -%(lines)s) RETURNING id
), written AS (
    INSERT INTO journal (kind, source) SELECT 1, n::text FROM generate_series(1, %(lines)s) n
    RETURNING id
)
INSERT INTO transfers (entry, line, debit, credit, amount, player, balance, kind)
SELECT written.id, 0, outside.id, player.id, 1, player.id,
    row_number() OVER (ORDER BY written.id), 1
FROM written, player, outside
"""
