"""Sums over the whole ledger: what an auditor compares."""

from typing import Final, NamedTuple

from psycopg.rows import class_row

from services.runtime.postgres import Connection, Database
from services.wallet.ledger.seals import PURPOSE, UNSEALED_SIDES

SCAN_MS: Final = 60_000
"""A recount reads every transfer."""


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
    """What hands paid, less what was reversed."""
    balance_difference: int
    """0 in a sound ledger."""


async def currencies(database: Database) -> list[str]:
    """ISO 4217 codes of every currency in which there is an account, ascending."""

    async def work(connection: Connection) -> list[str]:
        return [row[0] for row in await (await connection.execute(_CURRENCIES)).fetchall()]

    return await database.snapshot(work)


async def totals(database: Database, currency: str) -> Totals:
    """All of one moment: deposits - withdrawals = players + escrow + house in a sound ledger.

    Taken from the transfers: sums of what is sealed, and the few that are not yet. That balances
    are what the transfers say is the running audit's finding; `balance_difference` adds up what it
    has found. A transfer of an account that does not exist counts whole, in every currency.
    """
    return await _read(database, _FROM_SUMS, currency)


async def recount(database: Database, currency: str) -> Totals:
    """The same from balances, compared with every transfer and reservation there is.

    `balance_difference` adds up, without their signs, the differences between each balance and its
    transfers and between each pending amount and its reservations.
    """
    return await _read(database, _FROM_ROWS, currency)


async def _read(database: Database, query: str, currency: str) -> Totals:
    async def work(connection: Connection) -> Totals:
        if query is _FROM_ROWS:
            await connection.execute(f"SET LOCAL statement_timeout = {SCAN_MS}")
        cursor = connection.cursor(row_factory=class_row(Totals))
        await cursor.execute(query, {"currency": currency})
        row = await cursor.fetchone()
        return row or Totals(0, 0, 0, 0, 0, 0, 0)

    return await database.snapshot(work)


_CURRENCIES: Final = """
WITH RECURSIVE found (currency) AS (
    (SELECT currency FROM accounts ORDER BY currency LIMIT 1)
    UNION ALL
    SELECT (
        SELECT currency FROM accounts WHERE currency > found.currency ORDER BY currency LIMIT 1
    )
    FROM found WHERE found.currency IS NOT NULL
)
SELECT currency FROM found WHERE currency IS NOT NULL
"""
"""From one to the next by the index, however many accounts there are."""

_FROM_SUMS: Final = f"""
WITH {UNSEALED_SIDES},
sums AS (
    SELECT currency, purpose, balance FROM sealed_sums
    UNION ALL
    SELECT coalesce(a.currency, ''), {PURPOSE}, sum(amount)
    FROM sides LEFT JOIN accounts a ON a.id = sides.account GROUP BY 1, 2
),
own AS (SELECT purpose, balance FROM sums WHERE currency = %(currency)s),
pending AS (
    SELECT coalesce(sum(r.amount), 0) AS amount
    FROM reservations r JOIN accounts a ON a.id = r.player
    WHERE r.state = 1 AND a.currency = %(currency)s
)
SELECT
    coalesce(-sum(balance) FILTER (WHERE purpose = 'paid_in'), 0)::bigint AS deposits,
    coalesce(sum(balance) FILTER (WHERE purpose = 'paid_out'), 0)::bigint AS withdrawals,
    (coalesce(sum(balance) FILTER (WHERE purpose = 'player'), 0)
        - (SELECT amount FROM pending))::bigint AS players,
    (coalesce(sum(balance) FILTER (WHERE purpose = 'escrow'), 0)
        + (SELECT amount FROM pending))::bigint AS escrow,
    coalesce(sum(balance) FILTER (WHERE purpose IN ('house', 'adjustments')), 0)::bigint AS house,
    coalesce(sum(balance) FILTER (WHERE purpose = 'house'), 0)::bigint AS rake,
    (SELECT coalesce(sum(amount), 0) FROM differences WHERE currency = %(currency)s)::bigint
        + (SELECT coalesce(abs(sum(balance)), 0) FROM sums WHERE currency = '')::bigint
        AS balance_difference
FROM own
"""  # noqa: S608 (constants only)

_FROM_ROWS: Final = f"""
WITH own AS (SELECT *, {PURPOSE} AS part FROM accounts a WHERE currency = %(currency)s),
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
    (coalesce(sum(pending), 0)
        + coalesce(sum(balance) FILTER (WHERE purpose = 'escrow'), 0))::bigint AS escrow,
    coalesce(sum(balance) FILTER (WHERE purpose = 'house'), 0)::bigint AS house,
    coalesce(sum(balance) FILTER (WHERE part = 'house'), 0)::bigint AS rake,
    (SELECT coalesce(sum(amount), 0)::bigint FROM differences) AS balance_difference
FROM own
"""  # noqa: S608 (constants only)
