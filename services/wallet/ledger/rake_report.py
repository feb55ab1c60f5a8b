"""Rake by day, stake, table and player, added up as hands are sealed."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import date, datetime
from enum import IntEnum
from typing import Any, Final, NamedTuple

from psycopg.rows import scalar_row

from services.runtime.postgres import Connection, Database
from services.wallet.attribution import by_contributed, by_dealt
from services.wallet.posting import array

REPORT_MS: Final = 20_000
"""A report over years adds up a line for every day, table and player."""


class Grouping(IntEnum):
    """What a line stands for; the numbers are those of the contract."""

    DAY = 1
    STAKE = 2
    TABLE = 3
    PLAYER = 4


class Line(NamedTuple):
    """A line of a report; what it does not stand for is empty."""

    day: str
    game: int
    stake: str
    table_id: str
    player_id: str
    hands: int
    rake: int
    """Of these hands, minor units."""
    dealt: int
    """The player's part when it is shared equally, thousandths of a unit."""
    contributed: int
    """The player's part when it is shared by what each put in, thousandths of a unit."""


class Report(NamedTuple):
    """Lines, and until when settled hands are in them."""

    lines: list[Line]
    complete_until: datetime


class Question(NamedTuple):
    """What a report is to be about."""

    by: Grouping
    currency: str
    first_day: date = date.min
    last_day: date = date.max
    table_id: str = ""
    """Empty for all."""
    player_id: str = ""
    """Empty for all."""


Place = tuple[str, date, str, int, str]
"""Currency, day, table id, game, stake."""


