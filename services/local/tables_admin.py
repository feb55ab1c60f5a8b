"""`doorcard tables pause|resume|close|...`: what operators do with tables, and the audit log."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from uuid import uuid4

import typer
from doorcard.history.v1 import history_pb2, history_pb2_grpc
from doorcard.table.v1 import admin_pb2, admin_pb2_grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.table import Table

from services.local.commands import (
    AsJson,
    Exit,
    Operator,
    Reason,
    Tables,
    Token,
    ask,
    pages,
    reach,
    refuse,
)
from services.local.paper import paper
from services.local.tables_command import tables_command
from services.runtime.clock import milliseconds, utc_text

PAGE: Final = 100

tables_app = typer.Typer(
    help="The tables of a room, what operators do with them, and the audit log.",
    invoke_without_command=True,
    callback=tables_command,
)

TableId = Annotated[str, typer.Argument(metavar="TABLE", help="Id of the table.")]
RequestId = Annotated[
    str, typer.Option("--request-id", help="To try again what may have been done; default: new.")
]
History = Annotated[
    str,
    typer.Option(
        "--history",
        envvar="DOORCARD_HISTORY_ADDRESS",
        help="host:port of the archive; default: the local room's.",
    ),
]


ONE_CALL: Final = "Exit status: 0 done, 2 refused, or the tables could not be asked."


def _add(name: str, method: str, request_type: type[Any], done: str, what: str) -> None:
    """A command that does one thing with a table, for a reason."""

    def command(
        table: TableId,
        reason: Reason,
        request_id: RequestId = "",
        tables: Tables = "",
        token: Token = "",
        operator: Operator = "",
        as_json: AsJson = False,
    ) -> None:
        request = request_type(table_id=table, reason=reason)
        _do(method, request, request_id, (tables, token, operator), done, as_json=as_json)

    tables_app.command(name, help=f"{what}\n\n{ONE_CALL}")(command)


_add(
    "pause",
    "PauseTable",
    admin_pb2.TableAdminServicePauseTableRequest,
    "paused",
    "Begin no new hand, and let clocks stand still.",
)


@tables_app.command("resume")
def resume_command(
    table: TableId,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "",
    request_id: RequestId = "",
    tables: Tables = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Go on after a pause or maintenance.

    Exit status: 0 done, 2 refused, or the tables could not be asked.
    """
    request = admin_pb2.TableAdminServiceResumeTableRequest(table_id=table, reason=reason)
    _do("ResumeTable", request, request_id, (tables, token, operator), "goes on", as_json=as_json)


_add(
    "close",
    "CloseTable",
    admin_pb2.CloseTableRequest,
    "closes",
    "Close a table for good when its hand is over; everybody leaves with his money.",
)
_add(
    "maintain",
    "SetMaintenance",
    admin_pb2.SetMaintenanceRequest,
    "rests",
    "Let the table rest when its hand is over, until `resume`; nobody may take a seat.",
)


