"""What the store keeps of a table, and the table as it stands in memory.

The blob is one byte of schema number and msgpack arrays. A hand in progress is its setup and
inputs; `Table.load` replays them, so that no engine state is ever stored.
"""

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec

from services.game.events import Event, EventKind
from services.game.hand import Act, Deal, Hand, HandSetup
from services.game.invariant import require
from services.game.rulebook import Rulebook, Stake
from services.runtime.errors import AlreadyExists, Unavailable
from services.table.state.formats import Format, Game
from services.table.state.packed_inputs import pack_input, unpack_input
from services.table.state.packed_rulebooks import unpack_rulebook
from services.table.store.stored import Stored

SCHEMA: Final = 3
"""Raised with every change of the structs below; a blob of a higher one is never overwritten."""
EPOCH_MASK: Final = (1 << 32) - 1
"""The part of a version that counts within an epoch of its shard."""
RECENT_MAX: Final = 8
"""Accepted requests that are remembered of each player."""
NEWER_RETRY_AFTER_MS: Final = 1000
LOW_BYTES: Final = 4
RECENT_BYTES: Final = 8 + LOW_BYTES


class TableStatus(IntEnum):
    """Numbers of `doorcard.table.v1.TableState`."""

    OPEN = 1
    PAUSED = 2
    CLOSED = 3
    CLOSING = 4
    """Never stored as the status: an open table with `after_hand`."""
    MAINTENANCE = 5
    """Likewise."""


class SeatStatus(IntEnum):
    """Numbers of `doorcard.table.v1.SeatState`."""

    PLAYING = 1
    SITTING_OUT = 2
    LEAVING = 3


class Stage(IntEnum):
    """Where the clock of a decision is (docs/rules.md, 5)."""

    SILENT = 0
    SHOWN = 1
    """The rest is shown as a countdown."""
    BANK = 2
    """The ordinary time is over and the player's time bank runs."""


class SeatFlag(IntEnum):
    """What a seat does by itself, and where it stands before the next hand: one bit each.

    No IntFlag, which makes an object of every sum of bits that is looked at.
    """

    ASKED_ANTE = 1
    """Its player confirms each ante (docs/rules.md, 1); off: antes are posted without asking."""
    CONFIRMED = 2
    """He is in for the next hand."""
    ASKED = 4
    """He was asked whether he is, and has not answered."""
    OUT_NEXT = 8
    """He sits out when the hand is over."""
    SHOWS_BEATEN = 16
    """His beaten hands are shown, also where he may muck them."""
    TIMED_OUT = 32
    """He was out of time at his last decision, by his own fault, and has done nothing since."""


class Config(msgspec.Struct, frozen=True, array_like=True):
    """What a table is; fixed when it is created."""

    name: str
    rulebook: bytes
    """`pack_rulebook` of the rulebook in force; empty in the tombstone of what never was."""
    stake: tuple[str, int, int, int, int, int, int]
    """The fields of `Stake` in order, minor units."""
    seats: int
    currency: str
    rake_schedule: bytes
    """A serialized `RakeSchedule`; empty for none."""
    action_ms: int
    """Time to act."""
    hand_pause_ms: int
    """From the end of a hand to the start of the next."""
    request_digest: bytes
    """Of the request that created it: a repeat with other content is told from a repeat."""
    format: Format | None = None
    """Of a club game; None for a cash table."""


class Held(msgspec.Struct, array_like=True):
    """A top-up that waits for the next deal; its money is reserved and not yet the table's."""

    reservation: bytes
    """UUID."""
    amount: int
    """Minor units."""


