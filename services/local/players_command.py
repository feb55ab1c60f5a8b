"""`doorcard players`: who plays in a room, where, with how much, and what his wallet holds."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer
from doorcard.table.v1 import table_pb2, table_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2
from rich.table import Table

from services.local.commands import (
    CALL_S,
    Address,
    AsJson,
    Tables,
    Token,
    WalletAccess,
    reach,
    refuse,
)
from services.local.paper import paper
from services.local.tables_command import state_name, summaries
from services.local.waiting import progress_bar
from services.runtime.channels import call_sync
from services.runtime.errors import DoorcardError, NotFound

PAGE: Final = 500

Entry = dict[str, Any]


def players_command(
    table: Annotated[str, typer.Option(help="Only this table's players; its id.")] = "",
    player: Annotated[str, typer.Option(help="Only this player; his id.")] = "",
    everybody: Annotated[
        bool, typer.Option("--all", help="Those without a seat, too: everybody with an account.")
    ] = False,
    tables: Tables = "",
    wallet: Address = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """List the players of the running room: seat, stack, and what the wallet holds. A line a seat;
    amounts are minor units.

    Exit status: 0, or 2 when tables or wallet could not be asked.
    """
    stub = table_pb2_grpc.TableServiceStub(reach("tables", tables, token))
    ledger = WalletAccess(wallet, token)
    wanted = [table] if table else _tables_with_players(stub)
    with progress_bar() as progress:
        seated = [
            each
            for view in progress.track(_views(stub, wanted), len(wanted), description="tables")
            for each in _seats(view)
            if player in ("", each["player"])
        ]
        known = sorted({each["player"] for each in seated})
        balances = {
            each: _balances(ledger, each) for each in progress.track(known, description="balances")
        }
    found = [each | _balance(balances[each["player"]], each["currency"]) for each in seated]
    if everybody and not table:
        sits = {(each["player"], each["currency"]) for each in found}
        found += [
            each
            for each in _accounts(ledger, player)
            if (each["player"], each["currency"]) not in sits
        ]
    if as_json:
        typer.echo(json.dumps(found))
    elif found:
        paper().print(_table(found))
    else:
        typer.echo("no such player")


def _tables_with_players(stub: "table_pb2_grpc.TableServiceStub") -> list[str]:
    some = table_pb2.LobbyFilter(players_min=1)
    return [each.config.table_id for each in summaries(stub, some) if each.players]


def _views(
    stub: "table_pb2_grpc.TableServiceStub", table_ids: Sequence[str]
) -> Iterator[table_pb2.TableView]:
    """The tables; one that is gone meanwhile is empty."""
    for table_id in table_ids:
        request = table_pb2.GetTableRequest(table_id=table_id)
        try:
            yield call_sync(stub.GetTable, request, timeout_s=CALL_S).table
        except NotFound:
            yield table_pb2.TableView()
        except DoorcardError as error:
            refuse(str(error))


def _seats(view: table_pb2.TableView) -> Iterator[Entry]:
    for seat in view.seats:
        yield {
            "player": seat.player_id,
            "name": seat.name,
            "table": view.config.table_id,
            "table_name": view.config.name,
            "seat": seat.seat,
            "stack": seat.stack,
            "held": seat.held,
            "state": state_name(table_pb2.SeatState.Name(seat.state)),
            "connected": seat.connected,
            "currency": view.config.currency,
        }


def _balances(ledger: WalletAccess, player: str) -> Sequence[wallet_pb2.Balance]:
    request = wallet_pb2.GetBalanceRequest(player_id=player)
    return ledger.ask(ledger.stub.GetBalance, request).balances


def _balance(balances: Sequence[wallet_pb2.Balance], currency: str) -> Entry:
    """What he has beside the table in its currency."""
    found = next((each for each in balances if each.currency == currency), wallet_pb2.Balance())
    return {"available": found.available, "pending": found.pending, "in_play": found.in_play}


def _accounts(ledger: WalletAccess, player: str) -> Iterator[Entry]:
    """Everybody with an account, as one who sits nowhere."""
    request = wallet_pb2.ListAccountsRequest(
        owner=player, purpose=wallet_pb2.ACCOUNT_PURPOSE_PLAYER, page_size=PAGE
    )
    for page in ledger.pages(ledger.stub.ListAccounts, request):
        for account in page.accounts:
            yield {
                "player": account.owner,
                "name": "",
                "table": "",
                "table_name": "",
                "seat": None,
                "stack": 0,
                "held": 0,
                "state": "closed" if account.closed else "not seated",
                "connected": False,
                "currency": account.currency,
                "available": account.balance - account.pending,
                "pending": account.pending,
                "in_play": None,
            }


def _table(found: Sequence[Entry]) -> Table:
    shown = Table(box=None)
    # Ids are for copying: whole, whatever else has to wrap.
    shown.add_column("player", no_wrap=True)
    for column in ("name", "table"):
        shown.add_column(column, overflow="fold")
    for column in ("seat", "stack"):
        shown.add_column(column, justify="right")
    shown.add_column("state")
    for column in ("available", "in play"):
        shown.add_column(column, justify="right")
    shown.add_column("")
    for each in found:
        away = "" if each["connected"] or each["seat"] is None else ", away"
        shown.add_row(
            each["player"],
            each["name"],
            each["table_name"],
            "" if each["seat"] is None else str(each["seat"]),
            "" if each["seat"] is None else str(each["stack"]),
            f"{each['state']}{away}",
            str(each["available"]),
            "" if each["in_play"] is None else str(each["in_play"]),
            each["currency"],
        )
    return shown
