"""Scheduled tables: what is to be opened and closed when, and what of it is done.

An occurrence is the n-th opening, counted from 0. It comes again by the room's clock: at the same
local time, also where summer time begins or ends in between.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from doorcard.table.v1 import admin_pb2

from services.runtime.clock import MS_PER_S, timestamp, utc_text
from services.runtime.errors import FailedPrecondition, InvalidArgument, NotFound
from services.runtime.ids import uuid5_of
from services.table.draft.audit import Facts, Instruction
from services.table.operators.documents import Change, Documents
from services.table.state.state import digest, is_repeat
from services.table.store.store import Store

SHELF: Final = "schedules"
TABLES_MAX: Final = 100
AHEAD_MAX_MS: Final = 5 * 366 * 86_400_000
MISSED_MAX: Final = 10_000
"""Openings that an outage made us miss, over which a schedule steps at once."""
DAYS: Final = {admin_pb2.REPEAT_DAILY: 1, admin_pb2.REPEAT_WEEKLY: 7}


class Schedule(msgspec.Struct, frozen=True, array_like=True):
    """A schedule as it is stored."""

    template: str
    opens_ms: int
    """The first time."""
    closes_ms: int
    """Of the first time; 0 for never."""
    tables: int
    repeat: int
    """`doorcard.table.v1.Repeat`."""
    zone: str
    """IANA name."""
    operator: str
    roles: tuple[str, ...]
    request_id: str
    reason: str
    asked: bytes
    """`digest` of the request that made it."""
    next: int = 0
    """The occurrence that opens next."""
    open: tuple[int, ...] = ()
    """Occurrences that were opened and will be closed."""
    cancelled: bool = False
    fault: str = ""
    """Why the last try to open or close something failed."""

    def times(self, occurrence: int) -> tuple[int, int]:
        """(opens, closes) in milliseconds; closes is 0 for never."""
        opens = self._at(self.opens_ms, occurrence)
        return opens, self._at(self.closes_ms, occurrence) if self.closes_ms else 0

    @property
    def opens_again(self) -> bool:
        """Whether something is still to be opened."""
        return not self.cancelled and (self.next == 0 or self.repeat in DAYS)

    @property
    def due_ms(self) -> int | None:
        """When the next thing is to be done; None when everything is."""
        due = [self.times(each)[1] for each in self.open]
        if self.opens_again:
            due.append(self.times(self.next)[0])
        return min(due, default=None)

    @property
    def facts(self) -> Facts:
        """For the audit log."""
        opens_ms, closes_ms = self.times(self.next)
        return {
            "template": self.template,
            "opens": utc_text(opens_ms) if self.opens_again else "",
            "closes": utc_text(closes_ms) if closes_ms else "",
            "tables": str(self.tables),
            "repeat": admin_pb2.Repeat.Name(admin_pb2.Repeat.ValueType(self.repeat)),
            "time zone": self.zone,
            "cancelled": "yes" if self.cancelled else "",
        }

    def _at(self, first_ms: int, occurrence: int) -> int:
        """The same time by the room's clock, so many repeats later."""
        first = datetime.fromtimestamp(first_ms / MS_PER_S, tz=UTC)
        days = timedelta(days=DAYS.get(admin_pb2.Repeat.ValueType(self.repeat), 0) * occurrence)
        local = first.astimezone(ZoneInfo(self.zone)) + days
        return round(local.timestamp() * MS_PER_S)


def table_id(schedule_id: str, occurrence: int, number: int) -> str:
    """The id of a scheduled table: the same whoever opens it, so that it is opened once."""
    return uuid5_of("scheduled table", schedule_id, occurrence, number)


def shown(schedule_id: str, schedule: Schedule) -> admin_pb2.ScheduledTable:
    """In the contract's words."""
    scheduled = admin_pb2.ScheduledTable(
        schedule_id=schedule_id,
        template=schedule.template,
        tables=schedule.tables,
        repeat=admin_pb2.Repeat.ValueType(schedule.repeat),
        time_zone=schedule.zone,
        cancelled=schedule.cancelled,
        open_table_ids=[
            table_id(schedule_id, occurrence, number)
            for occurrence in schedule.open
            for number in range(schedule.tables)
        ],
        scheduled_by=schedule.operator,
        fault=schedule.fault,
    )
    if schedule.opens_again:
        opens_ms, closes_ms = schedule.times(schedule.next)
        scheduled.opens_at.CopyFrom(timestamp(opens_ms))
        if closes_ms:
            scheduled.closes_at.CopyFrom(timestamp(closes_ms))
    return scheduled


