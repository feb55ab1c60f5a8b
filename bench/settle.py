"""Settlement against the same rows written by plain SQL; pages of short and long statements.

Both run on one PostgreSQL with fsync on, in turns; the figures are medians. The floor is one
transaction of prepared INSERTs and UPDATEs, all sent at once. It knows the rows beforehand: it
loads, locks, checks and links nothing.
"""

import random
import statistics
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import psycopg
from doorcard.wallet.v1 import wallet_pb2 as pb

from bench.row import Row, as_they_come, at_least, at_most
from services.runtime.ids import uuid7
from services.runtime.postgres import Database
from services.runtime.schema import upgrade
from services.wallet.ledger import cashier, reservations, settlement, shards, statement
from services.wallet.messages import entry_of
from services.wallet.opening import MIGRATIONS
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
        yield await _settle(ours, floor, outbox, size)
    yield await _page(ours)


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

    def hands(self, count: int) -> Iterator[pb.LedgerEntry]:
        """Raked hands at random tables: five lose, one wins."""
        for _ in range(count):
            table = self._dice.randrange(TABLES)
            winner, *losers = self._dice.sample(self.sittings(table), SEATS)
            nets = {loser: -self._dice.randrange(1, 40) for loser in losers}
            won = -sum(nets.values())
            rake = won // 20 + 1
            nets[winner] = won - rake
            lines = [pb.SittingNet(sitting_id=key, amount=value) for key, value in nets.items()]
            hand = pb.HandSettlement(hand_id=uuid7(), nets=lines, rake=rake)
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


async def _settle(ours_url: str, floor_url: str, outbox: Outbox, size: int) -> Row:
    """Hands a second in batches of `size`, entries decoded, against their rows alone."""
    ours, floor = [], []
    async with (
        _open(ours_url) as database,
        await psycopg.AsyncConnection.connect(ours_url) as reader,
        await psycopg.AsyncConnection.connect(floor_url) as writer,
    ):
        for _ in range(ROUNDS):
            messages = list(outbox.hands(size))
            began_s = time.perf_counter()
            entries = [entry_of(message, 0, 1) for message in messages]
            progress, parked = await settlement.apply_entries(database, 0, 1, entries)
            ours.append(time.perf_counter() - began_s)
            if parked:
                raise RuntimeError(f"{len(parked)} entries were parked")
            floor.append(await _write_plainly(writer, *await _rows_of(reader, entries), progress))
    ratio = statistics.median(plain / mine for mine, plain in zip(ours, floor, strict=True))
    rate, floor_rate = size / statistics.median(ours), size / statistics.median(floor)
    return at_least(f"settle_batch_{size}", rate, "hands/s", floor_rate, ratio, SHARES)


async def _rows_of(
    reader: psycopg.AsyncConnection[Any], entries: list[Any]
) -> tuple[list[Any], list[Any], dict[int, int]]:
    """What a batch wrote: journal, transfers, and the change of each account's balance."""
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
    changes: dict[int, int] = {}
    for _, _, debit, credit, amount, _ in transfers:
        changes[debit] = changes.get(debit, 0) - amount
        changes[credit] = changes.get(credit, 0) + amount
    return journal, transfers, {account: change for account, change in changes.items() if change}


async def _write_plainly(
    writer: psycopg.AsyncConnection[Any],
    journal: list[Any],
    transfers: list[Any],
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
            "UPDATE accounts SET balance = balance + %s WHERE id = %s",
            [(change, account) for account, change in changes.items()],
        )
        await cursor.execute(
            "UPDATE progress SET applied_seq = %s, applied_id = %s WHERE shard = 0",
            (progress.applied_seq, progress.applied_id),
        )
    return time.perf_counter() - began_s


async def _page(url: str) -> Row:
    """Milliseconds for a page in the middle of a statement of 1,000,000 lines against 1,000."""
    with psycopg.connect(url) as connection:
        for player, lines in (("few", LINES_FEW), ("many", LINES_MANY)):
            connection.execute(_LONG_STATEMENT, {"player": player, "lines": lines})
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")
    took: dict[str, list[float]] = {"few": [], "many": []}
    euros = statement.Filters(currency="EUR")
    async with _open(url) as database:
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


_LONG_STATEMENT: Final = """
WITH player AS (
    INSERT INTO accounts (purpose, owner, currency, balance)
    VALUES ('player', %(player)s, 'EUR', %(lines)s) RETURNING id
), written AS (
    INSERT INTO journal (kind, source) SELECT 1, n::text FROM generate_series(1, %(lines)s) n
    RETURNING id
)
INSERT INTO transfers (entry, line, debit, credit, amount, player, balance, kind)
SELECT written.id, 0, 0, player.id, 1, player.id, row_number() OVER (ORDER BY written.id), 1
FROM written, player
"""
