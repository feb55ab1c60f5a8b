"""What the store keeps and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from services.runtime.errors import NotFound, Unavailable

SHARD_RETRY_AFTER_MS: Final = 2000
EARLY_RETRY_AFTER_MS: Final = 250
CLOSING_REASONS: Final = (
    "REDIS_LOST",
    "TABLE_ROLLED_BACK",
    "OUTBOX_BEHIND_LEDGER",
    "APPLIED_ENTRY_MISSING",
    "EPOCH_DIFFERS",
    "OUTBOX_BROKEN",
    "EVENTS_BROKEN",
)
"""Why a shard is closed: the store lost it, a version that was shown, or what the ledger has."""
DOCUMENT: Final = b"\xff"
"""First byte of what is stored under an id and is no table (`documents`); no schema number."""
EPOCH_BITS: Final = 32
"""A version is its shard's epoch, then so many bits that count within it."""


class Stored(NamedTuple):
    """A table as it is stored; the tag tells two writings of one version apart."""

    version: int
    tag: bytes
    blob: bytes


class OutboxItem(NamedTuple):
    """An entry to append.

    entry_id: UUID chosen by the table. payload: serialized doorcard.table.v1.OutboxEntry whose
    ledger part lacks seq, entry_id and previous_entry_id; reading fills them in.
    """

    entry_id: str
    payload: bytes


class OutboxRecord(NamedTuple):
    """An entry as it was read back."""

    seq: int
    entry_id: str
    previous_entry_id: str
    table_id: str
    payload: bytes


@dataclass(slots=True)
class Commit:
    """What one commit changes. All or nothing."""

    table_id: str
    """Lower case."""
    expected: Stored | None
    """What the change was made on; None: the table must not exist (creation, tombstone)."""
    blob: bytes
    event: bytes
    """The record of this version, audience -> bytes as `views` packs it."""
    deadline_ms: int | None
    """When the table is due next, Redis time; None removes it."""
    outbox: Sequence[OutboxItem] = ()
    lobby: bytes | None = None
    """Line of the lobby; None leaves it. A table that may hold money has one from its creation."""
    not_before_ms: int = 0
    """Refuse unless Redis time is at least this: time-outs."""
    trim_events_below: int = 0
    """Drop records of lower versions; above the new version: drop all, this one too."""
    forget_events_ms: int = 0
    """Drop all records if nothing is committed for so long; 0 keeps them."""
    when_full: bool = False
    """Written although Redis has no memory left: a hand in progress goes on to its end, and players
    get their money back.
    """


class Committed(NamedTuple):
    """It is stored, under this version and tag."""

    version: int
    tag: bytes


class Conflict(NamedTuple):
    """Nothing was written; this is stored now."""

    present: Stored


class TooEarly(NamedTuple):
    """Nothing was written; it is not yet `not_before_ms`."""

    now_ms: int

    def error(self) -> Unavailable:
        """What the caller is told; the next tick finds due what came too early."""
        return Unavailable("TOO_EARLY", "it is not yet time", retry_after_ms=EARLY_RETRY_AFTER_MS)


class ShardClosed(NamedTuple):
    """Nothing was written; the shard takes no commits."""

    reason: str

    def error(self) -> Unavailable:
        """What the caller is told."""
        return shard_closed(self.reason)


Outcome = Committed | Conflict | TooEarly | ShardClosed


class ShardState(StrEnum):
    """What a shard's key says; UNOPENED: there is none."""

    UNOPENED = ""
    OPENING = "opening"
    OPEN = "open"
    CLOSED = "closed"
    REBUILDING = "rebuilding"
    """A new epoch has begun; its tables are made anew from the ledger."""

    @property
    def shut(self) -> bool:
        """No commit is taken until the shard is rebuilt."""
        return self in (ShardState.CLOSED, ShardState.REBUILDING)


class Shard(NamedTuple):
    """A shard's key."""

    state: ShardState
    epoch: int
    last_seq: int
    applied_seq: int
    reason: str
    closed_ms: int = 0
    """When it was closed, Redis time; 0 while it is open."""


class Versions(NamedTuple):
    """Versions of tables of one shard at one moment."""

    state: ShardState
    epoch: int
    found: list[tuple[int, bytes]]
    """Version and tag of each table, (0, b"") for one that does not exist."""


class OutboxRead(NamedTuple):
    """Part of an outbox; verdict: "" or why the shard must be closed."""

    verdict: str
    state: ShardState
    epoch: int
    last_seq: int
    entries: list[OutboxRecord]


class Backlog(NamedTuple):
    """What the ledger has not yet applied, and what the outbox holds in all."""

    undrained_age_ms: int
    bytes_held: int
    entries_held: int


class Inspection(NamedTuple):
    """A shard at one moment; entries are those after `applied_seq`."""

    epoch: int
    last_seq: int
    applied_seq: int
    tables: list[tuple[str, Stored]]
    entries: list[OutboxRecord]


def epoch_of(version: int) -> int:
    """The epoch that a version belongs to."""
    return version >> EPOCH_BITS


def check_epoch(before: int, now: int) -> None:
    """Raises Unavailable (SHARD_REBUILT) if a table's shard was rebuilt between two versions: what
    the ledger said before that need not hold any more.
    """
    if epoch_of(before) != epoch_of(now):
        raise Unavailable(
            "SHARD_REBUILT", "the table was rebuilt meanwhile; ask again", retry_after_ms=100
        )


def table_unknown() -> NotFound:
    """TABLE_UNKNOWN: there never was such a table, or it was lost with its shard's epoch."""
    return NotFound("TABLE_UNKNOWN", "there is no such table")


def shard_closed(reason: str) -> Unavailable:
    """SHARD_CLOSED, for callers of a shard that takes no commits."""
    return Unavailable(
        "SHARD_CLOSED",
        "this part of the room is closed until it is rebuilt",
        metadata={"why": reason},
        retry_after_ms=SHARD_RETRY_AFTER_MS,
    )
