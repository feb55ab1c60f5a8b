"""`doorcard doctor`: looks whether everything is as a room needs it, and says what to do."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table

from services.local import room_file
from services.local.checks import (
    Check,
    Finding,
    State,
    database,
    keys,
    machine,
    nodes_of,
    ports,
    processes,
    tables_redis,
)
from services.local.embedded import postgres_url, valkey_url
from services.local.keys import RoomKeys
from services.local.paper import paper
from services.local.room import DATABASES, home_folder
from services.local.waiting import progress_bar
from services.runtime.listen import split_listen

STYLES: Final = {
    State.WELL: "green",
    State.DOUBTFUL: "yellow",
    State.WRONG: "red",
    State.SKIPPED: "dim",
}


def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Check ports, versions, keys, clocks, schemas, Redis; say what to do. Status 1: something is
    wrong.

    Looks at the local room, and at stores that DOORCARD_TABLE_REDIS_URL,
    DOORCARD_WALLET_DATABASE_URL and DOORCARD_HISTORY_DATABASE_URL name.
    """
    home = home_folder()
    findings: list[Finding] = []
    with progress_bar() as progress:
        checks = list(checks_of(home))
        task = progress.add_task("looking", total=len(checks))
        for check in checks:
            findings.extend(check())
            progress.advance(task)
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in findings]))
    else:
        paper().print(_table(findings))
    raise typer.Exit(int(any(each.state is State.WRONG for each in findings)))


def checks_of(home: Path) -> Iterator[Check]:
    """Everything that can be looked at here."""
    room = room_file.find(home)
    yield lambda: machine(home)
    yield lambda: ports(room)
    yield lambda: keys(home)
    yield lambda: processes(room)
    redis_url, databases = _stores(home, room)
    if redis_url:
        for at, node_url in nodes_of(redis_url).items():
            yield lambda node_url=node_url, at=at: tables_redis(node_url, at)  # type: ignore[misc]
    for name, url in databases.items():
        yield lambda name=name, url=url: database(name, url)  # type: ignore[misc]


def _stores(home: Path, room: dict[str, Any] | None) -> tuple[str, dict[str, str]]:
    """URLs of the tables' Redis and of the databases: from the environment, or the local room's."""
    redis_url = os.environ.get("DOORCARD_TABLE_REDIS_URL", "")
    databases = {
        name: url
        for name in DATABASES
        if (url := os.environ.get(f"DOORCARD_{name.upper()}_DATABASE_URL"))
    }
    if room is None:
        return redis_url, databases
    passwords = RoomKeys(home / "keys").password
    at = {name: split_listen(address)[1] for name, address in room["stores"].items()}
    local = {name: postgres_url(at["postgres"], name, passwords(name), name) for name in DATABASES}
    return redis_url or valkey_url(at["valkey"], passwords("valkey")), local | databases


def _table(findings: list[Finding]) -> Table:
    table = Table(title="Doorcard: how it is here", title_justify="left")
    for column in ("", "what", "found", "what to do"):
        table.add_column(column)
    for each in findings:
        style = STYLES[each.state]
        table.add_row(f"[{style}]{each.state}[/]", each.check, each.found, each.do)
    return table
