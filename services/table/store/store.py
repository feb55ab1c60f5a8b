"""The tables' store: the only file that speaks to Redis, with `heart.py`, `allowances.py`,
`shelves.py` and `buckets.py` (`line.py`, `cluster.py` and `subscription.py` are the wire under
them).

Plaintext in, plaintext out: blobs, events and outbox entries are sealed here, for exactly the place
they are written to. Keys of one shard share a slot: `{t<shard>}:shard`, `:table:<id>`,
`:events:<id>`, `:deadlines`, `:outbox`, `:lobby`, `:fence`, channel `:wake`; beside them only
`{room}:replicas`, `{room}:addresses`, `{room}:settings`, `{room}:templates`, `{room}:schedules`,
`{room}:announcements`, `{room}:turn`, `{room}:protection:<day>:<player>` and `{limit:<bucket>}`. A
version is `epoch * 2^32 + n`.

Every method that waits for Redis raises Unavailable (STORE_AWAY, STORE_FULL; with a time to try
again) when it does not answer, or has no memory left (STORE_MEMORY), and Internal (STORE_FAULT,
SEAL_BROKEN) for what must never happen. At a full Redis replicas start and beat, hands in progress
end, money goes back to players, what is due is claimed, outboxes are trimmed, shards closed and
opened again; all else waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from prometheus_client import Counter

from services.runtime.errors import FailedPrecondition, Internal, Unavailable
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.runtime.noise import random_bytes
from services.runtime.sealing import SealBroken, SealKeys
from services.runtime.shards import shard_of
from services.table.store.allowances import Allowances
from services.table.store.buckets import Buckets
from services.table.store.clock_steps import ClockSteps
from services.table.store.cluster import ClusterWire, is_cluster
from services.table.store.heart import Heart
from services.table.store.line import Argument, Line, Script, Wire
from services.table.store.shelves import Shelves
from services.table.store.stored import (
    CLOSING_REASONS,
    EPOCH_BITS,
    SHARD_RETRY_AFTER_MS,
    Backlog,
    Commit,
    Committed,
    Conflict,
    Inspection,
    OutboxRead,
    OutboxRecord,
    Outcome,
    Shard,
    ShardClosed,
    ShardState,
    Stored,
    TooEarly,
    Versions,
    epoch_of,
    table_unknown,
)

LEASE_MS: Final = 1000
"""How far a claim moves a deadline ahead: the time to tick the table before others may."""
EVENTS_READ_MAX: Final = 4096
"""Event records read at once; who is further behind gets a snapshot."""
INSPECT_ENTRIES_MAX: Final = 20_000
APPLIED_SEARCH_MAX: Final = 1000
TAG_BYTES: Final = 8
KEYS_KEPT_MAX: Final = 8192
"""Tables whose keys are kept put together: every commit names them."""
OPENINGS_MAX: Final = 3

BLOB: Final = "blob"
EVENT: Final = "event"

COMMITS: Final = Counter(
    "doorcard_table_commits",
    "Commits by outcome: committed, conflict, too_early, shard_closed, failed.",
    ["outcome"],
    registry=REGISTRY,
)
SHARDS_CLOSED: Final = Counter(
    "doorcard_shards_closed", "Shards that this process closed.", ["reason"], registry=REGISTRY
)
for _reason in CLOSING_REASONS:
    SHARDS_CLOSED.labels(_reason)
SEALS_BROKEN: Final = Counter(
    "doorcard_seals_broken", "Sealed texts that did not open.", ["purpose"], registry=REGISTRY
)


class SettingsDiffer(Exception):  # noqa: N818 (what happened, in plain words)
    """The store belongs to another room, or to one with another number of shards."""


_FOLDER: Final = Path(__file__).parent / "scripts"
_SCRIPTS: Final = {path.stem: Script(path) for path in sorted(_FOLDER.glob("*.lua"))} | {
    "commit_when_full": Script(_FOLDER / "commit.lua", when_full=True)
}
_SETTINGS_KEY: Final = "{room}:settings"


class Store:
    """A replica's store.

    url: redis://, rediss:// or unix://, or a cluster's (`cluster.ClusterUrl`). room: its name,
    equal to that of `keys`. shards: fixed for the life of the room. replica_id: names this process
    in `{room}:replicas`. replicas_required: how many of Redis' replicas must have a commit before
    it is answered; without them it is Unavailable (WRITE_UNCONFIRMED).
    """

    def __init__(
        self,
        url: str,
        *,
        room: str,
        shards: int,
        keys: SealKeys,
        replica_id: str,
        reply_timeout_s: float = 2.0,
        patience_s: float = 4.0,
        replicas_required: int = 0,
    ) -> None:
        if keys.room != room:
            raise ValueError("the seal keys belong to another room")
        if not 1 <= shards <= 16_384:
            raise ValueError(f"shards: 1 to 16384, not {shards}")
        self.room: Final = room
        self.shards: Final = shards
        self.replica_id: Final = replica_id
        self.opener: Callable[[int], Awaitable[None]] = _no_opener
        """Opens an unopened shard or raises; `shards.Shards` puts itself here."""
        self._keys = keys
        self._subscription: ShardSubscription | None = None
        self._line = (ClusterWire if is_cluster(url) else Line)(
            url,
            tuple(_SCRIPTS.values()),
            reply_timeout_s=reply_timeout_s,
            patience_s=patience_s,
            replicas_required=replicas_required,
        )
        self._confirms = replicas_required > 0
        self.heart: Final = Heart(self._line, _SCRIPTS["heartbeat"], replica_id)
        self.clock_steps: Final = ClockSteps(
            shards, lambda shard: self.heart.reading(_key(shard, "shard"))
        )
        self.heart.measured = self.clock_steps.look
        self.shelves: Final = Shelves(self._line, _SCRIPTS["shelve"], _SCRIPTS["turn"], replica_id)
        self.buckets: Final = Buckets(self._line, _SCRIPTS["bucket"], keys.subkey("rate limits"))
        self.allowances: Final = Allowances(
            self._line, _SCRIPTS["protect"], _SCRIPTS["unprotect"], replica_id
        )
        self._epochs: dict[int, int] = {}
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to work; needs a running loop and an answering Redis.

        Raises SettingsDiffer if the room's settings in Redis are others, Unavailable.
        """
        self._line.start()
        await self._check_settings()
        await self.beat()
        self._beating = asyncio.create_task(self.heart.run(), name="heartbeat")

    async def close(self) -> None:
        """Stop; commits under way that have not been sent fail with Unavailable."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None
        await self._line.close()

    def shard_of(self, table_id: str) -> int:
        """The shard of a table, 0 .. shards-1."""
        return shard_of(table_id, self.shards)

    def epoch(self, shard: int) -> int:
        """The shard's epoch as last seen; 0 before it was."""
        return self._epochs.get(shard, 0)

    def now_ms(self, shard: int = 0) -> int:
        """Redis time at a shard, from this machine's monotonic clock and the measured offset."""
        return self.heart.now_ms(_key(shard, "shard"))

    # --- tables

    async def commit(self, commit: Commit) -> Outcome:
        """Write a new version of a table, if it still is what the change was made on.

        Cancelling the caller does not take a commit back. After Unavailable it may or may not have
        been done: load the table again.
        """
        try:
            outcome = await self._commit(commit)
        except BaseException:
            _FAILED.inc()
            raise
        _COUNTS[type(outcome)].inc()
        return outcome

    async def confirm(self, table_id: str) -> None:
        """Return when the replicas that are required have all that was written until now.

        What is answered from a stored table was perhaps written by a commit that was not confirmed.
        Raises Unavailable (WRITE_UNCONFIRMED).
        """
        if self._confirms:
            await self.run("fence", self.shard_of(table_id), ("fence",), self.replica_id)

    async def load(self, table_id: str) -> Stored | None:
        """The table as it is, None if there is none."""
        key = _key(self.shard_of(table_id), f"table:{table_id}")
        version, tag, sealed = await self._line.ask("HMGET", key, "v", "g", "b")
        return None if version is None else self._stored(table_id, version, tag, sealed)

    async def version(self, table_id: str) -> tuple[int, bytes] | None:
        """Version and tag of the table as it is, None if there is none."""
        key = _key(self.shard_of(table_id), f"table:{table_id}")
        version, tag = await self._line.ask("HMGET", key, "v", "g")
        return None if version is None else (int(version), tag)

    async def versions(self, shard: int, table_ids: Sequence[str]) -> Versions:
        """Versions and tags of tables of one shard."""
        names = ("shard", *(f"table:{table_id}" for table_id in table_ids))
        state, epoch, *found = await self.run("versions", shard, names)
        return Versions(
            ShardState(state.decode()),
            int(epoch),
            [(int(version or 0), tag or b"") for version, tag in found],
        )

    async def events_after(self, table_id: str, version: int) -> list[tuple[int, bytes]] | None:
        """The records after a version, (version, event) without a gap up to the present one.

        [] if the version is present; None if records are missing: take a snapshot.
        """
        shard = self.shard_of(table_id)
        present, records = await asyncio.gather(
            self._line.ask("HGET", _key(shard, f"table:{table_id}"), "v"),
            self._line.ask(
                "XRANGE",
                _key(shard, f"events:{table_id}"),
                f"{version + 1}-0",
                "+",
                "COUNT",
                2 * EVENTS_READ_MAX,
            ),
        )
        found: list[tuple[int, bytes]] = []
        for name, (_, _, _, sealed) in records:
            number, _, place = name.partition(b"-")
            if place != b"0":
                continue
            at = int(number)
            if at != version + len(found) + 1:
                return None
            found.append((at, self._open(sealed, table_id, EVENT, at)))
        return found if present is not None and version + len(found) >= int(present) else None

    async def unlist(self, shard: int, table_id: str) -> None:
        """Take a table off the lobby for good; it must be one that nothing more happens to."""
        await self._line.ask("HDEL", _key(shard, "lobby"), table_id)

    async def lobby_of(self, shard: int) -> dict[str, bytes]:
        """Every line of the lobby of one shard, by table id."""
        found = await self._line.ask("HGETALL", _key(shard, "lobby"))
        return {found[at].decode(): found[at + 1] for at in range(0, len(found), 2)}

    async def claim_due(self, shard: int, limit: int, overdue_ms: int = 0) -> list[str]:
        """Tables that are due, longest overdue first; for a second no other replica gets them.

        overdue_ms: only those that have been due for so long.
        """
        due = await self._line.run(
            _SCRIPTS["claim"],
            (_key(shard, "shard"), _key(shard, "deadlines")),
            (limit, LEASE_MS, overdue_ms),
            durable=False,
        )
        return [name.decode() for name in due]

    async def waiting(self, shard: int, beyond_ms: int) -> list[str]:
        """Tables that have nothing due before so many milliseconds from now, but then, the earliest
        first.
        """
        since_ms = self.now_ms(shard) + beyond_ms
        found = await self._line.ask(
            "ZRANGE", _key(shard, "deadlines"), since_ms, "+inf", "BYSCORE"
        )
        return [name.decode() for name in found]

    def set_ahead_ms(self, shard: int) -> int:
        """When the clock of a shard was last seen to be set ahead, by that clock; 0 for never."""
        return self.clock_steps.ahead_ms.get(shard, 0)

    def subscription(
        self,
        on_wake: Callable[[str, int], None],
        on_subscribed: Callable[[int], None],
    ) -> "ShardSubscription":
        """Wake-ups of shards: `on_wake(table id, version)`, `on_subscribed(shard)`. Who is alone in
        listening to a shard is not told of commits that were made by this store.
        """
        self._subscription = ShardSubscription(self._line, on_wake, on_subscribed)
        return self._subscription

    # --- shards

    async def shard(self, shard: int) -> Shard:
        """The shard's key."""
        state, epoch, last_seq, applied_seq, reason, closed_ms = await self._line.ask(
            "HMGET",
            _key(shard, "shard"),
            *("state", "epoch", "last_seq", "applied_seq", "reason", "closed_ms"),
        )
        return Shard(
            ShardState((state or b"").decode()),
            int(epoch or 0),
            int(last_seq or 0),
            int(applied_seq or 0),
            (reason or b"").decode(),
            int(closed_ms or 0),
        )

    async def shard_state(self, shard: int) -> ShardState:
        """The shard's state."""
        return (await self.shard(shard)).state

    async def begin_opening(self, shard: int) -> ShardState:
        """Mark an unopened shard as being opened; returns the state that holds then."""
        return await self._advance(shard, "opening")

    async def open_shard(self, shard: int, epoch: int) -> ShardState:
        """Open a shard that is being opened; returns the state that holds then."""
        return await self._advance(shard, "open", epoch)

    async def close_shard(self, shard: int, reason: str, *, epoch: int) -> None:
        """No commit any more until it is rebuilt (`reopening`). Alerts; the first reason stays.

        epoch: the one that lost something, 0 where nothing is left; a later one stays open.
        """
        if await self.run("close", shard, ("shard",), reason, epoch):
            SHARDS_CLOSED.labels(reason).inc()
            logger.error("shard_closed", shard=shard, reason=reason, epoch=epoch)

    async def run(self, script: str, shard: int, names: Sequence[str], *args: Argument) -> Any:
        """A script on keys of one shard, which are given by their names in it."""
        return await self._line.run(_SCRIPTS[script], [_key(shard, name) for name in names], args)

    def wake_channel(self, shard: int) -> str:
        """Where the wake-ups of the shard's tables are published."""
        return _key(shard, "wake")

    async def ids_listed(self, shard: int) -> list[str]:
        """Every table of the shard that is or was in the lobby."""
        return [name.decode() for name in await self._line.ask("HKEYS", _key(shard, "lobby"))]

    async def inspect(self, shard: int) -> Inspection:
        """Every table that the lobby lists and the outbox after what is applied, in one script."""
        for _ in range(OPENINGS_MAX):
            ids = await self.ids_listed(shard)
            reply = await self._line.run(
                _SCRIPTS["inspect"],
                [
                    *(_key(shard, name) for name in ("shard", "outbox", "lobby")),
                    *(_key(shard, f"table:{table_id}") for table_id in ids),
                ],
                (INSPECT_ENTRIES_MAX,),
            )
            if reply:
                break
        else:
            raise Unavailable("SHARD_BUSY", "tables are being created", retry_after_ms=1000)
        epoch, last_seq, applied_seq, tables, entries = reply
        if len(entries) == INSPECT_ENTRIES_MAX:
            raise FailedPrecondition("OUTBOX_TOO_LONG", "the outbox is too long to be inspected")
        stored = [
            (table_id, self._stored(table_id, *found))
            for table_id, found in zip(ids, tables, strict=True)
            if found[0] is not None
        ]
        return Inspection(
            int(epoch), int(last_seq), int(applied_seq), stored, self._records(entries)
        )

    # --- outbox

    async def read_outbox(
        self, shard: int, *, after_seq: int, limit: int, epoch: int, applied_id: str
    ) -> OutboxRead:
        """Entries after a position, and whether the shard is what the ledger knows of it."""
        verdict, state, present, last_seq, entries = await self._line.run(
            _SCRIPTS["outbox_read"],
            (_key(shard, "shard"), _key(shard, "outbox")),
            (after_seq, limit, epoch, applied_id, APPLIED_SEARCH_MAX),
        )
        return OutboxRead(
            verdict.decode(),
            ShardState(state.decode()),
            int(present),
            int(last_seq),
            self._records(entries),
        )

    async def trim_outbox(
        self, shard: int, *, epoch: int, applied_seq: int, archived_seq: int
    ) -> tuple[str, int]:
        """Forget what is applied and archived but for the last of it.

        Returns "" or why the shard must be closed, and the number of entries left.
        """
        verdict, left = await self._line.run(
            _SCRIPTS["outbox_trim"],
            (_key(shard, "shard"), _key(shard, "outbox")),
            (epoch, applied_seq, archived_seq),
        )
        return verdict.decode(), left

    async def backlog(self, shard: int) -> Backlog:
        """How far the ledger is behind on a shard, as `trim_outbox` last told."""
        keys = (_key(shard, "shard"), _key(shard, "outbox"))
        return Backlog(*await self._line.run(_SCRIPTS["backlog"], keys, ()))

    async def undrained_age_ms(self, shard: int) -> int:
        """Age of the oldest entry that the ledger has not applied, 0 if there is none."""
        return (await self.backlog(shard)).undrained_age_ms

    # --- replicas and time

    async def beat(self) -> None:
        """Say that this replica is alive, and compare clocks."""
        await self.heart.beat()

    async def live_replicas(self) -> list[str]:
        """Replicas whose heart beat within the last 1.5 s."""
        return await self.heart.ask_live()

    async def server_reports(self) -> list[tuple[bytes, list[Any]]]:
        """What each node says of itself: INFO, and LATENCY LATEST."""
        ask = self._line.ask_node
        nodes = self._line.nodes()
        infos = await asyncio.gather(*(ask(node, "INFO") for node in nodes))
        latest = await asyncio.gather(*(ask(node, "LATENCY", "LATEST") for node in nodes))
        return list(zip(infos, latest, strict=True))

    async def tables_listed(self) -> int:
        """Tables in the lobbies of all shards."""
        counts = (self._line.ask("HLEN", _key(shard, "lobby")) for shard in range(self.shards))
        return sum(map(int, await asyncio.gather(*counts)))

    async def _check_settings(self) -> None:
        room, shards = await self._line.ask("HMGET", _SETTINGS_KEY, "room", "shards")
        if room is None or shards is None:
            # Only now: a full Redis takes nothing, and would let no replica start.
            await asyncio.gather(
                self._line.ask("HSETNX", _SETTINGS_KEY, "room", self.room),
                self._line.ask("HSETNX", _SETTINGS_KEY, "shards", self.shards),
            )
            room, shards = await self._line.ask("HMGET", _SETTINGS_KEY, "room", "shards")
        if room.decode() != self.room:
            raise SettingsDiffer(f"the store is that of room {room.decode()!r}, not {self.room!r}")
        if int(shards) != self.shards:
            raise SettingsDiffer(
                f"the store has {int(shards)} shards, not {self.shards}: fixed for a room's life"
            )

    # --- the commit, step by step

    async def _commit(self, commit: Commit) -> Outcome:
        shard = self.shard_of(commit.table_id)
        expected = commit.expected
        for _ in range(OPENINGS_MAX):
            if shard not in self._epochs and (closed := await self._learn_epoch(shard)):
                return closed
            epoch = self._epochs[shard]
            # Also for a tombstone from an epoch that is over: versions are of the present one.
            version = max((epoch << EPOCH_BITS) + 1, expected.version + 1 if expected else 0)
            tag = random_bytes(TAG_BYTES)
            # A command once left is sent and, after a lost connection, sent again whoever waits.
            answer = await self._send(commit, shard, epoch, version, tag)
            match answer[0]:
                case b"DONE":
                    return Committed(version, tag)
                case b"CONFLICT":
                    return await self._conflict(commit, shard, epoch, *answer[1:])
                case b"EARLY":
                    return TooEarly(int(answer[1]))
                case b"BROKEN":
                    return await self._closed_by_us(shard, answer[1].decode(), epoch)
                case b"SHARD" if answer[1] in (b"closed", b"rebuilding"):
                    return ShardClosed(answer[2].decode())
                case _:
                    # Unopened, or a new epoch since we looked. Others may have found that too.
                    self._epochs.pop(shard, None)
        raise Unavailable(
            "SHARD_BUSY", "the shard is being opened", retry_after_ms=SHARD_RETRY_AFTER_MS
        )

    def _send(
        self, commit: Commit, shard: int, epoch: int, version: int, tag: bytes
    ) -> "asyncio.Future[Any]":
        table_id, expected = commit.table_id, commit.expected
        trim: Argument = ""
        if commit.trim_events_below > version:
            trim = "all"
        elif commit.trim_events_below:
            trim = commit.trim_events_below
        args: list[Argument] = [
            epoch,
            "" if expected is None else expected.version,
            "" if expected is None else expected.tag,
            version,
            tag,
            self.seal(commit.blob, table_id, BLOB, version),
            self.seal(commit.event, table_id, EVENT, version),
            "" if commit.deadline_ms is None else commit.deadline_ms,
            table_id,
            commit.lobby or "",
            commit.not_before_ms,
            trim,
            _wake_channel(shard),
            commit.forget_events_ms or "",
            int(self._subscription is not None and self._subscription.listens(shard)),
        ]
        for entry_id, payload in commit.outbox:
            args += (entry_id, self.seal(payload, table_id, _entry_purpose(entry_id), version))
        script = _SCRIPTS["commit_when_full" if commit.when_full else "commit"]
        return self._line.run(script, _commit_keys(shard, table_id), args)

    async def _conflict(
        self, commit: Commit, shard: int, epoch: int, version: bytes, tag: bytes, sealed: bytes
    ) -> Outcome:
        expected = commit.expected
        present = int(version or 0)
        if expected is not None and (
            present < expected.version or (present == expected.version and tag != expected.tag)
        ):
            if epoch_of(expected.version) < epoch:
                # It was known to be lost when the shard was rebuilt.
                raise table_unknown()
            # We were told of a commit that Redis has lost.
            return await self._closed_by_us(shard, "TABLE_ROLLED_BACK", epoch)
        return Conflict(self._stored(commit.table_id, version, tag, sealed))

    async def _closed_by_us(self, shard: int, reason: str, epoch: int) -> ShardClosed:
        await self.close_shard(shard, reason, epoch=epoch)
        return ShardClosed(reason)

    async def _learn_epoch(self, shard: int) -> ShardClosed | None:
        """Make sure that the shard is open and its epoch known."""
        found = await self.shard(shard)
        if found.state in (ShardState.UNOPENED, ShardState.OPENING):
            await self.opener(shard)
            found = await self.shard(shard)
        if found.state is not ShardState.OPEN:
            return ShardClosed(found.reason)
        self._epochs[shard] = found.epoch
        return None

    async def _advance(self, shard: int, *step: Argument) -> ShardState:
        reply = await self._line.run(_SCRIPTS["open"], (_key(shard, "shard"),), step)
        return ShardState(reply.decode())

    # --- sealing

    def _stored(self, table_id: str, version: bytes, tag: bytes, sealed: bytes) -> Stored:
        number = int(version)
        return Stored(number, tag, self._open(sealed, table_id, BLOB, number))

    def _records(self, entries: Sequence[Any]) -> list[OutboxRecord]:
        records = []
        for name, fields in entries:
            entry_id, previous, table_id = (fields[at].decode() for at in (1, 3, 5))
            payload = self._open(fields[13], table_id, _entry_purpose(entry_id), int(fields[7]))
            seq = int(name.partition(b"-")[2])
            records.append(OutboxRecord(seq, entry_id, previous, table_id, payload))
        return records

    def seal(self, plaintext: bytes, table_id: str, purpose: str, version: int) -> bytes:
        """For exactly this place."""
        return self._keys.seal(plaintext, table=table_id, purpose=purpose, version=version)

    def _open(self, sealed: bytes, table_id: str, purpose: str, version: int) -> bytes:
        try:
            return self._keys.open(sealed, table=table_id, purpose=purpose, version=version)
        except SealBroken as error:
            kind = purpose.partition(":")[0]
            SEALS_BROKEN.labels(kind).inc()
            logger.error("seal_broken", table=table_id, purpose=kind, version=version)
            raise Internal("SEAL_BROKEN", f"a stored {kind} does not open") from error


