"""Leaving a table for a seat at another: a player's wish, or a table that is broken up.

Two tables may be on two shards, so there is no one commit for both. First a seat is kept at the
other table, then he leaves this one, now or when his hand is over, then the other learns what he
left with, which is what he has to bring. Cut off after the first, the offer lapses; cut off after
the second, or while a table is broken up, any replica goes on with it (`hands.under_way`). His
money goes through the ledger as always: cash-out, then TakeSeat.
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Coroutine
from typing import Final, NamedTuple

from doorcard.table.v1 import table_pb2
from prometheus_client import Counter

from services.runtime.errors import DoorcardError, FailedPrecondition, InvalidArgument, NotFound
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.draft.draft import Draft, Moved
from services.table.hands import seats, standing, under_way, waiting
from services.table.state import views
from services.table.state.buy_ins import AFTER_HAND, ANYTHING, offer_of
from services.table.state.lobby_lines import read_line
from services.table.state.state import Seat, SeatStatus, Table, TableStatus, player_digest
from services.table.state.times import STANDARD, SeatTimes
from services.table.store.store import Store
from services.table.tables.mailbox import TICKS
from services.table.tables.tables import Tables

SHARDS_AT_ONCE: Final = 16
TRIED_MAX: Final = 8
"""Tables that are asked for a seat before there is none."""
TELLING_MAX: Final = 1000
"""Tables that are being told at once what somebody brings; beyond it the offer lapses."""


TAKEN_UP: Final = Counter(
    "doorcard_table_moves_taken_up",
    "Times that moves between tables were gone on with which were not finished in time, by how it "
    "ended: done, failed.",
    ["outcome"],
    registry=REGISTRY,
)
for _how in ("done", "failed"):
    TAKEN_UP.labels(_how)


class Change(NamedTuple):
    """The seat that is kept, and whether the player has left his own."""

    to_table_id: str
    offer: table_pb2.SeatOffer
    left: bool


class Moves:
    """Changes between tables. All raise NotFound (TABLE_UNKNOWN) and what a commit raises."""

    def __init__(self, store: Store, tables: Tables, times: SeatTimes = STANDARD) -> None:
        self._store = store
        self._tables = tables
        self._times = times
        self._telling: set[asyncio.Task[None]] = set()
        self._taking_up: set[str] = set()
        tables.moved = self._has_left
        tables.unfinished = self._take_up

    async def change_table(self, table_id: str, player_id: str, to_table_id: str = "") -> Change:
        """Keep a seat for the player at the other table, or at one like his, and let him leave.

        Raises FailedPrecondition (NOT_SEATED, LEAVING, NO_TABLE, and at the other table
        ALREADY_SEATED, TABLE_FULL, and those of `waiting.check_open`), CLUB_GAME at either.
        """
        if to_table_id == table_id:
            raise InvalidArgument.of_field("to_table_id", "must be another table")
        table = await self._tables.read(table_id)
        waiting.check_cash(table)
        kept_at = await self._kept_at(table, player_id, to_table_id)
        if not kept_at:
            seat = table.blob.seats[seats.number_of(table, player_id)]
            if seat.status is SeatStatus.LEAVING:
                raise FailedPrecondition("LEAVING", "he leaves when the hand is over")
            kept_at = await self._keep(table, seat, to_table_id)
            if not kept_at:
                raise FailedPrecondition("NO_TABLE", "no other table like this has a free seat")

        async def change(draft: Draft) -> bool:
            return depart(draft, player_id, kept_at)

        left = await self._tables.change(table_id, TICKS, "change_table", change)
        kept = await self._tables.read(kept_at)
        waiter = offer_of(kept, player_id)
        offer = views.offer(kept, waiter) if waiter is not None else table_pb2.SeatOffer()
        return Change(kept_at, offer, left)

    async def break_up(self, table_id: str) -> dict[str, str]:
        """Find everybody at the table a seat at one like it; they leave now, or when the hand is
        over. Player -> the table where a seat is kept for him; empty where there was none: he keeps
        his seat until this table closes. A repeat knows what was found before; who leaves by
        himself is in no answer.
        """
        table = await self._tables.read(table_id)
        waiting.check_cash(table)
        found = {}
        for _, seat in sorted(table.blob.seats.items()):
            if seat.status is not SeatStatus.LEAVING:
                found[seat.player_id] = _target(seat) or await self._keep(table, seat, "")

        async def change(draft: Draft) -> dict[str, str]:
            return _break(draft, found)

        return await self._tables.change(table_id, TICKS, "change_table", change)

    async def finished(self) -> None:
        """Return when every table has been told what its players bring."""
        if self._telling:
            await asyncio.wait(self._telling)

    async def _kept_at(self, table: Table, player_id: str, to_table_id: str) -> str:
        """Where this wish was granted before; empty for nowhere."""
        number = table.seat_of(player_id)
        if number is not None:
            return _target(table.blob.seats[number])
        target = to_table_id or _went_to(table, player_id)
        try:
            kept = bool(target) and offer_of(await self._tables.read(target), player_id) is not None
        except NotFound:
            if to_table_id:
                raise
            return ""
        return target if kept else ""

    async def _keep(self, table: Table, seat: Seat, to_table_id: str) -> str:
        """Keep a seat at the given table or at one that is alike; its id, empty for none."""
        number = seats.number_of(table, seat.player_id)
        plays = table.in_hand(number)
        until_ms = self._store.now_ms() + (
            self._times.hand_elsewhere_ms if plays else self._times.move_ms
        )
        tried = 0
        async for target in self._alike(table, to_table_id):
            brings = (AFTER_HAND if plays else seat.stack) if _is_like(target, table) else ANYTHING

            async def change(draft: Draft, brings: int = brings) -> None:
                waiting.keep(draft, seat.player_id, seat.name, brings, until_ms)

            try:
                await self._tables.change(target.table_id, seat.player_id, "keep_seat", change)
            except (FailedPrecondition, NotFound):
                if to_table_id:
                    raise
                tried += 1
                if tried == TRIED_MAX:
                    break
            else:
                return target.table_id
        return ""

    async def _alike(self, table: Table, to_table_id: str) -> AsyncIterator[Table]:
        """The table asked for; or open ones like this with a free seat, those of random shards
        first.
        """
        if to_table_id:
            yield await self._tables.read(to_table_id)
            return
        shards = list(range(self._store.shards))
        random.shuffle(shards)
        own = views.summary(table)
        for start in range(0, len(shards), SHARDS_AT_ONCE):
            chunk = shards[start : start + SHARDS_AT_ONCE]
            pages = await asyncio.gather(*(self._store.lobby_of(shard) for shard in chunk))
            for table_id, line in (each for page in pages for each in page.items()):
                if not _may_do(own, read_line(line).summary):
                    continue
                try:
                    alike = await self._tables.read(table_id)
                except NotFound:
                    # It is listed and was lost; others are there.
                    continue
                yield alike

    def _has_left(self, moved: Moved) -> None:
        self._begin(moved.from_table_id, self._tell(moved))

    def _take_up(self, table_id: str) -> None:
        if table_id not in self._taking_up:
            self._taking_up.add(table_id)
            self._begin(table_id, self._go_on(table_id))

    def _begin(self, table_id: str, work: Coroutine[None, None, None]) -> None:
        if len(self._telling) >= TELLING_MAX:
            logger.warning("moves_put_off", table=table_id)
            self._taking_up.discard(table_id)
            work.close()
            return
        task = asyncio.create_task(self._noted(table_id, work))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _noted(self, table_id: str, work: Awaitable[None]) -> None:
        try:
            await work
        except DoorcardError as error:
            # It is due again.
            logger.warning("moves_put_off", table=table_id, reason=error.reason)

    async def _go_on(self, table_id: str) -> None:
        """Finish what is under way at a table, whoever began it."""
        outcome = "failed"
        try:
            for player, target, amount in list((await self._tables.read(table_id)).blob.telling):
                await self._tell(Moved(table_id, player, _text_of(target), amount))
            if (await self._tables.read(table_id)).blob.breaks:
                await self.break_up(table_id)
                await self._tables.change(table_id, TICKS, "close_table", _close)
            outcome = "done"
            logger.info("moves_taken_up", table=table_id)
        finally:
            self._taking_up.discard(table_id)
            TAKEN_UP.labels(outcome).inc()

    async def _tell(self, moved: Moved) -> None:
        async def change(draft: Draft) -> None:
            waiting.comes_with(draft, moved.player_id, moved.amount)

        async def told(draft: Draft) -> None:
            entry = (moved.player_id, uuid.UUID(moved.to_table_id).bytes, moved.amount)
            if entry in draft.table.blob.telling:
                draft.table.blob.telling.remove(entry)
                draft.changed = True
                under_way.settle(draft)

        try:
            await self._tables.change(moved.to_table_id, TICKS, "seat_kept", change)
        except NotFound:
            # It was lost with its shard, and what was kept there.
            logger.info("move_not_told", table=moved.to_table_id)
        await self._tables.change(moved.from_table_id, TICKS, "seat_kept", told)


def depart(draft: Draft, player_id: str, to_table_id: str) -> bool:
    """He leaves for a seat at another table. True: he is out; False: he is when the hand is over,
    which he plays to its end.
    """
    number = draft.table.seat_of(player_id)
    if number is None:
        return True
    seat = draft.table.blob.seats[number]
    seat.moves_to = uuid.UUID(to_table_id).bytes
    draft.changed = True
    if draft.table.in_hand(number):
        return False
    seats.remove(draft, number)
    seats.schedule(draft)
    return True


def _break(draft: Draft, found: dict[str, str]) -> dict[str, str]:
    """Those who were found a seat leave, now or when the hand is over; what is known of all now."""
    blob = draft.table.blob
    known = {each: _text_of(to) for each, to in blob.broken}
    for player, target in found.items():
        number = draft.table.seat_of(player)
        if number is None:
            # He is gone, perhaps by another try that was quicker.
            known.setdefault(player, target)
            continue
        known[player] = _target(blob.seats[number]) or target
        if target and not blob.seats[number].moves_to:
            depart(draft, player, target)
    if blob.after_hand is TableStatus.CLOSING:
        broken = [(each, uuid.UUID(to).bytes if to else b"") for each, to in known.items()]
        if broken != blob.broken:
            blob.broken, draft.changed = broken, True
        if blob.hand is not None and blob.breaks:
            # It closes by itself when the hand is over.
            blob.breaks, draft.changed = False, True
            under_way.settle(draft)
    return known


async def _close(draft: Draft) -> None:
    """The end of breaking a table up."""
    await standing.close(draft, draft.table.blob.pause_reason)


def _went_to(table: Table, player_id: str) -> str:
    """Where a player went who left here for another table not long ago; empty for nowhere."""
    player = player_digest(player_id)
    to = (each for known, each in reversed(table.blob.moved) if known == player)
    return _text_of(next(to, b""))


def _target(seat: Seat) -> str:
    return _text_of(seat.moves_to)


def _text_of(table: bytes) -> str:
    return str(uuid.UUID(bytes=table)) if table else ""


def _may_do(own: table_pb2.TableSummary, other: table_pb2.TableSummary) -> bool:
    """Whether another table of the lobby is like one's own and has a seat that nobody sits in."""
    return (
        other.config.table_id != own.config.table_id
        and other.state == int(TableStatus.OPEN)
        and other.players < other.config.seats
        and _likeness(other.config) == _likeness(own.config)
    )


def _is_like(one: Table, other: Table) -> bool:
    return _likeness(views.config("", one.blob.config)) == _likeness(
        views.config("", other.blob.config)
    )


def _likeness(config: table_pb2.TableConfig) -> tuple[object, ...]:
    return (
        config.format.kind,
        config.rulebook_sha256,
        config.stake.SerializeToString(deterministic=True),
        config.currency,
    )
