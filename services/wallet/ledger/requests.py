"""Requests that were answered: the same id gets the same answer for ever."""

import hashlib
import json
from typing import Final, NamedTuple

from psycopg.errors import UniqueViolation

from services.runtime import failpoints
from services.runtime.errors import AlreadyExists, DoorcardError, FailedPrecondition
from services.runtime.postgres import Connection, Database, Work

CASH_IN: Final = 1
CASH_OUT: Final = 2
RESERVE: Final = 3
ADJUST: Final = 4
REVERSE: Final = 5
CLOSE: Final = 6
REOPEN: Final = 7
PAY_BACK: Final = 8
RESOLVE: Final = 9


class Asked(NamedTuple):
    """A request as remembered: its id, which method, and the hash of what was asked."""

    id: str
    kind: int
    content: bytes


class Done(NamedTuple):
    """It was done by an entry of the journal."""

    transfer_id: str
    balance: int = 0
    """Of the account that the request was about after it, minor units."""


class Refused(NamedTuple):
    """It was refused, for good."""

    reason: str
    message: str

    def error(self) -> FailedPrecondition:
        """What the caller hears, now and ever after."""
        return FailedPrecondition(self.reason, self.message)


def asked(request_id: str, kind: int, *content: str | int) -> Asked:
    """A request with the SHA-256 of its content."""
    text = json.dumps([kind, *content])
    return Asked(request_id, kind, hashlib.sha256(text.encode()).digest())


async def answer_of(connection: Connection, request: Asked) -> Done | Refused | None:
    """The answer given before, if any. Raises AlreadyExists for other content."""
    cursor = await connection.execute(
        "SELECT content, entry, balance, refusal, message FROM requests WHERE id = %s",
        (request.id,),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    content, entry, balance, refusal, message = row
    if content != request.content:
        raise id_reused()
    if refusal is not None:
        return Refused(refusal, message)
    return Done(str(entry), balance)


async def remember(connection: Connection, request: Asked, entry: int, balance: int = 0) -> Done:
    """Keep that the request was done by a journal entry."""
    await connection.execute(
        "INSERT INTO requests (id, kind, content, entry, balance) VALUES (%s, %s, %s, %s, %s)",
        (*request, entry, balance),
    )
    failpoints.reach("wallet.paying")
    return Done(str(entry), balance)


async def refuse(connection: Connection, request: Asked, refused: Refused) -> Refused:
    """Keep that the request was refused; commit, then raise its error."""
    await connection.execute(
        "INSERT INTO requests (id, kind, content, refusal, message) VALUES (%s, %s, %s, %s, %s)",
        (*request, *refused),
    )
    return refused


def id_reused() -> AlreadyExists:
    """The id was used before with other content."""
    return AlreadyExists("ID_REUSED", "this id was used before with other content")


def lack_of_funds(available: int) -> DoorcardError:
    """Not remembered: the same request may succeed later."""
    return FailedPrecondition(
        "INSUFFICIENT_FUNDS",
        "the player has not enough available",
        metadata={"available": str(available)},
    )


async def done(database: Database, work: Work[Done | Refused]) -> Done:
    """Run what answers a request; a refusal is committed before it is raised.

    Two of the same id at once meet in the unique index, and the later one looks again.
    """
    answer = await database.transaction(work, again_on=(UniqueViolation,))
    failpoints.reach("wallet.paid")
    if isinstance(answer, Refused):
        raise answer.error()
    return answer
