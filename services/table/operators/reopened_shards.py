"""Puts on record what changes neither a table nor a document: shards that were reopened.

A shard's document holds the last epoch that is on record, so that each is recorded once: by the
replica that opened it, with what became of its tables, or by another if that one died.
"""

import asyncio
from typing import Final

import msgspec

from services.runtime.errors import DoorcardError
from services.runtime.ids import uuid5_of
from services.runtime.logs import logger
from services.runtime.roles import Role
from services.table.draft.audit import Facts, Instruction
from services.table.faults import Loop, passed_over
from services.table.operators.documents import NOTHING, Change, Documents
from services.table.shards.reopening import Account, log_account
from services.table.store.store import Store
from services.table.store.stored import ShardState

LOOK_EVERY_S: Final = 10.0
OPERATOR: Final = "room"
"""Who does what nobody asked for."""
IDS_MAX: Final = 100_000


class ShardRecord(msgspec.Struct, frozen=True, array_like=True):
    """A shard's document."""

    epoch: int
    """The last one on record."""


class ReopenedShards:
    """Puts reopened shards on record."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = Documents(store, ShardRecord)
        self._accounts: dict[int, Account] = {}
        self._known: dict[int, int] = {}
        """Shard -> the epoch that is on record."""
        self._seen: dict[int, int] = {}
        """Shard -> the epoch that was seen last and is left to whoever opened it, once."""

    def told(self, account: Account) -> None:
        """This replica has opened a shard again."""
        log_account(account)
        self._accounts[account.shard] = account

    async def run(self) -> None:
        """Record what is not on record, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.once()
            except DoorcardError as error:
                logger.warning("shards_not_recorded", reason=error.reason)

    async def once(self) -> None:
        """Look at every shard; those that this replica opened come first."""
        shards = range(self._store.shards)
        for shard in sorted(shards, key=lambda each: each not in self._accounts):
            with passed_over(Loop.REOPENED, shard):
                await self._look_at(shard)

    async def _look_at(self, shard: int) -> None:
        found = await self._store.shard(shard)
        nothing = found.epoch <= 1 or found.state is not ShardState.OPEN
        if nothing or self._known.get(shard, 0) >= found.epoch:
            return
        if shard not in self._accounts and self._seen.get(shard) != found.epoch:
            # Whoever opened it knows more of it and comes first.
            self._seen[shard] = found.epoch
            return
        await self._record(shard, found.epoch)
        self._known[shard] = found.epoch
        self._accounts.pop(shard, None)

    async def _record(self, shard: int, epoch: int) -> None:
        account = self._accounts.get(shard)
        ours = account if account is not None and account.epoch == epoch else None
        facts, reason = (_facts(ours), ours.reason) if ours is not None else (NOTHING, "")
        by = Instruction("reopen_shard", OPERATOR, (Role.SERVICE,), f"epoch-{epoch}", reason)

        def decide(present: ShardRecord | None) -> Change[ShardRecord] | None:
            before = present.epoch if present is not None else 0
            if before >= epoch:
                return None
            return Change(
                ShardRecord(epoch),
                by,
                {"epoch": str(before or 1)},
                {"epoch": str(epoch), **facts},
            )

        object_id = self._id_on(shard)
        await self._documents.change(object_id, f"shard {shard}", decide)

    def _id_on(self, shard: int) -> str:
        """An id that belongs to the shard itself: its record needs no other one to be open."""
        for n in range(IDS_MAX):
            object_id = uuid5_of("shard record", shard, n)
            if self._store.shard_of(object_id) == shard:
                return object_id
        raise ValueError(f"no id for shard {shard}")


def _facts(account: Account) -> Facts:
    return {
        "tables": str(account.tables),
        "void hands": " ".join(account.void_hands),
        "seats kept": str(account.seats_kept),
        "seats freed": str(account.seats_freed),
        "paid back": str(account.paid_back),
    }
