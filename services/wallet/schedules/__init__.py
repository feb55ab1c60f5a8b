"""Rake schedules, shipped ones and a house's own: one TOML file each, all its versions in it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.wallet.rake import Cap, Rounding, Schedule, schedule_faults

FOLDER = Path(__file__).parent


class ScheduleError(ValueError):
    """A schedule's file does not hold what it should; names the file and every field at fault."""


class Schedules:
    """Every version of every schedule of the folders, in which no id may stand twice. Raises
    ScheduleError.
    """

    def __init__(self, *folders: Path) -> None:
        self._versions: dict[str, tuple[Schedule, ...]] = {}
        for folder in folders or (FOLDER,):
            for path in sorted(folder.glob("*.toml")):
                if path.stem in self._versions:
                    raise ScheduleError(f"{path.name}: there is such a schedule already")
                self._versions[path.stem] = read_versions(path)

    def names(self) -> tuple[str, ...]:
        """Ids of the schedules, ascending."""
        return tuple(self._versions)

    def find(self, schedule_id: str, version: int = 0) -> Schedule | None:
        """A version of a schedule, the newest if 0; None if there is none."""
        versions = self._versions.get(schedule_id, ())
        if not 0 <= version <= len(versions) or not versions:
            return None
        return versions[version - 1]


def read_versions(path: Path) -> tuple[Schedule, ...]:
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


def _read(schedule_id: str, number: int, table: Mapping[str, Any]) -> Schedule:
    fields = dict(table)
    if fields.pop("version") != number:
        raise ValueError(f"version {number} is missing")
    schedule = Schedule(
        schedule_id,
        number,
        caps=tuple(Cap(**cap) for cap in fields.pop("caps", ())),
        rounding=Rounding(fields.pop("rounding", Rounding.DOWN)),
        **fields,
    )
    faults = schedule_faults(schedule)
    if faults:
        raise ValueError("; ".join(f"version {number}: {field} {rule}" for field, rule in faults))
    return schedule
