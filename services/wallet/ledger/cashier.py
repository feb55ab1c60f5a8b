"""Money that enters and leaves the room."""

from typing import NamedTuple

from services.runtime.postgres import Connection, Database
from services.wallet.entries import Kind
from services.wallet.ledger import accounts, journal, requests
from services.wallet.ledger.accounts import bucket_of
from services.wallet.ledger.journal import Head, Leg
from services.wallet.ledger.requests import Asked, Done, Refused, done
from services.wallet.money import AMOUNT_MAX
from services.wallet.posting import Account

ACCOUNT_CLOSED = Refused("ACCOUNT_CLOSED", "the player's account is closed")
BALANCE_LIMIT = Refused("BALANCE_LIMIT", f"the balance would pass {AMOUNT_MAX}")


class Cash(NamedTuple):
    """A deposit or withdrawal, its fields checked."""

    request_id: str
    player_id: str
    amount: int
    """Minor units."""
    currency: str
    reference: str
    made_by: str
    """Who asked for it; no part of what must be the same on a repeat."""


async def deposit(database: Database, cash: Cash) -> Done:
    """Put money into the player's account, once for its request id.

    Raises AlreadyExists (ID_REUSED), FailedPrecondition (ACCOUNT_CLOSED, BALANCE_LIMIT).
    """
    request = _asked(cash, requests.CASH_IN)

    async def work(connection: Connection) -> Done | Refused:
        account_id = await accounts.make(connection, "player", cash.player_id, cash.currency)
        (account,) = await (await accounts.lock(connection, [account_id])).fetchall()
        earlier = await requests.answer_of(connection, request)
        if earlier is not None:
            return earlier
        if account.closed:
            return await requests.refuse(connection, request, ACCOUNT_CLOSED)
        if account.balance + cash.amount > AMOUNT_MAX:
            return await requests.refuse(connection, request, BALANCE_LIMIT)
        return await _move(connection, request, cash, account, Kind.DEPOSIT)

    return await done(database, work)


async def withdraw(database: Database, cash: Cash) -> Done:
    """Pay money out of what the player has available, once for its request id.

    Raises AlreadyExists (ID_REUSED), FailedPrecondition (ACCOUNT_CLOSED, INSUFFICIENT_FUNDS).
    """
    request = _asked(cash, requests.CASH_OUT)

    async def work(connection: Connection) -> Done | Refused:
        account = await accounts.lock_player(connection, cash.player_id, cash.currency)
        earlier = await requests.answer_of(connection, request)
        if earlier is not None:
            return earlier
        if account is None:
            raise requests.lack_of_funds(0)
        if account.closed:
            return await requests.refuse(connection, request, ACCOUNT_CLOSED)
        if account.available < cash.amount:
            raise requests.lack_of_funds(account.available)
        return await _move(connection, request, cash, account, Kind.WITHDRAWAL)

    return await done(database, work)


def _asked(cash: Cash, kind: int) -> Asked:
    return requests.asked(
        cash.request_id, kind, cash.player_id, cash.amount, cash.currency, cash.reference
    )


async def _move(
    connection: Connection, request: Asked, cash: Cash, account: Account, kind: Kind
) -> Done:
    """One transfer between the player and the world outside; both rows change with it."""
    incoming = kind is Kind.DEPOSIT
    outside = await accounts.make(
        connection, "paid_in" if incoming else "paid_out", bucket_of(cash.player_id), cash.currency
    )
    debit, credit = (outside, account.id) if incoming else (account.id, outside)
    balance = account.balance + (cash.amount if incoming else -cash.amount)
    entry = await journal.write(
        connection,
        Head(kind, cash.request_id, cash.made_by, reference=cash.reference),
        [Leg(debit, credit, cash.amount, kind, account.id, balance)],
    )
    return await requests.remember(connection, request, entry, balance)
