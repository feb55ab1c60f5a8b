"""`doorcard logs`: lines of all services of the local room, in the order they were written.

Every line is JSON with the ids of what is going on. Lines of one hand are those that name it, and
those of the calls (`trace`) that do.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from services.local.room import home_folder

LEVELS: Final = ("debug", "info", "warning", "error")
SHOWN_FIRST: Final = ("at", "level", "service", "event")
COLOURS: Final = {"warning": "yellow", "error": "red"}

Line = dict[str, Any]


def logs_command(
    hand: Annotated[str, typer.Option(help="Lines of this hand, across services.")] = "",
    table: Annotated[str, typer.Option(help="Lines of this table.")] = "",
    trace: Annotated[str, typer.Option(help="Lines of this call, across services.")] = "",
    service: Annotated[str, typer.Option(help="Lines of this process.")] = "",
    level: Annotated[str, typer.Option(help=f"At least: {', '.join(LEVELS)}.")] = "debug",
    last: Annotated[int, typer.Option(min=0, help="Only so many, the last; 0: all.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The lines as they are.")] = False,
) -> None:
    """Show what the local room's services logged. Status 1: no such line; 2: no log, bad option."""
    folder = home_folder() / "logs"
    if level not in LEVELS:
        typer.echo(f"level: one of {', '.join(LEVELS)}", err=True)
        raise typer.Exit(2)
    if not folder.is_dir():
        typer.echo(f"{folder}: no room has run here", err=True)
        raise typer.Exit(2)
    found = [line for line in read_all(folder) if at_least(line, level)]
    wanted = {
        key: value
        for key, value in (("table", table), ("trace", trace), ("service", service))
        if value
    }
    found = [line for line in found if wanted.items() <= line.items()]
    if hand:
        found = list(of_hand(found, hand))
    for line in found[-last:]:
        typer.echo(json.dumps(line, ensure_ascii=False) if as_json else shown(line))
    if not found:
        typer.echo("no such line", err=True)
        raise typer.Exit(1)


def read_all(folder: Path) -> list[Line]:
    """Lines of every file, also of those put aside, by their time. What is no JSON is left out."""
    lines: list[Line] = []
    for path in sorted(folder.glob("*.log*")):
        with path.open(encoding="utf-8", errors="replace") as file:
            lines += (line for line in map(_parsed, file) if line is not None)
    return sorted(lines, key=lambda line: str(line.get("at", "")))


def of_hand(lines: Iterable[Line], hand: str) -> Iterator[Line]:
    """Those that name the hand, and those of calls that do."""
    kept = list(lines)
    calls = {line["trace"] for line in kept if line.get("hand") == hand and line.get("trace")}
    for line in kept:
        if line.get("hand") == hand or (line.get("trace") in calls and not line.get("hand")):
            yield line


def at_least(line: Line, level: str) -> bool:
    """Whether a line is of this level or above; one without a level is."""
    of_line = line.get("level", "error")
    return of_line not in LEVELS or LEVELS.index(of_line) >= LEVELS.index(level)


def shown(line: Line) -> str:
    """A line for a reader."""
    at, level, service, event = (str(line.get(key, "")) for key in SHOWN_FIRST)
    facts = " ".join(f"{key}={_fact(line[key])}" for key in line if key not in SHOWN_FIRST)
    name = typer.style(event, fg=COLOURS.get(level), bold=True)
    return f"{at[11:23]} {service:<17} {name} {facts}".rstrip()


def _fact(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"\n{text}" if "\n" in text else text


def _parsed(text: str) -> Line | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
