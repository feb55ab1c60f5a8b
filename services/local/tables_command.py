"""`doorcard tables`: the tables of a room, a line each."""

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2, table_pb2_grpc
from rich.table import Table

from services.game.rulebook import Game
from services.local.commands import AsJson, Tables, Token, pages, reach
from services.local.paper import paper

PAGE: Final = 200


class State(StrEnum):
    """States of a table that may be asked for."""

    OPEN = "open"
    PAUSED = "paused"
    CLOSING = "closing"
    MAINTENANCE = "maintenance"
    CLOSED = "closed"


class Format(StrEnum):
    """Formats of a table that may be asked for."""

    CASH = "cash"
    FREEZE_OUT = "freeze_out"
    TIMED = "timed"


def tables_command(
    context: typer.Context,
    game: Annotated[
        list[Game] | None, typer.Option(help="Only this game; may be given more than once.")
    ] = None,
    rulebook: Annotated[str, typer.Option(help="Only tables of this rulebook.")] = "",
    currency: Annotated[str, typer.Option(help="Only tables of this currency.")] = "",
    state: Annotated[
        list[State] | None,
        typer.Option(
            help="Only tables in this state, also more than once; default: all not closed."
        ),
    ] = None,
    table_format: Annotated[
        list[Format] | None,
        typer.Option("--format", help="Only this format, cash or a club game's; also several."),
    ] = None,
    players: Annotated[int, typer.Option(min=0, help="Only tables with so many players.")] = 0,
    free_seats: Annotated[int, typer.Option(min=0, help="Only tables with so many free.")] = 0,
    tables: Tables = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """List the tables of the running room: game, stake, state, players, hands. Amounts are minor
    units.

    Exit status: 0, or 2 when the tables could not be asked.
    """
    if context.invoked_subcommand is not None:
        return
    wanted = table_pb2.LobbyFilter(
        games=[game_pb2.Game.Value(f"GAME_{each.name}") for each in game or ()],
        rulebook=rulebook,
        currency=currency,
        states=[table_pb2.TableState.Value(f"TABLE_STATE_{each.name}") for each in state or ()],
        formats=[
            table_pb2.FormatKind.Value(f"FORMAT_KIND_{each.name}") for each in table_format or ()
        ],
        players_min=players,
        free_seats_min=free_seats,
    )
    stub = table_pb2_grpc.TableServiceStub(reach("tables", tables, token))
    found = [entry(each) for each in summaries(stub, wanted)]
    if as_json:
        typer.echo(json.dumps(found))
    elif found:
        paper().print(_table(found))
    else:
        typer.echo("no such table")


def summaries(
    stub: "table_pb2_grpc.TableServiceStub", wanted: table_pb2.LobbyFilter
) -> Iterator[table_pb2.TableSummary]:
    """Every table that fits, page by page. What goes wrong ends the command with status 2."""
    request = table_pb2.ListTablesRequest(page_size=PAGE, filter=wanted)
    for page in pages(stub.ListTables, request):
        yield from page.tables


def entry(summary: table_pb2.TableSummary) -> dict[str, Any]:
    """A table as JSON."""
    config = summary.config
    return {
        "table": config.table_id,
        "name": config.name,
        "game": game_pb2.Game.Name(config.game).removeprefix("GAME_").lower(),
        "rulebook": config.rulebook,
        "format": format_name(config.format.kind),
        "stake": config.stake.name,
        "currency": config.currency,
        "state": state_name(table_pb2.TableState.Name(summary.state)),
        "players": summary.players,
        "seats": config.seats,
        "waiting": summary.waiting,
        "hands": summary.hands,
        "average_pot": summary.average_pot,
        "hands_per_hour": summary.hands_per_hour,
        "players_per_fourth_street": summary.players_per_fourth_street,
    }


def format_name(kind: table_pb2.FormatKind.ValueType) -> str:
    """A format's name as `--format` takes it."""
    return table_pb2.FormatKind.Name(kind).removeprefix("FORMAT_KIND_").lower()


def state_name(value: str) -> str:
    """A state's name in the contract for people: "open"."""
    return value.partition("_STATE_")[2].lower().replace("_", " ")


def _table(found: list[dict[str, Any]]) -> Table:
    shown = Table("name", "game", "stake", "state", box=None)
    for column in ("players", "hands"):
        shown.add_column(column, justify="right")
    # Ids are for copying: whole, whatever else has to wrap.
    shown.add_column("table", no_wrap=True)
    for each in found:
        waiting = f" +{each['waiting']}" if each["waiting"] else ""
        shown.add_row(
            each["name"],
            f"{each['game']} ({each['rulebook']})",
            f"{each['stake']} {each['currency']}",
            each["state"],
            f"{each['players']}/{each['seats']}{waiting}",
            str(each["hands"]),
            each["table"],
        )
    return shown
