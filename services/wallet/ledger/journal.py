"""Single entries of the journal, written one at a time; batches have a faster way of their own."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from psycopg.rows import scalar_row

from services.game.invariant import require
from services.runtime.postgres import Connection
from services.wallet.entries import Kind
from services.wallet.ledger import accounts


class Head(NamedTuple):
    """What moved the money."""

    kind: Kind
    source: str
    """The caller's id of it."""
    made_by: str
    reference: str = ""
    reason: str = ""
    reverses: int | None = None
    """The entry that this one takes back."""
    table_id: str | None = None


class Leg(NamedTuple):
    """Money from one account to another."""

    debit: int
    credit: int
    amount: int
    kind: Kind
    player: int | None = None
    """The player's account among the two ..."""
    balance: int | None = None
    """... and its balance after the leg."""


async def write(connection: Connection, head: Head, legs: Iterable[Leg] = ()) -> int:
    """The number of the new entry; balances change with it.

    Every account that must not go below zero is locked by now: numbers that are drawn under the
    lock ascend in every account.
    """
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "INSERT INTO journal (kind, source, made_by, reference, reason, reverses, table_id)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id",
        head,
    )
    entry = int(await cursor.fetchone() or 0)
    changes: defaultdict[int, int] = defaultdict(int)
    rows = []
    for line, leg in enumerate(legs):
        changes[leg.debit] -= leg.amount
        changes[leg.credit] += leg.amount
        rows.append((entry, line, *leg))
    require(sum(changes.values()) == 0, "an entry's transfers add up to zero")
    if rows:
        await connection.cursor().executemany(
            "INSERT INTO transfers (entry, line, debit, credit, amount, kind, player, balance)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            rows,
        )
        await accounts.change(connection, changes, {})
    return entry