class ShardSubscription:
    """Wake-ups of shards, subscribed again whenever the connection was lost."""

    def __init__(
        self,
        wire: Wire,
        on_wake: Callable[[str, int], None],
        on_subscribed: Callable[[int], None],
    ) -> None:
        self._on_wake = on_wake
        self._on_subscribed = on_subscribed
        self._subscription = wire.subscription(self._heard, self._ready)

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._subscription.start()

    async def close(self) -> None:
        """Stop listening."""
        await self._subscription.close()

    def want(self, shard: int) -> None:
        """Listen to a shard from soon on; `on_subscribed` says from when."""
        self._subscription.want(_wake_channel(shard))

    def leave(self, shard: int) -> None:
        """Listen to it no longer."""
        self._subscription.leave(_wake_channel(shard))

    def listens(self, shard: int) -> bool:
        """Whether Redis counts us among those who listen to a shard, as far as we know."""
        return self._subscription.listens(_wake_channel(shard))

    def _heard(self, _channel: bytes, message: bytes) -> None:
        table_id, _, version = message.decode().partition(" ")
        self._on_wake(table_id, int(version))

    def _ready(self, channel: bytes) -> None:
        self._on_subscribed(int(channel.removeprefix(b"{t").partition(b"}")[0]))


_COUNTS: Final[dict[type[Any], Counter]] = {
    Committed: COMMITS.labels("committed"),
    Conflict: COMMITS.labels("conflict"),
    TooEarly: COMMITS.labels("too_early"),
    ShardClosed: COMMITS.labels("shard_closed"),
}
_FAILED: Final = COMMITS.labels("failed")


def _key(shard: int, name: str) -> str:
    return f"{{t{shard}}}:{name}"


@lru_cache(maxsize=KEYS_KEPT_MAX)
def _wake_channel(shard: int) -> bytes:
    return _key(shard, "wake").encode()


@lru_cache(maxsize=KEYS_KEPT_MAX)
def _commit_keys(shard: int, table_id: str) -> tuple[str, ...]:
    """KEYS of `commit.lua`."""
    names = ("shard", f"table:{table_id}", f"events:{table_id}", "deadlines", "outbox", "lobby")
    return tuple(_key(shard, name) for name in names)


def _entry_purpose(entry_id: str) -> str:
    """With its id, so that entries of one commit cannot change places."""
    return f"outbox:{entry_id}"


async def _no_opener(_shard: int) -> None:
    raise Unavailable("SHARD_UNOPENED", "nobody here can open a shard", retry_after_ms=1000)
