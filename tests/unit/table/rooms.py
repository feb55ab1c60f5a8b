"""A room in memory: tables on a store of dicts, a clock that is set by hand, services that can be
away.
"""

import hashlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

import grpc
import msgspec
from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2
from doorcard.shuffler.v1 import shuffler_pb2
from doorcard.table.v1 import internal_pb2, table_pb2
from doorcard.wallet.v1 import wallet_pb2
from google.protobuf.message import Message

from services.game.cards import card_name
from services.game.events import EventKind
from services.game.hand import Act
from services.game.showdown import divide
from services.game.wants import ActionKind
from services.runtime.clock import monotonic_s
from services.runtime.errors import NotFound, Unavailable
from services.runtime.shards import shard_of
from services.showdown.reading import read_showdown
from services.shuffler import merkle
from services.table.draft.audit import Instruction
from services.table.draft.draft import Services
from services.table.hands.hands import Order
from services.table.operators.operators import Operators
from services.table.state.creation import new_table
from services.table.state.frames import Frames, unpack
from services.table.state.state import Seat, Table
from services.table.state.times import STANDARD, SeatTimes
from services.table.state.views import award
from services.table.store.allowances import Use
from services.table.store.store import Store
from services.table.store.stored import (
    Commit,
    Committed,
    Conflict,
    Shard,
    ShardClosed,
    ShardState,
    Stored,
    TooEarly,
)
from services.table.tables.seating import Seating
from services.table.tables.tables import Tables

EPOCH = 1
TABLE_REQUEST = table_pb2.CreateTableRequest(
    request_id="create-1",
    name="Table one",
    rulebook="club",
    stake_name="5/10",
    seats=6,
    currency="XTS",
    action_ms=10_000,
    hand_pause_ms=500,
)


class MemoryAllowances:
    """`Allowances` in a dict: key -> decision -> counts."""

    def __init__(self) -> None:
        self.used: dict[str, set[str]] = {}
        self.away = False

    async def take(self, use: Use, per_day: int) -> bool:
        if self.away:
            raise Unavailable("STORE_AWAY", "the store does not answer")
        day = self.used.setdefault(use.key, set())
        if use.decision not in day and len(day) >= per_day:
            return False
        day.add(use.decision)
        return True

    async def give_back(self, use: Use) -> None:
        self.used[use.key].discard(use.decision)


