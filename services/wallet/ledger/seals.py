"""A hash chain over everything that is written once, made after the fact and off the hot path.

A seal covers the next run of rows of accounts (but for what changes in them), journal and
transfers: its hash goes over the seal before it and every row with its place, so no row can be
changed, removed, put in or moved without every later hash being another one. Whoever notes the
latest hash elsewhere can tell even if the whole chain is made anew.
"""

from typing import Final, NamedTuple

from psycopg.rows import args_row

from services.runtime.postgres import Connection, Database
from services.wallet.ledger import rake_report

ENTRIES_MAX: Final = 1_000
ACCOUNTS_MAX: Final = 5_000
"""In one seal."""
FIRST: Final = -(2**63)
"""Below every number a row can have."""
NO_HASH: Final = bytes(32)
"""Before the first seal."""
UNSEALED_MAX: Final = 100_000
"""No more are counted that wait for a seal."""
LOCK: Final = 0x5EA1
"""Of PostgreSQL's advisory locks: one wallet seals at a time, the others pass."""

ROWS: Final = """
rows AS (
    SELECT 0::smallint AS part, id AS key, 0::smallint AS line, sha256(record_send(ROW(
        purpose, owner, currency, shard, table_id, player))) AS digest
    FROM accounts WHERE id > %(after_account)s AND id <= %(last_account)s
    UNION ALL
    SELECT 1::smallint, id, 0::smallint, sha256(record_send(ROW(
        kind, source, table_id, hand_id, reference, made_by, at, reason, reverses)))
    FROM journal WHERE id > %(after_entry)s AND id <= %(last_entry)s
    UNION ALL
    SELECT 2::smallint, entry, line, sha256(record_send(ROW(
        debit, credit, amount, player, balance, kind)))
    FROM transfers WHERE entry > %(after_entry)s AND entry <= %(last_entry)s
)
"""
"""The rows of a range, each with the SHA-256 of its content in PostgreSQL's binary form, which
knows types and lengths: no two contents look alike.
"""

SUMMARY: Final = """
SELECT count(*)::integer AS rows,
    coalesce(string_agg(
        int2send(part) || int8send(key) || int2send(line) || substr(digest, 1, 8), ''
        ORDER BY part, key, line), '') AS contents,
    sha256(%(previous)s::bytea || int8send(%(number)s::bigint)
        || int8send(%(after_entry)s::bigint) || int8send(%(last_entry)s::bigint)
        || int8send(%(after_account)s::bigint) || int8send(%(last_account)s::bigint)
        || coalesce(string_agg(
            int2send(part) || int8send(key) || int2send(line) || digest, ''
            ORDER BY part, key, line), '')) AS hash
FROM rows
"""


class Horizon(NamedTuple):
    """Numbers of rows, and when there can be no more rows up to them."""

    last_entry: int
    last_account: int
    transaction: str
    """Once no transaction below this one is running, every row up to the numbers is there."""


class Range(NamedTuple):
    """The rows of one seal: above the first numbers, up to the second."""

    after_entry: int
    last_entry: int
    after_account: int
    last_account: int


class Seal(NamedTuple):
    """A link of the chain."""

    number: int
    range: Range
    rows: int
    contents: bytes
    previous: bytes
    hash: bytes


_READ: Final = (
    "SELECT number, after_entry, last_entry, after_account, last_account, rows, contents,"
    " previous, hash FROM seals"
)


def _seal(number: int, *rest: object) -> Seal:
    return Seal(number, Range(*rest[:4]), *rest[4:])  # type: ignore[arg-type]


async def horizon(database: Database) -> Horizon:
    """How far rows are numbered now.

    Every transaction has its id before it draws a number. So whoever has drawn one of these is
    below the transaction that is read after them.
    """

    async def work(connection: Connection) -> Horizon:
        cursor = await connection.execute(
            "SELECT CASE WHEN j.is_called THEN j.last_value ELSE 0 END,"
            " CASE WHEN a.is_called THEN a.last_value ELSE 0 END"
            " FROM journal_id_seq j, accounts_id_seq a"
        )
        entry, account = await cursor.fetchone() or (0, 0)
        cursor = await connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        (transaction,) = await cursor.fetchone() or ("",)
        return Horizon(entry, account, transaction)

    return await database.transaction(work)


async def reached(database: Database, horizon: Horizon) -> bool:
    """Whether every row up to the horizon is there."""

    async def work(connection: Connection) -> bool:
        cursor = await connection.execute(
            "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8", (horizon.transaction,)
        )
        return await cursor.fetchone() == (True,)

    return await database.transaction(work)


async def seal(database: Database, up_to: Horizon, time_zone: str) -> Seal | None:
    """Seal the next run of rows within a horizon that is reached, and take them into the sums.

    None if there is nothing to seal, or another wallet is at it.
    """

    async def work(connection: Connection) -> Seal | None:
        cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (LOCK,))
        if await cursor.fetchone() != (True,):
            return None
        before = await last(connection)
        covered = await _next_range(connection, before, up_to)
        if covered is None:
            return None
        number, previous = (before.number + 1, before.hash) if before else (1, NO_HASH)
        made = Seal(number, covered, *await summary(connection, covered, number, previous))
        await connection.execute(
            "INSERT INTO seals (number, after_entry, last_entry, after_account, last_account,"
            " rows, contents, previous, hash) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (number, *covered, made.rows, made.contents, previous, made.hash),
        )
        await connection.execute(_ADD_BALANCES, covered._asdict())
        await connection.execute(_ADD_SUMS, covered._asdict())
        await rake_report.add(connection, covered.after_entry, covered.last_entry, time_zone)
        return made

    return await database.transaction(work)


