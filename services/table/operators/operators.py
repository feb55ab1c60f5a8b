"""What operators do with a table: each change with its record in one commit (`audit`).

Repeated, a request answers with the version that took it, as long as the table remembers it; what
has its target state already changes nothing and leaves no record.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from doorcard.table.v1 import table_pb2

from services.runtime.errors import FailedPrecondition, InvalidArgument
from services.runtime.logs import logger
from services.table.draft import audit
from services.table.draft.audit import Instruction
from services.table.draft.draft import Draft
from services.table.hands import hands, seats, standing, waiting
from services.table.state.state import EPOCH_MASK, TableStatus, digest, is_repeat
from services.table.tables.mailbox import TICKS
from services.table.tables.tables import Tables

ANNOUNCEMENT_MAX: Final = 200
COMMANDED_MAX: Final = 4
"""Requests of operators that a table remembers."""

Change = Callable[[Draft], Awaitable[object]]


class Operators:
    """The changes. Each returns the version of the table at which it holds.

    All raise FailedPrecondition (TABLE_CLOSED), NotFound (TABLE_UNKNOWN), AlreadyExists (ID_REUSED)
    for a request id that was another request's, and what a commit raises.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def pause(self, table_id: str, by: Instruction) -> int:
        """No new hand begins, clocks stand still."""
        return await self._change(table_id, by, lambda draft: standing.pause(draft, by.reason))

    async def resume(self, table_id: str, by: Instruction) -> int:
        """Go on after a pause or maintenance."""
        return await self._change(table_id, by, hands.resume)

    async def close(self, table_id: str, by: Instruction) -> tuple[int, bool]:
        """Close for good, now or when the running hand is over: (version, whether it is now)."""
        version = await self._change(table_id, by, lambda draft: standing.close(draft, by.reason))
        status = (await self._tables.read(table_id)).blob.status
        return version, status is TableStatus.CLOSED

    async def begin_moving(self, table_id: str, by: Instruction) -> None:
        """Before a table is broken up: nobody sits down and no hand begins, and it is on record.

        From then on it is gone on with also if this replica dies. Raises CLUB_GAME.
        """

        async def change(draft: Draft) -> None:
            standing.check_not_closed(draft.table)
            waiting.check_cash(draft.table)
            await standing.close(draft, by.reason, moving=True)

        await self._change(table_id, by, change, step="moving")

    async def rest(self, table_id: str, by: Instruction) -> tuple[int, bool]:
        """Maintenance, now or when the running hand is over: (version, whether it is now)."""
        version = await self._change(table_id, by, lambda draft: standing.rest(draft, by.reason))
        return version, (await self._tables.read(table_id)).blob.hand is None

    async def void(self, table_id: str, hand_id: str, by: Instruction) -> int:
        """Give every stake of the running hand back.

        Raises FailedPrecondition (STALE_HAND) when this hand is not running.
        """

        async def change(draft: Draft) -> None:
            running = draft.table.blob.hand
            if running is None or running.hand_id != hand_id:
                raise FailedPrecondition(
                    "STALE_HAND",
                    "this hand is not running",
                    metadata={"hand_id": running.hand_id if running is not None else ""},
                )
            await hands.void(draft, by.reason)

        return await self._change(table_id, by, change, hand_id)

    async def remove(self, table_id: str, player_id: str, by: Instruction) -> tuple[int, bool]:
        """A player leaves as by himself: (version, whether he is out now).

        Raises FailedPrecondition (NOT_SEATED).
        """

        async def change(draft: Draft) -> None:
            seats.number_of(draft.table, player_id)
            await hands.leave(draft, player_id)

        version = await self._change(table_id, by, change, player_id)
        return version, (await self._tables.read(table_id)).seat_of(player_id) is None

    async def announce(self, table_id: str, text: str, by: Instruction) -> int:
        """Say something to all at the table."""
        return await self._change(table_id, by, lambda draft: announce(draft, text), text)

    async def announce_for_room(self, table_id: str, text: str) -> None:
        """Say at one table what is said in the whole room, and recorded there."""

        async def change(draft: Draft) -> None:
            if draft.table.blob.status is not TableStatus.CLOSED:
                await announce(draft, text)

        await self._tables.change(table_id, TICKS, "announce", change)

    async def _change(
        self, table_id: str, by: Instruction, change: Change, *asked: str, step: str = ""
    ) -> int:
        """step: tells the changes of one request from one another."""
        request = digest(f"{by.operator} {by.request_id} {step}", (by.action, by.reason, asked))

        async def recorded(draft: Draft) -> int:
            table, blob = draft.table, draft.table.blob
            for known, low in blob.commanded:
                if is_repeat(known, request):
                    return table.version & ~EPOCH_MASK | low
            before = audit.facts_of(table)
            await change(draft)
            if not draft.changed:
                return table.version
            blob.commanded = [
                *blob.commanded[1 - COMMANDED_MAX :],
                (request, draft.version & EPOCH_MASK),
            ]
            entry = audit.entry_of(
                by,
                table.table_id,
                draft.version,
                draft.now_ms,
                before,
                audit.facts_of(table),
                currency=blob.config.currency,
            )
            draft.outbox.append(entry)
            return draft.version

        version = await self._tables.change(table_id, TICKS, by.action, recorded)
        logger.info(
            by.action,
            table=table_id,
            operator=by.operator,
            request=by.request_id,
            reason=by.reason,
        )
        return version


async def announce(draft: Draft, text: str) -> None:
    """Say something to all; the same again says nothing."""
    if draft.table.blob.announcement != text:
        draft.table.blob.announcement = text
        draft.tell(announced=table_pb2.TableEvent.Announced(text=text))


def check_text(text: str) -> str:
    """An announcement. Raises InvalidArgument."""
    if len(text) > ANNOUNCEMENT_MAX or not text.isprintable():
        raise InvalidArgument.of_field(
            "text", f"must be at most {ANNOUNCEMENT_MAX} printable characters"
        )
    return text
