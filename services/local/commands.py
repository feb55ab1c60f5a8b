"""What the commands share: options, exit status, and how they reach the services of a room."""

import getpass
import tempfile
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, TypeVar

import grpc
import typer
from doorcard.wallet.v1 import wallet_pb2_grpc
from google.protobuf.message import Message

from services.local import room_file
from services.local.keys import RoomKeys
from services.local.room import home_folder
from services.runtime.channels import call_sync, connect_sync
from services.runtime.errors import DoorcardError
from services.runtime.ids import is_name
from services.runtime.roles import Role
from services.runtime.settings import ServiceSettings

CALL_S: Final = 30.0
TOKEN_S: Final = 900.0

Response = TypeVar("Response")


class Exit(IntEnum):
    """Exit status of the commands."""

    WELL = 0
    FOUND = 1
    """Faults, differences, or entries or messages that are still parked."""
    NOT_ASKED = 2
    """A service could not be asked, or refused; a file cannot be written."""
    INTERRUPTED = 130
    """Ctrl-C or SIGTERM ended it."""


Address = Annotated[
    str,
    typer.Option(
        "--wallet",
        envvar="DOORCARD_WALLET_ADDRESS",
        help="host:port of the wallet; default: the local room's.",
    ),
]
Tables = Annotated[
    str,
    typer.Option(
        "--tables",
        envvar="DOORCARD_TABLE_ADDRESSES",
        help="host:port of the tables, separated by commas; default: the local room's.",
    ),
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        envvar="DOORCARD_TOKEN",
        show_envvar=True,
        help="An operator's or auditor's token; default: one of the local room's keys.",
    ),
]
Operator = Annotated[
    str, typer.Option("--operator", help="Name for the record, with the local room's keys.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the record.")]


class WalletAccess:
    """The wallet as a command asks it. What goes wrong ends the command with status 2."""

    def __init__(self, address: str, token: str, operator: str = "") -> None:
        channel = reach("wallet", address, token, operator)
        self.stub: Final = wallet_pb2_grpc.WalletServiceStub(channel)

    def ask(self, method: Callable[..., Response], request: Message) -> Response:
        """One answer."""
        return ask(method, request)

    def pages(self, method: Callable[..., Response], request: Any) -> Iterator[Response]:
        """Every page of a list."""
        return pages(method, request)


def refuse(why: str) -> NoReturn:
    """Say why and end the command with status 2."""
    typer.echo(why, err=True)
    raise typer.Exit(Exit.NOT_ASKED)


def check_writable(file: Path, option: str) -> None:
    """Before work is done whose outcome goes there; if it cannot, the command ends with status 2.

    option: by which the file was given.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        refuse(f"{option}: {file.parent}: {error.strerror}")


def reach(service: str, addresses: str, token: str, operator: str = "") -> grpc.Channel:
    """A channel to `wallet` or `tables`: at these addresses, separated by commas, or those of the
    room in this folder. What goes wrong ends the command with status 2.
    """
    try:
        token = token or _local_token(operator)
        places = addresses.split(",") if addresses else _local_addresses(service)
        return connect_sync(places, ServiceSettings(), token=lambda: token)
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "strerror", None) or error
        refuse(f"no {service}: {reason}; start a room here, or say where with --{service}")


def ask(method: Callable[..., Response], request: Message) -> Response:
    """One answer; a refusal ends the command with status 2."""
    try:
        return call_sync(method, request, timeout_s=CALL_S)
    except DoorcardError as error:
        refuse(str(error))


def pages(method: Callable[..., Response], request: Any) -> Iterator[Response]:
    """Every page of a list; a refusal ends the command with status 2."""
    while True:
        page: Any = ask(method, request)
        yield page
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return


def _local_addresses(service: str) -> list[str]:
    places = room_file.read(home_folder())
    return list(places["tables"]) if service == "tables" else [str(places["services"][service])]


def _local_token(operator: str) -> str:
    keys = home_folder() / "keys"
    if not keys.is_dir():
        raise FileNotFoundError(f"{keys} is not there")
    name = operator or getpass.getuser()
    if not is_name(name):
        raise ValueError(f"{name!r} is no possible name of an operator")
    return RoomKeys(keys).signer.mint(name, [Role.OPERATOR, Role.AUDITOR], TOKEN_S)