async def unsealed(database: Database) -> int:
    """Entries of the journal after the last seal, counted up to `UNSEALED_MAX`.

    Numbers that were drawn and never used are none: a ledger at rest is sealed whole.
    """

    async def work(connection: Connection) -> int:
        cursor = await connection.execute(
            "SELECT count(*) FROM (SELECT FROM journal WHERE id > coalesce("
            "(SELECT last_entry FROM seals ORDER BY number DESC LIMIT 1), 0) LIMIT %s) AS waiting",
            (UNSEALED_MAX,),
        )
        (count,) = await cursor.fetchone() or (0,)
        return int(count)

    return await database.snapshot(work)


async def last(connection: Connection) -> Seal | None:
    """The end of the chain."""
    cursor = connection.cursor(row_factory=args_row(_seal))
    await cursor.execute(_READ + " ORDER BY number DESC LIMIT 1")
    return await cursor.fetchone()


async def chain(connection: Connection, after: int, limit: int) -> list[Seal]:
    """Seals above a number, in order."""
    cursor = connection.cursor(row_factory=args_row(_seal))
    await cursor.execute(_READ + " WHERE number > %s ORDER BY number LIMIT %s", (after, limit))
    return await cursor.fetchall()


async def summary(
    connection: Connection, covered: Range, number: int, previous: bytes
) -> tuple[int, bytes, bytes, bytes]:
    """How many rows are in the range now, their contents, `previous`, and the hash over it all."""
    cursor = await connection.execute(
        f"WITH {ROWS} {SUMMARY}",
        {**covered._asdict(), "number": number, "previous": previous},
    )
    rows, contents, digest = await cursor.fetchone() or (0, b"", b"")
    return rows, contents, previous, digest


async def _next_range(connection: Connection, before: Seal | None, up_to: Horizon) -> Range | None:
    after_entry, after_account = FIRST, FIRST
    if before is not None:
        after_entry, after_account = before.range.last_entry, before.range.last_account
    cursor = await connection.execute(
        "SELECT (SELECT max(id) FROM (SELECT id FROM journal WHERE id > %s AND id <= %s"
        "  ORDER BY id LIMIT %s) entries),"
        " (SELECT max(id) FROM (SELECT id FROM accounts WHERE id > %s AND id <= %s"
        "  ORDER BY id LIMIT %s) accounts)",
        (
            after_entry,
            up_to.last_entry,
            ENTRIES_MAX,
            after_account,
            up_to.last_account,
            ACCOUNTS_MAX,
        ),
    )
    entry, account = await cursor.fetchone() or (None, None)
    if entry is None and account is None:
        return None
    return Range(
        after_entry,
        after_entry if entry is None else entry,
        after_account,
        after_account if account is None else account,
    )


SIDES: Final = """
sides AS (
    SELECT credit AS account, amount FROM transfers WHERE {range}
    UNION ALL SELECT debit, -amount FROM transfers WHERE {range}
)
"""
"""Every transfer in a range twice: what the one account gained and the other lost."""

UNSEALED_SIDES: Final = f"""
head AS (
    SELECT coalesce(max(last_entry), -9223372036854775808) AS entry
    FROM (SELECT last_entry FROM seals ORDER BY number DESC LIMIT 1) newest
),
{SIDES.format(range="entry > (SELECT entry FROM head) AND entry <= 9223372036854775807")}
"""  # noqa: S608 (constants only)
"""Those after the last seal. The upper bound is always true; but of a range with two ends
PostgreSQL expects 1 row in 200, of one whose only end it does not know 1 in 3, and then it may read
a long ledger whole instead of by its index.
"""

PURPOSE: Final = (
    "CASE WHEN a.purpose = 'house' AND a.owner LIKE 'adjustments-%%' THEN 'adjustments'"
    " ELSE coalesce(a.purpose, '') END"
)
"""What money is summed by; empty for an account that does not exist."""

_RANGE: Final = "entry > %(after_entry)s AND entry <= %(last_entry)s"

_ADD_BALANCES: Final = f"""
WITH {SIDES.format(range=_RANGE)}
INSERT INTO sealed_balances (account, balance)
SELECT account, sum(amount) FROM sides GROUP BY account HAVING sum(amount) <> 0 ORDER BY account
ON CONFLICT (account) DO UPDATE SET balance = sealed_balances.balance + excluded.balance
"""  # noqa: S608 (constants only)

_ADD_SUMS: Final = f"""
WITH {SIDES.format(range=_RANGE)}
INSERT INTO sealed_sums (currency, purpose, balance)
SELECT coalesce(a.currency, ''), {PURPOSE}, sum(amount)
FROM sides LEFT JOIN accounts a ON a.id = sides.account GROUP BY 1, 2
ON CONFLICT (currency, purpose) DO UPDATE SET balance = sealed_sums.balance + excluded.balance
"""  # noqa: S608 (constants only)
