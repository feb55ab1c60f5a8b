"""Money set aside for seats: pending until the table's outbox commits or releases it."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from psycopg import sql
from psycopg.errors import UniqueViolation
from psycopg.rows import scalar_row

from services.runtime import failpoints
from services.runtime.errors import NotFound
from services.runtime.postgres import Connection, Database
from services.wallet.entries import State
from services.wallet.ledger import accounts, requests
from services.wallet.ledger.cashier import ACCOUNT_CLOSED
from services.wallet.ledger.requests import Asked, Refused
from services.wallet.posting import Account

SITTING_TAKEN = Refused("SITTING_TAKEN", "the sitting is another player's, table's or currency's")
SITTING_ENDED = Refused("SITTING_ENDED", "the sitting was cashed out")
TABLE_CURRENCY = Refused("TABLE_CURRENCY", "the table plays in another currency")


class BuyIn(NamedTuple):
    """What a seat's money is asked for, its fields checked."""

    reservation_id: str
    player_id: str
    table_id: str
    sitting_id: str
    amount: int
    currency: str


class Reservation(NamedTuple):
    """A reservation as it is now. One that was released before it was made has no content."""

    reservation_id: str
    player_id: str
    table_id: str
    sitting_id: str
    amount: int
    """Minor units."""
    currency: str
    state: State
    created: datetime

    @property
    def buy_in(self) -> BuyIn:
        """What was asked for."""
        return BuyIn(*self[:6])


_READ = """
SELECT r.id::text, coalesce(p.owner, ''), r.table_id, coalesce(e.owner, ''), coalesce(r.amount, 0),
    coalesce(p.currency, ''), r.state, r.created
FROM reservations r
LEFT JOIN accounts p ON p.id = r.player LEFT JOIN accounts e ON e.id = r.escrow
"""


async def reserve(database: Database, buy_in: BuyIn, shard: int) -> Reservation:
    """Set the money aside unless that happened before; the reservation's state now.

    Raises AlreadyExists (ID_REUSED), FailedPrecondition (INSUFFICIENT_FUNDS, which is not
    remembered; ACCOUNT_CLOSED, SITTING_TAKEN, SITTING_ENDED, TABLE_CURRENCY).
    """
    request = requests.asked(buy_in.reservation_id, requests.RESERVE, *buy_in[1:])

    async def work(connection: Connection) -> Reservation | Refused:
        player = await accounts.lock_player(connection, buy_in.player_id, buy_in.currency)
        # Looked for under the lock: a twin of this call has either not begun or is done.
        earlier = await _earlier(connection, buy_in) or await requests.answer_of(
            connection, request
        )
        if isinstance(earlier, Reservation | Refused):
            return earlier
        if player is None:
            raise requests.lack_of_funds(0)
        return await _set_aside(connection, request, buy_in, player, shard)

    # The same id for another player, or an early Release, meets in the unique index.
    found = await database.transaction(work, again_on=(UniqueViolation,))
    failpoints.reach("wallet.reserved")
    if isinstance(found, Refused):
        raise found.error()
    return found


async def find(database: Database, reservation_id: str) -> Reservation:
    """Raises NotFound (RESERVATION_UNKNOWN)."""

    async def work(connection: Connection) -> Reservation | None:
        return await _find(connection, reservation_id)

    found = await database.snapshot(work)
    if found is None:
        raise NotFound("RESERVATION_UNKNOWN", "there is no such reservation")
    return found


