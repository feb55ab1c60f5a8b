"""The `doorcard` command."""

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from services.local.analyst import equity_command, rank_command
from services.local.demo import run_demo, write_summary
from services.local.doctor import doctor_command
from services.local.keys import RoomKeys
from services.local.ledger import ledger_app
from services.local.lock import HomeInUseError
from services.local.logs_command import logs_command
from services.local.players_command import players_command
from services.local.replay import replay_command
from services.local.report import report_command
from services.local.room import Room, home_folder
from services.local.rules import rules_app
from services.local.secrets import secrets_command
from services.local.settlement_command import settlement_app
from services.local.supervisor import Change, StartFailedError, State
from services.local.tables_command import tables_command
from services.local.top import top_command
from services.runtime.errors import DoorcardError
from services.runtime.roles import Role

INTERRUPTED: Final = 130
TOKEN_HOURS: Final = 24


class Commands(TyperGroup):
    """The commands. What is wrong with an option is said without the name of a Python class."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


app = typer.Typer(
    cls=Commands,
    help="The back end of a Seven Card Stud room.",
    no_args_is_help=True,
    add_completion=True,
)
app.command("replay")(replay_command)
app.command("rank")(rank_command)
app.command("equity")(equity_command)
app.command("report")(report_command)
app.command("secrets")(secrets_command)
app.command("doctor")(doctor_command)
app.command("logs")(logs_command)
app.command("top")(top_command)
app.command("tables")(tables_command)
app.command("players")(players_command)
app.add_typer(rules_app, name="rules")
app.add_typer(ledger_app, name="ledger")
app.add_typer(settlement_app, name="settlement")


@app.command()
def up(
    free_ports: Annotated[
        bool, typer.Option("--free-ports", help="Take any free ports instead of the default ones.")
    ] = False,
) -> None:
    """Run the whole room on this machine until Ctrl-C. Data and keys stay in DOORCARD_HOME."""
    console = Console()

    async def run() -> int:
        room = Room(
            home_folder(), free_ports=free_ports, on_change=_report(console), on_wait=_wait(console)
        )
        async with room:
            console.print(_places(room))
            console.print("The room is up. Ctrl-C stops it.", highlight=False)
            await asyncio.Event().wait()
        return 0

    raise typer.Exit(_until_interrupted(run(), console))


@app.command()
def demo(
    hands: Annotated[int, typer.Option(min=1, help="Play at least this many hands.")] = 200,
    summary: Annotated[
        Path | None, typer.Option(help="Write the figures to this file, as JSON.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the bots' choices; cards are always random.")
    ] = None,
) -> None:
    """Let bots play in a room of its own, settle everything, compare. Status 0: all agrees."""
    console = Console()
    if summary is not None:
        _check_writable(summary)

    async def run() -> int:
        room = Room(
            home_folder(), free_ports=True, on_change=_report(console), on_wait=_wait(console)
        )
        async with room:
            found = await run_demo(room, hands, console=console, seed=seed)
        write_summary(found, summary, console)
        return 0 if found.ok else 1

    raise typer.Exit(_until_interrupted(run(), console))


@app.command()
def token(
    subject: Annotated[str, typer.Argument(help="Player id, or an operator's name.")],
    role: Annotated[
        list[Role] | None, typer.Option(help="May be given more than once; default: player.")
    ] = None,
    email: Annotated[str, typer.Option(help="Where his hand histories go.")] = "",
    name: Annotated[str, typer.Option(help="His name at the table.")] = "",
    hours: Annotated[float, typer.Option(min=0.01, help="How long it holds.")] = TOKEN_HOURS,
    act_for: Annotated[
        list[str] | None,
        typer.Option(help='Prefix of the players a gateway or cashier acts for; "*" for all.'),
    ] = None,
) -> None:
    """Print a token that the local room's services believe."""
    keys = home_folder() / "keys"
    if not keys.exists():
        typer.echo(f"no room has run in {keys.parent} yet: its keys are made now", err=True)
    signer, roles = RoomKeys(keys).signer, role or [Role.PLAYER]
    try:
        made = signer.mint(subject, roles, hours * 3600, act_for or (), email=email, name=name)
        typer.echo(made)
    except ValueError as error:
        typer.echo(f"subject: {error}", err=True)
        raise typer.Exit(2) from None


def _report(console: Console) -> Callable[[Change], None]:
    began_s = time.monotonic()
    seen: set[str] = set()

    def report(change: Change) -> None:
        if change.state is State.READY:
            again = " again" if change.name in seen else ""
            seen.add(change.name)
            console.print(
                f"{time.monotonic() - began_s:5.1f} s  {change.name} is up{again}", highlight=False
            )
        elif change.state in (State.WAITING, State.GIVEN_UP):
            console.print(f"{change.name} {change.detail}: {change.state}", highlight=False)

    return report


def _wait(console: Console) -> Callable[[float], None]:
    def told(wait_s: float) -> None:
        console.print(
            f"{home_folder()} is in use by another room; waiting {wait_s:.0f} s at most",
            highlight=False,
            soft_wrap=True,
        )

    return told


def _check_writable(summary: Path) -> None:
    """Before hands are played for it. Exit status 2."""
    try:
        summary.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=summary.parent):
            pass
    except OSError as error:
        typer.echo(f"summary: {summary.parent}: {error.strerror}", err=True)
        raise typer.Exit(2) from None


def _places(room: Room) -> Table:
    table = Table(title=f"Doorcard, data in {room.home}")
    for column in ("process", "address", "metrics"):
        table.add_column(column)
    for name in room.names():
        table.add_row(name, room.address(name), room.metrics_url(name))
    return table


def _until_interrupted(work: Coroutine[None, None, int], console: Console) -> int:
    """Exit status of `work`; Ctrl-C and SIGTERM end it cleanly."""

    async def run() -> int:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            console.print("stopped", highlight=False)
            return INTERRUPTED

    try:
        return asyncio.run(run())
    except (HomeInUseError, StartFailedError, DoorcardError) as error:
        console.print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        return 1


def main() -> None:
    """Entry point of the command."""
    app()


if __name__ == "__main__":
    main()
