"""The life of money at a table: buy-ins, the entries of the outbox, the record of a hand.

An entry says what the ledger is to do. Its id is the UUIDv5 of what it is for, so that the same
thing can never be booked twice.
"""

import uuid
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Final, NamedTuple

import msgspec
from doorcard.game.v1 import game_pb2
from doorcard.history.v1 import history_pb2
from doorcard.table.v1 import internal_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.game.cards import card_name
from services.game.events import EventKind
from services.game.invariant import require
from services.runtime.clock import timestamp
from services.runtime.ids import uuid5_of
from services.table.state import views
from services.table.state.state import Deck, Played, RunningHand, Seat, Table
from services.table.store.stored import OutboxItem

TAKE_SEAT_LIFE_S: Final = 30.0
"""From before the reservation is made to the seat; after it the buy-in is refused and released."""
REMEMBERED_FOR_MS: Final = 2 * int(TAKE_SEAT_LIFE_S) * 1000
"""How long a reservation is remembered after the ledger has applied its last entry."""
COMMIT_TAKES_MAX_MS: Final = 10_000
"""An entry is at most so much younger than the draft that made it."""


def _engine_version() -> str:
    try:
        return metadata.version("doorcard")
    except metadata.PackageNotFoundError:
        return "source"


ENGINE_VERSION: Final = _engine_version()


class Entry(NamedTuple):
    """An entry for the outbox."""

    entry_id: str
    ledger: wallet_pb2.LedgerEntry
    hand: history_pb2.HandRecord | None = None
    audit: history_pb2.AuditRecord | None = None

    @property
    def gives_back(self) -> bool:
        """Whether a player has his money again by it: his stack, or what was reserved of his."""
        return self.ledger.WhichOneof("entry") in ("cash_out", "release")

    def item(self, at_ms: int) -> OutboxItem:
        """The entry as the store takes it."""
        entry = internal_pb2.OutboxEntry(
            at=timestamp(at_ms), ledger=self.ledger, hand=self.hand, audit=self.audit
        )
        return OutboxItem(self.entry_id, entry.SerializeToString())


def sitting_of(player_id: str, table_id: str, request_id: str) -> uuid.UUID:
    """The sitting that a TakeSeat request begins."""
    return uuid.UUID(uuid5_of("sitting", player_id, table_id, request_id))


def reservation_of(player_id: str, table_id: str, request_id: str) -> uuid.UUID:
    """The reservation that pays for a TakeSeat request."""
    return uuid.UUID(uuid5_of("reservation", player_id, table_id, request_id))


def top_up_of(player_id: str, table_id: str, request_id: str) -> uuid.UUID:
    """The reservation that pays for a TopUp request."""
    return uuid.UUID(uuid5_of("top-up", player_id, table_id, request_id))


def bytes_of(reservation_id: str) -> bytes:
    """A UUID as it is stored."""
    return uuid.UUID(reservation_id).bytes


def text_of(reservation: bytes) -> str:
    """A stored UUID as text."""
    return str(uuid.UUID(bytes=reservation))


def commit_of(table: Table, reservation_id: str) -> Entry:
    """The reservation becomes the table's."""
    commit = wallet_pb2.ReservationCommit(reservation_id=reservation_id)
    return _entry("commit", reservation_id, table, commit=commit)


def release_of(table: Table, reservation_id: str) -> Entry:
    """The reservation goes back to its player."""
    release = wallet_pb2.ReservationRelease(reservation_id=reservation_id)
    return _entry("release", reservation_id, table, release=release)


def cash_out_of(table: Table, seat: Seat) -> Entry:
    """The sitting ends, and its stack goes back to its player."""
    cash_out = wallet_pb2.CashOut(
        sitting_id=seat.sitting_id, player_id=seat.player_id, amount=seat.stack
    )
    return _entry("cash-out", seat.sitting_id, table, cash_out=cash_out)


def settlement_of(table: Table, ended_ms: int) -> tuple[Entry, dict[int, int]]:
    """The entry of the hand that has just ended, with its record, and the net of every seat.

    Raises InvariantError unless nets and rake add up to nothing.
    """
    running, hand = table.blob.hand, table.hand
    if running is None or hand is None or hand.result is None:
        raise ValueError("no hand has ended")
    result = hand.result
    before = dict(zip(running.seats, running.stacks, strict=True))
    nets = {number: hand.stacks[number] - before[number] for number in running.seats}
    rake = sum(result.rake)
    require(nets == result.net, "stacks at the end of a hand are not what its result says")
    require(rake >= 0, "rake below zero")
    require(sum(nets.values()) + rake == 0, "nets and rake of a hand do not add up to zero")
    record = record_of(table, running, nets, ended_ms)
    sittings = {number: table.blob.seats[number].sitting_id for number in running.seats}
    settled = wallet_pb2.HandSettlement(
        hand_id=running.hand_id,
        nets=[
            wallet_pb2.SittingNet(sitting_id=sittings[number], amount=net)
            for number, net in nets.items()
            if net
        ],
        rake=rake,
        dealt_in=[
            wallet_pb2.SittingShare(sitting_id=sittings[number], contributed=put_in)
            for number, put_in in hand.put_in.items()
            if not result.voided
        ],
        game=record.game,
        stake=record.stake.name,
        ended=record.ended,
    )
    return _entry("hand", running.hand_id, table, hand=settled)._replace(hand=record), nets