class MemoryStore:
    """`Store` without a store: what it takes and answers, kept in dicts."""

    shards = 4

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000
        self.tables: dict[str, Stored] = {}
        self.events: dict[str, list[tuple[int, bytes]]] = {}
        self.deadlines: dict[str, int] = {}
        self.outbox: list[internal_pb2.OutboxEntry] = []
        self.lobby: dict[str, bytes] = {}
        self.commits: list[Commit] = []
        self.reads = 0
        self.undrained_ms = 0
        self.closed = ""
        self.state = ShardState.OPEN
        self.live = ["replica-1", "replica-2"]
        self.allowances = MemoryAllowances()
        self.ahead_seen_ms = 0
        self.before_commit: Callable[[Commit], None] | None = None
        """Called once before the next commit: another replica may be quicker."""

    def now_ms(self, _shard: int = 0) -> int:
        return self.ms

    def set_ahead_ms(self, _shard: int) -> int:
        return self.ahead_seen_ms

    async def confirm(self, _table_id: str) -> None:
        pass

    def shard_of(self, table_id: str) -> int:
        return shard_of(table_id, self.shards)

    async def undrained_age_ms(self, _shard: int) -> int:
        return self.undrained_ms

    async def live_replicas(self) -> list[str]:
        return self.live

    def epoch(self, _shard: int) -> int:
        return EPOCH

    async def shard(self, _shard: int) -> Shard:
        state = ShardState.CLOSED if self.closed else self.state
        return Shard(state, EPOCH, 0, 0, self.closed)

    async def shard_state(self, shard: int) -> ShardState:
        return (await self.shard(shard)).state

    async def close_shard(self, _shard: int, reason: str, *, epoch: int) -> None:
        self.closed = self.closed or reason

    async def load(self, table_id: str) -> Stored | None:
        self.reads += 1
        return self.tables.get(table_id)

    async def version(self, table_id: str) -> tuple[int, bytes] | None:
        self.reads += 1
        stored = self.tables.get(table_id)
        return None if stored is None else (stored.version, stored.tag)

    async def events_after(self, table_id: str, version: int) -> list[tuple[int, bytes]] | None:
        after = [each for each in self.events.get(table_id, []) if each[0] > version]
        if after and after[0][0] != version + 1:
            return None
        present = self.tables.get(table_id)
        if present is None or (not after and version < present.version):
            return None
        return after

    async def lobby_of(self, shard: int) -> dict[str, bytes]:
        return {t: line for t, line in self.lobby.items() if self.shard_of(t) == shard}

    async def commit(self, commit: Commit) -> Committed | Conflict | TooEarly | ShardClosed:
        hook, self.before_commit = self.before_commit, None
        if hook is not None:
            hook(commit)
        if self.closed:
            return ShardClosed(self.closed)
        present = self.tables.get(commit.table_id)
        if (present is None) != (commit.expected is None) or (
            present is not None
            and commit.expected is not None
            and present[:2] != commit.expected[:2]
        ):
            assert present is not None
            return Conflict(present)
        if commit.not_before_ms > self.ms:
            return TooEarly(self.ms)
        version = (EPOCH << 32) + 1 if present is None else present.version + 1
        tag = hashlib.blake2b(commit.blob + bytes(str(version), "ascii"), digest_size=8).digest()
        self.tables[commit.table_id] = Stored(version, tag, commit.blob)
        records = self.events.setdefault(commit.table_id, [])
        records.append((version, commit.event))
        if commit.trim_events_below:
            records[:] = [each for each in records if each[0] >= commit.trim_events_below]
        if commit.deadline_ms is None:
            self.deadlines.pop(commit.table_id, None)
        else:
            self.deadlines[commit.table_id] = commit.deadline_ms
        if commit.lobby is not None:
            self.lobby[commit.table_id] = commit.lobby
        for entry_id, payload in commit.outbox:
            entry = internal_pb2.OutboxEntry.FromString(payload)
            entry.ledger.entry_id = entry_id
            self.outbox.append(entry)
        self.commits.append(commit)
        return Committed(version, tag)

    def subscription(self, _on_wake: Any, _on_subscribed: Any) -> Any:
        class Silent:
            def want(self, _shard: int) -> None: ...

            def leave(self, _shard: int) -> None: ...

        return Silent()


class CallFailed(grpc.RpcError):
    """A call that failed with a code."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "failed by the test"

    def trailing_metadata(self) -> tuple[Any, ...]:
        return ()


class FakeService:
    """A stub whose methods are this object's `on_<Method>`; `failing` makes every call fail."""

    def __init__(self) -> None:
        self.failing: grpc.StatusCode | None = None
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name[0].isupper():
            raise AttributeError(name)

        async def method(request: Any, timeout: float = 0, metadata: Any = ()) -> Any:
            self.calls.append(name)
            if self.failing is not None:
                raise CallFailed(self.failing)
            return await getattr(self, f"on_{name}")(request)

        return method