class Seat(msgspec.Struct, array_like=True):
    """A taken seat."""

    player_id: str
    name: str
    sitting: bytes
    """UUID of the sitting, whose escrow account in the ledger holds his money."""
    reservation: bytes
    """UUID of the reservation that paid his buy-in."""
    stack: int
    """Minor units; while he is in a hand, what he began it with."""
    brought: int
    """Minor units: buy-in and the nets of all his hands that went to the outbox, which is what the
    ledger's escrow will be when it has caught up.
    """
    status: SeatStatus
    connection: str = ""
    """Id of the replica that has a `Play` stream of his; empty for none."""
    recent: bytes | list[tuple[bytes, int]] = b""
    """His last accepted requests, oldest first: of each its `digest` and, in four bytes, the low
    half of the version that took it. A list of both in blobs of earlier releases.
    """
    asked: bytes = b""
    """`digest` of the TakeSeat that took it."""
    held: Held | None = None
    flags: int = 0
    """Of `SeatFlag`."""
    missed: int = 0
    """Hands in a row that he was not dealt into."""
    freed_at_ms: int = 0
    """When he loses the seat unless he plays again by then; 0 while he plays."""
    moves_to: bytes = b""
    """UUID of the table that he leaves for when the hand is over; empty for none."""
    bank_used_ms: int = 0
    """Of his time bank; what he uses at a decision is taken off when that is over."""
    bank_hands: int = 0
    """Hands that he was dealt into since something came back to it."""

    @property
    def sitting_id(self) -> str:
        """The sitting's id as text."""
        return str(uuid.UUID(bytes=self.sitting))

    @property
    def reservation_id(self) -> str:
        """The reservation's id as text."""
        return str(uuid.UUID(bytes=self.reservation))

    def taken_at(self, request: bytes, version: int) -> int:
        """The version that took a request (`digest`) of his; 0 if none of his last few is it.

        version: the table's now. Raises AlreadyExists (ID_REUSED).
        """
        accepted = self._accepted
        if request[:6] not in accepted:
            return 0
        for at in range(0, len(accepted), RECENT_BYTES):
            low_at = at + RECENT_BYTES - LOW_BYTES
            if is_repeat(accepted[at:low_at], request):
                low = int.from_bytes(accepted[low_at : at + RECENT_BYTES])
                return version & ~EPOCH_MASK | low
        return 0

    def remember(self, request: bytes, version: int) -> None:
        """The request is taken by this version."""
        low = (version & EPOCH_MASK).to_bytes(LOW_BYTES)
        self.recent = (self._accepted + request + low)[-RECENT_MAX * RECENT_BYTES :]

    @property
    def _accepted(self) -> bytes:
        if isinstance(self.recent, bytes):
            return self.recent
        return b"".join(known + low.to_bytes(LOW_BYTES) for known, low in self.recent)


class Deck(msgspec.Struct, array_like=True):
    """A committed deck."""

    sealed: bytes
    root: bytes
    made_from: list[int] = []
    """Positions of the first deck whose cards were shuffled anew; none for the first deck."""
    leaves_told: bool = False
    """All players have its leaves, so that its cards come without paths."""


class RunningHand(msgspec.Struct, array_like=True):
    """A hand in progress."""

    hand_id: str
    started_ms: int
    button: int
    seats: list[int]
    stacks: list[int]
    """Of `seats`, before the antes."""
    decks: list[Deck]
    """The deck, and the last one shuffled anew from its burns and stub if there is one."""
    inputs: list[Any] = []
    """`Hand.inputs`, packed (`packed_inputs`)."""
    renewals: int = 0
    """Full new clocks that the present decision was given because of our own delays."""
    chosen: dict[int, tuple[int, int]] = {}
    """By seat: an action chosen beforehand (`PreAction.Kind`) and the street it is for."""
    stage: Stage = Stage.SILENT
    """Of the present decision's clock, as are the rest."""
    countdown_ms: int = 0
    """When its countdown begins or began, Redis time; 0 for none."""
    lost: bool = False
    """The connection of the player to act was lost in the countdown."""
    reconnected: bool = False
    """It came back, which gives time once."""
    renewed: str = ""
    """Why it has another deadline than at first."""


class LastHand(msgspec.Struct, array_like=True):
    """What may still be shown of a hand that is over."""

    hand_id: bytes
    """UUID."""
    cards: dict[int, tuple[bytes, bytes]]
    """By seat, of who need not show but may: his sitting (UUID) and his cards, 0..51."""


class Remembered(msgspec.Struct, array_like=True):
    """What became of a reservation that no seat holds."""

    at_ms: int
    """When its last outbox entry was committed."""
    seated: bool
    """True: it was seated, and its player has left. False: it was refused and released."""
    applied_ms: int = 0
    """When it was seen that the ledger has that entry; 0 while it may not have it."""
    player: bytes = b""
    """`player_digest` of who reserved it; empty where it is not known."""
    amount: int = 0
    """Of a top-up that came into play, minor units; 0 of anything else, and where it is not known.
    """


class Waiter(msgspec.Struct, array_like=True):
    """Somebody who waits for a seat, or for whom one is kept."""

    player_id: str
    name: str
    seat: int = -1
    """The seat that is kept for him; -1 for none yet."""
    until_ms: int = 0
    """How long it is kept, Redis time."""
    brings: int = 0
    """The buy-in he must come with, minor units: what he left another table with. 0: as the stake
    allows. -1: not known before his hand there is over.
    """


