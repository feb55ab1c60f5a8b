"""Carries out what is scheduled, and says at every table what is said in the whole room.

One replica does it at a time, and it would be right if all did: a scheduled table's id follows from
its schedule, so that it is created once, and is closed once.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final

import msgspec
from prometheus_client import Counter

from services.runtime.errors import DoorcardError, NotFound
from services.runtime.ids import uuid5_of
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.draft.audit import REASON_MAX, Instruction
from services.table.faults import Loop, passed_over
from services.table.operators.creating import Creator
from services.table.operators.documents import Change, Documents
from services.table.operators.operators import Operators
from services.table.operators.schedules import SHELF, Schedule, Schedules, skipped, table_id
from services.table.operators.templates import Templates
from services.table.state.creation import NAME_MAX, new_table
from services.table.state.state import digest, is_repeat
from services.table.store.store import Store

EVERY_S: Final = 1.0
TOLD_AT_ONCE: Final = 32
"""Tables that are told an announcement at once."""
ANNOUNCEMENT_ID: Final = uuid5_of("room", "announcement")
ANNOUNCEMENT: Final = "announcement"
ANNOUNCEMENTS: Final = "announcements"
"""The list that has it while some tables may not."""

DONE: Final = Counter(
    "doorcard_scheduled_tables",
    "Tables that a schedule opened or closed, and rounds that failed.",
    ["outcome"],
    registry=REGISTRY,
)
for _outcome in ("opened", "closed", "failed"):
    DONE.labels(_outcome)


class Announcement(msgspec.Struct, frozen=True, array_like=True):
    """What is said in the whole room."""

    text: str
    number: int
    """1 up with every one."""
    asked: bytes
    """`digest` of the request."""
    told: bool = False
    """Every table has it."""


class Scheduler:
    """What one replica does for the room."""

    def __init__(
        self,
        store: Store,
        templates: Templates,
        schedules: Schedules,
        creator: Creator,
        operators: Operators,
    ) -> None:
        self._store = store
        self._templates = templates
        self._schedules = schedules
        self._creator = creator
        self._operators = operators
        self._announcements = Documents(store, Announcement)
        self._faults: dict[str, str] = {}
        """Why the last try failed, of what is listed."""

    async def run(self) -> None:
        """Look for what is due until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                if await self._store.shelves.my_turn():
                    await self.once()
            except DoorcardError as error:
                logger.warning("schedules_not_read", reason=error.reason)

    async def once(self) -> None:
        """Do what is due."""
        now_ms = self._store.now_ms()
        listed = await self._store.shelves.read(SHELF)
        for gone in self._faults.keys() - listed.keys() - {ANNOUNCEMENT}:
            del self._faults[gone]
        for schedule_id, due_ms in listed.items():
            with passed_over(Loop.SCHEDULES, schedule_id):
                if int(due_ms) <= now_ms:
                    await self._try(schedule_id, self._attend(schedule_id))
        if await self._store.shelves.read(ANNOUNCEMENTS):
            await self._try(ANNOUNCEMENT, self._spread())

    async def _try(self, name: str, work: Awaitable[None]) -> None:
        """What fails is tried every second and told once; nothing is raised."""
        try:
            await work
        except Exception as error:
            DONE.labels("failed").inc()
            reason = error.reason if isinstance(error, DoorcardError) else "FAULT"
            if self._faults.get(name) != reason:
                logger.error("schedule_failed", schedule=name, reason=reason, exc_info=error)
                self._faults[name] = reason
                await self._note_fault(name, reason)
        else:
            self._faults.pop(name, None)

    async def announce(self, text: str, by: Instruction) -> None:
        """Say something at all tables, soon."""
        asked = digest(f"{by.operator} {by.request_id}", text)

        def decide(present: Announcement | None) -> Change[Announcement] | None:
            if present is not None and is_repeat(present.asked, asked):
                return None
            number = present.number + 1 if present is not None else 1
            before = {"announcement": present.text if present is not None else ""}
            said = Announcement(text, number, asked)
            return Change(said, by, before, {"announcement": text})

        await self._store.shelves.put(ANNOUNCEMENTS, ANNOUNCEMENT, ANNOUNCEMENT_ID)
        await self._announcements.change(ANNOUNCEMENT_ID, ANNOUNCEMENT, decide)

    async def _spread(self) -> None:
        kept = await self._announcements.load(ANNOUNCEMENT_ID)
        if kept is not None and not kept.content.told:
            said = kept.content
            for shard in range(self._store.shards):
                await self._tell(await self._store.ids_listed(shard), said.text)

            def decide(present: Announcement | None) -> Change[Announcement] | None:
                if present is None or present.number != said.number:
                    return None
                return Change(msgspec.structs.replace(present, told=True))

            now = await self._announcements.change(ANNOUNCEMENT_ID, ANNOUNCEMENT, decide)
            if now is not None and not now.told:
                return
        await self._store.shelves.take_off(ANNOUNCEMENTS, ANNOUNCEMENT)

    async def _tell(self, table_ids: Sequence[str], text: str) -> None:
        for start in range(0, len(table_ids), TOLD_AT_ONCE):
            chunk = table_ids[start : start + TOLD_AT_ONCE]
            told = await asyncio.gather(
                *(self._operators.announce_for_room(each, text) for each in chunk),
                return_exceptions=True,
            )
            for each in told:
                if isinstance(each, BaseException) and not isinstance(each, NotFound):
                    raise each

    async def _attend(self, schedule_id: str) -> None:
        """Open and close what is due by one schedule."""
        kept = await self._schedules.documents.load(schedule_id)
        if kept is None:
            await self._store.shelves.take_off(SHELF, schedule_id)
            return
        schedule, now_ms = kept.content, self._store.now_ms()
        # Closing comes first: an opening that fails must not keep tables open.
        over = [each for each in schedule.open if schedule.times(each)[1] <= now_ms]
        for occurrence in over:
            await self._close(schedule_id, schedule, occurrence)
        still = tuple(each for each in schedule.open if each not in over)
        done = skipped(msgspec.structs.replace(schedule, open=still, fault=""), now_ms)
        if over:
            await self._book(schedule_id, schedule, done)
        if done.opens_again and done.times(done.next)[0] <= now_ms:
            await self._open(schedule_id, done)
            opened = (*done.open, done.next) if done.closes_ms else done.open
            done = msgspec.structs.replace(done, next=done.next + 1, open=opened)
        await self._book(schedule_id, schedule, done)

    async def _book(self, schedule_id: str, before: Schedule, done: Schedule) -> None:
        """Write down what is done; whoever changed the schedule meanwhile does it again."""

        def decide(present: Schedule | None) -> Change[Schedule] | None:
            if present is None or done == before or present.next > done.next:
                return None
            # All else may have been changed meanwhile: it may have been cancelled.
            changed = msgspec.structs.replace(
                present, next=done.next, open=done.open, fault=done.fault
            )
            return Change(changed) if changed != present else None

        now = await self._schedules.documents.change(schedule_id, schedule_id, decide)
        due_ms = now.due_ms if now is not None else None
        if due_ms is None:
            await self._store.shelves.take_off(SHELF, schedule_id)
        else:
            await self._store.shelves.put(SHELF, schedule_id, str(due_ms))

    async def _note_fault(self, schedule_id: str, reason: str) -> None:
        if schedule_id == ANNOUNCEMENT:
            return

        def decide(present: Schedule | None) -> Change[Schedule] | None:
            if present is None or present.fault == reason:
                return None
            return Change(msgspec.structs.replace(present, fault=reason))

        try:
            await self._schedules.documents.change(schedule_id, schedule_id, decide)
        except DoorcardError as error:
            logger.warning("fault_not_noted", schedule=schedule_id, reason=error.reason)

    async def _open(self, schedule_id: str, schedule: Schedule) -> None:
        template = await self._templates.get(schedule.template)
        for number in range(schedule.tables):
            named = template.creation("scheduled").name
            name = named if schedule.tables == 1 else f"{named} {number + 1}"
            new = new_table(template.creation("scheduled", name[:NAME_MAX]))
            made = new._replace(table_id=table_id(schedule_id, schedule.next, number))
            asked = digest(made.table_id, schedule_id)
            await self._creator.create(
                made,
                _in_stead("open_scheduled_table", schedule_id, schedule),
                asked=asked,
                template=schedule.template,
            )
            DONE.labels("opened").inc()

    async def _close(self, schedule_id: str, schedule: Schedule, occurrence: int) -> None:
        for number in range(schedule.tables):
            try:
                await self._operators.close(
                    table_id(schedule_id, occurrence, number),
                    _in_stead("close_scheduled_table", schedule_id, schedule, "its time is over"),
                )
            except NotFound:
                continue
            DONE.labels("closed").inc()


def _in_stead(action: str, schedule_id: str, schedule: Schedule, reason: str = "") -> Instruction:
    """What the room does because an operator scheduled it."""
    why = f"schedule {schedule_id}: {reason or schedule.reason}"
    return Instruction(
        action, schedule.operator, schedule.roles, schedule.request_id, why[:REASON_MAX]
    )
