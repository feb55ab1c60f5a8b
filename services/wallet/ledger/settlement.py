"""Runs of outbox entries, applied once each, in order, in one transaction with the progress row.

The usual case is a handful of statements over the whole batch. Only when the database itself
refuses a row is the batch done again entry by entry, each in a savepoint.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncCursor
from psycopg.rows import args_row, scalar_row

from services.runtime import failpoints
from services.runtime.errors import InvalidArgument
from services.runtime.postgres import Connection, Database
from services.wallet.entries import (
    ENTRIES_MAX,
    CashOut,
    Commit,
    Entry,
    Hand,
    Parked,
    Progress,
    Release,
    State,
)
from services.wallet.ledger import accounts, shards
from services.wallet.money import CURRENCIES
from services.wallet.posting import (
    HandRow,
    HouseAccounts,
    JournalRow,
    Posting,
    Reservation,
    TransferRow,
    array,
)

_REFUSED_BY_DATABASE = (psycopg.IntegrityError, psycopg.DataError)
_REASONS = {"journal_hand": "HAND_SETTLED_BEFORE"}
"""Constraint -> why the entry is parked."""


async def apply_entries(
    database: Database, shard: int, epoch: int, entries: Sequence[Entry]
) -> tuple[Progress, list[Parked]]:
    """Apply or park every entry after `applied_seq`; how far it came and what was parked.

    Repeating it does nothing. Raises InvalidArgument (BAD_BATCH), Aborted (EPOCH_MOVED),
    FailedPrecondition (SEQ_GAP, LINK_BROKEN); then nothing was applied.
    """
    _check_chain(entries)

    async def together(connection: Connection) -> tuple[Progress, list[Parked]]:
        before, remaining = await _remaining(connection, shard, epoch, entries)
        if not remaining:
            return before, []
        posting = await load(connection, shard, remaining)
        posting.post_all(remaining)
        progress = _after(before, remaining)
        await write(connection, posting, progress)
        await _write_parked(connection, shard, epoch, posting)
        failpoints.reach("wallet.applying")
        return progress, posting.summary_of_parked()

    async def one_by_one(connection: Connection) -> tuple[Progress, list[Parked]]:
        before, remaining = await _remaining(connection, shard, epoch, entries)
        parked: list[Parked] = []
        for entry in remaining:
            posting = await posted_alone(connection, shard, entry)
            await _write_parked(connection, shard, epoch, posting)
            parked += posting.summary_of_parked()
        progress = _after(before, remaining)
        if remaining:
            await shards.advance(connection, progress)
        return progress, parked

    try:
        done = await database.transaction(together)
    except _REFUSED_BY_DATABASE:
        done = await database.transaction(one_by_one)
    failpoints.reach("wallet.applied")
    return done


def _check_chain(entries: Sequence[Entry]) -> None:
    if len(entries) > ENTRIES_MAX:
        raise InvalidArgument.of_field("entries", f"at most {ENTRIES_MAX}", "BAD_BATCH")
    for before, entry in pairwise(entries):
        if entry.seq != before.seq + 1:
            raise InvalidArgument.of_field("entries", "ascending without gaps", "BAD_BATCH")
        if entry.previous_id != before.entry_id:
            raise InvalidArgument.of_field("entries", "each names the one before", "BAD_BATCH")


async def _remaining(
    connection: Connection, shard: int, epoch: int, entries: Sequence[Entry]
) -> tuple[Progress, Sequence[Entry]]:
    """How far the shard is applied, with its row locked, and the entries after that."""
    progress = await shards.locked(connection, shard)
    shards.check_epoch(progress, epoch)
    passed = sum(entry.seq <= progress.applied_seq for entry in entries)
    if passed and entries[passed - 1].seq == progress.applied_seq:
        if entries[passed - 1].entry_id != progress.applied_id:
            raise shards.broken_link(progress)
    elif passed < len(entries):
        shards.check_next(progress, entries[passed].seq, entries[passed].previous_id)
    return progress, entries[passed:]


def _after(before: Progress, applied: Sequence[Entry]) -> Progress:
    if not applied:
        return before
    return before._replace(applied_seq=applied[-1].seq, applied_id=applied[-1].entry_id)


async def posted_alone(
    connection: Connection, shard: int, entry: Entry, *, again: bool = False
) -> Posting:
    """One entry in a savepoint; one that the database refuses twice is set aside, not written.

    Twice, because a Release can meet a Reserve that commits only now, and then sees it. again: it
    is parked already, and may be posted although its table has parked entries.
    """
    reason = ""
    for _ in range(2):
        try:
            async with connection.transaction():
                posting = await load(connection, shard, [entry])
                if again:
                    posting.parked_tables.discard(entry.table_id)
                posting.post_all([entry])
                await write(connection, posting)
                return posting
        except _REFUSED_BY_DATABASE as error:
            reason = _REASONS.get(error.diag.constraint_name or "", "REFUSED_BY_DATABASE")
    posting = Posting({}, {}, {}, set(), iter(()))
    posting.park(entry, reason)
    return posting


async def load(connection: Connection, shard: int, entries: Sequence[Entry]) -> Posting:
    """Everything the entries name. Rows of escrow and reservations are safe under the shard's lock;
    players' accounts are locked here, in order. Journal numbers are drawn after the locks, so that
    they ascend in every account.
    """
    works = [entry.work for entry in entries]
    reservation_ids = [work.reservation_id for work in works if isinstance(work, Commit | Release)]
    cashed_out = {work.sitting_id for work in works if isinstance(work, CashOut)}
    in_hands = {
        sitting
        for work in works
        if isinstance(work, Hand)
        for sitting, _ in work.dealt_in + work.nets
    }
    currencies = {entry.currency for entry in entries if isinstance(entry.work, Hand)}
    async with connection.pipeline():
        parked_tables = await _parked_tables(connection, shard)
        found_houses = await _houses(connection, shard)
        found_escrow = await accounts.load_escrow(
            connection, cashed_out | in_hands, reservation_ids
        )
        found_reservations = await _reservations(connection, reservation_ids)
        escrow = await found_escrow.fetchall()
        reservations = {each.id: each for each in await found_reservations.fetchall()}
        bought_in = {reservation.escrow for reservation in reservations.values()}
        locked = await accounts.lock(
            connection,
            {each.player for each in escrow if each.owner in cashed_out or each.id in bought_in},
        )
        drawn = await _draw_numbers(connection, len(entries))
        loaded = [*escrow, *await locked.fetchall()]
        houses = dict(await found_houses.fetchall())
        for currency in sorted((currencies & CURRENCIES) - houses.keys()):
            houses[currency] = await _make_houses(connection, shard, currency)
        return Posting(
            accounts={account.id: account for account in loaded},
            reservations=reservations,
            houses=houses,
            parked_tables=set(await parked_tables.fetchall()),
            numbers=iter(await drawn.fetchall()),
        )


async def _parked_tables(connection: Connection, shard: int) -> AsyncCursor[str]:
    cursor = connection.cursor(row_factory=scalar_row)
    return await cursor.execute(
        "SELECT DISTINCT table_id FROM parked WHERE shard = %s AND resolved IS NULL", (shard,)
    )


async def _reservations(
    connection: Connection, reservation_ids: list[str]
) -> AsyncCursor[Reservation]:
    cursor = connection.cursor(row_factory=args_row(_reservation_row))
    return await cursor.execute(
        "SELECT id::text, state, table_id, coalesce(amount, 0), coalesce(player, 0),"
        " coalesce(escrow, 0) FROM reservations WHERE id = ANY(%s::uuid[])",
        (reservation_ids,),
    )


async def _draw_numbers(connection: Connection, count: int) -> AsyncCursor[int]:
    cursor = connection.cursor(row_factory=scalar_row)
    return await cursor.execute(
        "SELECT nextval('journal_id_seq') FROM generate_series(1, %s)", (count,)
    )


async def _houses(connection: Connection, shard: int) -> AsyncCursor[tuple[str, HouseAccounts]]:
    """The shard's own by currency, so that no hand waits for another shard's."""
    cursor = connection.cursor(row_factory=args_row(_house_row))
    return await cursor.execute(
        "SELECT c.currency, c.id, h.id FROM accounts c"
        " JOIN accounts h ON h.purpose = 'house' AND h.owner = c.owner AND h.currency = c.currency"
        " WHERE c.purpose = 'control' AND c.owner = %s",
        (_owner(shard),),
    )


async def _make_houses(connection: Connection, shard: int, currency: str) -> HouseAccounts:
    return HouseAccounts(
        await accounts.make(connection, "control", _owner(shard), currency),
        await accounts.make(connection, "house", _owner(shard), currency),
    )


def _owner(shard: int) -> str:
    return f"shard-{shard}"


def _house_row(currency: str, control: int, house: int) -> tuple[str, HouseAccounts]:
    return currency, HouseAccounts(control, house)


def _reservation_row(reservation_id: str, state: int, *rest: Any) -> Reservation:
    return Reservation(reservation_id, State(state), *rest)


_Row = JournalRow | TransferRow | HandRow


class _Into(NamedTuple):
    """How rows travel into a table: by COPY, or a few by INSERT."""

    table: str
    columns: str
    line: str
    """Of COPY; what it holds is quoted, or needs no quoting."""

    @property
    def copy(self) -> str:
        """The statement that takes `line` for each row."""
        return f"COPY {self.table} ({self.columns}) FROM STDIN (NULL 'None')"

    @property
    def insert(self) -> str:
        """The statement that takes one row as parameters."""
        places = ", ".join(["%s"] * len(self.columns.split(", ")))
        return f"INSERT INTO {self.table} ({self.columns}) VALUES ({places})"  # noqa: S608 (constants)


_JOURNAL: Final = _Into("journal", "id, kind, source, table_id, hand_id", "%d\t%d\t%s\t%s\t%s\n")
_TRANSFERS: Final = _Into(
    "transfers",
    "entry, line, debit, credit, amount, kind, player, balance",
    "%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n",
)
_HANDS: Final = _Into(
    "hands",
    "entry, currency, game, stake, ended, rake, players, contributed",
    "%d\t%s\t%d\t%s\t%s\t%d\t%s\t%s\n",
)
_QUOTED: Final = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})

INSERTED_MAX: Final = 40
"""Rows of a batch up to which INSERTs are faster, since they wait for no answer."""


def _quoted(row: HandRow) -> HandRow:
    """For COPY; the backslash keeps a stake that is called None from being nothing."""
    stake = row[3].translate(_QUOTED)
    return (*row[:3], r"\None" if stake == "None" else stake, *row[4:])


async def _copy(connection: Connection, into: _Into, rows: Sequence[_Row]) -> None:
    """By far the fastest way in for many."""
    async with connection.cursor().copy(into.copy) as copying:
        await copying.write("".join([into.line % row for row in rows]))


async def write(connection: Connection, posting: Posting, progress: Progress | None = None) -> None:
    """Every row of the batch but what was set aside, and how far the shard is applied by it."""
    written: list[tuple[_Into, Sequence[_Row]]] = [
        (_JOURNAL, posting.journal),
        (_TRANSFERS, posting.transfers),
        (_HANDS, posting.hands),
    ]
    filled = [(into, rows) for into, rows in written if rows]
    few = posting.rows <= INSERTED_MAX
    if not few:
        for into, rows in filled:
            quoted = [_quoted(row) for row in posting.hands] if into is _HANDS else rows
            await _copy(connection, into, quoted)
    async with connection.pipeline():
        if few:
            for into, rows in filled:
                await connection.cursor().executemany(into.insert, rows)
        if posting.balances or posting.set_aside:
            await accounts.change(connection, posting.balances, posting.set_aside)
        if posting.closed:
            await accounts.close(connection, posting.closed)
        if posting.ended:
            await _end_reservations(connection, posting)
        if posting.never_made:
            await _shut_reservations(connection, posting)
        if progress is not None:
            await shards.advance(connection, progress)


async def _end_reservations(connection: Connection, posting: Posting) -> None:
    ids, states, entry_ids = zip(*posting.ended, strict=True)
    await connection.execute(
        "UPDATE reservations SET state = new_state, ended_by = entry_id, ended = now()"
        " FROM unnest(%s::uuid[], %s::smallint[], %s::uuid[])"
        " AS over (reservation_id, new_state, entry_id) WHERE id = reservation_id",
        (list(ids), array(states), list(entry_ids)),
    )


async def _shut_reservations(connection: Connection, posting: Posting) -> None:
    ids, tables, entry_ids = zip(*posting.never_made, strict=True)
    await connection.execute(
        "INSERT INTO reservations (id, state, table_id, ended_by, ended)"
        " SELECT reservation_id, %s, table_id, entry_id, now()"
        " FROM unnest(%s::uuid[], %s::text[], %s::uuid[])"
        " AS over (reservation_id, table_id, entry_id)",
        (State.RELEASED, list(ids), list(tables), list(entry_ids)),
    )


async def _write_parked(connection: Connection, shard: int, epoch: int, posting: Posting) -> None:
    if not posting.parked:
        return
    entries = [entry for entry, _ in posting.parked]
    await connection.execute(
        "INSERT INTO parked (shard, epoch, seq, entry_id, table_id, reason, content)"
        " SELECT %s, %s, * FROM unnest(%s::bigint[], %s::uuid[], %s::text[], %s::text[],"
        " %s::bytea[])",
        (
            shard,
            epoch,
            array(entry.seq for entry in entries),
            [entry.entry_id for entry in entries],
            [entry.table_id for entry in entries],
            [reason for _, reason in posting.parked],
            [entry.content() for entry in entries],
        ),
    )
