"""Leaving a table for a seat at another: a player's wish, or a table that is broken up.

Two tables may be on two shards, so there is no one commit for both. First a seat is kept at the
other table, then he leaves this one, now or when his hand is over, then the other learns what he
left with, which is what he has to bring. Cut off after the first, the offer lapses; after the
second, he has simply left. His money goes through the ledger as always: cash-out, then TakeSeat.
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from doorcard.table.v1 import table_pb2

from services.runtime.errors import DoorcardError, FailedPrecondition, InvalidArgument, NotFound
from services.runtime.logs import logger
from services.table.draft.draft import Draft, Moved
from services.table.hands import seats, waiting
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
        tables.moved = self._has_left

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
        left = await self._leave(table_id, {player_id: kept_at})
        kept = await self._tables.read(kept_at)
        waiter = offer_of(kept, player_id)
        offer = views.offer(kept, waiter) if waiter is not None else table_pb2.SeatOffer()
        return Change(kept_at, offer, player_id in left)

    async def break_up(self, table_id: str) -> dict[str, str]:
        """Find everybody at the table a seat at one like it; they leave now, or when the hand is
        over. Player -> the table where a seat is kept for him; empty where there was none: he keeps
        his seat until this table closes. Who has left already is in no answer.
        """
        table = await self._tables.read(table_id)
        waiting.check_cash(table)
        found = {}
        for _, seat in sorted(table.blob.seats.items()):
            if seat.status is not SeatStatus.LEAVING:
                found[seat.player_id] = _target(seat) or await self._keep(table, seat, "")
        await self._leave(table_id, {player: target for player, target in found.items() if target})
        return found

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

    async def _leave(self, table_id: str, targets: dict[str, str]) -> set[str]:
        """They leave by one commit, now or when the hand is over; who of them is out now."""

        async def change(draft: Draft) -> set[str]:
            return {player for player, target in targets.items() if depart(draft, player, target)}

        return await self._tables.change(table_id, TICKS, "change_table", change)

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
        if len(self._telling) >= TELLING_MAX:
            logger.warning("move_not_told", table=moved.to_table_id)
            return
        task = asyncio.create_task(self._tell(moved))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, moved: Moved) -> None:
        async def change(draft: Draft) -> None:
            waiting.comes_with(draft, moved.player_id, moved.amount)

        try:
            await self._tables.change(moved.to_table_id, TICKS, "seat_kept", change)
        except DoorcardError as error:
            # He has left as by himself; the offer lapses.
            logger.warning("move_not_told", table=moved.to_table_id, reason=error.reason)


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