class Left(msgspec.Struct, array_like=True):
    """Who left with more than the least buy-in, and has to bring it back if he comes again soon."""

    player: bytes
    """`player_digest`."""
    amount: int
    """Minor units."""
    until_s: int
    """Unix time."""


class Recent(msgspec.Struct, array_like=True):
    """Means of a table's last hands (`statistics`), each times `statistics.SCALE`."""

    hands: int
    """That they are of, as far as it matters."""
    pot: int
    """Whole pot before rake, minor units."""
    span_ms: int
    """From the start of a hand to its end."""
    dealt_in: int
    on_fourth: int
    """Players who saw fourth street."""


class Rebuild(msgspec.Struct, array_like=True):
    """That a table was made anew from the ledger, because what the store had of it was lost."""

    at_ms: int
    """Redis time."""
    hand_id: str
    """The hand that was in progress and is void; empty for none."""


class Blob(msgspec.Struct, array_like=True):
    """All that is stored of a table."""

    config: Config
    status: TableStatus
    pause_reason: str = ""
    seats: dict[int, Seat] = {}
    button: int = -1
    """Seat of the last button; -1 before the first hand."""
    hands: int = 0
    due_ms: int = 0
    """When the next thing is due, Redis time; 0 for nothing."""
    waits_for: str = ""
    """The service that is away; the clock stands still while this is set."""
    waits_since_ms: int = 0
    tries: int = 0
    """Vain calls of that service."""
    hand_version: int = 0
    """First version of the last hand: event records before it are not kept."""
    remembered: dict[bytes, Remembered] = {}
    """By reservation (UUID)."""
    hand: RunningHand | None = None
    waiting: list[Waiter] = []
    """First come, first served; those with an offer among them."""
    left: list[Left] = []
    """Oldest first."""
    asked_until_ms: int = 0
    """How long the next hand waits for players to confirm their antes."""
    hidden: LastHand | None = None
    """The last hand, while its players may show what they kept hidden of it."""
    rebuilt: Rebuild | None = None
    """The last time that it was; None for never."""
    after_hand: TableStatus | None = None
    """CLOSING or MAINTENANCE: what becomes of it when no hand is running; None for nothing."""
    announcement: str = ""
    """What the operator said last."""
    commanded: list[tuple[bytes, int]] = []
    """(`digest` of an operator's request, low half of the version that took it), oldest first."""
    closed_ms: int = 0
    """When it was closed for good, Redis time; 0 while it is not."""
    recent: Recent | None = None
    """None before the first hand is over."""
    game: Game | None = None
    """The club game, from its first hand on."""
    moved: list[tuple[bytes, bytes]] = []
    """(`player_digest`, table where a seat was kept for him) of the last who left for one, oldest
    first.
    """
    moves_ms: int = 0
    """When moves to other tables that are not finished are taken up, Redis time; 0 for none."""
    breaks: bool = False
    """It is being broken up: its players have still to be found seats."""
    broken: list[tuple[str, bytes]] = []
    """(player, table where a seat was kept for him, empty for nowhere) of all who were there when
    it was broken up.
    """
    telling: list[tuple[str, bytes, int]] = []
    """(player, table, minor units) of who left for a seat there, which has still to learn what he
    left with.
    """


class Played(NamedTuple):
    """An event of the running hand, with the deck position of a card that was dealt (else -1)."""

    event: Event
    position: int = -1


class BrokenConservation(RuntimeError):  # noqa: N818
    """Chips at a table do not add up to what was brought; the state must not be committed."""


# Members of an enum are slow to look up; these are for every event.
_DEALT: Final = EventKind.DEALT
_ENDED: Final = EventKind.ENDED
_VOIDED: Final = EventKind.VOIDED

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Blob)


