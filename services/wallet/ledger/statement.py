"""What players own and how it came to be."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from psycopg.rows import class_row, scalar_row

from services.runtime.postgres import Connection, Database
from services.wallet.entries import Kind


class Balance(NamedTuple):
    """A player's money in one currency, minor units."""

    currency: str
    available: int
    pending: int
    in_play: int
    closed: bool


class Line(NamedTuple):
    """A line of a statement."""

    entry: int
    """Ascends with time in every account."""
    kind: Kind
    amount: int
    """Signed: what the account gained or lost."""
    balance: int
    """Of the account after it, with what is set aside."""
    currency: str
    at: datetime
    table_id: str
    reference: str
    reason: str
    """Why an operator made it."""
    reverses: int | None
    """The entry that it takes back."""


async def balances(database: Database, player_id: str) -> list[Balance]:
    """One for each currency the player ever had, by code."""

    async def work(connection: Connection) -> list[Balance]:
        cursor = connection.cursor(row_factory=class_row(Balance))
        await cursor.execute(
            "SELECT currency, balance - pending AS available, pending,"
            " (SELECT coalesce(sum(balance), 0)::bigint FROM accounts e"
            "  WHERE e.player = p.id AND e.purpose = 'escrow' AND NOT e.closed) AS in_play, closed"
            " FROM accounts p WHERE purpose = 'player' AND owner = %s ORDER BY currency",
            (player_id,),
        )
        return await cursor.fetchall()

    return await database.snapshot(work)


class Filters(NamedTuple):
    """Which lines of a statement are asked for."""

    currency: str = ""
    """Empty for all."""
    kinds: tuple[int, ...] = ()
    """None for all."""
    since: datetime | None = None
    until: datetime | None = None
    """Lines before it."""
    table_id: str = ""
    """Empty for all."""

    @property
    def pass_over(self) -> bool:
        """Whether lines within the bounds of time may be left out."""
        return bool(self.kinds or self.table_id)


async def lines(
    database: Database, player_id: str, filters: Filters, before: int | None, limit: int
) -> tuple[list[Line], int | None]:
    """At most `limit` lines below entry `before`, the newest first, and where to go on: below that
    entry; None if that was all.

    Each of the player's accounts is read by index, `limit` or `SCAN_MAX` lines of it at most, so a
    page takes the same time in a long statement as in a short one. With filters it may be short.
    """

    async def work(connection: Connection) -> tuple[list[Line], int | None]:
        low, high = await _bounds(connection, filters, before)
        scan = SCAN_MAX if filters.pass_over else limit + 1
        cursor = await connection.execute(
            _LINES,
            {
                "player_id": player_id,
                **filters._asdict(),
                "kinds": list(filters.kinds),
                "low": low,
                "high": high,
                "scan": scan,
                "limit": limit + 1,
            },
        )
        rows = await cursor.fetchall()
        found = [Line(entry, Kind(kind), *rest) for entry, kind, *rest, _ in rows if entry]
        if len(found) > limit:
            return found[:limit], found[limit - 1].entry
        return found, rows[0][-1] if rows else None

    return await database.snapshot(work)


SCAN_MAX: Final = 2_000
"""Lines of an account that one page passes over at most."""

_LINES: Final = """
WITH seen AS (
    SELECT t.*, a.currency FROM accounts a CROSS JOIN LATERAL (
        SELECT * FROM transfers
        WHERE player = a.id AND entry >= %(low)s AND entry < %(high)s
        ORDER BY entry DESC LIMIT %(scan)s
    ) t
    WHERE a.purpose = 'player' AND a.owner = %(player_id)s
        AND (%(currency)s = '' OR a.currency = %(currency)s)
),
frontier AS (
    SELECT max(lowest) AS entry FROM (
        SELECT min(entry) AS lowest FROM seen GROUP BY player HAVING count(*) = %(scan)s
    ) full_scans
),
matching AS (
    SELECT j.id, seen.kind,
        CASE WHEN seen.credit = seen.player THEN seen.amount ELSE -seen.amount END AS amount,
        seen.balance, seen.currency, j.at, coalesce(j.table_id, '') AS table_id, j.reference,
        j.reason, j.reverses
    FROM seen JOIN journal j ON j.id = seen.entry
    WHERE seen.entry >= coalesce((SELECT entry FROM frontier), 0)
        AND (%(kinds)s::smallint[] = '{}' OR seen.kind = ANY(%(kinds)s::smallint[]))
        AND (%(since)s::timestamptz IS NULL OR j.at >= %(since)s)
        AND (%(until)s::timestamptz IS NULL OR j.at < %(until)s)
        AND (%(table_id)s = '' OR j.table_id = %(table_id)s)
    ORDER BY j.id DESC LIMIT %(limit)s
)
SELECT matching.*, frontier.entry FROM frontier LEFT JOIN matching ON true ORDER BY id DESC
"""
"""Lines below the frontier are left to the next page: another account may have some between."""


async def _bounds(connection: Connection, filters: Filters, before: int | None) -> tuple[int, int]:
    """The entries between which the lines are: from the first on, below the second."""
    low, high = 0, before or 2**63 - 1
    if filters.since is not None:
        low = await _entry_at(connection, filters.since - OUT_OF_STEP)
    if filters.until is not None:
        high = min(high, await _entry_at(connection, filters.until + OUT_OF_STEP))
    return low, high


OUT_OF_STEP: Final = timedelta(hours=1)
"""Entries are numbered in the order of their times but for this much, clock jumps included."""


async def _entry_at(connection: Connection, at: datetime) -> int:
    """Where in the journal a time is, in as many steps as its length has bits."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(_ENTRY_AT, {"at": at})
    return int(await cursor.fetchone() or 0)


_ENTRY_AT: Final = """
WITH RECURSIVE halves (low, high) AS (
    SELECT coalesce(min(id), 0), coalesce(max(id), 0) + 1 FROM journal
    UNION ALL
    SELECT CASE WHEN j.at < %(at)s THEN j.id + 1 ELSE low END,
        CASE WHEN j.at < %(at)s THEN high ELSE middle END
    FROM (SELECT low, high, low + (high - low) / 2 AS middle FROM halves WHERE low < high) h
    CROSS JOIN LATERAL (
        SELECT id, at FROM journal WHERE id >= h.middle ORDER BY id LIMIT 1
    ) j
)
SELECT min(high) FROM halves
"""