class Schedules:
    """The schedules. Everything raises what `documents.Documents` does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.documents: Final = Documents(store, Schedule)

    async def add(self, wanted: Schedule, by: Instruction) -> tuple[str, Schedule]:
        """Schedule tables, once for each request of an operator: (its id, as it is).

        Raises InvalidArgument for times that are none.
        """
        schedule_id = uuid5_of("schedule", by.operator, by.request_id)

        def decide(present: Schedule | None) -> Change[Schedule] | None:
            if present is not None and is_repeat(present.asked, wanted.asked):
                return None
            check_times(wanted, self._store.now_ms())
            return Change(wanted, by, {}, wanted.facts)

        if await self.documents.would_change(schedule_id, decide):
            # Listed before it is there: what is listed and not there is passed over.
            await self._store.shelves.put(SHELF, schedule_id, str(wanted.opens_ms))
        return schedule_id, _there(await self.documents.change(schedule_id, schedule_id, decide))

    async def page(self, after: str, limit: int) -> tuple[list[tuple[str, Schedule]], str]:
        """Schedules by id after one, and the last id that was looked at ("" at the end)."""
        listed = sorted(await self._store.shelves.read(SHELF))
        ids = [each for each in listed if each > after][:limit]
        found = await asyncio.gather(*map(self.documents.load, ids))
        kept = [(each, doc.content) for each, doc in zip(ids, found, strict=True) if doc]
        return kept, ids[-1] if len(ids) == limit else ""

    async def cancel(self, schedule_id: str, by: Instruction) -> Schedule:
        """Open nothing more. Raises NotFound (SCHEDULE_UNKNOWN)."""

        def decide(present: Schedule | None) -> Change[Schedule] | None:
            schedule = _there(present)
            if schedule.cancelled:
                return None
            gone = msgspec.structs.replace(schedule, cancelled=True)
            return Change(gone, by, schedule.facts, gone.facts)

        return _there(await self.documents.change(schedule_id, schedule_id, decide))

    async def uses(self, template: str) -> bool:
        """Whether something is still to be opened from a template."""
        ids = await self._store.shelves.read(SHELF)
        found = await asyncio.gather(*map(self.documents.load, ids))
        return any(
            each is not None and each.content.template == template and each.content.opens_again
            for each in found
        )


def wanted_of(request: admin_pb2.ScheduleTableRequest, zone: str, by: Instruction) -> Schedule:
    """The schedule that is asked for. Raises InvalidArgument."""
    if not 0 <= request.tables <= TABLES_MAX:
        raise InvalidArgument.of_field("tables", f"must be 0 to {TABLES_MAX}")
    if request.repeat not in admin_pb2.Repeat.values():
        raise InvalidArgument.of_field("repeat", "must be one of the repeats")
    if not request.HasField("opens_at"):
        raise InvalidArgument.of_field("opens_at", "must be given")
    return Schedule(
        template=request.template,
        opens_ms=request.opens_at.seconds * MS_PER_S,
        closes_ms=request.closes_at.seconds * MS_PER_S if request.HasField("closes_at") else 0,
        tables=request.tables or 1,
        repeat=request.repeat,
        zone=zone,
        operator=by.operator,
        roles=by.roles,
        request_id=by.request_id,
        reason=by.reason,
        asked=digest(
            by.request_id,
            (by.action, request.SerializeToString(deterministic=True)),
        ),
    )


def check_times(wanted: Schedule, now_ms: int) -> None:
    """Raises InvalidArgument for times that no table can be opened and closed at."""
    if not now_ms - MS_PER_S * 60 <= wanted.opens_ms <= now_ms + AHEAD_MAX_MS:
        raise InvalidArgument.of_field("opens_at", "must be from now on, within five years")
    if not wanted.closes_ms:
        return
    until_ms = wanted.times(1)[0] if wanted.repeat in DAYS else wanted.opens_ms + AHEAD_MAX_MS
    if not wanted.opens_ms < wanted.closes_ms <= until_ms:
        raise InvalidArgument.of_field("closes_at", "must be after opens_at, before the next one")


def skipped(schedule: Schedule, now_ms: int) -> Schedule:
    """Without the occurrences that were missed: those whose tables would be closed again by now,
    and those after which the next one has opened.
    """
    for _ in range(MISSED_MAX):
        opens_ms, closes_ms = schedule.times(schedule.next)
        over = bool(closes_ms) and closes_ms <= now_ms
        next_too = schedule.repeat in DAYS and schedule.times(schedule.next + 1)[0] <= now_ms
        if not schedule.opens_again or opens_ms > now_ms or not (over or next_too):
            break
        schedule = msgspec.structs.replace(schedule, next=schedule.next + 1)
    return schedule


def _there(schedule: Schedule | None) -> Schedule:
    if schedule is None:
        raise NotFound("SCHEDULE_UNKNOWN", "there is no such schedule")
    return schedule


def in_use(template: str) -> FailedPrecondition:
    """TEMPLATE_IN_USE: a schedule still opens tables from it."""
    return FailedPrecondition(
        "TEMPLATE_IN_USE", "a schedule opens tables from it", metadata={"template": template}
    )