class Table:
    """A table in memory: the stored blob decoded, with the engine's hand beside it."""

    __slots__ = ("blob", "hand", "played", "rulebook", "stake", "stored", "table_id")

    def __init__(self, table_id: str, stored: Stored | None, blob: Blob) -> None:
        self.table_id = table_id
        self.stored = stored
        """What it was loaded from or last committed as; None before its creation."""
        self.blob = blob
        config = blob.config
        self.rulebook: Rulebook | None = (
            unpack_rulebook(config.rulebook) if config.rulebook else None
        )
        self.stake = Stake(*config.stake)
        self.hand: Hand | None = None
        self.played: list[Played] = []
        """Every event of the running hand."""
        if blob.hand is not None:
            self.hand, self.played = _replayed(self, blob.hand)

    @classmethod
    def load(cls, table_id: str, stored: Stored) -> "Table":
        """Decode and check. Raises Unavailable (TABLE_NEWER), BrokenConservation."""
        table = cls(table_id, stored, decode(stored.blob))
        table.check()
        return table

    @property
    def version(self) -> int:
        """Version of the last commit; 0 before the first."""
        return self.stored.version if self.stored is not None else 0

    def encode(self) -> bytes:
        """The blob as the store keeps it."""
        if self.hand is not None and self.blob.hand is not None:
            packed = self.blob.hand.inputs
            packed += map(pack_input, self.hand.inputs[len(packed) :])
        return bytes((SCHEMA,)) + _encoder.encode(self.blob)

    def seat_of(self, player_id: str) -> int | None:
        """Number of the player's seat."""
        for number, seat in self.blob.seats.items():
            if seat.player_id == player_id:
                return number
        return None

    def setup(self, running: RunningHand) -> HandSetup:
        """The engine's setup of a hand at this table."""
        if self.rulebook is None:
            raise ValueError("a table without a rulebook")
        return HandSetup(
            self.rulebook,
            self.stake,
            tuple(running.seats),
            tuple(running.stacks),
            running.button,
        )

    @property
    def state(self) -> TableStatus:
        """What players are told: also that it closes, or rests, when the hand is over."""
        blob = self.blob
        stands_still = blob.status is TableStatus.PAUSED and blob.hand is not None
        if blob.after_hand is None or blob.status is TableStatus.CLOSED or stands_still:
            return blob.status
        return blob.after_hand

    @property
    def is_tombstone(self) -> bool:
        """There never was such a table; only refused reservations are remembered here."""
        return not self.blob.config.rulebook

    @property
    def clock_runs(self) -> bool:
        """Whether a player's time to act is running."""
        return (
            self.blob.status is TableStatus.OPEN
            and not self.blob.waits_for
            and self.blob.due_ms > 0
            and self.hand is not None
            and isinstance(self.hand.want, Act)
        )

    def in_hand(self, number: int) -> bool:
        """Whether the seat is dealt into the running hand."""
        return self.blob.hand is not None and number in self.blob.hand.seats

    def behind(self, number: int) -> int:
        """Chips that the seat has behind now, minor units."""
        if self.hand is not None and self.in_hand(number):
            return self.hand.stacks[number]
        return self.blob.seats[number].stack

    def able(self) -> list[int]:
        """The seats that could be dealt into a hand now, ascending.

        In a club game all that have chips are, also who is away, if one of them is there to play;
        before it begins none, until all have come.
        """
        seats, agreed = self.blob.seats, self.blob.config.format
        stacked = sorted(number for number, seat in seats.items() if seat.stack > 0)
        there = [number for number in stacked if seats[number].status is SeatStatus.PLAYING]
        if agreed is None:
            return there
        begins = self.blob.game is not None or len(seats) >= agreed.players
        return stacked if there and begins else []

    def ready(self) -> list[int]:
        """The seats that would be dealt into a hand now, ascending: able, and in for it."""
        if self.blob.config.format is not None:
            # Whoever plays a club game plays all of it.
            return self.able()
        seats = self.blob.seats
        return [number for number in self.able() if not is_unconfirmed(seats[number])]

    def money(self) -> Iterator[tuple[str, str, int]]:
        """(sitting, player, minor units) of every seat: stack and what is in the hand's pots."""
        in_play = self._in_play()
        for number, seat in self.blob.seats.items():
            yield seat.sitting_id, seat.player_id, in_play.get(number, seat.stack)

    def held(self) -> Iterator[tuple[str, str, int]]:
        """(reservation, sitting, minor units) of every top-up that is held on a seat."""
        for seat in self.blob.seats.values():
            if seat.held is not None:
                reservation = str(uuid.UUID(bytes=seat.held.reservation))
                yield reservation, seat.sitting_id, seat.held.amount

    def check(self) -> None:
        """Raises BrokenConservation unless every chip is one that was brought and none is lost."""
        seats, waiting = self.blob.seats, self.blob.waiting
        for number, seat in seats.items():
            if seat.stack < 0 or seat.stack != seat.brought:
                raise BrokenConservation(f"seat {number} does not have what it brought")
            if seat.held is not None and not self._holds(seat, seat.held):
                raise BrokenConservation(f"seat {number} holds chips that it must not have")
        players = {seat.player_id for seat in seats.values()}
        require(len(players) == len(seats), "a player has two seats at one table")
        if waiting:
            kept = [each.seat for each in waiting if each.seat >= 0]
            require(len(kept) == len(set(kept)), "a seat is kept for two players")
            require(not seats.keys() & set(kept), "a seat that is taken is kept for a player")
        running = self.blob.hand
        if running is None or self.hand is None:
            require(running is None and self.hand is None, "half a hand")
            return
        for number, stack in zip(running.seats, running.stacks, strict=True):
            seat_of = seats.get(number)
            if seat_of is None or seat_of.stack != stack:
                raise BrokenConservation(f"seat {number} did not keep its stack during the hand")
        betting = self.hand.betting
        if sum(betting.stack) + sum(betting.put_in) != sum(running.stacks):
            raise BrokenConservation("stacks and pots are not what the hand began with")

    def _holds(self, seat: Seat, held: Held) -> bool:
        """Whether a top-up may be where it is: not yet in play, and not given back."""
        spent = held.reservation == seat.reservation or held.reservation in self.blob.remembered
        return held.amount > 0 and not spent

    def _in_play(self) -> dict[int, int]:
        """What each seat of the running hand has behind and in the pots."""
        if self.hand is None:
            return {}
        put_in = self.hand.put_in
        return {number: stack + put_in[number] for number, stack in self.hand.stacks.items()}