class FakeShuffler(FakeService):
    """Decks in an order that the seed decides, or as they are stacked."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self._decks: dict[bytes, list[int]] = {}
        self._leaves: dict[bytes, list[bytes]] = {}
        self.tells_leaves = True
        """Shufflers of the release before do not."""
        self.stacked: list[Sequence[int]] = []
        self.source = shuffler_pb2.DECK_SOURCE_KERNEL

    async def on_CreateDeck(  # noqa: N802
        self, request: shuffler_pb2.CreateDeckRequest
    ) -> shuffler_pb2.CreateDeckResponse:
        deck = list(self.stacked.pop(0)) if self.stacked else self._rng.sample(range(52), 52)
        sealed = self._sealed(deck, request.hand_id)
        return shuffler_pb2.CreateDeckResponse(
            sealed_deck=sealed,
            root=self._root(sealed),
            source=self.source,
            size=52,
            leaves=self._told_leaves(sealed),
        )

    async def on_Draw(  # noqa: N802
        self, request: shuffler_pb2.DrawRequest
    ) -> shuffler_pb2.DrawResponse:
        sealed = request.sealed_deck
        deck, leaves = self._decks[sealed], self._leaves[sealed]
        cards = [
            shuffler_pb2.DrawnCard(
                position=p,
                card=card_name(deck[p]),
                salt=_salt(sealed, p),
                path=() if request.without_paths else merkle.path(leaves, p),
            )
            for p in request.positions
        ]
        return shuffler_pb2.DrawResponse(cards=cards, root=self._root(sealed))

    async def on_Reshuffle(  # noqa: N802
        self, request: shuffler_pb2.ReshuffleRequest
    ) -> shuffler_pb2.ReshuffleResponse:
        old = self._decks[request.sealed_deck]
        cards = [old[p] for p in request.positions]
        random.Random(0).shuffle(cards)
        sealed = self._sealed(cards, request.hand_id + " again")
        return shuffler_pb2.ReshuffleResponse(
            sealed_deck=sealed,
            root=self._root(sealed),
            size=len(cards),
            leaves=self._told_leaves(sealed),
        )

    def _sealed(self, deck: list[int], name: str) -> bytes:
        # About as long as a real one, and no card can be read in it.
        sealed = hashlib.shake_256(name.encode() + bytes(deck)).digest(160)
        self._decks[sealed] = deck
        self._leaves[sealed] = [
            merkle.leaf(p, card_name(card), _salt(sealed, p)) for p, card in enumerate(deck)
        ]
        return sealed

    def _root(self, sealed: bytes) -> bytes:
        return merkle.root(self._leaves[sealed])

    def _told_leaves(self, sealed: bytes) -> bytes:
        return b"".join(self._leaves[sealed]) if self.tells_leaves else b""


class FakeWallet(FakeService):
    """Reservations in a dict; rake of one unit for every full twenty of a pot."""

    def __init__(self) -> None:
        super().__init__()
        self.reservations: dict[str, wallet_pb2.Reservation] = {}
        self.after_reserve: Callable[[], Awaitable[None]] | None = None
        self.schedules_asked: list[wallet_pb2.GetRakeScheduleRequest] = []
        self.no_rake_on_third = False

    async def on_ReserveBuyIn(  # noqa: N802
        self, request: wallet_pb2.ReserveBuyInRequest
    ) -> wallet_pb2.ReserveBuyInResponse:
        found = self.reservations.setdefault(
            request.reservation_id,
            wallet_pb2.Reservation(
                reservation_id=request.reservation_id,
                player_id=request.player_id,
                table_id=request.table_id,
                sitting_id=request.sitting_id,
                amount=request.amount,
                currency=request.currency,
                state=wallet_pb2.RESERVATION_STATE_PENDING,
            ),
        )
        if self.after_reserve is not None:
            await self.after_reserve()
        return wallet_pb2.ReserveBuyInResponse(reservation=found)

    async def on_GetReservation(  # noqa: N802
        self, request: wallet_pb2.GetReservationRequest
    ) -> wallet_pb2.GetReservationResponse:
        if request.reservation_id not in self.reservations:
            raise NotFound("RESERVATION_UNKNOWN", "there is no such reservation")
        return wallet_pb2.GetReservationResponse(
            reservation=self.reservations[request.reservation_id]
        )

    def lost(self, table_id: str) -> tuple[str, str]:
        """(reservation, sitting) of a pending reservation whose TakeSeat never came on."""
        reservation, sitting = str(uuid4()), str(uuid4())
        self.reservations[reservation] = wallet_pb2.Reservation(
            reservation_id=reservation,
            player_id="lola",
            table_id=table_id,
            sitting_id=sitting,
            amount=200,
            currency="EUR",
            state=wallet_pb2.RESERVATION_STATE_PENDING,
        )
        return reservation, sitting

    async def on_GetRakeSchedule(  # noqa: N802
        self, request: wallet_pb2.GetRakeScheduleRequest
    ) -> wallet_pb2.GetRakeScheduleResponse:
        self.schedules_asked.append(request)
        schedule = wallet_pb2.RakeSchedule(
            schedule_id=request.schedule_id,
            version=1,
            units=1,
            no_rake_on_third=self.no_rake_on_third,
        )
        return wallet_pb2.GetRakeScheduleResponse(schedule=schedule)

    async def on_AssessRake(  # noqa: N802
        self, request: wallet_pb2.AssessRakeRequest
    ) -> wallet_pb2.AssessRakeResponse:
        shares = [pot.amount // 20 for pot in request.pots]
        return wallet_pb2.AssessRakeResponse(shares=shares, total=sum(shares))


class FakeShowdown(FakeService):
    """What the showdown service does, without a server."""

    async def on_DivideShowdown(  # noqa: N802
        self, request: showdown_pb2.DivideShowdownRequest
    ) -> showdown_pb2.DivideShowdownResponse:
        result = divide(*read_showdown(request))
        return showdown_pb2.DivideShowdownResponse(
            awards=[award((EventKind.AWARDED, *each)) for each in result.awards],
            reveals=[
                game_pb2.Reveal(seat=seat, shown=shown, hand_name=name)
                for seat, shown, name in result.reveals
            ],
        )


@dataclass
class FakeRoom:
    """Tables with everything they need."""

    seed: int = 1
    store: MemoryStore = field(default_factory=MemoryStore)
    replicas: list[Tables] = field(default_factory=list)
    times: SeatTimes = STANDARD

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.shuffler = FakeShuffler(self.rng)
        self.showdown = FakeShowdown()
        self.wallet = FakeWallet()
        self.table_id = ""
        self.requests = 0
        self.tables = self.replica("replica-1")
        self.operators = Operators(self.tables)

    def replica(self, name: str) -> Tables:
        """Another process on the same store."""

        async def may_deal(_shard: int) -> bool:
            return self.store.undrained_ms <= 60_000

        tables = Tables(
            cast(Store, self.store),
            Services(self.shuffler, self.showdown, self.wallet),
            may_deal,
            replica_id=name,
            times=self.times,
        )
        self.replicas.append(tables)
        return tables

    async def create(self, **fields: Any) -> str:
        """Create a table."""
        request = table_pb2.CreateTableRequest()
        request.CopyFrom(TABLE_REQUEST)
        for name, value in fields.items():
            if isinstance(value, Message):
                getattr(request, name).CopyFrom(value)
            else:
                setattr(request, name, value)
        table_id, config, schedule_id, _ = new_table(request)
        if schedule_id:
            schedule = wallet_pb2.RakeSchedule(schedule_id=schedule_id, version=1)
            config = msgspec.structs.replace(config, rake_schedule=schedule.SerializeToString())
        await self.tables.create(table_id, config)
        self.table_id = table_id
        return table_id

    async def top_up(self, player_id: str, amount: int, request_id: str = "") -> tuple[int, int]:
        """TopUp with a fresh request id, or the one given: (version, held)."""
        request_id = request_id or self.request_id()
        return await self.seating().top_up(self.table_id, player_id, request_id, amount)

    async def pass_to(self, ms: int) -> None:
        """Go to a time, and let whatever is due by then happen in its order."""
        for _ in range(1000):
            due = self.store.deadlines.get(self.table_id)
            if due is None or due > ms:
                break
            self.store.ms = max(self.store.ms, due)
            await self.tables.tick(self.table_id)
        self.store.ms = max(self.store.ms, ms)

    def write(self, change: Callable[[Table], object]) -> None:
        """Another replica changes the table, however it came to that."""
        stored = self.store.tables[self.table_id]
        table = Table.load(self.table_id, stored)
        change(table)
        self.store.tables[self.table_id] = Stored(stored.version + 1, b"another!", table.encode())

    def seat_of(self, player_id: str) -> Seat:
        """His seat as it is stored."""
        number = self.table.seat_of(player_id)
        assert number is not None
        return self.table.blob.seats[number]

    def seating(self, tables: Tables | None = None) -> Seating:
        """The seats of a replica's tables."""
        store = cast(Store, self.store)
        name = f"replica-{self.replicas.index(tables or self.tables) + 1}"
        return Seating(store, tables or self.tables, self.wallet, replica_id=name)

    async def seat(self, *players: str, buy_in: int = 200) -> None:
        """Players take the first free seats."""
        for player_id in players:
            await self.take_seat(player_id, buy_in=buy_in)

    async def take_seat(
        self,
        player_id: str,
        request_id: str = "",
        *,
        number: int | None = None,
        buy_in: int = 200,
    ) -> tuple[int, int, str]:
        """TakeSeat with a fresh request id, or the one given."""
        return await self.seating().take_seat(
            self.table_id,
            player_id,
            player_id.title(),
            request_id or self.request_id(),
            number=number,
            buy_in=buy_in,
        )

    async def connect(self, player_id: str, tables: Tables | None = None) -> None:
        """He opens a `Play` stream at a replica."""
        replica = tables or self.tables
        before = replica.has_stream
        replica.has_stream = lambda table, player: player == player_id or before(table, player)
        await replica.connect(self.table_id, player_id)

    def by(self, action: str, reason: str = "why", request_id: str = "") -> Instruction:
        """What the operator wants."""
        return Instruction(action, "olga", ("operator",), request_id or self.request_id(), reason)

    async def pause(self, reason: str = "") -> int:
        """The operator pauses the table."""
        return await self.operators.pause(self.table_id, self.by("pause_table", reason))

    async def resume(self) -> int:
        """The operator lets it go on."""
        return await self.operators.resume(self.table_id, self.by("resume_table"))

    async def void(self, reason: str = "why") -> int:
        """The operator voids the running hand; the version of the table when there is none."""
        running = self.table.blob.hand
        if running is None:
            return self.table.version
        by = self.by("void_hand", reason)
        return await self.operators.void(self.table_id, running.hand_id, by)

    def request_id(self) -> str:
        """A fresh one."""
        self.requests += 1
        return f"request-{self.requests}"

    @property
    def table(self) -> Table:
        """The table as it is stored, decoded afresh."""
        return Table.load(self.table_id, self.store.tables[self.table_id])

    async def start_hand(self) -> Table:
        """Let the pause between hands pass."""
        self.pass_time()
        await self.tables.tick(self.table_id)
        return self.table

    def pass_time(self, beyond_ms: int = 0) -> None:
        """Go to when the next thing is due, and further."""
        self.store.ms = max(self.store.ms, self.store.deadlines[self.table_id]) + beyond_ms

    def to_act(self) -> tuple[str, Act, str]:
        """Player to act, what is wanted of him, hand id."""
        table = self.table
        assert table.hand is not None
        assert table.blob.hand is not None
        want = table.hand.want
        assert isinstance(want, Act), want
        return table.blob.seats[want.seat].player_id, want, table.blob.hand.hand_id

    async def act(self, kind: ActionKind | None = None, amount: int = 0, **changes: Any) -> int:
        """The player to act acts; without a kind he checks, calls or brings in."""
        player_id, want, hand_id = self.to_act()
        order = {
            "player_id": player_id,
            "request_id": self.request_id(),
            "hand_id": hand_id,
            "turn": want.turn,
            "kind": kind or passive(want),
            "amount": amount,
            **changes,
        }
        return await self.tables.act(self.table_id, Order(**order), monotonic_s())

    async def play_out(self, choose: Callable[[Act], tuple[ActionKind, int]] | None = None) -> int:
        """Everybody acts until the hand is over; the number of actions."""
        actions = 0
        while self.table.hand is not None:
            _, want, _ = self.to_act()
            kind, amount = choose(want) if choose else (passive(want), 0)
            await self.act(kind, amount)
            actions += 1
            assert actions < 200
        return actions

    def choose(self, want: Act) -> tuple[ActionKind, int]:
        """Any legal action."""
        return any_action(want, self.rng)

    def frames(self, version: int = 0) -> list[tuple[int, Frames]]:
        """Event records after a version: audience -> encoded frame."""
        records = self.store.events[self.table_id]
        return [(v, unpack(r, self.table_id, v)) for v, r in records if v > version]

    def events(self, viewer: str = "", version: int = 0) -> list[table_pb2.TableEvent]:
        """What a viewer was told after a version, in order."""
        told: list[table_pb2.TableEvent] = []
        for _, by_viewer in self.frames(version):
            for audience in {"", viewer}:
                for frame in table_pb2.PlayResponse.FromString(by_viewer.get(audience, b"")).frames:
                    told.extend(frame.update.events)
        return told


def passive(want: Act) -> ActionKind:
    """Bring in, check, or call."""
    legal = want.legal
    if legal.bring_in:
        return ActionKind.BRING_IN
    return ActionKind.CHECK if legal.check else ActionKind.CALL


def bold(want: Act) -> tuple[ActionKind, int]:
    """The largest wager there is, else a call."""
    legal = want.legal
    if legal.wagers:
        return ActionKind(legal.wager_kind), legal.wagers[-1]
    return passive(want), 0


def any_action(want: Act, rng: random.Random) -> tuple[ActionKind, int]:
    """Any legal action; folds are rare, so that hands go far."""
    legal = want.legal
    options = [(passive(want), 0)] * 4
    options += [(ActionKind(legal.wager_kind), each) for each in legal.wagers]
    if legal.fold:
        options.append((ActionKind.FOLD, 0))
    return rng.choice(options)


def _salt(sealed: bytes, position: int) -> bytes:
    return hashlib.sha256(sealed + bytes([position])).digest()
