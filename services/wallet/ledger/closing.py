"""Players' accounts closed and opened again; a closed one takes part in nothing."""

from typing import Final, NamedTuple

from services.runtime.errors import NotFound
from services.runtime.postgres import Connection, Database
from services.wallet.entries import Kind
from services.wallet.ledger import accounts, journal, requests
from services.wallet.ledger.cashier import ACCOUNT_CLOSED
from services.wallet.ledger.journal import Head
from services.wallet.ledger.requests import Done, Refused, done
from services.wallet.posting import Account

NOT_EMPTY: Final = Refused("ACCOUNT_NOT_EMPTY", "there is money in it, or in the player's escrow")
NOT_CLOSED: Final = Refused("ACCOUNT_NOT_CLOSED", "the account is open")


class Closing(NamedTuple):
    """Which account is to be closed or opened, its fields checked."""

    request_id: str
    player_id: str
    currency: str
    reason: str
    made_by: str
    """Who asked for it; no part of what must be the same on a repeat."""


async def close(database: Database, closing: Closing) -> Done:
    """Close an empty account, once for its request id.

    Raises AlreadyExists (ID_REUSED), NotFound (ACCOUNT_UNKNOWN), FailedPrecondition
    (ACCOUNT_NOT_EMPTY, ACCOUNT_CLOSED).
    """
    return await _turn(database, closing, requests.CLOSE)


async def reopen(database: Database, closing: Closing) -> Done:
    """Open a closed account again, once for its request id.

    Raises AlreadyExists (ID_REUSED), NotFound (ACCOUNT_UNKNOWN), FailedPrecondition
    (ACCOUNT_NOT_CLOSED).
    """
    return await _turn(database, closing, requests.REOPEN)


async def _turn(database: Database, closing: Closing, kind: int) -> Done:
    request = requests.asked(closing.request_id, kind, *closing[1:-1])
    closes = kind == requests.CLOSE

    async def work(connection: Connection) -> Done | Refused:
        account = await accounts.lock_player(connection, closing.player_id, closing.currency)
        earlier = await requests.answer_of(connection, request)
        if earlier is not None:
            return earlier
        if account is None:
            raise NotFound("ACCOUNT_UNKNOWN", "the player has no account in this currency")
        refusal = await _refusal(connection, account, closes=closes)
        if refusal is not None:
            return await requests.refuse(connection, request, refusal)
        await accounts.close(connection, [account.id], closed=closes)
        head = Head(
            Kind.CLOSING if closes else Kind.REOPENING,
            closing.request_id,
            closing.made_by,
            reference=str(account.id),
            reason=closing.reason,
        )
        entry = await journal.write(connection, head)
        return await requests.remember(connection, request, entry)

    return await done(database, work)


async def _refusal(connection: Connection, account: Account, *, closes: bool) -> Refused | None:
    if not closes:
        return None if account.closed else NOT_CLOSED
    if account.closed:
        return ACCOUNT_CLOSED
    cursor = await connection.execute(
        "SELECT 1 FROM accounts WHERE player = %s AND purpose = 'escrow' AND NOT closed"
        " AND balance > 0",
        (account.id,),
    )
    return NOT_EMPTY if account.balance or await cursor.fetchone() is not None else None
