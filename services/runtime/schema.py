"""Brings a service's database to its newest schema: Alembic under an advisory lock.

A service keeps `migrations/` beside its code: `env.py` with one call of `run_in_alembic()`, and
`versions/`.
"""

import zlib
from pathlib import Path
from typing import Final

import psycopg
from alembic import command, context
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text

LOCK: Final = zlib.crc32(b"doorcard schema")
LOCK_WAIT_MS: Final = 30_000
CONNECT_S: Final = 2


def upgrade(url: str, migrations: Path) -> None:
    """Apply what is missing, all in one transaction; several processes may call it at once.

    url: a libpq connection string. Raises SQLAlchemy's OperationalError while the database is away.
    """
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url, connect_timeout=CONNECT_S)
    )
    try:
        with engine.begin() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
            config = Config()
            config.set_main_option("script_location", str(migrations).replace("%", "%%"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def run_in_alembic() -> None:
    """What `migrations/env.py` does: run within the connection that `upgrade` opened."""
    connection: Connection = context.config.attributes["connection"]
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
