"""The `doorcard load` command."""

import asyncio
import random
import signal
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.status import Status

from services.local.announcer import Announcer
from services.local.commands import AsJson, Exit, check_writable, refuse
from services.local.load.figures import Latencies
from services.local.load.report import Report
from services.local.load.run import OPENING, PLAYING, UNLIMITED, Load, Places, Progress, Wish
from services.local.lock import HomeInUseError
from services.local.paper import paper
from services.local.room import Room, home_folder
from services.local.supervisor import StartFailedError
from services.runtime.errors import DoorcardError

LINE_EVERY_S: Final = 2.0


def load_command(
    tables: Annotated[int, typer.Option(min=1, help="Tables, of six players each.")] = 50,
    rate: Annotated[
        float,
        typer.Option(min=0, help="Actions a second over all tables; without it, think times."),
    ] = 0.0,
    flat_out: Annotated[
        bool, typer.Option("--flat-out", help="Everybody acts as soon as he can.")
    ] = False,
    minutes: Annotated[float, typer.Option(min=0.01, help="How long to play.")] = 1.0,
    gateways: Annotated[
        int | None,
        typer.Option(
            min=1, help="Players come through so many gateways, not on streams of theirs."
        ),
    ] = None,
    running: Annotated[
        bool,
        typer.Option(
            "--running",
            help="Load the room that runs in DOORCARD_HOME (by its room.json and keys).",
        ),
    ] = False,
    at: Annotated[
        str, typer.Option("--at", help="With --running: other addresses of its tables, by commas.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Write the report to this file, as JSON.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of dice and think times; cards are always random.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load a room of its own, or a running one, with tables that are played, and compare the books.

    Players think as in real play (median 3.6 s, 95th percentile 13 s), act at a rate, or flat out.
    A time counts from when its action was due, also where nobody was free to send it. Ctrl-C ends
    it before its time: hands are played to their end, the report is given.

    Exit status: 0 nothing is wrong and the books agree, 1 something is wrong, or the room does not
    start, 2 no room runs, or the report cannot be written, 130 it was stopped, with nothing wrong
    until then.
    """
    if rate and flat_out:
        raise typer.BadParameter("either a rate or flat out")
    if at and not running:
        raise typer.BadParameter("addresses are those of a running room: --running")
    if out is not None:
        check_writable(out, "out")
    seed = random.randrange(2**32) if seed is None else seed  # noqa: S311 (dice, no secret)
    wish = Wish(tables, minutes * 60, gateways or 0, rate, flat_out, seed)
    places = _places(at) if running else None
    try:
        report = asyncio.run(_loaded(wish, places))
    except (HomeInUseError, StartFailedError, DoorcardError) as error:
        typer.secho(str(error), fg="red", err=True)
        raise typer.Exit(1) from None
    if report is None:
        typer.echo("stopped", err=True)
        raise typer.Exit(Exit.INTERRUPTED)
    if out is not None:
        report.write(out)
    typer.echo(report.as_json() if as_json else "\n".join(report.lines()))
    raise typer.Exit(_status(report))


async def _loaded(wish: Wish, places: Places | None) -> Report | None:
    """None if it was stopped before there was anything to report."""
    stop = asyncio.Event()
    with LiveLine(wish) as line:
        if places is not None:
            loading = Load(places, wish, stop, line.show, own_room=False)
            return await _until_stopped(loading.run(), stop, line)
        announcer = Announcer(as_json=False, console=line.console)
        room = Room(
            home_folder(),
            free_ports=True,
            on_change=announcer.change,
            on_wait=announcer.wait,
            extra_env=UNLIMITED,
        )

        async def in_own_room() -> Report:
            async with room:
                own = Places(
                    room.table_addresses,
                    room.address("wallet"),
                    room.address("history"),
                    room.signer,
                )
                loading = Load(own, wish, stop, line.show, own_room=True, restarts=room.restarts)
                return await loading.run()

        return await _until_stopped(in_own_room(), stop, line)


async def _until_stopped(
    work: Coroutine[None, None, Report], stop: asyncio.Event, line: "LiveLine"
) -> Report | None:
    """What it gives. The first signal ends the load with a report, where there can be one; the next
    breaks it off.
    """
    task = asyncio.ensure_future(work)

    def signalled() -> None:
        if stop.is_set() or not line.loads:
            task.cancel()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled)
    try:
        return await task
    except asyncio.CancelledError:
        return None


class LiveLine:
    """The figures while a load runs, on stderr: a line that changes on a terminal, one now and then
    elsewhere.
    """

    def __init__(self, wish: Wish) -> None:
        self.console: Final = paper(stderr=True)
        self.loads = False
        """A load has begun."""
        self._wish = wish
        self._status = Status("", console=self.console)
        self._due_s = 0.0
        self._actions = 0
        self._shown_s = 0.0

    def __enter__(self) -> "LiveLine":
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show(self, progress: Progress) -> None:
        """The present figures, unless they were shown a moment ago."""
        self.loads = True
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        line = self._line(progress, now_s - self._shown_s)
        self._due_s, self._shown_s = now_s + LINE_EVERY_S, now_s
        if self.console.is_terminal:
            self._status.start()
            self._status.update(line)
        else:
            self.console.print(line, highlight=False, soft_wrap=True)

    def _line(self, progress: Progress, passed_s: float) -> str:
        if progress.stage != PLAYING:
            done = f" {progress.opened} of {self._wish.tables}" if progress.stage == OPENING else ""
            return f"{progress.stage}{done}"
        figures = progress.figures
        per_s = (figures.actions - self._actions) / max(0.1, min(passed_s, progress.seconds))
        recent, figures.recent, self._actions = figures.recent, Latencies(), figures.actions
        return (
            f"{progress.seconds:.0f} of {self._wish.seconds:.0f} s: {per_s:.0f} actions/s,"
            f" p50 {recent.percentile_ms(0.5):.1f} ms, p99 {recent.percentile_ms(0.99):.1f} ms,"
            f" owed {progress.owed}; hands {figures.hands},"
            f" refusals {figures.refusals.total()}, resyncs {figures.resyncs},"
            f" reconnects {figures.reconnects}"
        )


def _status(report: Report) -> Exit:
    if not report.ok:
        return Exit.FOUND
    return Exit.INTERRUPTED if report.stopped else Exit.WELL


def _places(at: str) -> Places:
    try:
        found = Places.of(home_folder())
    except FileNotFoundError:
        refuse(f"no room runs in {home_folder()}: start one with `doorcard up`")
    except (OSError, KeyError, ValueError) as error:
        refuse(f"no room runs in {home_folder()}: {error}")
    return replace(found, tables=tuple(at.split(","))) if at else found
