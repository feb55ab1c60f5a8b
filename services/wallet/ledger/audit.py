"""Balances compared with their transfers, a stretch of accounts at a time, for ever round.

What is sealed is known by account (`sealed_balances`); what is not is read. So an account is
audited in a time that does not grow with the ledger.
"""

from typing import Final, NamedTuple

from services.runtime.postgres import Connection, Database
from services.wallet.ledger.seals import UNSEALED_SIDES

ACCOUNTS_MAX: Final = 2_000
"""In one stretch."""


class Difference(NamedTuple):
    """An account whose balance or pending amount is not what it should be."""

    account: int
    purpose: str
    owner: str
    currency: str
    amount: int
    """How far, minor units, always above zero."""


class Stretch(NamedTuple):
    """What a look at some accounts found."""

    accounts: int
    last: int
    """Number of the last account; 0 at the end of the ledger."""
    differences: list[Difference]


async def look(connection: Connection, after: int) -> Stretch:
    """Compare the accounts above number `after`, at most `ACCOUNTS_MAX`, all of one moment."""
    cursor = await connection.execute(_STRETCH, {"after": after, "limit": ACCOUNTS_MAX})
    rows = await cursor.fetchall()
    differences = [Difference(*row) for row in rows if row[-1]]
    return Stretch(len(rows), rows[-1][0] if len(rows) == ACCOUNTS_MAX else 0, differences)


async def go_on(database: Database) -> Stretch:
    """The next stretch of the round; what is found is kept until a later round finds it right."""

    async def work(connection: Connection) -> Stretch:
        cursor = await connection.execute("SELECT audited_account FROM upkeep FOR NO KEY UPDATE")
        (after,) = await cursor.fetchone() or (0,)
        found = await look(connection, after)
        await connection.execute("UPDATE upkeep SET audited_account = %s", (found.last,))
        await _keep(connection, after, found)
        return found

    return await database.transaction(work)


async def known(database: Database) -> int:
    """How many accounts are known to differ."""

    async def work(connection: Connection) -> int:
        cursor = await connection.execute("SELECT count(*) FROM differences")
        (count,) = await cursor.fetchone() or (0,)
        return int(count)

    return await database.snapshot(work)


async def _keep(connection: Connection, after: int, found: Stretch) -> None:
    last = found.last or 2**63 - 1
    ids = [each.account for each in found.differences]
    await connection.execute(
        "DELETE FROM differences WHERE account > %s AND account <= %s AND account <> ALL(%s)",
        (after, last, ids),
    )
    for each in found.differences:
        await connection.execute(
            "INSERT INTO differences (account, currency, amount) VALUES (%s, %s, %s)"
            " ON CONFLICT (account) DO UPDATE SET amount = excluded.amount",
            (each.account, each.currency, each.amount),
        )


_STRETCH: Final = f"""
WITH {UNSEALED_SIDES},
unsealed AS (SELECT account, sum(amount) AS amount FROM sides GROUP BY account),
reserved AS (
    SELECT player, sum(amount) AS amount FROM reservations WHERE state = 1 GROUP BY player
),
stretch AS (SELECT * FROM accounts WHERE id > %(after)s ORDER BY id LIMIT %(limit)s)
SELECT s.id, s.purpose, s.owner, s.currency,
    (abs(s.balance - coalesce(b.balance, 0) - coalesce(u.amount, 0))
        + abs(s.pending - coalesce(r.amount, 0)))::bigint
FROM stretch s
LEFT JOIN sealed_balances b ON b.account = s.id
LEFT JOIN unsealed u ON u.account = s.id
LEFT JOIN reserved r ON r.player = s.id
ORDER BY s.id
"""  # noqa: S608 (constants only)
