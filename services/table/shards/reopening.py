"""Reopens closed shards: a new epoch in the ledger, and every table made anew from its escrow.

Any replica does it, several at once do no harm, and one that dies between two steps leaves it to
the next: where a shard stands is in its key, and each step is refused where another has gone on.

1. The shard is closed.
2. Settlement drains what survived in the outbox and continues what the ledger has applied; the rest
   is lost and never applied.
3. The ledger ends the epoch and begins the next one: from here on nothing of the old one counts.
4. The shard begins that epoch too, with an empty outbox and nothing due.
5. Every table is made anew, and escrow that has no seat goes back to its player.
6. The shard is open.

While PostgreSQL or settlement is away, it stays closed and is tried again.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from doorcard.wallet.v1 import wallet_pb2
from prometheus_client import Counter

from services.runtime import failpoints
from services.runtime.channels import call
from services.runtime.errors import DoorcardError
from services.runtime.ids import uuid5_of
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.faults import Loop, passed_over
from services.table.hands.hands import HANDS
from services.table.shards.epochs import Epochs, ShardMoved
from services.table.shards.rebuilding import Losses, Posted, rebuild
from services.table.shards.shards import WALLET_ATTEMPTS, progress_of
from services.table.state import due, frames, views
from services.table.state.lobby_lines import line_of
from services.table.state.state import Blob, Table, decode
from services.table.store.store import Store
from services.table.store.stored import CLOSING_REASONS, Shard, ShardState, Stored, epoch_of

if TYPE_CHECKING:
    from doorcard.wallet.v1.wallet_pb2_grpc import WalletServiceAsyncStub

LOOK_EVERY_S: Final = 1.0
"""Mean pause between two looks at the shards."""
AT_ONCE: Final = 8
"""Shards that one replica reopens at a time."""
TABLES_AT_ONCE: Final = 32
WALLET_TIMEOUT_S: Final = 5.0
SITTINGS_AT_ONCE: Final = 500
"""The most that the wallet pays back in one call."""
ARCHIVE_WAIT_MS: Final = 30_000
"""How long a closed shard waits for the archive to take the hands that the ledger has."""
CONFLICTS_MAX: Final = 8

REOPENED: Final = Counter(
    "doorcard_shards_reopened",
    "Shards that this process rebuilt from the ledger and opened again, by why they were closed.",
    ["reason"],
    registry=REGISTRY,
)
for _reason in CLOSING_REASONS:
    # What never happened is 0, not absent: a rule that looks for it finds it.
    REOPENED.labels(_reason)
PAID_BACK: Final = Counter(
    "doorcard_sittings_paid_back",
    "Sittings that lost their seat with their shard's epoch and whose escrow went back.",
    registry=REGISTRY,
)


@dataclass(slots=True)
class Account:
    """What became of a shard that was rebuilt, for the record."""

    shard: int
    epoch: int
    """The new one."""
    reason: str
    """Why the shard was closed."""
    tables: int = 0
    void_hands: list[str] = field(default_factory=list)
    seats_kept: int = 0
    seats_freed: int = 0
    """By this replica."""
    paid_back: int = 0
    """Sittings whose escrow this replica had paid back."""
    held: int = 0
    """Sittings whose escrow waits, because their tables have parked entries."""

    def add(self, blob: Blob) -> None:
        """A table as it was made anew, by whichever replica."""
        self.tables += 1
        self.seats_kept += len(blob.seats)
        if blob.rebuilt is not None and blob.rebuilt.hand_id:
            self.void_hands.append(blob.rebuilt.hand_id)


def log_account(account: Account) -> None:
    """The record of a reopening in the log. The ledger has its own: the epoch that ended, with its
    last entry, and each payment.
    """
    logger.warning(
        "shard_reopened",
        shard=account.shard,
        epoch=account.epoch,
        reason=account.reason,
        tables=account.tables,
        void_hands=len(account.void_hands),
        seats_kept=account.seats_kept,
        seats_freed=account.seats_freed,
        paid_back=account.paid_back,
        held=account.held,
    )


class Reopening:
    """One replica's part in it.

    record: is told of every shard that this replica opened. archive_wait_ms: how long it waits for
    hands of the old epoch to be archived once the ledger has them.
    """

    def __init__(
        self,
        store: Store,
        wallet: "WalletServiceAsyncStub",
        *,
        record: Callable[[Account], None] = log_account,
        look_every_s: float = LOOK_EVERY_S,
        archive_wait_ms: int = ARCHIVE_WAIT_MS,
    ) -> None:
        self._store = store
        self._epochs = Epochs(store)
        self._wallet = wallet
        self._record = record
        self._look_every_s = look_every_s
        self._archive_wait_ms = archive_wait_ms
        self._waits_for: dict[int, str] = {}
        """Shards that stay closed for now, and for what."""

    async def run(self) -> None:
        """Look after closed shards until cancelled."""
        while True:
            pause_s = self._look_every_s * random.uniform(0.5, 1.5)  # noqa: S311 (no secret)
            await asyncio.sleep(pause_s)
            try:
                await self.once()
            except DoorcardError as error:
                logger.warning("shards_not_looked_at", reason=error.reason)

    async def once(self) -> None:
        """Take every closed shard as far as it goes."""
        every = range(self._store.shards)
        found = await asyncio.gather(*map(self._is_shut, every))
        shut = [shard for shard, is_shut in zip(every, found, strict=True) if is_shut]
        random.shuffle(shut)
        at_once = asyncio.Semaphore(AT_ONCE)

        async def take(shard: int) -> None:
            async with at_once:
                await self.reopen(shard)

        await asyncio.gather(*map(take, shut))

    async def _is_shut(self, shard: int) -> bool:
        with passed_over(Loop.REOPENING, shard):
            return (await self._store.shard_state(shard)).shut
        return False

    async def reopen(self, shard: int) -> bool:
        """Take a closed shard as far as it goes now; True if it is open. Nothing is raised."""
        try:
            found = await self._store.shard(shard)
            if found.state is ShardState.CLOSED:
                progress = await progress_of(self._wallet, shard, WALLET_TIMEOUT_S)
                why = await self._waits(shard, found, progress)
                if why := why or await self._begin_epoch(shard, progress):
                    self._wait(shard, why)
                    return False
                found = await self._store.shard(shard)
            if found.state is ShardState.REBUILDING:
                await self._rebuild(shard, found.epoch, found.reason)
        except ShardMoved:
            logger.info("reopening_left_to_another", shard=shard)
            return False
        except DoorcardError as error:
            self._wait(shard, error.reason)
            return False
        except Exception as error:
            if self._wait(shard, type(error).__name__):
                logger.exception("reopening_failed", shard=shard)
            return False
        self._waits_for.pop(shard, None)
        return True

    def _wait(self, shard: int, why: str) -> bool:
        """It stays closed for now; whether that is news."""
        news = self._waits_for.get(shard) != why
        if news:
            self._waits_for[shard] = why
            logger.warning("shard_stays_closed", shard=shard, waits_for=why)
        return news

    # Steps 1 and 2

    async def _waits(self, shard: int, found: Shard, progress: wallet_pb2.Progress) -> str:
        """What a closed shard still waits for; empty once nothing of its epoch can be saved."""
        if progress.epoch < found.epoch:
            # The ledger was restored to an older state: what the tables know is all there is.
            return "ledger older than the tables"
        read = await self._store.read_outbox(
            shard,
            after_seq=progress.applied_seq,
            limit=1,
            epoch=progress.epoch,
            applied_id=progress.applied_id,
        )
        if read.verdict:
            return ""
        if read.entries:
            first = read.entries[0]
            continues = (
                first.seq == progress.applied_seq + 1
                and first.previous_entry_id == progress.applied_id
            )
            return "settlement" if continues else ""
        entries = (await self._store.backlog(shard)).entries_held - 1
        if entries > 0:
            if self._store.now_ms(shard) - found.closed_ms < self._archive_wait_ms:
                return "archive"
            logger.error("entries_not_archived", shard=shard, entries=entries)
        return ""

    # Steps 3 and 4

    async def _begin_epoch(self, shard: int, progress: wallet_pb2.Progress) -> str:
        """End the epoch in the ledger and begin the next one here; empty, or why not yet."""
        failpoints.reach("reopen.drained")
        ending = await self._epochs.end(shard, progress.epoch, progress.applied_seq)
        failpoints.reach("reopen.noted")
        answer = await call(
            self._wallet.OpenEpoch,
            wallet_pb2.OpenEpochRequest(
                request_id=uuid5_of("open epoch", shard, ending),
                shard=shard,
                expected_epoch=ending,
            ),
            timeout_s=WALLET_TIMEOUT_S,
            attempts=WALLET_ATTEMPTS,
        )
        failpoints.reach("reopen.ledger_opened")
        if answer.progress.epoch != ending + 1 or answer.progress.applied_seq:
            # What was noted is from before the store lost something: the next look notes it anew.
            return "another epoch"
        await self._epochs.begin(shard, ending + 1)
        logger.warning("shard_rebuilding", shard=shard, epoch=ending + 1)
        failpoints.reach("reopen.epoch_begun")
        return ""

    # Steps 5 and 6

    async def _rebuild(self, shard: int, epoch: int, reason: str) -> None:
        answer = await call(
            self._wallet.InspectEscrow,
            wallet_pb2.InspectEscrowRequest(shard=shard),
            timeout_s=WALLET_TIMEOUT_S,
            attempts=WALLET_ATTEMPTS,
        )
        if answer.progress.epoch != epoch or answer.progress.applied_seq:
            found = await self._store.shard(shard)
            if (found.state, found.epoch) == (ShardState.REBUILDING, epoch):
                # The ledger has gone on, so this state of the shard is one that came back.
                await self._store.close_shard(shard, "EPOCH_DIFFERS", epoch=epoch)
            raise ShardMoved
        account = Account(shard, epoch, reason)
        posted = Posted(
            escrow={each.sitting_id: each.amount for each in answer.escrow},
            pending={each.reservation_id for each in answer.pending},
            parked={each.table_id for each in answer.parked},
        )
        seated = await self._rebuild_tables(account, posted)
        failpoints.reach("reopen.tables_rebuilt")
        unseated = [each for each in answer.escrow if each.sitting_id not in seated]
        await self._pay_back(account, unseated)
        failpoints.reach("reopen.paid_back")
        await self._epochs.open(shard, epoch)
        REOPENED.labels(reason).inc()
        self._record(account)

    async def _rebuild_tables(self, account: Account, posted: Posted) -> set[str]:
        """Make every table of the shard anew; the sittings that have a seat then."""
        ids = sorted(await self._store.ids_listed(account.shard))
        seated: set[str] = set()
        for start in range(0, len(ids), TABLES_AT_ONCE):
            part = ids[start : start + TABLES_AT_ONCE]
            for blob in await asyncio.gather(
                *(self._rebuild_table(account, table_id, posted) for table_id in part)
            ):
                if blob is not None:
                    account.add(blob)
                    seated.update(seat.sitting_id for seat in blob.seats.values())
            failpoints.reach("reopen.some_tables_rebuilt")
        return seated

    async def _rebuild_table(self, account: Account, table_id: str, posted: Posted) -> Blob | None:
        """The table as it is written in the new epoch, by whomever; None if it is lost."""
        for _ in range(CONFLICTS_MAX):
            stored = await self._store.load(table_id)
            if stored is None:
                if await self._epochs.forget(account.epoch, table_id):
                    logger.warning("table_lost", table=table_id)
                    return None
                continue
            blob = decode(stored.blob)
            if epoch_of(stored.version) == account.epoch:
                return blob
            at_ms = self._store.now_ms(account.shard)
            losses = rebuild(table_id, blob, posted, at_ms)
            if await self._write(account.epoch, table_id, stored, blob, at_ms):
                _count(account, table_id, losses)
                return blob
        raise ShardMoved

    async def _write(
        self, epoch: int, table_id: str, present: Stored, blob: Blob, at_ms: int
    ) -> bool:
        table = Table(table_id, present, blob)
        table.check()
        told = []
        if blob.rebuilt is not None:
            told.append(views.Told(views.encoded(rebuilt=views.rebuilt(blob.rebuilt))))
        return await self._epochs.write(
            epoch,
            table_id,
            present,
            table.encode(),
            frames.pack(frames.Changed(at_ms, views.events(told))),
            line_of(table),
            due.next_ms(table) or 0,
        )

    async def _pay_back(self, account: Account, sittings: list[wallet_pb2.SittingEscrow]) -> None:
        for start in range(0, len(sittings), SITTINGS_AT_ONCE):
            part = sittings[start : start + SITTINGS_AT_ONCE]
            answer = await call(
                self._wallet.PayBackEscrow,
                wallet_pb2.PayBackEscrowRequest(
                    request_id=uuid5_of("pay back", account.shard, account.epoch, start),
                    shard=account.shard,
                    epoch=account.epoch,
                    sittings=part,
                ),
                timeout_s=WALLET_TIMEOUT_S,
                attempts=WALLET_ATTEMPTS,
            )
            account.paid_back += len(answer.paid_sitting_ids)
            account.held += len(answer.held_sitting_ids)
            PAID_BACK.inc(len(answer.paid_sitting_ids))
            for each in part:
                held = each.sitting_id in answer.held_sitting_ids
                logger.warning(
                    "escrow_held" if held else "escrow_paid_back",
                    table=each.table_id,
                    sitting=each.sitting_id,
                    amount=each.amount,
                    currency=each.currency,
                )
            failpoints.reach("reopen.some_paid_back")


def _count(account: Account, table_id: str, losses: Losses) -> None:
    account.seats_freed += losses.freed
    if losses.hand_id:
        HANDS.labels("void").inc()
    logger.warning(
        "table_rebuilt",
        table=table_id,
        hand=losses.hand_id,
        seats_kept=losses.kept,
        seats_freed=losses.freed,
    )
