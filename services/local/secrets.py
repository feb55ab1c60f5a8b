"""`doorcard secrets`: the keys, passwords and tokens of a room that runs in containers, as files.

A folder of its own, readable by its owner only. What is there is kept: a second call adds what is
missing and mints the services' tokens anew.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Final

import typer

from services.local.keys import RoomKeys
from services.local.room import DATABASES
from services.runtime.roles import Role

DAY_S: Final = 24 * 3600
PASSWORDS: Final = ("postgres", "wallet", "history", "table_redis", "broker", "grafana")
CALLERS: Final = ("table", "settlement")
"""Services that call others and so need a token."""


def secrets_command(
    out: Annotated[Path, typer.Option(help="The folder.")] = Path("deploy/compose/secrets"),
    room: Annotated[str, typer.Option(help="The room's name, part of everything sealed.")] = "room",
    days: Annotated[int, typer.Option(min=1, help="How long the services' tokens hold.")] = 365,
    postgres: Annotated[str, typer.Option(help="host:port of PostgreSQL.")] = "postgres:5432",
    redis: Annotated[
        str, typer.Option(help="host:port of the tables' Redis, or of some nodes of a cluster.")
    ] = "tables-redis:6379",
    redis_cluster: Annotated[
        bool, typer.Option("--redis-cluster", help="The tables' Redis is a Redis Cluster.")
    ] = False,
    broker: Annotated[str, typer.Option(help="host:port of Celery's Redis.")] = "broker:6379",
    as_json: Annotated[bool, typer.Option("--json", help="Name the files as JSON.")] = False,
) -> None:
    """Make the keys, passwords and tokens of a room in containers; what is there is kept.

    Exit status: 0, or 2 when the folder cannot be written.
    """
    try:
        names = write_secrets(
            out,
            room=room,
            days=days,
            postgres=postgres,
            redis=redis,
            redis_cluster=redis_cluster,
            broker=broker,
        )
    except OSError as error:
        typer.echo(f"out: {error.filename or out}: {error.strerror}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps({"out": str(out), "files": names}))
    else:
        typer.echo(f"{out}: {len(names)} files")


def write_secrets(
    out: Path,
    *,
    room: str,
    days: int,
    postgres: str,
    redis: str,
    broker: str,
    redis_cluster: bool = False,
) -> list[str]:
    """Write every file; their names. Raises OSError where the folder cannot be written."""
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    keys = RoomKeys(out / "keys", room)
    passwords = {name: keys.password(name) for name in PASSWORDS}
    scheme = "redis+cluster" if redis_cluster else "redis"
    files = {
        "auth_keys.json": keys.auth_keys_file.read_text(encoding="utf-8"),
        "table_seal.json": keys.seal_keys_file("table").read_text(encoding="utf-8"),
        "shuffler_seal.json": keys.seal_keys_file("shuffler").read_text(encoding="utf-8"),
        "shuffler_receipts.json": keys.receipt_keys_file().read_text(encoding="utf-8"),
        **{f"{name}_password": password for name, password in passwords.items()},
        **{
            f"{name}_token": keys.signer.mint(name, [Role.SERVICE], days * DAY_S)
            for name in CALLERS
        },
        **{
            f"doorcard_{name}_database_url": f"postgresql://{name}:{passwords[name]}@{postgres}/{name}"
            for name in DATABASES
        },
        "doorcard_table_redis_url": f"{scheme}://:{passwords['table_redis']}@{redis}/0",
        "doorcard_broker_url": f"redis://:{passwords['broker']}@{broker}/0",
    }
    for name, content in files.items():
        _write(out / name, content)
    _once(out / "on_call_url", "http://127.0.0.1:9/put-in-your-own\n")
    return [*files, "on_call_url"]


def _write(path: Path, content: str) -> None:
    # The folder keeps others out. In a container the file belongs to nobody that runs there.
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(content, encoding="utf-8")
    draft.chmod(0o644)
    os.replace(draft, path)


def _once(path: Path, content: str) -> None:
    if not path.exists():
        _write(path, content)
