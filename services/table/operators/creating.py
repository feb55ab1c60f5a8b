"""Tables are created: what was asked for, with the rake schedule that holds, and on record."""

from typing import Final

import msgspec
from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.game.rulebook import RakeOnThird
from services.runtime.channels import call
from services.runtime.logs import logger
from services.table.draft import audit
from services.table.draft.audit import Instruction
from services.table.draft.draft import Wallet
from services.table.state import views
from services.table.state.creation import NewTable
from services.table.state.state import Config, Table
from services.table.store.store import Store
from services.table.tables.tables import Tables

WALLET_TIMEOUT_S: Final = 2.0


class Creator:
    """Creates tables. Raises AlreadyExists (TABLE_EXISTS) where another request did."""

    def __init__(self, store: Store, tables: Tables, wallet: Wallet) -> None:
        self._store = store
        self._tables = tables
        self._wallet = wallet

    async def create(
        self, new: NewTable, by: Instruction, *, asked: bytes = b"", template: str = ""
    ) -> Table:
        """Create a table, or find the one that the same request created.

        asked: tells a repeat from another request, where it is not the whole of what a table is to
        be that does. template: its name, for the record.
        """
        config = await self.complete(new)
        if asked:
            config = msgspec.structs.replace(config, request_digest=asked)
        facts = {**facts_of(new.table_id, config), "template": template}
        entry = audit.entry_of(
            by, new.table_id, 0, self._store.now_ms(), {}, facts, currency=config.currency
        )
        table = await self._tables.create(new.table_id, config, entry)
        logger.info("table_created", table=new.table_id, version=table.version)
        return table

    async def complete(self, new: NewTable) -> Config:
        """What the table will be, its rake schedule included. Raises what the wallet says."""
        if not new.rake_schedule_id:
            return new.config
        return msgspec.structs.replace(new.config, rake_schedule=await self._rake_schedule(new))

    async def _rake_schedule(self, new: NewTable) -> bytes:
        """What the schedule says for the table's game and stake, under the house's own rule."""
        shown = views.config(new.table_id, new.config)
        found: wallet_pb2.GetRakeScheduleResponse = await call(
            self._wallet.GetRakeSchedule,
            wallet_pb2.GetRakeScheduleRequest(
                schedule_id=new.rake_schedule_id, game=shown.game, small_bet=shown.stake.small_bet
            ),
            timeout_s=WALLET_TIMEOUT_S,
        )
        if new.rake_on_third is not RakeOnThird.SCHEDULE:
            found.schedule.no_rake_on_third = new.rake_on_third is RakeOnThird.NO
        return found.schedule.SerializeToString()


def facts_of(table_id: str, config: Config) -> dict[str, str]:
    """What a new table is, for the audit log."""
    shown = views.config(table_id, config)
    kind = table_pb2.FormatKind.Name(shown.format.kind).removeprefix("FORMAT_KIND_")
    return {
        "format": kind.lower().replace("_", "-"),
        "name": config.name,
        "rulebook": shown.rulebook,
        "rulebook sha256": shown.rulebook_sha256.hex(),
        "stake": shown.stake.name,
        "seats": str(config.seats),
        "currency": config.currency,
        "rake schedule": shown.rake_schedule_id,
    }
