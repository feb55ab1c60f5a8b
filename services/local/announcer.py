"""What `doorcard up` and `doorcard demo` say while a room starts and runs: lines for people, or a
JSON object a line.
"""

import json
import time
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table

from services.local.lock import IN_USE
from services.local.paper import paper
from services.local.room import Room, home_folder
from services.local.supervisor import Change, State


class Announcer:
    """Says it at once. With `as_json` every line on stdout is an object: a process has `process`,
    `state`, `detail` and `seconds` since the start, a wait `waiting_s`, the room `home` and
    `processes`; what is meant for people goes to stderr.
    """

    def __init__(self, *, as_json: bool, console: Console | None = None) -> None:
        self.console: Final = console or paper(stderr=as_json)
        self._as_json = as_json
        self._began_s = time.monotonic()
        self._seen: set[str] = set()

    def change(self, change: Change) -> None:
        """Something happened to a process."""
        took_s = time.monotonic() - self._began_s
        if self._as_json:
            self._say(
                process=change.name,
                state=str(change.state),
                detail=change.detail,
                seconds=round(took_s, 3),
            )
        elif change.state is State.READY:
            again = " again" if change.name in self._seen else ""
            self._seen.add(change.name)
            self.console.print(f"{took_s:5.1f} s  {change.name} is up{again}", highlight=False)
        elif change.state in (State.WAITING, State.GIVEN_UP):
            self.console.print(f"{change.name} {change.detail}: {change.state}", highlight=False)

    def wait(self, wait_s: float) -> None:
        """Another room has the data folder."""
        if self._as_json:
            self._say(home=str(home_folder()), waiting_s=wait_s)
            return
        self.console.print(
            f"waiting {wait_s:.0f} s at most: {home_folder()} {IN_USE}",
            highlight=False,
            soft_wrap=True,
        )

    def up(self, room: Room) -> None:
        """Everything runs: where."""
        places = [
            {"process": name, "address": room.address(name), "metrics": room.metrics_url(name)}
            for name in room.names()
        ]
        if self._as_json:
            self._say(home=str(room.home), processes=places)
            return
        table = Table(title=f"Doorcard, data in {room.home}")
        for column in ("process", "address", "metrics"):
            table.add_column(column)
        for place in places:
            table.add_row(*place.values())
        self.console.print(table)
        self.console.print("The room is up. Ctrl-C stops it.", highlight=False)

    def _say(self, **what: Any) -> None:
        typer.echo(json.dumps(what))