async def add(connection: Connection, after_entry: int, last_entry: int, time_zone: str) -> None:
    """Add the hands of a run of entries to the reports; a hand that was reversed counts against the
    day of its reversal. Each entry must come once.
    """
    cursor = await connection.execute(
        _HANDS, {"after": after_entry, "last": last_entry, "zone": time_zone}
    )
    tables: defaultdict[Place, list[int]] = defaultdict(lambda: [0, 0])
    players: defaultdict[tuple[int, Place], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for (
        sign,
        currency,
        day,
        table_id,
        game,
        stake,
        rake,
        accounts,
        put_in,
    ) in await cursor.fetchall():
        place = (currency, day, table_id, game, stake)
        _count(tables[place], sign, (1, rake))
        if not accounts:
            continue
        dealt, contributed = by_dealt(rake, len(accounts)), by_contributed(rake, put_in)
        for account, equal, weighted in zip(accounts, dealt, contributed, strict=True):
            _count(players[account, place], sign, (1, rake, equal, weighted))
    if tables:
        await connection.execute(_ADD_TABLES, _columns(tables))
    if players:
        flat = {(*place, account): sums for (account, place), sums in players.items()}
        await connection.execute(_ADD_PLAYERS, _columns(flat))


def _count(sums: list[int], sign: int, more: tuple[int, ...]) -> None:
    for index, amount in enumerate(more):
        sums[index] += sign * amount


def _columns(rows: Mapping[Any, list[int]]) -> list[Any]:
    """Keys and sums as one array for each column, in the order of the keys."""
    ordered = sorted(rows)
    keys = [list(column) for column in zip(*ordered, strict=True)]
    return [*keys, *(array(column) for column in zip(*(rows[k] for k in ordered), strict=True))]


async def report(database: Database, question: Question, after: str | None, limit: int) -> Report:
    """At most `limit` lines with keys above `after`, ascending; keys as `key_of` gives them."""

    async def work(connection: Connection) -> Report:
        await connection.execute(f"SET LOCAL statement_timeout = {REPORT_MS}")
        cursor = await connection.execute(
            _REPORTS[question.by],
            {
                **question._asdict(),
                "after": after,
                "limit": limit,
                "everyone": not question.player_id and question.by is not Grouping.PLAYER,
            },
        )
        lines = [Line(*row) for row in await cursor.fetchall()]
        moment = connection.cursor(row_factory=scalar_row)
        await moment.execute(_COMPLETE_UNTIL)
        until: Any = await moment.fetchone()
        return Report(lines, until)

    return await database.snapshot(work)


def key_of(by: Grouping, line: Line) -> str:
    """What the next page begins after."""
    if by is Grouping.STAKE:
        return f"{line.game}.{line.stake}"
    return {
        Grouping.DAY: line.day,
        Grouping.TABLE: line.table_id,
        Grouping.PLAYER: line.player_id,
    }[by]


_HANDS: Final = """
SELECT CASE WHEN j.reverses IS NULL THEN 1 ELSE -1 END, h.currency,
    (CASE WHEN j.reverses IS NULL THEN coalesce(h.ended, j.at) ELSE j.at END
        AT TIME ZONE %(zone)s)::date,
    coalesce(o.table_id, ''), h.game, h.stake, h.rake, h.players, h.contributed
FROM journal j
JOIN hands h ON h.entry = coalesce(j.reverses, j.id)
JOIN journal o ON o.id = h.entry
WHERE j.id > %(after)s AND j.id <= %(last)s
"""

_ADD_TABLES: Final = """
INSERT INTO rake_by_table (currency, day, table_id, game, stake, hands, rake)
SELECT * FROM unnest(%s::text[], %s::date[], %s::text[], %s::smallint[], %s::text[],
    %s::bigint[], %s::bigint[])
ON CONFLICT (currency, day, table_id, game, stake) DO UPDATE
SET hands = rake_by_table.hands + excluded.hands, rake = rake_by_table.rake + excluded.rake
"""

_ADD_PLAYERS: Final = """
INSERT INTO rake_by_player (currency, day, table_id, game, stake, player, hands, rake, dealt,
    contributed)
SELECT * FROM unnest(%s::text[], %s::date[], %s::text[], %s::smallint[], %s::text[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
ON CONFLICT (currency, player, day, table_id, game, stake) DO UPDATE
SET hands = rake_by_player.hands + excluded.hands, rake = rake_by_player.rake + excluded.rake,
    dealt = rake_by_player.dealt + excluded.dealt,
    contributed = rake_by_player.contributed + excluded.contributed
"""

_COMPLETE_UNTIL: Final = """
SELECT coalesce(min(at), now()) FROM journal WHERE id > (
    SELECT coalesce(max(last_entry), 0)
    FROM (SELECT last_entry FROM seals ORDER BY number DESC LIMIT 1) newest
)
"""
"""Everything settled before the first entry that is not sealed."""


def _query(key: str, shown: str) -> str:
    """A report by `key`; `shown` gives day, game, stake, table and player."""
    return f"""
    WITH counted AS (
        SELECT day, table_id, game, stake, '' AS player_id, hands, rake, 0 AS dealt,
            0 AS contributed
        FROM rake_by_table
        WHERE %(everyone)s AND currency = %(currency)s
            AND day BETWEEN %(first_day)s AND %(last_day)s
            AND %(table_id)s IN ('', table_id)
        UNION ALL
        SELECT day, r.table_id, game, stake, a.owner, hands, rake, dealt, contributed
        FROM rake_by_player r JOIN accounts a ON a.id = r.player
        WHERE NOT %(everyone)s AND r.currency = %(currency)s
            AND day BETWEEN %(first_day)s AND %(last_day)s
            AND %(table_id)s IN ('', r.table_id)
            AND %(player_id)s IN ('', a.owner)
    ),
    keyed AS (SELECT *, ({key}) COLLATE "C" AS key FROM counted)
    SELECT {shown}, sum(hands)::bigint, sum(rake)::bigint, sum(dealt)::bigint,
        sum(contributed)::bigint
    FROM keyed WHERE %(after)s::text IS NULL OR key > %(after)s::text
    GROUP BY key ORDER BY key LIMIT %(limit)s
    """  # noqa: S608 (constants only)


_REPORTS: Final = {
    Grouping.DAY: _query("day::text", "key, 0, '', '', ''"),
    Grouping.STAKE: _query("game::text || '.' || stake", "'', min(game), min(stake), '', ''"),
    Grouping.TABLE: _query("table_id", "'', 0, '', key, ''"),
    Grouping.PLAYER: _query("player_id", "'', 0, '', '', key"),
}
