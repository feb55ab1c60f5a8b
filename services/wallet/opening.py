"""The ledger's database from the moment it can be used: at its newest schema, of this room."""

import asyncio
from pathlib import Path
from typing import Final

from sqlalchemy.exc import OperationalError

from services.runtime.errors import Unavailable
from services.runtime.logs import logger
from services.runtime.postgres import AWAY_RETRY_MS, Database
from services.runtime.schema import upgrade
from services.wallet.ledger.room import settle_shards
from services.wallet.settings import WalletSettings

MIGRATIONS: Final = Path(__file__).parent / "migrations"
RETRY_S: Final = 0.5


class LedgerDatabase:
    """Opens the database in the background, however long that takes, and hands it out when it is
    open; meanwhile everything that needs no database works.
    """

    def __init__(self, settings: WalletSettings) -> None:
        self._url = settings.wallet_database_url.get_secret_value()
        self._shards = settings.shards
        self._wait_s = settings.wallet_database_wait_seconds
        self._opened = asyncio.Event()
        self._database = Database(
            self._url,
            settings.service,
            connections_max=settings.wallet_connections_max,
            wait_s=settings.wallet_database_wait_seconds,
        )

    async def opened(self) -> Database:
        """The database. Raises Unavailable (DATABASE_AWAY) while it is not open."""
        try:
            await asyncio.wait_for(self._opened.wait(), self._wait_s)
        except TimeoutError:
            raise Unavailable(
                "DATABASE_AWAY", "the database is away", retry_after_ms=AWAY_RETRY_MS
            ) from None
        return self._database

    async def wait_until_open(self) -> Database:
        """The database, however long that takes."""
        await self._opened.wait()
        return self._database

    async def open(self) -> None:
        """Bring the schema up and check the room; runs until it is cancelled.

        Raises OtherRoom, and whatever is wrong with a migration: the process must not serve then.
        """
        while not self._opened.is_set():
            try:
                await asyncio.to_thread(upgrade, self._url, MIGRATIONS)
                await self._database.open()
                await settle_shards(self._database, self._shards)
                self._opened.set()
                logger.info("ledger_opened")
            except (OperationalError, Unavailable) as error:
                logger.warning("ledger_not_open", kind=type(error).__name__)
                await asyncio.sleep(RETRY_S)
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()