async def list_pending(
    database: Database,
    created_before: datetime | None,
    older_than: timedelta,
    after: tuple[datetime, str] | None,
    limit: int,
) -> list[Reservation]:
    """Pending ones, oldest first; `after` is (created, id) of the last one seen.

    older_than: by the database's clock, which is the one that `created` is by.
    """
    conditions = [sql.SQL("r.state = 1")]
    values: list[object] = []
    if older_than:
        conditions.append(sql.SQL("r.created < now() - %s"))
        values.append(older_than)
    if created_before is not None:
        conditions.append(sql.SQL("r.created < %s"))
        values.append(created_before)
    if after is not None:
        conditions.append(sql.SQL("(r.created, r.id) > (%s, %s::uuid)"))
        values.extend(after)
    query = sql.SQL(_READ + "WHERE {} ORDER BY r.created, r.id LIMIT %s").format(
        sql.SQL(" AND ").join(conditions)
    )

    async def work(connection: Connection) -> list[Reservation]:
        cursor = await connection.execute(query, (*values, limit))
        return [_of_row(row) for row in await cursor.fetchall()]

    return await database.snapshot(work)


async def pending_of(connection: Connection, shard: int) -> list[Reservation]:
    """Pending ones of a shard's tables, oldest first. There are few in the whole ledger."""
    cursor = await connection.execute(
        _READ + "WHERE r.state = 1 AND e.shard = %s ORDER BY r.created, r.id", (shard,)
    )
    return [_of_row(row) for row in await cursor.fetchall()]


async def _earlier(connection: Connection, buy_in: BuyIn) -> Reservation | None:
    found = await _find(connection, buy_in.reservation_id)
    if found is None:
        return None
    if not found.amount:
        return found._replace(
            player_id=buy_in.player_id,
            sitting_id=buy_in.sitting_id,
            amount=buy_in.amount,
            currency=buy_in.currency,
        )
    if found.buy_in != buy_in:
        raise requests.id_reused()
    return found


async def _set_aside(
    connection: Connection, request: Asked, buy_in: BuyIn, player: Account, shard: int
) -> Reservation | Refused:
    if player.closed:
        return await requests.refuse(connection, request, ACCOUNT_CLOSED)
    escrow = await accounts.find_escrow(connection, buy_in.sitting_id)
    if escrow is not None:
        seat = (escrow.player, escrow.table_id, escrow.currency)
        if seat != (player.id, buy_in.table_id, buy_in.currency):
            return await requests.refuse(connection, request, SITTING_TAKEN)
        if escrow.closed:
            return await requests.refuse(connection, request, SITTING_ENDED)
    elif await _currency_of(connection, buy_in) != buy_in.currency:
        return await requests.refuse(connection, request, TABLE_CURRENCY)
    if player.available < buy_in.amount:
        raise requests.lack_of_funds(player.available)
    escrow_id = (
        escrow.id
        if escrow
        else await accounts.make_escrow(
            connection, buy_in.sitting_id, buy_in.currency, shard, buy_in.table_id, player.id
        )
    )
    await accounts.change(connection, {}, {player.id: buy_in.amount})
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "INSERT INTO reservations (id, state, player, escrow, amount, table_id)"
        " VALUES (%s, 1, %s, %s, %s, %s) RETURNING created",
        (buy_in.reservation_id, player.id, escrow_id, buy_in.amount, buy_in.table_id),
    )
    created: Any = await cursor.fetchone()
    failpoints.reach("wallet.reserving")
    return Reservation(*buy_in, State.PENDING, created)


async def _currency_of(connection: Connection, buy_in: BuyIn) -> str:
    """The table's, which is that of the first money set aside for it."""
    cursor = connection.cursor(row_factory=scalar_row)
    read = "SELECT currency FROM tables WHERE table_id = %s"
    await cursor.execute(read, (buy_in.table_id,))
    found = await cursor.fetchone()
    if found is None:
        await cursor.execute(
            "INSERT INTO tables (table_id, currency) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (buy_in.table_id, buy_in.currency),
        )
        await cursor.execute(read, (buy_in.table_id,))
        found = await cursor.fetchone()
    return str(found)


async def _find(connection: Connection, reservation_id: str) -> Reservation | None:
    cursor = await connection.execute(_READ + "WHERE r.id = %s", (reservation_id,))
    row = await cursor.fetchone()
    return None if row is None else _of_row(row)


def _of_row(row: Any) -> Reservation:
    return Reservation(*row)._replace(state=State(row[6]))
