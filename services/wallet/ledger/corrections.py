"""What operators correct: always by a new entry with a reason, never by changing one."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from services.runtime.errors import NotFound
from services.runtime.postgres import Connection, Database
from services.wallet.entries import Kind
from services.wallet.ledger import accounts, journal, requests, shards
from services.wallet.ledger.accounts import bucket_of
from services.wallet.ledger.cashier import ACCOUNT_CLOSED, BALANCE_LIMIT
from services.wallet.ledger.journal import Head, Leg
from services.wallet.ledger.requests import Asked, Done, Refused, done
from services.wallet.ledger.reservations import SITTING_ENDED
from services.wallet.money import AMOUNT_MAX
from services.wallet.posting import Account

REVERSIBLE: Final = frozenset({Kind.DEPOSIT, Kind.WITHDRAWAL, Kind.ADJUSTMENT, Kind.HAND})

NOT_REVERSIBLE: Final = Refused(
    "NOT_REVERSIBLE", "only deposits, withdrawals, players' adjustments and hands can be taken back"
)
ALREADY_REVERSED: Final = Refused("ALREADY_REVERSED", "the transfer was taken back before")
CURRENCY_DIFFERS: Final = Refused("CURRENCY_DIFFERS", "the sitting has another currency")


class Adjustment(NamedTuple):
    """What is to be corrected, its fields checked."""

    request_id: str
    player_id: str
    """Empty for a sitting's escrow."""
    sitting_id: str
    """Empty for a player's account."""
    amount: int
    """Signed minor units, what the account gains from the house."""
    currency: str
    reason: str
    made_by: str
    """Who asked for it; no part of what must be the same on a repeat."""


class Reversal(NamedTuple):
    """Which entry is to be taken back, its fields checked."""

    request_id: str
    entry: int
    reason: str
    made_by: str


async def adjust(database: Database, adjustment: Adjustment) -> Done:
    """Move money between the account and the house, once for its request id.

    Raises AlreadyExists (ID_REUSED), NotFound (SITTING_UNKNOWN), FailedPrecondition
    (INSUFFICIENT_FUNDS, which is not remembered; ACCOUNT_CLOSED, BALANCE_LIMIT, SITTING_ENDED,
    CURRENCY_DIFFERS).
    """
    request = requests.asked(adjustment.request_id, requests.ADJUST, *adjustment[1:-1])

    async def work(connection: Connection) -> Done | Refused:
        account = await (_locked_escrow if adjustment.sitting_id else _locked_player)(
            connection, adjustment
        )
        earlier = await requests.answer_of(connection, request)
        if earlier is not None:
            return earlier
        refusal = _refusal(account, adjustment)
        if refusal is not None:
            return await requests.refuse(connection, request, refusal)
        return await _adjust(connection, request, adjustment, account)

    return await done(database, work)


async def reverse(database: Database, reversal: Reversal) -> Done:
    """Book an entry the other way round, once for its request id and once for the entry.

    A hand goes back between the players' own accounts and the house, since their chips are the
    table's. Raises AlreadyExists (ID_REUSED), NotFound (TRANSFER_UNKNOWN), FailedPrecondition
    (INSUFFICIENT_FUNDS, which is not remembered; NOT_REVERSIBLE, ALREADY_REVERSED, ACCOUNT_CLOSED,
    BALANCE_LIMIT).
    """
    request = requests.asked(reversal.request_id, requests.REVERSE, *reversal[1:-1])

    async def work(connection: Connection) -> Done | Refused:
        moved = await _moved(connection, reversal.entry)
        players = await _lock_players(connection, moved)
        earlier = await requests.answer_of(connection, request)
        if earlier is not None:
            return earlier
        refusal = await _reversal_refusal(connection, reversal.entry, moved, players)
        if refusal is not None:
            return await requests.refuse(connection, request, refusal)
        head = Head(
            Kind.REVERSAL,
            reversal.request_id,
            reversal.made_by,
            reason=reversal.reason,
            reverses=reversal.entry,
        )
        entry = await journal.write(connection, head, _legs_back(moved, players))
        return await requests.remember(connection, request, entry)

    return await done(database, work)


async def _locked_player(connection: Connection, adjustment: Adjustment) -> Account:
    account_id = await accounts.make(
        connection, "player", adjustment.player_id, adjustment.currency
    )
    (account,) = await (await accounts.lock(connection, [account_id])).fetchall()
    return account


async def _locked_escrow(connection: Connection, adjustment: Adjustment) -> Account:
    """Escrow changes only under its shard's progress row."""
    shard = await accounts.shard_of_sitting(connection, adjustment.sitting_id)
    if shard is None or (await shards.locked(connection, shard)).epoch == 0:
        raise NotFound("SITTING_UNKNOWN", "no such sitting ever had money at a table")
    account = await accounts.find_escrow(connection, adjustment.sitting_id)
    if account is None:
        raise NotFound("SITTING_UNKNOWN", "no such sitting ever had money at a table")
    return account