def tombstone(currency: str) -> Blob:
    """What is stored under the id of a table that never was."""
    config = Config("", b"", ("", 0, 0, 0, 0, 0, 0), 0, currency, b"", 0, 0, b"")
    return Blob(config, TableStatus.CLOSED)


class TableMoney(NamedTuple):
    """A table's money as the ledger should know it."""

    currency: str
    sittings: list[tuple[str, str, int]]
    """(sitting id, player id, minor units)."""
    held: list[tuple[str, str, int]]
    """(reservation id, sitting id, minor units) of top-ups that wait for the next deal."""


def money_of(blob: bytes) -> TableMoney:
    """The money in a stored blob. Raises Unavailable (TABLE_NEWER), BrokenConservation."""
    table = Table("", None, decode(blob))
    table.check()
    return TableMoney(table.blob.config.currency, list(table.money()), list(table.held()))


def is_unconfirmed(seat: Seat) -> bool:
    """Whether the player has still to say that he is in for the next hand."""
    return bool(seat.flags & SeatFlag.ASKED_ANTE) and not seat.flags & SeatFlag.CONFIRMED


def decode(blob: bytes) -> Blob:
    """The content of a stored blob. Raises Unavailable (TABLE_NEWER), ValueError."""
    if not blob:
        raise ValueError("an empty blob")
    if blob[0] > SCHEMA:
        raise Unavailable(
            "TABLE_NEWER",
            "replicas of a later release serve this table",
            metadata={"schema": str(blob[0]), "known": str(SCHEMA)},
            retry_after_ms=NEWER_RETRY_AFTER_MS,
        )
    return _decoder.decode(blob[1:])


def digest(request_id: str, asked: object) -> bytes:
    """Six bytes that stand for a request's id in the blob and two for what it asked."""
    content = hashlib.blake2b(repr(asked).encode(), digest_size=2).digest()
    return hashlib.blake2b(request_id.encode(), digest_size=6).digest() + content


def player_digest(player_id: str) -> bytes:
    """Four bytes that stand for a player in the blob where a few that are alike do no harm."""
    return hashlib.blake2b(player_id.encode(), digest_size=4).digest()


def is_repeat(known: bytes, request: bytes) -> bool:
    """Whether a request (`digest`) is one that was accepted. Raises AlreadyExists (ID_REUSED) if
    only its id is.
    """
    if known[:6] != request[:6]:
        return False
    if known != request:
        raise AlreadyExists("ID_REUSED", "this request id was used before, for something else")
    return True


def placed(events: Sequence[Event], positions: Sequence[int]) -> list[Played]:
    """The events, with the deck positions of the cards dealt in them, which come in that order.

    The end of a void hand is told once: as VOIDED.
    """
    at = iter(positions)
    void = _VOIDED in [event[0] for event in events]
    return [
        Played(event, next(at)) if event[0] == _DEALT else Played(event)
        for event in events
        if not (void and event[0] == _ENDED)
    ]


def _replayed(table: Table, running: RunningHand) -> tuple[Hand, list[Played]]:
    hand = Hand(table.setup(running))
    played: list[Played] = []
    for item in map(unpack_input, running.inputs):
        want = hand.want
        positions = want.positions if isinstance(want, Deal) else ()
        played += placed(hand.feed(item), positions)
    return hand, played
