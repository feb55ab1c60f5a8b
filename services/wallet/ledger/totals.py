"""Sums over the whole ledger: what an auditor compares."""

from typing import Final, NamedTuple

from psycopg.rows import class_row

from services.runtime.postgres import Connection, Database

SCAN_MS: Final = 60_000
"""Every transfer is read."""


class Totals(NamedTuple):
    """Sums of one currency, minor units."""

    deposits: int
    withdrawals: int
    players: int
    """Available to them."""
    escrow: int
    """Posted and pending."""
    house: int
    rake: int
    balance_difference: int
    """0 in a sound ledger."""


async def totals(database: Database, currency: str) -> Totals:
    """All of one moment: deposits - withdrawals = players + escrow + house in a sound ledger.

    `balance_difference` adds up, without their signs, the differences between each balance and its
    transfers and between each pending amount and its reservations. A transfer of an account that
    does not exist counts whole, in every currency.
    """

    async def work(connection: Connection) -> Totals:
        await connection.execute(f"SET LOCAL statement_timeout = {SCAN_MS}")
        cursor = connection.cursor(row_factory=class_row(Totals))
        await cursor.execute(_QUERY, {"currency": currency})
        row = await cursor.fetchone()
        return row or Totals(0, 0, 0, 0, 0, 0, 0)

    return await database.snapshot(work)


_QUERY: Final = """
WITH own AS (SELECT * FROM accounts WHERE currency = %(currency)s),
moved AS (
    SELECT account, sum(amount) AS amount
    FROM (
        SELECT credit AS account, sum(amount) AS amount FROM transfers GROUP BY credit
        UNION ALL SELECT debit, -sum(amount) FROM transfers GROUP BY debit
    ) sides GROUP BY account
),
reserved AS (
    SELECT player, sum(amount) AS amount FROM reservations WHERE state = 1 GROUP BY player
),
differences AS (
    SELECT abs(coalesce(own.balance, 0) - coalesce(moved.amount, 0))
        + abs(coalesce(own.pending, 0) - coalesce(reserved.amount, 0)) AS amount
    FROM own LEFT JOIN moved ON moved.account = own.id
        LEFT JOIN reserved ON reserved.player = own.id
    UNION ALL
    SELECT abs(amount) FROM moved
    WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE accounts.id = moved.account)
)
SELECT
    coalesce(-sum(balance) FILTER (WHERE purpose = 'paid_in'), 0)::bigint AS deposits,
    coalesce(sum(balance) FILTER (WHERE purpose = 'paid_out'), 0)::bigint AS withdrawals,
    coalesce(sum(balance - pending) FILTER (WHERE purpose = 'player'), 0)::bigint AS players,
    coalesce(sum(pending), 0)::bigint
        + coalesce(sum(balance) FILTER (WHERE purpose = 'escrow'), 0)::bigint AS escrow,
    coalesce(sum(balance) FILTER (WHERE purpose = 'house'), 0)::bigint AS house,
    (SELECT coalesce(sum(t.amount), 0)::bigint FROM transfers t JOIN own ON own.id = t.credit
        WHERE t.kind = 6) AS rake,
    (SELECT sum(amount)::bigint FROM differences) AS balance_difference
FROM own
"""
