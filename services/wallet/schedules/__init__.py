"""Rake schedules, shipped ones and a house's own: one TOML file each, all its versions in it.

A version holds for every table, or has rows that hold from a small bet on and for some games; what
a row does not set is as the version says.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from services.game.rulebook import Game
from services.wallet.rake import Cap, Rounding, Schedule, Step, schedule_faults

FOLDER = Path(__file__).parent


class ScheduleError(ValueError):
    """A schedule's file does not hold what it should; names the file and every field at fault."""


class Row(NamedTuple):
    """What a version says for some tables."""

    small_bet_from: int
    """Minor units; 0 for every stake."""
    games: frozenset[Game]
    """None for every game."""
    schedule: Schedule

    def holds(self, game: Game | None, small_bet: int) -> bool:
        """Whether it says something of a table; None and 0 are for what holds for every table."""
        return self.small_bet_from <= small_bet and (not self.games or game in self.games)


Version = tuple[Row, ...]


class Schedules:
    """Every version of every schedule of the folders, in which no id may stand twice. Raises
    ScheduleError.
    """

    def __init__(self, *folders: Path) -> None:
        self._versions: dict[str, tuple[Version, ...]] = {}
        for folder in folders or (FOLDER,):
            for path in sorted(folder.glob("*.toml")):
                if path.stem in self._versions:
                    raise ScheduleError(f"{path.name}: there is such a schedule already")
                self._versions[path.stem] = read_versions(path)

    def names(self) -> tuple[str, ...]:
        """Ids of the schedules, ascending."""
        return tuple(self._versions)

    def versions(self, schedule_id: str) -> int:
        """How many versions it has; 0 if there is no such schedule."""
        return len(self._versions.get(schedule_id, ()))

    def find(
        self, schedule_id: str, version: int = 0, game: Game | None = None, small_bet: int = 0
    ) -> Schedule | None:
        """What a version of a schedule, the newest if 0, says for a game and stake (minor units).

        None if there is none, or if it says nothing for that table. Of the rows that hold, the one
        with the greatest small bet goes first, and one for named games before one for all.
        """
        versions = self._versions.get(schedule_id, ())
        if not 0 <= version <= len(versions) or not versions:
            return None
        rows = [row for row in versions[version - 1] if row.holds(game, small_bet)]
        best = max(rows, key=lambda row: (row.small_bet_from, bool(row.games)), default=None)
        return best and best.schedule


def read_versions(path: Path) -> tuple[Version, ...]:
    """The versions in a file, from 1 without gaps; the file's name is the schedule's id."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["versions"]
        versions = tuple(
            _read(path.stem, number, table) for number, table in enumerate(tables, start=1)
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise ScheduleError(f"{path.name}: {error}") from error
    if not versions:
        raise ScheduleError(f"{path.name}: no versions")
    return versions


def _read(schedule_id: str, number: int, table: Mapping[str, Any]) -> Version:
    fields = dict(table)
    if fields.pop("version") != number:
        raise ValueError(f"version {number} is missing")
    tables = fields.pop("rows", [{}])
    rows = tuple(_read_row(schedule_id, number, {**fields, **row}) for row in tables)
    places = [(row.small_bet_from, game) for row in rows for game in row.games or (None,)]
    if not rows or len(set(places)) != len(places):
        raise ValueError(f"version {number}: rows: one for each small bet and game")
    return rows


def _read_row(schedule_id: str, number: int, fields: dict[str, Any]) -> Row:
    small_bet_from = fields.pop("small_bet_from", 0)
    games = frozenset(Game(game) for game in fields.pop("games", ()))
    schedule = Schedule(
        schedule_id,
        number,
        caps=tuple(Cap(**cap) for cap in fields.pop("caps", ())),
        staircase=tuple(Step(**step) for step in fields.pop("staircase", ())),
        rounding=Rounding(fields.pop("rounding", Rounding.DOWN)),
        **fields,
    )
    faults = schedule_faults(schedule)
    if type(small_bet_from) is not int or small_bet_from < 0:
        faults.append(("small_bet_from", "must be 0 or more, in minor units"))
    if faults:
        raise ValueError("; ".join(f"version {number}: {field} {rule}" for field, rule in faults))
    return Row(small_bet_from, games, schedule)
