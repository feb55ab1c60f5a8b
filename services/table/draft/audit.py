"""What operators change, for the audit log: the record is part of the commit that changes it.

A record travels as an entry of the shard's outbox that moves no money, so it can neither be lost
nor come twice: its effect and it are one commit, and the archive keeps it before the outbox forgets
it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from doorcard.history.v1 import history_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.auth import current_caller
from services.runtime.clock import timestamp
from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_request_id, uuid5_of
from services.table.draft.money import Entry
from services.table.state.state import Table

REASON_MAX: Final = 200
VALUE_MAX: Final = 400
"""Bytes of a value before or after; what is longer is cut, with dots at its end."""
NO_CURRENCY: Final = "XXX"
"""ISO 4217 for transactions without one."""

Facts = Mapping[str, str]


class Instruction(NamedTuple):
    """Who wants something changed, by which request, and why."""

    action: str
    """In small letters, as the audit log names it."""
    operator: str
    """Subject of the token; for what the room does by itself, who told it to."""
    roles: tuple[str, ...]
    request_id: str
    reason: str = ""


def instruction(
    action: str, request_id: str, reason: str = "", *, needs_reason: bool = False
) -> Instruction:
    """What the caller of the present call wants. Raises InvalidArgument."""
    check_request_id(request_id)
    if len(reason) > REASON_MAX or not (reason.isprintable() and (reason or not needs_reason)):
        least = int(needs_reason)
        raise InvalidArgument.of_field(
            "reason", f"must be {least} to {REASON_MAX} printable characters"
        )
    caller = current_caller()
    return Instruction(action, caller.subject, tuple(sorted(caller.roles)), request_id, reason)


def entry_of(
    by: Instruction,
    object_id: str,
    version: int,
    at_ms: int,
    before: Facts,
    after: Facts,
    *,
    currency: str = NO_CURRENCY,
    subject: str = "",
) -> Entry:
    """The outbox entry that records a change.

    object_id: UUID of the table, or of what else is stored under an id of its own (then subject
    names it for people, and the record is of no table). version: of the object, which no other
    change of it has.
    """
    record = history_pb2.AuditRecord(
        # A store that went back has this version again, for another request.
        record_id=uuid5_of("audit", object_id, version, by.request_id),
        at=timestamp(at_ms),
        operator=by.operator,
        roles=by.roles,
        action=by.action,
        table_id="" if subject else object_id,
        subject=subject,
        reason=by.reason,
        request_id=by.request_id,
        changes=[
            history_pb2.AuditChange(
                field=field, before=_cut(before.get(field, "")), after=_cut(after.get(field, ""))
            )
            for field in {**before, **after}
            if before.get(field, "") != after.get(field, "")
        ],
    )
    ledger = wallet_pb2.LedgerEntry(
        table_id=object_id, currency=currency, note=wallet_pb2.LedgerNote()
    )
    return Entry(uuid5_of("outbox audit", record.record_id), ledger, audit=record)


def facts_of(table: Table) -> Facts:
    """How a table stands, for the record of what changed: nothing of it is hidden from anybody."""
    blob = table.blob
    facts = {
        "state": table.state.name,
        "reason": blob.pause_reason,
        "announcement": blob.announcement,
        "hand": blob.hand.hand_id if blob.hand is not None else "",
    }
    for number, seat in sorted(blob.seats.items()):
        facts[f"seat {number}"] = f"{seat.player_id} {seat.status.name} {table.behind(number)}"
    return facts


def _cut(text: str) -> str:
    raw = text.encode()
    if len(raw) <= VALUE_MAX:
        return text
    return raw[: VALUE_MAX - 3].decode(errors="ignore") + "..."
