"""Accounts: found, made, locked."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

from psycopg import AsyncCursor
from psycopg.rows import args_row, scalar_row

from services.game.invariant import InvariantError
from services.runtime.postgres import Connection
from services.wallet.posting import Account, array

BUCKETS: Final = 16
"""Paid-in and paid-out accounts are kept in this many parts, so that no row is everyone's."""

_ACCOUNT: Final = (
    "SELECT id, owner, currency, balance, pending, closed,"
    " coalesce(table_id, '') AS table_id, coalesce(player, 0) AS player FROM accounts"
)
_BATCH_ESCROW: Final = _ACCOUNT + (  # noqa: S608 (constants only)
    " WHERE purpose = 'escrow' AND (owner = ANY(%s) OR id = ANY(ARRAY("
    "SELECT escrow FROM reservations WHERE id = ANY(%s::uuid[]))))"
)


async def lock_player(connection: Connection, player_id: str, currency: str) -> Account | None:
    """The player's account, locked until the transaction ends."""
    cursor = connection.cursor(row_factory=args_row(Account))
    await cursor.execute(
        _ACCOUNT + " WHERE purpose = 'player' AND owner = %s AND currency = %s FOR NO KEY UPDATE",
        (player_id, currency),
    )
    return await cursor.fetchone()


async def make(connection: Connection, purpose: str, owner: str, currency: str) -> int:
    """The id of an account that is nobody's escrow, made if it is missing."""
    key = (purpose, owner, currency)
    found = await _find(connection, key)
    if found is None:
        # Sealing needs to know of everyone who draws a number, before he does.
        await connection.execute("SELECT pg_current_xact_id()")
        await connection.execute(
            "INSERT INTO accounts (purpose, owner, currency) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            key,
        )
        # Rows are never deleted: it is there now, whoever made it.
        found = await _find(connection, key)
    if found is None:
        raise InvariantError("an account that was just made is there")
    return found


async def _find(connection: Connection, key: tuple[str, str, str]) -> int | None:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "SELECT id FROM accounts WHERE purpose = %s AND owner = %s AND currency = %s"
        " AND purpose <> 'escrow'",
        key,
    )
    return await cursor.fetchone()


def bucket_of(player_id: str) -> str:
    """Which part of the paid-in and paid-out accounts stands against the player's."""
    return f"part-{zlib.crc32(player_id.encode()) % BUCKETS}"


async def find_escrow(connection: Connection, sitting_id: str) -> Account | None:
    """A sitting's escrow, not locked."""
    cursor = connection.cursor(row_factory=args_row(Account))
    await cursor.execute(_ACCOUNT + " WHERE purpose = 'escrow' AND owner = %s", (sitting_id,))
    return await cursor.fetchone()


async def shard_of_sitting(connection: Connection, sitting_id: str) -> int | None:
    """Whose progress row guards the sitting's escrow; None if it has none."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "SELECT shard FROM accounts WHERE purpose = 'escrow' AND owner = %s", (sitting_id,)
    )
    return await cursor.fetchone()


async def make_escrow(
    connection: Connection,
    sitting_id: str,
    currency: str,
    shard: int,
    table_id: str,
    player: int,
) -> int:
    """The id of a new sitting's escrow. Raises UniqueViolation if the sitting has one."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "INSERT INTO accounts (purpose, owner, currency, shard, table_id, player)"
        " VALUES ('escrow', %s, %s, %s, %s, %s) RETURNING id",
        (sitting_id, currency, shard, table_id, player),
    )
    return int(await cursor.fetchone() or 0)


async def load_escrow(
    connection: Connection, sitting_ids: Iterable[str], reservation_ids: list[str]
) -> AsyncCursor[Account]:
    """Escrow of the sittings and of the reservations, not locked."""
    cursor = connection.cursor(row_factory=args_row(Account))
    return await cursor.execute(
        _BATCH_ESCROW,
        (list(sitting_ids), reservation_ids),
    )


async def lock(connection: Connection, account_ids: Iterable[int]) -> AsyncCursor[Account]:
    """The accounts, locked in the order of their ids until the transaction ends."""
    cursor = connection.cursor(row_factory=args_row(Account))
    return await cursor.execute(
        _ACCOUNT + " WHERE id = ANY(%s::bigint[]) ORDER BY id FOR NO KEY UPDATE",
        (array(account_ids),),
    )


async def change(
    connection: Connection, balances: Mapping[int, int], set_aside: Mapping[int, int]
) -> None:
    """Add to balances and to what is pending: account id -> signed minor units."""
    ids = sorted(balances.keys() | set_aside.keys())
    await connection.execute(
        "UPDATE accounts SET balance = balance + more, pending = pending + aside"
        " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS changed (account, more, aside)"
        " WHERE id = account",
        (
            array(ids),
            array(balances.get(each, 0) for each in ids),
            array(set_aside.get(each, 0) for each in ids),
        ),
    )


async def close(connection: Connection, account_ids: list[int], *, closed: bool = True) -> None:
    """Close the accounts; escrow for good, a player's until it is opened again."""
    await connection.execute(
        "UPDATE accounts SET closed = %s WHERE id = ANY(%s)", (closed, account_ids)
    )
