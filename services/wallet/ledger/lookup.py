"""Single transfers and accounts, as staff and players may see them."""

from datetime import datetime
from typing import Final, NamedTuple

from psycopg.rows import class_row

from services.runtime.errors import NotFound
from services.runtime.postgres import Connection, Database
from services.wallet.entries import Kind

PURPOSES: Final = ("", "player", "escrow", "house", "paid_in", "paid_out", "control")
"""By the numbers of the contract; 0 stands for all."""
SCAN_MAX: Final = 5_000
"""Accounts that one page passes over at most."""


class AccountRow(NamedTuple):
    """An account as it is now."""

    account_id: int
    purpose: str
    owner: str
    currency: str
    balance: int
    pending: int
    closed: bool
    table_id: str


class TransferRow(NamedTuple):
    """A movement between two accounts; which are known by number, purpose, owner and currency."""

    kind: Kind
    debit: AccountRow
    credit: AccountRow
    amount: int
    player_ids: frozenset[str]
    """Whose accounts or sittings the two are."""


class Found(NamedTuple):
    """An entry of the journal with its transfers."""

    entry: int
    kind: Kind
    at: datetime
    table_id: str
    hand_id: str
    reference: str
    reason: str
    made_by: str
    source: str
    reverses: int | None
    reversed_by: int | None
    lines: list[TransferRow]


async def transfer(database: Database, entry: int, player_id: str = "") -> Found:
    """An entry with its transfers; with `player_id` only those of his accounts and sittings.

    Raises NotFound (TRANSFER_UNKNOWN) if there is no such entry, or nothing in it is the player's.
    """

    async def work(connection: Connection) -> Found | None:
        cursor = await connection.execute(_HEAD, (entry,))
        head = await cursor.fetchone()
        if head is None:
            return None
        lines = await _lines(connection, entry)
        if player_id:
            lines = [line for line in lines if player_id in line.player_ids]
            if not lines:
                return None
        return Found._make((*head, lines))._replace(kind=Kind(head[1]))

    found = await database.snapshot(work)
    if found is None:
        raise NotFound("TRANSFER_UNKNOWN", "there is no such transfer")
    return found


_HEAD: Final = """
SELECT id, kind, at, coalesce(table_id, ''), coalesce(hand_id::text, ''), reference, reason,
    made_by, source, reverses, (SELECT r.id FROM journal r WHERE r.reverses = j.id)
FROM journal j WHERE id = %s
"""
_LINES: Final = """
SELECT t.kind, t.amount,
    d.id, d.purpose, d.owner, d.currency, coalesce(d.table_id, ''),
    coalesce(dp.owner, d.owner),
    c.id, c.purpose, c.owner, c.currency, coalesce(c.table_id, ''),
    coalesce(cp.owner, c.owner)
FROM transfers t
JOIN accounts d ON d.id = t.debit LEFT JOIN accounts dp ON dp.id = d.player
JOIN accounts c ON c.id = t.credit LEFT JOIN accounts cp ON cp.id = c.player
WHERE t.entry = %s ORDER BY t.line
"""


async def _lines(connection: Connection, entry: int) -> list[TransferRow]:
    cursor = await connection.execute(_LINES, (entry,))
    lines = []
    for kind, amount, *sides in await cursor.fetchall():
        debit, credit = sides[:6], sides[6:]
        # Shared accounts' owners are no player ids, but could look like one.
        players = {side[5] for side in (debit, credit) if side[1] in ("player", "escrow")}
        lines.append(
            TransferRow(Kind(kind), _named(debit), _named(credit), amount, frozenset(players))
        )
    return lines


def _named(side: list[object]) -> AccountRow:
    number, purpose, owner, currency, table_id, _ = side
    return AccountRow(
        int(str(number)), str(purpose), str(owner), str(currency), 0, 0, False, str(table_id)
    )


async def accounts(
    database: Database, owner: str, purpose: str, currency: str, after: int, limit: int
) -> tuple[list[AccountRow], int | None]:
    """At most `limit` accounts with numbers above `after`, and where to go on; None if that was
    all. Empty texts ask for all.
    """

    async def work(connection: Connection) -> tuple[list[AccountRow], int | None]:
        asked = {
            "owner": owner,
            "purpose": purpose,
            "currency": currency,
            "after": after,
            "shared": list(PURPOSES[1:2] + PURPOSES[3:]),
            "scan": SCAN_MAX,
        }
        cursor = connection.cursor(row_factory=class_row(AccountRow))
        await cursor.execute(_BY_OWNER if owner else _IN_ORDER, asked)
        read = await cursor.fetchall()
        found = [
            row for row in read if purpose in ("", row.purpose) and currency in ("", row.currency)
        ]
        if len(found) > limit:
            return found[:limit], found[limit - 1].account_id
        return found, read[-1].account_id if len(read) == SCAN_MAX else None

    return await database.snapshot(work)


_ACCOUNT: Final = (
    "SELECT id AS account_id, purpose, owner, currency, balance, pending, closed,"
    " coalesce(table_id, '') AS table_id FROM accounts"
)
_IN_ORDER: Final = _ACCOUNT + " WHERE id > %(after)s ORDER BY id LIMIT %(scan)s"
_BY_OWNER: Final = _ACCOUNT + (
    " WHERE id > %(after)s AND (purpose = ANY(%(shared)s) AND purpose <> 'escrow'"
    " AND owner = %(owner)s OR purpose = 'escrow' AND owner = %(owner)s)"
    " ORDER BY id LIMIT %(scan)s"
)
