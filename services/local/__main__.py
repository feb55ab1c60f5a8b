"""The `doorcard` command."""

import asyncio
import json
import signal
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from typer.core import TyperGroup

from services.local.analyst import equity_command, rank_command
from services.local.announcer import Announcer
from services.local.commands import AsJson, Exit, check_writable, refuse
from services.local.demo import run_demo, write_summary
from services.local.doctor import doctor_command
from services.local.keys import RoomKeys
from services.local.ledger import ledger_app
from services.local.load.command import load_command
from services.local.lock import HomeInUseError
from services.local.logs_command import logs_command
from services.local.paper import paper
from services.local.players_command import players_command
from services.local.replay import replay_command
from services.local.report import report_command
from services.local.room import Room, home_folder
from services.local.rules import rules_app
from services.local.secrets import secrets_command
from services.local.settlement_command import settlement_app
from services.local.supervisor import StartFailedError
from services.local.tables_admin import tables_app
from services.local.top import top_command
from services.runtime.errors import DoorcardError
from services.runtime.roles import Role

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
app.command("load")(load_command)
app.command("top")(top_command)
app.command("players")(players_command)
app.add_typer(rules_app, name="rules")
app.add_typer(tables_app, name="tables")
app.add_typer(ledger_app, name="ledger")
app.add_typer(settlement_app, name="settlement")


@app.command()
def up(
    free_ports: Annotated[
        bool, typer.Option("--free-ports", help="Take any free ports instead of the default ones.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Say what happens as JSON, an object a line.")
    ] = False,
) -> None:
    """Run the whole room on this machine until Ctrl-C. Data and keys stay in DOORCARD_HOME.

    Exit status: 130 it was stopped, 1 the room does not start.
    """
    announcer = Announcer(as_json=as_json)

    async def run() -> int:
        room = Room(
            home_folder(),
            free_ports=free_ports,
            on_change=announcer.change,
            on_wait=announcer.wait,
        )
        async with room:
            announcer.up(room)
            await asyncio.Event().wait()
        return 0

    raise typer.Exit(_until_interrupted(run(), announcer.console))


@app.command()
def demo(
    hands: Annotated[int, typer.Option(min=1, help="Play at least this many hands.")] = 200,
    summary: Annotated[
        Path | None, typer.Option(help="Write the figures to this file, as JSON.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the bots' choices; cards are always random.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Say what happens as JSON, the figures last.")
    ] = False,
) -> None:
    """Let bots play in a room of its own, settle everything, compare.

    Exit status: 0 all agrees, 1 something does not, or the room does not start, 2 the summary
    cannot be written, 130 it was stopped.
    """
    announcer = Announcer(as_json=as_json)
    console = announcer.console
    if summary is not None:
        check_writable(summary, "summary")

    async def run() -> int:
        room = Room(
            home_folder(), free_ports=True, on_change=announcer.change, on_wait=announcer.wait
        )
        async with room:
            found = await run_demo(room, hands, console=console, seed=seed)
        write_summary(found, summary, console)
        if as_json:
            typer.echo(json.dumps(asdict(found)))
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
    as_json: AsJson = False,
) -> None:
    """Print a token that the local room's services believe.

    Exit status: 0, or 2 when subject, name, address or prefix cannot be in a token.
    """
    keys = home_folder() / "keys"
    if not keys.exists():
        typer.echo(f"no room has run in {keys.parent} yet: its keys are made now", err=True)
    signer, roles = RoomKeys(keys).signer, role or [Role.PLAYER]
    try:
        made = signer.mint(subject, roles, hours * 3600, act_for or (), email=email, name=name)
    except ValueError as error:
        refuse(f"no token: {error}")
    if not as_json:
        typer.echo(made)
        return
    entry = {"token": made, "subject": subject, "roles": roles, "holds_s": hours * 3600}
    typer.echo(json.dumps(entry | {"act_for": act_for or []}))


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
            return Exit.INTERRUPTED

    try:
        return asyncio.run(run())
    except (HomeInUseError, StartFailedError, DoorcardError) as error:
        told = paper(stderr=True)
        told.print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        return 1


def main() -> None:
    """Entry point of the command."""
    app()


if __name__ == "__main__":
    main()