def _refusal(account: Account, adjustment: Adjustment) -> Refused | None:
    """Raises FailedPrecondition for a lack of funds."""
    if account.currency != adjustment.currency:
        return CURRENCY_DIFFERS
    if account.closed:
        return SITTING_ENDED if adjustment.sitting_id else ACCOUNT_CLOSED
    if account.available + adjustment.amount < 0:
        raise requests.lack_of_funds(account.available)
    if account.balance + adjustment.amount > AMOUNT_MAX:
        return BALANCE_LIMIT
    return None


async def _adjust(
    connection: Connection, request: Asked, adjustment: Adjustment, account: Account
) -> Done:
    part = f"adjustments-{bucket_of(account.owner)}"
    house = await accounts.make(connection, "house", part, adjustment.currency)
    gains = adjustment.amount > 0
    debit, credit = (house, account.id) if gains else (account.id, house)
    balance = account.balance + adjustment.amount
    of_player = not adjustment.sitting_id
    leg = Leg(
        debit,
        credit,
        abs(adjustment.amount),
        Kind.ADJUSTMENT,
        account.id if of_player else None,
        balance if of_player else None,
    )
    head = Head(
        Kind.ADJUSTMENT,
        adjustment.request_id,
        adjustment.made_by,
        reason=adjustment.reason,
        table_id=account.table_id or None,
    )
    entry = await journal.write(connection, head, [leg])
    return await requests.remember(connection, request, entry, balance)


class _Moved(NamedTuple):
    """A transfer to be taken back; where it touched escrow, that sitting's player stands in."""

    kind: Kind
    """Of its entry."""
    debit: int
    debit_purpose: str
    credit: int
    credit_purpose: str
    amount: int
    at_table: bool
    """It touched escrow."""


async def _moved(connection: Connection, entry: int) -> list[_Moved]:
    """Raises NotFound for an entry that is none; a void hand's has no transfers."""
    cursor = await connection.execute(
        "SELECT j.kind, coalesce(d.player, d.id), d.purpose, coalesce(c.player, c.id), c.purpose,"
        " t.amount, coalesce('escrow' IN (d.purpose, c.purpose), false)"
        " FROM journal j LEFT JOIN transfers t ON t.entry = j.id"
        " LEFT JOIN accounts d ON d.id = t.debit LEFT JOIN accounts c ON c.id = t.credit"
        " WHERE j.id = %s ORDER BY t.line",
        (entry,),
    )
    rows = [_Moved(Kind(row[0]), *row[1:]) for row in await cursor.fetchall()]
    if not rows:
        raise NotFound("TRANSFER_UNKNOWN", "there is no such transfer")
    return [row for row in rows if row.amount is not None]


_OWNED: Final = frozenset({"player", "escrow"})


async def _lock_players(connection: Connection, moved: list[_Moved]) -> dict[int, Account]:
    ids = {row.debit for row in moved if row.debit_purpose in _OWNED}
    ids |= {row.credit for row in moved if row.credit_purpose in _OWNED}
    locked = await accounts.lock(connection, ids)
    return {account.id: account for account in await locked.fetchall()}


async def _reversal_refusal(
    connection: Connection, entry: int, moved: list[_Moved], players: Mapping[int, Account]
) -> Refused | None:
    """Raises FailedPrecondition for a lack of funds."""
    if not moved or any(
        row.kind not in REVERSIBLE or (row.at_table and row.kind is not Kind.HAND) for row in moved
    ):
        return NOT_REVERSIBLE
    cursor = await connection.execute("SELECT 1 FROM journal WHERE reverses = %s", (entry,))
    if await cursor.fetchone() is not None:
        return ALREADY_REVERSED
    if any(account.closed for account in players.values()):
        return ACCOUNT_CLOSED
    gained: defaultdict[int, int] = defaultdict(int)
    for row in moved:
        gained[row.debit] += row.amount
        gained[row.credit] -= row.amount
    for account in players.values():
        if account.available + gained[account.id] < 0:
            raise requests.lack_of_funds(account.available)
        if account.balance + gained[account.id] > AMOUNT_MAX:
            return BALANCE_LIMIT
    return None


def _legs_back(moved: list[_Moved], players: Mapping[int, Account]) -> list[Leg]:
    """Each of a player's accounts is in one leg: a hand has one net for each sitting."""
    legs = []
    for row in moved:
        player = players.get(row.debit) or players.get(row.credit)
        balance = None
        if player is not None:
            player.balance += row.amount if row.debit == player.id else -row.amount
            balance = player.balance
        legs.append(
            Leg(
                row.credit,
                row.debit,
                row.amount,
                Kind.REVERSAL,
                player.id if player is not None else None,
                balance,
            )
        )
    return legs
