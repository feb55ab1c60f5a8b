"""`doorcard settlement`: messages whose work killed its workers and was set aside."""

import getpass
import json
from typing import Annotated, Final

import typer
from redis import Redis

from services.local import room_file
from services.local.commands import AsJson, Exit, Reason, refuse
from services.local.embedded import valkey_url
from services.local.keys import RoomKeys
from services.local.paper import listing, paper
from services.local.room import home_folder
from services.runtime.clock import utc_text
from services.settlement import attempts
from services.settlement.broker import BROKER_AWAY, connect_broker

REASON_MAX: Final = 256

settlement_app = typer.Typer(
    help="Work of settlement that killed its workers again and again, and was set aside.",
    no_args_is_help=True,
)

Broker = Annotated[
    str,
    typer.Option(
        "--broker",
        envvar="DOORCARD_BROKER_URL",
        show_envvar=True,
        help="URL of settlement's broker; default: the local room's.",
    ),
]
Work = Annotated[str, typer.Argument(metavar="WORK", help="As listed, for instance drain-3.")]
Operator = Annotated[str, typer.Option("--operator", help="Name for the record.")]


@settlement_app.command("list")
def list_command(
    decided: Annotated[
        bool, typer.Option("--decisions", help="What operators decided, instead.")
    ] = False,
    broker: Broker = "",
    as_json: AsJson = False,
) -> None:
    """List the work that is set aside, with the message that was last tried.

    Exit status: 0 nothing is, 1 some is, 2 the broker could not be asked.
    """
    client = _client(broker)
    try:
        found = attempts.parked(client)
        decisions = attempts.decisions(client) if decided else []
    except BROKER_AWAY as error:
        refuse(f"the broker: {type(error).__name__}")
    if as_json:
        typer.echo(json.dumps(decisions if decided else [each.fields() for each in found]))
    elif decided:
        if not decisions:
            typer.echo("nothing was decided")
        for each in decisions:
            at = utc_text(each["at_ms"])
            typer.echo(
                f"{at}  {each['decision']} {each['parked']['work']}: {each['reason']}"
                f" ({each['operator']})"
            )
    elif found:
        shown = listing("work", "task", "message", "since", "last", "times")
        for one in found:
            since, last = utc_text(one.since_ms), utc_text(one.last_ms)
            shown.add_row(one.work, one.task, one.message, since, last, str(one.times))
        paper().print(shown)
    else:
        typer.echo("nothing is set aside")
    raise typer.Exit(Exit.FOUND if found else Exit.WELL)


@settlement_app.command("retry")
def retry_command(
    work: Work,
    reason: Reason,
    broker: Broker = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Let its next trigger try it at once. It stays listed until it has succeeded.

    Exit status: 0 done, 2 no such work is set aside, or the broker could not be asked.
    """
    _decide(attempts.retry, work, reason, broker, operator)
    done = {"work": work, "decision": "retry"}
    typer.echo(json.dumps(done) if as_json else f"{work} is tried by its next trigger")


@settlement_app.command("drop")
def drop_command(
    work: Work,
    reason: Reason,
    broker: Broker = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Forget the message and the deaths. No money and no mail goes with it: the next trigger finds
    the work where it is, and may kill as many workers as the first did.

    Exit status: 0 done, 2 no such work is set aside, or the broker could not be asked.
    """
    _decide(attempts.drop, work, reason, broker, operator)
    done = {"work": work, "decision": "drop"}
    typer.echo(json.dumps(done) if as_json else f"{work} is forgotten")


def _decide(
    decision: attempts.Decision, work: str, reason: str, broker: str, operator: str
) -> None:
    if not reason.strip() or len(reason) > REASON_MAX or not reason.isprintable():
        refuse(f"--reason: 1 to {REASON_MAX} printable characters")
    try:
        known = decision(
            _client(broker), work, operator=operator or getpass.getuser(), reason=reason
        )
    except BROKER_AWAY as error:
        refuse(f"the broker: {type(error).__name__}")
    if not known:
        refuse(f"{work} is not set aside")


def _client(broker: str) -> Redis:
    try:
        return connect_broker(broker or _local_broker())
    except (*BROKER_AWAY, ValueError, KeyError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        refuse(f"no broker: {reason}; start a room here, or name a broker with --broker")


def _local_broker() -> str:
    home = home_folder()
    port = int(room_file.read(home)["stores"]["broker"].rpartition(":")[2])
    return valkey_url(port, RoomKeys(home / "keys").password("broker"))