@tables_app.command("void")
def void_command(
    table: TableId,
    hand: Annotated[str, typer.Argument(metavar="HAND", help="Id of the running hand.")],
    reason: Reason,
    request_id: RequestId = "",
    tables: Tables = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Give every stake of the running hand back.

    Exit status: 0 done, 2 refused, or the tables could not be asked.
    """
    request = admin_pb2.VoidHandRequest(table_id=table, hand_id=hand, reason=reason)
    access = (tables, token, operator)
    _do("VoidHand", request, request_id, access, "has a void hand", as_json=as_json)


@tables_app.command("remove")
def remove_command(
    table: TableId,
    player: Annotated[str, typer.Argument(metavar="PLAYER", help="Id of the player.")],
    reason: Reason,
    request_id: RequestId = "",
    tables: Tables = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Let a player leave, as if he had left by himself.

    Exit status: 0 done, 2 refused, or the tables could not be asked.
    """
    request = admin_pb2.RemovePlayerRequest(table_id=table, player_id=player, reason=reason)
    access = (tables, token, operator)
    _do("RemovePlayer", request, request_id, access, f"is left by {player}", as_json=as_json)


_add(
    "break",
    "BreakTable",
    admin_pb2.BreakTableRequest,
    "is broken up",
    "Keep the players of a table seats at tables like it, and close it.",
)


@tables_app.command("announce")
def announce_command(
    text: Annotated[str, typer.Argument(metavar="TEXT", help='What; "" takes the last one back.')],
    table: Annotated[str, typer.Option("--table", help="At this table; default: at all.")] = "",
    request_id: RequestId = "",
    tables: Tables = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Say something at one table, or at all tables of the room.

    Exit status: 0 done, 2 refused, or the tables could not be asked.
    """
    request = admin_pb2.AnnounceRequest(table_id=table, text=text)
    _do("Announce", request, request_id, (tables, token, operator), "is told", as_json=as_json)


@tables_app.command("inspect")
def inspect_command(
    table: TableId,
    tables: Tables = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Show everything of a table but cards that are not open to all.

    Exit status: 0, or 2 when the tables could not be asked.
    """
    stub = admin_pb2_grpc.TableAdminServiceStub(reach("tables", tables, token))
    found = ask(stub.InspectTable, admin_pb2.InspectTableRequest(table_id=table))
    shown = MessageToDict(found, preserving_proto_field_name=True)
    if as_json:
        typer.echo(json.dumps(shown))
    else:
        paper().print_json(data=shown)


@tables_app.command("audit")
def audit_command(
    table: Annotated[str, typer.Option("--table", help="Only about this table.")] = "",
    by: Annotated[str, typer.Option("--by", help="Only by this operator.")] = "",
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="ISO 8601, from.")] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="ISO 8601, before.")] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the whole log with its hash chain instead.")
    ] = False,
    history: History = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """List what operators changed, newest first: who, what, why, and what it was before.

    Exit status: 0, 1 when the log does not fit its chain, 2 when the archive could not be asked.
    """
    stub = history_pb2_grpc.HistoryServiceStub(reach("history", history, token))
    if verify:
        _verify(stub, as_json=as_json)
        return
    request = history_pb2.ListAuditRecordsRequest(
        table_id=table,
        operator=by,
        since=_time(since, "--from"),
        until=_time(until, "--to"),
        page_size=PAGE,
    )
    found = [each for page in pages(stub.ListAuditRecords, request) for each in page.entries]
    if as_json:
        typer.echo(json.dumps([_entry(each) for each in found]))
    elif found:
        paper().print(_listed(found))
    else:
        typer.echo("nothing is on record")


def _do(
    method: str,
    request: Any,
    request_id: str,
    access: tuple[str, str, str],
    done: str,
    *,
    as_json: bool,
) -> None:
    """One call of an operator."""
    tables, token, operator = access
    stub = admin_pb2_grpc.TableAdminServiceStub(reach("tables", tables, token, operator))
    request.request_id = request_id or str(uuid4())
    answer: Message = ask(getattr(stub, method), request)
    if as_json:
        said = MessageToDict(
            answer, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        typer.echo(json.dumps({"request": request.request_id, **said}))
    else:
        typer.echo(f"{request.table_id or 'every table'} {done}")


def _verify(stub: "history_pb2_grpc.HistoryServiceStub", *, as_json: bool) -> None:
    request, records = history_pb2.VerifyAuditLogRequest(), 0
    while True:
        found: history_pb2.VerifyAuditLogResponse = ask(stub.VerifyAuditLog, request)
        records += found.records
        if not found.more:
            break
        request = history_pb2.VerifyAuditLogRequest(
            from_number=found.last_number + 1, known_hash=found.last_hash
        )
    if as_json:
        said = {"records": records, "broken_at": found.broken_at, "hash": found.last_hash.hex()}
        typer.echo(json.dumps(said))
    elif found.broken_at:
        typer.echo(f"record {found.broken_at} is missing or was changed")
    else:
        typer.echo(f"{records} records are as they were written; note {found.last_hash.hex()}")
    raise typer.Exit(Exit.FOUND if found.broken_at else Exit.WELL)


def _time(text: str, option: str) -> Timestamp | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        refuse(f"{option}: {text!r} is no time like 2026-11-30T21:00")
    made = Timestamp()
    made.FromDatetime((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC))
    return made


def _entry(logged: history_pb2.AuditEntry) -> dict[str, Any]:
    record = logged.record
    return {
        "number": logged.number,
        "at": utc_text(milliseconds(record.at)),
        "operator": record.operator,
        "roles": list(record.roles),
        "action": record.action,
        "table": record.table_id,
        "subject": record.subject,
        "reason": record.reason,
        "request": record.request_id,
        "changes": [
            {"field": each.field, "before": each.before, "after": each.after}
            for each in record.changes
        ],
        "hash": logged.hash.hex(),
    }


def _listed(found: list[history_pb2.AuditEntry]) -> Table:
    shown = Table(box=None)
    for column in ("number", "at", "operator", "action", "of", "reason", "changes"):
        # Ids are for copying: whole, whatever else has to wrap.
        shown.add_column(column, no_wrap=column == "of", overflow="fold")
    for logged in found:
        each = logged.record
        shown.add_row(
            str(logged.number),
            utc_text(milliseconds(each.at)),
            each.operator,
            each.action,
            each.table_id or each.subject,
            each.reason,
            "; ".join(f"{one.field}: {one.before} > {one.after}" for one in each.changes),
        )
    return shown
