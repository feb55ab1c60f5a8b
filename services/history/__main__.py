"""Starts the archive: brings the schema up to date, serves. `python -m services.history`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from doorcard.history.v1 import history_pb2_grpc
from grpc import aio
from sqlalchemy.exc import OperationalError

from services.history.audit import AuditLog
from services.history.mail_limit import MailLimit
from services.history.server import SERVICE_NAME, HistoryServicer, mail_rules
from services.history.settings import HistorySettings
from services.history.store import Archive
from services.runtime.postgres import Database
from services.runtime.schema import upgrade
from services.runtime.server import main, run
from services.runtime.settings import load

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def start() -> NoReturn:
    """Exit status 2 for settings that are wrong, 1 while the database cannot be reached."""
    settings = load(HistorySettings)
    url = settings.history_database_url.get_secret_value()
    try:
        upgrade(url, MIGRATIONS)
    except OperationalError as error:
        print(f"the archive's database: {type(error.orig).__name__}", file=sys.stderr)
        sys.exit(1)
    database = Database(url, settings.service, connections_max=settings.history_connections_max)
    servicer = HistoryServicer(Archive(database, mail_rules(settings)), AuditLog(database))

    async def register(server: aio.Server) -> Sequence[str]:
        await database.open()
        history_pb2_grpc.add_HistoryServiceServicer_to_server(servicer, server)
        return [SERVICE_NAME]

    limit = MailLimit(settings.email_requests_per_hour_and_address)
    main(run(settings, register, on_stop=database.close, gate=limit.admit))


if __name__ == "__main__":
    start()
