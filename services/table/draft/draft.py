"""A table being changed: what one command does to it, on its way to one commit.

A change checks before it touches anything: what it refuses, it refuses on an untouched table.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from doorcard.shuffler.v1 import shuffler_pb2
from doorcard.table.v1 import table_pb2
from prometheus_client import Histogram

from services.game.events import COMMUNITY, Event, EventKind
from services.runtime.channels import call
from services.runtime.metrics import ACTION_DURATION
from services.table.draft.money import Entry
from services.table.state import views
from services.table.state.state import Table, placed
from services.table.state.times import STANDARD, SeatTimes

SERVICE_TIMEOUT_S: Final = 0.25
"""For a call of another service while a command holds its table."""

_DEALT: Final = EventKind.DEALT
"""A member of an enum is slow to look up; this is for every event."""
_HISTOGRAMS: Final[dict[tuple[str, str, str], Histogram]] = {}

Response = TypeVar("Response")
Method = Callable[..., Awaitable[Response]]


class Shuffler(Protocol):
    """What tables ask of the shuffler; a generated stub has it."""

    CreateDeck: Any
    Draw: Any
    Reshuffle: Any


class Showdown(Protocol):
    """What tables ask of the showdown service."""

    DivideShowdown: Any


class Wallet(Protocol):
    """What tables ask of the wallet."""

    AssessRake: Any
    ReserveBuyIn: Any
    GetReservation: Any
    GetRakeSchedule: Any


@dataclass(frozen=True, slots=True)
class Services:
    """The services that tables call."""

    shuffler: Shuffler
    showdown: Showdown
    wallet: Wallet


class Moved(NamedTuple):
    """A player who left the table for a seat that is kept for him at another."""

    from_table_id: str
    player_id: str
    to_table_id: str
    amount: int
    """What he left with, minor units."""


class Stopwatch:
    """Times of the stages of one command, in seconds."""

    __slots__ = ("_began_s", "_label", "_stages")

    def __init__(self, label: str, arrived_s: float) -> None:
        """arrived_s: `time.perf_counter()` when the command came."""
        self._label = label
        self._began_s = arrived_s
        self._stages: dict[str, float] = {"queue": time.perf_counter() - arrived_s}

    def stage(self, name: str) -> "_Timed":
        """Add the time inside the block to a stage."""
        return _Timed(self._stages, name)

    @property
    def age_ms(self) -> int:
        """Since the command came."""
        return int((time.perf_counter() - self._began_s) * 1000)

    def stop(self, outcome: str) -> None:
        """Report every stage and the total: ok, refused, failed."""
        self._stages["total"] = time.perf_counter() - self._began_s
        for name, took_s in self._stages.items():
            key = (self._label, name, outcome)
            histogram = _HISTOGRAMS.get(key)
            if histogram is None:
                # Bounded: labels and stages are words of this program.
                histogram = _HISTOGRAMS[key] = ACTION_DURATION.labels(*key)
            histogram.observe(took_s)


class _Timed:
    """A block whose time is added to a stage; a class, since this is done for every action."""

    __slots__ = ("_began_s", "_name", "_stages")

    def __init__(self, stages: dict[str, float], name: str) -> None:
        self._stages = stages
        self._name = name
        self._began_s = 0.0

    def __enter__(self) -> None:
        self._began_s = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        took_s = time.perf_counter() - self._began_s
        self._stages[self._name] = self._stages.get(self._name, 0.0) + took_s


@dataclass(slots=True)
class Draft:
    """One change of a table. The fields beside the table are what its commit will carry."""

    table: Table
    now_ms: int
    """Redis time."""
    services: Services
    watch: Stopwatch
    changed: bool = False
    """Whether there is anything to commit."""
    happened: list[views.Told] = field(default_factory=list)
    outbox: list[Entry] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    """Players whose seat knows of no stream: a replica that has one says so."""
    lobby: bool = False
    """The table's line in the lobby is another now."""
    not_before_ms: int = 0
    """The commit holds only from this Redis time on."""
    trim_below: int = 0
    """Event records of lower versions are dropped; 0 for none."""
    once_committed: list[Callable[[], None]] = field(default_factory=list)
    """What is counted and logged of it then; a change made anew is told once."""
    go_on: bool = False
    """After the commit the hand goes on at once, by a second one: a deck's root is out first."""
    moved: list[Moved] = field(default_factory=list)
    """Who left for another table; it learns after the commit what he brings."""
    times: SeatTimes = STANDARD

    @property
    def version(self) -> int:
        """The version that the commit will have, but for a table's first."""
        return self.table.version + 1

    @property
    def arrived_ms(self) -> int:
        """Redis time at which the command came to this replica."""
        return self.now_ms - self.watch.age_ms

    @property
    def version_after(self) -> int:
        """The version that the table has when this is done, changed or not."""
        return self.version if self.changed else self.table.version

    def tell(self, **event: Any) -> None:
        """Something happened at the table; the argument is a field of `TableEvent`."""
        self.happened.append(views.Told(views.encoded(**event)))
        self.changed = True

    def tell_player(self, player_id: str, **event: Any) -> None:
        """Something happened that only he learns; the argument is a field of `TableEvent`."""
        self.happened.append(views.Told(b"", player_id, views.encoded(**event)))
        self.changed = True

    def tell_seat(self, number: int) -> None:
        """The seat is another than it was."""
        seat = views.seat(self.table, number)
        self.tell(seat_changed=table_pb2.TableEvent.SeatChanged(seat=seat))

    def tell_options(self, number: int) -> None:
        """The player of a seat learns what it does by itself now."""
        options = views.own_options(self.table, number)
        changed = table_pb2.TableEvent.OptionsChanged(options=options)
        self.tell_player(self.table.blob.seats[number].player_id, options_changed=changed)

    def tell_hand(
        self, events: Sequence[Event], drawn: Sequence[shuffler_pb2.DrawnCard] = ()
    ) -> None:
        """Events of the running hand; `drawn` holds the proofs of the cards dealt, in order."""
        table = self.table
        seats = table.blob.seats
        proofs = {card.position: card for card in drawn}
        better: set[int] = set()
        for played in placed(events, [*proofs]):
            table.played.append(played)
            kind, *of = played.event
            if kind != _DEALT:
                told = views.told(played)
            elif of[0] == COMMUNITY:
                told = views.told(played, proof=proofs.get(played.position))
                better.update(table.hand.seats if table.hand is not None else ())
            else:
                owner = seats[of[0]].player_id
                told = views.told(played, owner, proofs.get(played.position))
                better.add(of[0])
            if told is not None:
                self.happened.append(told)
        for number in better:
            if words := views.strength(table, number):
                self.tell_player(seats[number].player_id, strength={"words": words})
        self.changed = True

    async def ask(self, stage: str, method: Method[Response], request: Any) -> Response:
        """Call a service once, within `SERVICE_TIMEOUT_S`. Raises DoorcardError."""
        with self.watch.stage(stage):
            return await call(method, request, timeout_s=SERVICE_TIMEOUT_S, attempts=1)