def prizes_of(table: Table, nets: Mapping[int, int], ended_ms: int) -> Entry:
    """What the prizes of a club game move between its sittings. Nets add up to nothing, as those of
    a hand; no record of a hand goes with them.
    """
    game_id = uuid5_of("club game", table.table_id)
    shown = views.config(table.table_id, table.blob.config)
    settled = wallet_pb2.HandSettlement(
        hand_id=game_id,
        nets=[
            wallet_pb2.SittingNet(sitting_id=table.blob.seats[number].sitting_id, amount=net)
            for number, net in nets.items()
            if net
        ],
        game=shown.game,
        stake=shown.stake.name,
        ended=timestamp(ended_ms),
    )
    return _entry("club game", game_id, table, hand=settled)


def record_of(
    table: Table, running: RunningHand, nets: Mapping[int, int], ended_ms: int
) -> history_pb2.HandRecord:
    """Everything of a hand that has ended, every card included: for the archive only."""
    hand, config = table.hand, table.blob.config
    if hand is None or hand.result is None:
        raise ValueError("no hand has ended")
    result = hand.result
    schedule = wallet_pb2.RakeSchedule.FromString(config.rake_schedule)
    shown = views.config(table.table_id, config)
    setup = (running.seats, running.stacks, running.button)
    return history_pb2.HandRecord(
        hand_id=running.hand_id,
        table_id=table.table_id,
        table_name=config.name,
        currency=config.currency,
        game=shown.game,
        rulebook=shown.rulebook,
        rulebook_sha256=shown.rulebook_sha256,
        stake=shown.stake,
        rake_schedule_id=schedule.schedule_id,
        rake_schedule_version=schedule.version,
        button=running.button,
        started=timestamp(running.started_ms),
        ended=timestamp(ended_ms),
        players=[_player(table, number, nets) for number in running.seats],
        events=_events(table.played, running),
        inputs=msgspec.msgpack.encode((setup, hand.inputs)),
        engine_version=ENGINE_VERSION,
        deck_root=running.decks[0].root,
        sealed_deck=running.decks[0].sealed,
        pots=[views.pot(*each) for each in result.pots],
        rake=sum(result.rake),
        awards=[views.award((EventKind.AWARDED, *each)) for each in result.awards],
        community=card_name(hand.community) if hand.community >= 0 else "",
        void=result.voided,
    )


def _player(table: Table, number: int, nets: Mapping[int, int]) -> history_pb2.HandPlayer:
    hand, seat = table.hand, table.blob.seats[number]
    if hand is None or hand.result is None:
        raise ValueError("no hand has ended")
    result = hand.result
    contested = len(hand.folded) < len(hand.seats) - 1 and not result.voided
    return history_pb2.HandPlayer(
        seat=number,
        player_id=seat.player_id,
        name=seat.name,
        sitting_id=seat.sitting_id,
        starting_stack=seat.stack,
        finishing_stack=seat.stack + nets[number],
        cards=[card_name(card) for card in hand.cards(number)],
        folded=number in hand.folded,
        at_showdown=contested and number not in hand.folded,
        shown=number in result.shown or (hand.tabled and number not in hand.folded),
    )


def _events(played: list[Played], running: RunningHand) -> list[Any]:
    """Every HandEvent in order, after the root of the deck; a new deck stands where it was made."""
    events: list[Any] = [committed_deck(running.decks[0])]
    for each in played:
        if each.event[0] == EventKind.RESHUFFLED:
            events.append(committed_deck(running.decks[-1]))
        event = views.hand_event(each)
        if event is not None:
            events.append(event)
    return events


def committed_deck(deck: Deck, leaves: bytes = b"") -> game_pb2.HandEvent:
    """A deck's root is out, for the players with its leaves."""
    committed = game_pb2.HandEvent.DeckCommitted(
        root=deck.root, reshuffled=bool(deck.made_from), leaves=leaves
    )
    return game_pb2.HandEvent(deck_committed=committed)


def _entry(
    what: str,
    of: str,
    table: Table,
    *,
    commit: wallet_pb2.ReservationCommit | None = None,
    release: wallet_pb2.ReservationRelease | None = None,
    hand: wallet_pb2.HandSettlement | None = None,
    cash_out: wallet_pb2.CashOut | None = None,
) -> Entry:
    ledger = wallet_pb2.LedgerEntry(
        table_id=table.table_id,
        currency=table.blob.config.currency,
        commit=commit,
        release=release,
        hand=hand,
        cash_out=cash_out,
    )
    return Entry(uuid5_of(f"outbox {what}", of), ledger)
