"""Tables in memory and what happens to them: load, change, commit, and again on a conflict.

A table that was committed here is kept, but only a commit may rely on it: before a refusal, or when
nothing is to be done, its version is compared with the store's. Every change runs in its table's
mailbox.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, tzinfo
from functools import partial
from typing import Final, TypeVar

from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2
from prometheus_client import Counter

from services.game.wants import ActionKind
from services.runtime import failpoints
from services.runtime.errors import (
    OUR_FAULT,
    Aborted,
    AlreadyExists,
    DoorcardError,
    FailedPrecondition,
    Internal,
    NotFound,
)
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.draft import clock, money
from services.table.draft.draft import Draft, Moved, Services, Stopwatch
from services.table.hands import hands, reservations, seats, standing, under_way
from services.table.hands.hands import Order
from services.table.hands.options import Wish
from services.table.state import due, frames, views
from services.table.state.lobby_lines import line_of
from services.table.state.state import (
    Blob,
    Config,
    Remembered,
    Table,
    TableStatus,
    tombstone,
)
from services.table.state.times import STANDARD, SeatTimes
from services.table.store.store import Store
from services.table.store.stored import (
    Commit,
    Committed,
    Conflict,
    Stored,
    epoch_of,
    table_unknown,
)
from services.table.tables import reserving
from services.table.tables.kept import KeptTables
from services.table.tables.mailbox import TICKS, Mailboxes
from services.table.tables.protection import Claims

CONFLICTS_MAX: Final = 8
"""Times that a change is made anew because another replica was first."""
IDLE_MS: Final = 60_000
"""A table without a hand for so long is idle: who resumes there gets a snapshot."""
OURS_MADE_MAX: Final = 64
"""Times that the room's own changes and its operators' are made: players who act as fast as they
can at another replica do not keep them out."""
OURS_PAUSE_S: Final = 0.02
"""At most, before one of those is made anew once more; by chance, to fall out of step."""
FAULTS_MAX: Final = 5
"""Ticks in a row that fail by our own fault before the table is paused."""
FAULTY_MAX: Final = 1024
"""Tables whose faults are counted at a time; the one that had its last fault first goes."""
EVENTS_KEPT_MAX: Final = 1024
"""Event records of a table, about: half of them go whenever there are twice as many."""

CONFLICTS: Final = Counter(
    "doorcard_table_conflicts", "Changes made anew on another's.", registry=REGISTRY
)
FAULTS: Final = Counter(
    "doorcard_table_tick_faults", "Ticks that failed by our own fault.", registry=REGISTRY
)
PAUSED_BY_US: Final = Counter(
    "doorcard_tables_paused_by_fault", "Tables paused after failing ticks.", registry=REGISTRY
)

_LABELS: Final = {kind: kind.name.lower() for kind in ActionKind}

R = TypeVar("R")
Change = Callable[[Draft], Awaitable[R]]
Published = Callable[[str, int, Mapping[str, bytes]], None]


class Tables:
    """The tables as this replica serves them.

    may_deal: whether a new hand may begin on a shard. kept_max: decoded tables that are kept in
    memory. zone: of the room's days. times: of seats. published: is told of every commit made here:
    table, version, audience -> encoded frame. has_stream: whether a player has a table open on a
    `Play` stream here. is_telling: whether a table is being told that a player came or went.
    not_committed: is told of a table whose commit was not made, as far as anybody knows. moved:
    is told of every player who left for a seat at another table, unfinished of a table whose moves
    somebody has to go on with.
    """

    def __init__(
        self,
        store: Store,
        services: Services,
        may_deal: Callable[[int], Awaitable[bool]],
        *,
        replica_id: str,
        kept_max: int = 4096,
        zone: tzinfo = UTC,
        times: SeatTimes = STANDARD,
    ) -> None:
        self.published: Published = _unpublished
        self.not_committed: Callable[[str], None] = lambda _table: None
        self.moved: Callable[[Moved], None] = lambda _: None
        self.unfinished: Callable[[str], None] = lambda _: None
        self.has_stream: Callable[[str, str], bool] = lambda _table, _player: False
        self.is_telling: Callable[[str, str], bool] = lambda _table, _player: False
        self._store = store
        self._services = services
        self._may_deal = may_deal
        self._replica_id = replica_id
        self._zone = zone
        self._times = times
        self._kept = KeptTables(store, kept_max)
        self._boxes = Mailboxes(self._sits)
        self._committing: set[str] = set()
        self._ticks: dict[str, asyncio.Future[None]] = {}
        self._faults: dict[str, int] = {}

    # What players do

    def act(self, table_id: str, order: Order, arrived_s: float) -> "asyncio.Future[int]":
        """Act in a hand; the version of the commit that took it. Queued before this returns.

        arrived_s: `time.perf_counter()` when it came. Raises ResourceExhausted at once; the future,
        what `hands.act` raises.
        """
        change = partial(hands.act, order=order)
        return self._submit(table_id, order.player_id, _LABELS[order.kind], change, arrived_s)

    def set_options(self, table_id: str, wish: Wish, arrived_s: float) -> "asyncio.Future[int]":
        """Set what a seat does by itself; the version at which it holds. As `act`."""
        change = partial(hands.set_options, wish=wish)
        return self._submit(table_id, wish.player_id, "options", change, arrived_s)

    async def change(self, table_id: str, sender: str, label: str, change: Change[R]) -> R:
        """Whatever else is changed at a table, in its mailbox's turn (`seating`, `moves`,
        `operators`).

        sender: the player whose command it is, or `mailbox.TICKS`. label: in small letters, of
        metrics.
        """
        return await self._do(table_id, sender, label, change)

    async def leave(self, table_id: str, player_id: str) -> tuple[int, bool]:
        """Leave the table: (version, whether he is out now)."""

        async def change(draft: Draft) -> tuple[int, bool]:
            left = await hands.leave(draft, player_id)
            return draft.version_after, left

        return await self._do(table_id, player_id, "leave_seat", change)

    async def sit_out(self, table_id: str, player_id: str) -> int:
        """Be dealt no further hands, or not be waited for; the version at which it holds."""

        async def change(draft: Draft) -> int:
            return await hands.sit_out(draft, player_id)

        return await self._do(table_id, player_id, "sit_out", change)

    async def sit_back(self, table_id: str, player_id: str) -> int:
        """Be dealt in again; the version at which it holds."""

        async def change(draft: Draft) -> int:
            return await seats.sit_back(draft, player_id)

        return await self._do(table_id, player_id, "sit_back", change)

    async def connect(self, table_id: str, player_id: str) -> None:
        """A `Play` stream of his opened here, or his last one here closed: `has_stream` says."""
        table = await self.read(table_id)
        there = self.has_stream(table_id, player_id)
        if not seats.would_connect(table, player_id, self._replica_id, there=there):
            return

        async def change(draft: Draft) -> None:
            there = self.has_stream(table_id, player_id)
            if there and await self._gone(draft, player_id):
                clock.excuse(draft, (player_id,), clock.OUTAGE)
            await seats.connect(draft, player_id, self._replica_id, there=there)
            clock.connection_changed(draft, player_id)

        await self._do(table_id, player_id, "connect", change)

    async def excuse(self, table_id: str, players: Collection[str]) -> None:
        """We are about to cut the streams of these players."""

        async def change(draft: Draft) -> None:
            clock.excuse(draft, players, clock.DEPLOY)

        await self._do(table_id, TICKS, "excuse", change)

    # What the room does

    async def create(self, table_id: str, config: Config, *entries: money.Entry) -> Table:
        """Create a table, or find the one that the same request created.

        entries: for the outbox, by the same commit. Raises AlreadyExists when another request did.
        """
        table = Table(table_id, None, Blob(config, TableStatus.OPEN))
        present = await self._create(table, outbox=entries)
        if present is None:
            return table
        if present.blob.config.request_digest != config.request_digest:
            raise AlreadyExists("TABLE_EXISTS", "this request id created another table")
        await self._store.confirm(table_id)
        return present

    async def tick(self, table_id: str) -> None:
        """Something is due. Failures are counted and logged here; nothing is raised."""
        ticking = self._ticks.get(table_id)
        if ticking is None:
            arrived_s = time.perf_counter()
            try:
                ticking = self._boxes.submit(
                    table_id, TICKS, lambda: self._tick(table_id, arrived_s)
                )
            except DoorcardError:
                return
            self._ticks[table_id] = ticking
            ticking.add_done_callback(lambda _: self._ticks.pop(table_id, None))
        await asyncio.shield(ticking)

    async def resolve_reservation(
        self, table_id: str, reservation_id: str, sitting_id: str
    ) -> bool:
        """What becomes of an old reservation: True if it was seated; else it is refused for good
        and goes back.

        Raises NotFound (RESERVATION_UNKNOWN), FailedPrecondition (TABLE_DIFFERS, SITTING_DIFFERS)
        for one that the ledger does not have for this table and sitting; nothing is changed then.
        """
        found = await self._reserved(table_id, reservation_id, sitting_id)
        reservation = money.bytes_of(reservation_id)
        stored = await self._store.load(table_id)
        if stored is None and await self._bury(table_id, found):
            return False

        epoch = (await self._store.shard(self._store.shard_of(table_id))).epoch

        async def change(draft: Draft) -> bool:
            if epoch_of(draft.table.version) < epoch:
                # A tombstone from before its shard was rebuilt: its entries were lost with that.
                draft.table.blob.remembered.clear()
            return await reservations.resolve(draft, reservation)

        return await self._do(table_id, TICKS, "resolve", change, tombstones=True)

    # Reading

    async def read(self, table_id: str) -> Table:
        """The table as it is in the store; not to be changed, nor kept over an await.

        Raises NotFound (TABLE_UNKNOWN).
        """
        kept = self._kept.get(table_id)
        if kept is not None and not self._boxes.busy(table_id):
            current = await self._kept.is_current(kept)
            if not current or self._boxes.busy(table_id):
                kept = None
        else:
            kept = None
        table = kept or await self._kept.load(table_id)
        if table is None or table.is_tombstone:
            raise table_unknown()
        return table

    async def view(self, table_id: str, viewer: str) -> table_pb2.TableView:
        """The table as the viewer may see it."""
        return views.view(await self.read(table_id), viewer)

    async def compare(self) -> None:
        """Compare every table kept here with the store; a shard that lost something is closed."""
        await self._kept.compare()

    def is_committing(self, table_id: str) -> bool:
        """Whether a commit of the table is under way here."""
        return table_id in self._committing

    async def emptied(self) -> None:
        """Return when no command waits or runs."""
        await self._boxes.emptied()

    # A change, step by step

    async def _do(
        self, table_id: str, sender: str, label: str, change: Change[R], *, tombstones: bool = False
    ) -> R:
        arrived_s = time.perf_counter()
        submitted = self._submit(table_id, sender, label, change, arrived_s, tombstones=tombstones)
        # Who stops waiting does not take back what may be committed already.
        return await asyncio.shield(submitted)

    def _submit(
        self,
        table_id: str,
        sender: str,
        label: str,
        change: Change[R],
        arrived_s: float,
        *,
        tombstones: bool = False,
    ) -> "asyncio.Future[R]":
        async def work() -> R:
            watch, ours = Stopwatch(label, arrived_s), sender == TICKS
            try:
                result = await self._apply(
                    table_id, change, watch, ours=ours, tombstones=tombstones
                )
            except DoorcardError as error:
                watch.stop("failed" if error.code in OUR_FAULT else "refused")
                raise
            except Exception as error:
                watch.stop("failed")
                logger.error("table_fault", table=table_id, action=label, exc_info=error)
                raise Internal("TABLE_FAULT", "the table could not do it") from error
            watch.stop("ok")
            return result

        return self._boxes.submit(table_id, sender, work)

    def _sits(self, table_id: str, player_id: str) -> bool:
        kept = self._kept.get(table_id)
        return kept is not None and kept.seat_of(player_id) is not None

    async def _apply(
        self,
        table_id: str,
        change: Change[R],
        watch: Stopwatch,
        *,
        ours: bool = True,
        tombstones: bool = False,
    ) -> R:
        """ours: the room's own change or an operator's, which is made anew more often."""
        table = self._kept.get(table_id)
        fresh = False
        shard = self._store.shard_of(table_id)
        for made in range(OURS_MADE_MAX if ours else CONFLICTS_MAX):
            if made >= CONFLICTS_MAX:
                await asyncio.sleep(random.uniform(0, OURS_PAUSE_S))  # noqa: S311 (no secret)
                table = None
            if table is None:
                table, fresh = await self._kept.load(table_id), True
            if table is None or (table.is_tombstone and not tombstones):
                raise table_unknown()
            now_ms, times = self._store.now_ms(shard), self._times
            draft = Draft(table, now_ms, self._services, watch, times=times)
            plays = table.hand is not None
            refused: DoorcardError | None = None
            try:
                result = await change(draft)
            except DoorcardError as error:
                refused = error
            except BaseException:
                self._kept.drop(table_id)
                raise
            if refused is None and draft.changed:
                present = await self._commit(draft, plays)
                if present is None:
                    if draft.go_on:
                        await self._go_on(table_id)
                    return result
                table, fresh = present, True
                continue
            newer = None if fresh else await self._kept.newer(table)
            if newer is None:
                self._kept.keep_if_untouched(table)
                if refused is not None:
                    raise refused
                await self._store.confirm(table_id)
                return result
            table, fresh = newer, True
        raise Aborted("TABLE_BUSY", "other changes came first each time", retry_after_ms=100)

    async def _commit(self, draft: Draft, plays: bool) -> Table | None:
        """None when it is committed; else the table as another replica left it. plays: a hand was
        in progress, which ends also where the store has no memory left for anything else.
        """
        table, table_id = draft.table, draft.table.table_id
        # Between hands a player gets what is his there too, if no hand begins by the same commit.
        ends = plays or (table.hand is None and any(each.gives_back for each in draft.outbox))
        with draft.watch.stage("commit"):
            self._committing.add(table_id)
            try:
                commit, told = self._commit_of(draft, when_full=ends)
                failpoints.reach("commit.made")
                outcome = await self._store.commit(commit)
            except BaseException:
                self._not_made(table_id)
                raise
            finally:
                self._committing.discard(table_id)
        if isinstance(outcome, Committed):
            table.stored = Stored(outcome.version, outcome.tag, commit.blob)
            self._kept.keep(table)
            failpoints.reach("commit.done")
            for tell in draft.once_committed:
                tell()
            self.published(table_id, outcome.version, told)
            for each in draft.moved:
                self.moved(each)
            return None
        self._not_made(table_id)
        if isinstance(outcome, Conflict):
            CONFLICTS.inc()
            present = Table.load(table_id, outcome.present)
            self._kept.keep(present)
            return present
        raise outcome.error()

    def _not_made(self, table_id: str) -> None:
        self._kept.drop(table_id)
        self.not_committed(table_id)

    def _commit_of(self, draft: Draft, *, when_full: bool) -> tuple[Commit, frames.Frames]:
        table = draft.table
        table.check()
        changed = frames.Changed(draft.now_ms, views.events(draft.happened, draft.joined))
        commit = Commit(
            table_id=table.table_id,
            expected=table.stored,
            blob=table.encode(),
            event=frames.pack(changed),
            deadline_ms=due.next_ms(table),
            outbox=[entry.item(draft.now_ms) for entry in draft.outbox],
            lobby=line_of(table) if draft.lobby else None,
            not_before_ms=draft.not_before_ms,
            trim_events_below=_trim_below(draft),
            forget_events_ms=0 if table.hand is not None else IDLE_MS,
            when_full=when_full,
        )
        return commit, frames.framed(changed, table.table_id, draft.version)

    async def _go_on(self, table_id: str) -> None:
        """The second commit of a deal. If it fails, the deadline of the first brings a tick."""
        watch = Stopwatch("deal", time.perf_counter())
        try:
            await self._apply(table_id, hands.go_on, watch)
        except Exception as error:
            watch.stop("failed")
            logger.error("deal_failed", table=table_id, exc_info=error)
        else:
            watch.stop("ok")

    async def _tick(self, table_id: str, arrived_s: float) -> None:
        watch = Stopwatch("tick", arrived_s)
        claims = Claims(self._store.allowances, self._zone)

        async def change(draft: Draft) -> None:
            between = draft.table.hand is None
            may_deal = between and await self._may_deal(self._store.shard_of(table_id))
            if may_deal and draft.table.blob.remembered:
                age_ms = await self.undrained_age_ms(table_id)
                reservations.forget(draft.table, draft.now_ms, age_ms)
            if (late := clock.late(draft)) and (gone := await self._gone(draft, late)):
                clock.excuse(draft, (late,), clock.OUTAGE)
                await seats.connect(draft, late, gone, there=False)
            set_ahead_ms = self._store.set_ahead_ms(self._store.shard_of(table_id))
            if late and set_ahead_ms and clock.began_before(draft.table, set_ahead_ms):
                clock.excuse(draft, (late,), clock.CLOCK_SET)
            if under_way.is_due(draft):
                draft.once_committed.append(lambda: self.unfinished(table_id))
            protect = await claims.protect(draft)
            await hands.tick(draft, may_deal=may_deal, protect=protect)

        try:
            await self._apply(table_id, change, watch)
        except Exception as error:
            await claims.settle(committed=False)
            if isinstance(error, NotFound):
                self._faults.pop(table_id, None)
            passing = isinstance(error, DoorcardError) and (
                error.retriable or isinstance(error, NotFound | Aborted)
            )
            if passing:
                watch.stop("refused")
            else:
                watch.stop("failed")
                await self._count_fault(table_id, error)
        else:
            watch.stop("ok")
            self._faults.pop(table_id, None)
            await claims.settle(committed=True)

    async def _count_fault(self, table_id: str, error: Exception) -> None:
        FAULTS.inc()
        faults = self._faults[table_id] = self._faults.pop(table_id, 0) + 1
        if len(self._faults) > FAULTY_MAX:
            del self._faults[next(iter(self._faults))]
        logger.error("tick_failed", table=table_id, times=faults, exc_info=error)
        if faults < FAULTS_MAX:
            return
        watch = Stopwatch("pause", time.perf_counter())

        async def change(draft: Draft) -> int:
            return await standing.pause(draft, "the room cannot go on with this table")

        try:
            await self._apply(table_id, change, watch)
        except Exception as second:
            logger.error("pause_failed", table=table_id, exc_info=second)
            return
        PAUSED_BY_US.inc()
        del self._faults[table_id]

    # What else it takes

    async def _gone(self, draft: Draft, player_id: str) -> str:
        """The replica that his seat says has his stream, if it is dead or it is us without one."""
        number = draft.table.seat_of(player_id)
        before = draft.table.blob.seats[number].connection if number is not None else ""
        if before == self._replica_id:
            whose = (draft.table.table_id, player_id)
            # Who goes just before his time is over was not cut off by us.
            return "" if self.has_stream(*whose) or self.is_telling(*whose) else before
        return before if before and before not in await self._store.live_replicas() else ""

    async def undrained_age_ms(self, table_id: str) -> int:
        """Age of the oldest entry of its shard that the ledger has not applied."""
        return await self._store.undrained_age_ms(self._store.shard_of(table_id))

    async def _create(self, table: Table, outbox: tuple[money.Entry, ...]) -> Table | None:
        """None when it was created; else the table that was there."""
        at_ms = self._store.now_ms()
        line = line_of(table)
        blob = table.encode()
        outcome = await self._store.commit(
            Commit(
                table_id=table.table_id,
                expected=None,
                blob=blob,
                event=frames.pack(frames.Changed(at_ms, {})),
                deadline_ms=None,
                outbox=[entry.item(at_ms) for entry in outbox],
                lobby=None if table.is_tombstone else line,
            )
        )
        if isinstance(outcome, Committed):
            table.stored = Stored(outcome.version, outcome.tag, blob)
            return None
        if isinstance(outcome, Conflict):
            return Table.load(table.table_id, outcome.present)
        raise outcome.error()

    async def _reserved(
        self, table_id: str, reservation_id: str, sitting_id: str
    ) -> wallet_pb2.Reservation:
        """The reservation as the ledger has it, if it is for this table and sitting."""
        found = await reserving.find(self._services.wallet, reservation_id)
        # An entry about a reservation of another table would be parked.
        if found.table_id != table_id:
            raise FailedPrecondition("TABLE_DIFFERS", "the reservation is for another table")
        if found.sitting_id != sitting_id:
            raise FailedPrecondition("SITTING_DIFFERS", "the reservation is for another sitting")
        return found

    async def _bury(self, table_id: str, found: wallet_pb2.Reservation) -> bool:
        """Refuse a reservation for a table that never was; False if the table has appeared."""
        blob = tombstone(found.currency)
        table = Table(table_id, None, blob)
        refused = Remembered(self._store.now_ms(), seated=False)
        blob.remembered[money.bytes_of(found.reservation_id)] = refused
        return await self._create(table, (money.release_of(table, found.reservation_id),)) is None


def _trim_below(draft: Draft) -> int:
    """The last hand begins it all; without hands, changes of seats are not kept for ever."""
    floor = draft.version - EVENTS_KEPT_MAX
    return max(draft.trim_below, floor) if floor % EVENTS_KEPT_MAX == 0 else draft.trim_below


def _unpublished(_table_id: str, _version: int, _frames: Mapping[str, bytes]) -> None:
    """Nobody listens yet."""
