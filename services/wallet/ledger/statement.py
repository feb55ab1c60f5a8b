"""What players own and how it came to be."""

from datetime import datetime
from typing import NamedTuple

from psycopg.rows import class_row

from services.runtime.postgres import Connection, Database
from services.wallet.entries import Kind


class Balance(NamedTuple):
    """A player's money in one currency, minor units."""

    currency: str
    available: int
    pending: int
    in_play: int


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


async def balances(database: Database, player_id: str) -> list[Balance]:
    """One for each currency the player ever had, by code."""

    async def work(connection: Connection) -> list[Balance]:
        cursor = connection.cursor(row_factory=class_row(Balance))
        await cursor.execute(
            "SELECT currency, balance - pending AS available, pending,"
            " (SELECT coalesce(sum(balance), 0)::bigint FROM accounts e"
            "  WHERE e.player = p.id AND e.purpose = 'escrow' AND NOT e.closed) AS in_play"
            " FROM accounts p WHERE purpose = 'player' AND owner = %s ORDER BY currency",
            (player_id,),
        )
        return await cursor.fetchall()

    return await database.snapshot(work)


async def lines(
    database: Database, player_id: str, currency: str, before: int | None, limit: int
) -> list[Line]:
    """The newest first, those below entry `before`; all currencies if `currency` is empty.

    Each of the player's accounts gives at most `limit` lines by index, however long it is.
    """

    async def work(connection: Connection) -> list[Line]:
        cursor = await connection.execute(
            "SELECT j.id, t.kind, CASE WHEN t.credit = t.player THEN t.amount ELSE -t.amount END,"
            " t.balance, a.currency, j.at, coalesce(j.table_id, ''), j.reference"
            " FROM accounts a CROSS JOIN LATERAL ("
            "  SELECT * FROM transfers WHERE player = a.id AND entry < %(before)s"
            "  ORDER BY entry DESC LIMIT %(limit)s) t"
            " JOIN journal j ON j.id = t.entry"
            " WHERE a.purpose = 'player' AND a.owner = %(player_id)s"
            " AND (%(currency)s = '' OR a.currency = %(currency)s)"
            " ORDER BY j.id DESC LIMIT %(limit)s",
            {
                "player_id": player_id,
                "currency": currency,
                "before": before or 2**63 - 1,
                "limit": limit,
            },
        )
        return [Line(entry, Kind(kind), *rest) for entry, kind, *rest in await cursor.fetchall()]

    return await database.snapshot(work)
