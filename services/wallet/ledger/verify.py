"""Finds and names the rows that are not as they were sealed, and the balances that do not fit."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from services.runtime.postgres import Connection, Database
from services.wallet.ledger import audit, seals
from services.wallet.ledger.seals import FIRST, NO_HASH, Seal

SEALS_MAX: Final = 50
ROWS_MAX: Final = 20_000
"""Of one page; it ends with the seal that reaches them."""
FAULTS_MAX: Final = 1_000

_TABLES: Final = ("accounts", "journal", "transfers")
_ROW: Final = 20
"""Bytes of a row in a seal's contents: table 2, key 8, line 2, beginning of the digest 8."""


class Fault(IntEnum):
    """What is wrong with a row; the numbers are those of the contract."""

    CHANGED = 1
    MISSING = 2
    ADDED = 3
    REORDERED = 4
    SEAL = 5
    BALANCE = 6


class Finding(NamedTuple):
    """Something that is not as it was written."""

    kind: Fault
    seal: int
    row: str
    """Table and key: "transfers 12.0"."""
    detail: str = ""


class Position(NamedTuple):
    """Where a page begins: first the chain, then the accounts."""

    accounts: bool = False
    after: int = 0
    """Number of a seal or an account."""
    hash: bytes = NO_HASH
    """Of that seal as the last page found it."""


class Known(NamedTuple):
    """A seal that was noted elsewhere; number 0 for none."""

    number: int = 0
    hash: bytes = b""


class Page(NamedTuple):
    """What a look at a part of the ledger found."""

    findings: list[Finding]
    seals: int = 0
    rows: int = 0
    accounts: int = 0
    last: Known = Known()
    """The last seal that was looked at."""
    unsealed: int = 0
    """Transfers after the end of the chain."""
    next: Position | None = None
    """None when this was the last page."""


async def page(database: Database, position: Position, known: Known) -> Page:
    """Look at a part of the ledger, all of one moment."""

    async def work(connection: Connection) -> Page:
        if position.accounts:
            return await _accounts(connection, position)
        return await _chain(connection, position, known)

    return await database.snapshot(work)


async def next_seals(database: Database, count: int) -> list[Finding]:
    """Look at the next seals of the round that never ends, each for itself."""

    async def work(connection: Connection) -> list[Finding]:
        cursor = await connection.execute("SELECT checked_seal FROM upkeep FOR NO KEY UPDATE")
        (after,) = await cursor.fetchone() or (0,)
        found = await seals.chain(connection, after, count)
        await connection.execute(
            "UPDATE upkeep SET checked_seal = %s", (found[-1].number if found else 0,)
        )
        return [finding for each in found for finding in await _compare(connection, each)]

    return await database.transaction(work)


async def _chain(connection: Connection, position: Position, known: Known) -> Page:
    findings: list[Finding] = []
    rows = looked_at = 0
    before: Seal | None = None
    number, previous = position.after, position.hash
    for each in await seals.chain(connection, position.after, SEALS_MAX):
        findings += _links(each, number, previous, before)
        findings += await _compare(connection, each)
        if each.number == known.number and each.hash != known.hash:
            findings.append(_of_seal(each.number, "is not the one that was noted elsewhere"))
        number, previous, before = each.number, each.hash, each
        rows += each.rows
        looked_at += 1
        if rows >= ROWS_MAX or len(findings) >= FAULTS_MAX:
            break
    last = await seals.last(connection)
    at_end = last is None or number >= last.number
    if at_end and known.number > number:
        findings.append(_of_seal(known.number, "was noted elsewhere and is gone"))
    return Page(
        findings[:FAULTS_MAX],
        seals=looked_at,
        rows=rows,
        last=Known(number, previous) if number else Known(),
        unsealed=await _unsealed(connection, last),
        next=Position(accounts=True) if at_end else Position(False, number, previous),
    )


def _links(each: Seal, number: int, previous: bytes, before: Seal | None) -> Iterator[Finding]:
    """Whether the seal follows the one before."""
    if each.number != number + 1:
        yield _of_seal(number + 1, f"is gone, and all before {each.number}")
    elif each.previous != previous:
        yield _of_seal(each.number, f"does not follow seal {number}")
    ends = before.range if before else None
    begins = (each.range.after_entry, each.range.after_account)
    if ends is not None and begins != (ends.last_entry, ends.last_account):
        yield _of_seal(each.number, "does not begin where the one before ends")
    if each.number == 1 and begins != (FIRST, FIRST):
        yield _of_seal(1, "does not begin with the first row")


async def _compare(connection: Connection, each: Seal) -> list[Finding]:
    """Every row of a seal that is not as it was sealed."""
    _, contents, _, digest = await seals.summary(connection, each.range, each.number, each.previous)
    if digest == each.hash and contents == each.contents:
        return []
    return list(_named(each, contents)) or [
        _of_seal(each.number, "was changed, or a row of it in a way that hides which")
    ]


def _named(each: Seal, contents: bytes) -> Iterator[Finding]:
    """Rows that differ, from the seal's contents and the present ones."""
    sealed, found = _by_row(each.contents), _by_row(contents)
    owner = {digest: row for row, digest in sealed.items() if found.get(row) != digest}
    for row in sorted(sealed.keys() | found.keys()):
        was, now = sealed.get(row), found.get(row)
        if was == now:
            continue
        meant = owner.get(now or b"")
        if meant is not None and meant != row:
            yield Finding(
                Fault.REORDERED, each.number, _name(row), f"holds what was {_name(meant)}"
            )
        elif was is None:
            yield Finding(Fault.ADDED, each.number, _name(row), "was put in after it was sealed")
        elif now is None:
            yield Finding(Fault.MISSING, each.number, _name(row), "is gone")
        else:
            yield Finding(Fault.CHANGED, each.number, _name(row), "is not what was sealed")


def _by_row(contents: bytes) -> dict[bytes, bytes]:
    """Table, key and line -> the beginning of the row's digest."""
    cuts: Sequence[int] = range(0, len(contents), _ROW)
    return {contents[at : at + 12]: contents[at + 12 : at + _ROW] for at in cuts}


def _name(row: bytes) -> str:
    table = _TABLES[int.from_bytes(row[:2])]
    key = int.from_bytes(row[2:10], signed=True)
    line = int.from_bytes(row[10:], signed=True)
    return f"{table} {key}.{line}" if table == "transfers" else f"{table} {key}"


def _of_seal(number: int, detail: str) -> Finding:
    return Finding(Fault.SEAL, number, f"seals {number}", detail)


async def _unsealed(connection: Connection, last: Seal | None) -> int:
    cursor = await connection.execute(
        "SELECT count(*) FROM transfers WHERE entry > %s",
        (last.range.last_entry if last else FIRST,),
    )
    (count,) = await cursor.fetchone() or (0,)
    return int(count)


async def _accounts(connection: Connection, position: Position) -> Page:
    found = await audit.look(connection, position.after)
    return Page(
        [
            Finding(
                Fault.BALANCE,
                0,
                f"accounts {each.account}",
                f"{each.purpose} {each.owner} {each.currency} differs by {each.amount}",
            )
            for each in found.differences
        ],
        accounts=found.accounts,
        next=Position(True, found.last) if found.last else None,
    )
