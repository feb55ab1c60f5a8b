"""Who may see what: the only place that knows whether a card is somebody's to see.

A viewer is a player id, or `PUBLIC` for everybody. Cards that are not his never get into the
message, so there is nothing that could be left in by mistake. Everything is encoded once: an
encoded frame is the bytes of a `PlayResponse` with that one frame, so that frames put one after
another are a message (of `WatchTableResponse` too, which has them in the same field).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from doorcard.game.v1 import game_pb2
from doorcard.shuffler.v1 import shuffler_pb2
from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.game import names, pots
from services.game.cards import card_name
from services.game.events import COMMUNITY, Event, EventKind
from services.game.rulebook import Game
from services.game.wants import Act, Legal
from services.runtime.clock import timestamp
from services.table.state import buy_ins, game_views, statistics, turn_times
from services.table.state.packed_rulebooks import unpack_rulebook
from services.table.state.state import (
    Config,
    Played,
    Rebuild,
    Seat,
    SeatFlag,
    Stage,
    Table,
    Waiter,
    is_unconfirmed,
)

PUBLIC: Final = ""
"""The viewer that stands for everybody, spectators included."""
UNKNOWN_STREAM: Final = "?"
"""Before the id of a player whose seat knows of no stream of his, among audiences."""

GAMES: Final = {
    Game.HIGH: game_pb2.GAME_HIGH,
    Game.HI_LO: game_pb2.GAME_HI_LO,
    Game.RAZZ: game_pb2.GAME_RAZZ,
}
REBUILT: Final = (
    "the room lost part of what it had stored of this table: stacks are what the ledger has, and a "
    "hand that it does not have is void"
)
_DEALT: Final = EventKind.DEALT
"""A member of an enum is slow to look up; this is for every event."""
PARTS: Final = (game_pb2.POT_PART_WHOLE, game_pb2.POT_PART_HIGH, game_pb2.POT_PART_LOW)


Fields = dict[str, Any]
"""A message as the fields to make it of: much cheaper than one made only to be put into another."""


class Told(NamedTuple):
    """One thing that happened, encoded (`encoded`) as everybody learns it and as one player does
    beside.
    """

    public: bytes
    """Empty for what is only his to know."""
    owner: str = ""
    """The player of `private`."""
    private: bytes = b""


def encoded(**event: Any) -> bytes:
    """An event as it stands in an update; the argument is a field of `TableEvent`. The events of an
    update are these one after another.
    """
    update = table_pb2.TableUpdate()
    update.events.add(**event)
    return update.SerializeToString()


def view(table: Table, viewer: str) -> table_pb2.TableView:
    """The table as the viewer may see it."""
    blob = table.blob
    shown = table_pb2.TableView(
        config=config(table.table_id, blob.config),
        version=table.version,
        state=table_pb2.TableState.ValueType(table.state),
        seats=[seat(table, number) for number in sorted(blob.seats)],
        hands=blob.hands,
        waiting=waiting(table),
        announcement=blob.announcement,
        game=game_views.club_game(table),
    )
    if blob.hand is not None:
        shown.hand.CopyFrom(_hand(table, viewer))
    own = table.seat_of(viewer)
    if own is not None:
        shown.own_options.CopyFrom(own_options(table, own))
        asked = blob.asked_until_ms and blob.seats[own].flags & SeatFlag.ASKED
        if asked and is_unconfirmed(blob.seats[own]):
            shown.own_ante_until.CopyFrom(timestamp(blob.asked_until_ms))
    kept = buy_ins.offer_of(table, viewer)
    if kept is not None:
        shown.own_offer.CopyFrom(offer(table, kept))
    if blob.rebuilt is not None:
        shown.rebuilt.CopyFrom(rebuilt(blob.rebuilt))
    return shown


def waiting(table: Table) -> list[table_pb2.Waiting]:
    """Who waits for a seat and has no offer, in order."""
    return [
        table_pb2.Waiting(player_id=each.player_id, name=each.name)
        for each in table.blob.waiting
        if each.seat < 0
    ]


def offer(table: Table, waiter: Waiter) -> table_pb2.SeatOffer:
    """The seat that is kept for a player; its bounds are those at the end of its time."""
    least, most, _ = buy_ins.bounds(table, waiter.player_id, waiter.until_ms)
    return table_pb2.SeatOffer(
        seat=waiter.seat, until=timestamp(waiter.until_ms), buy_in_min=least, buy_in_max=most
    )


def rebuilt(stored: Rebuild) -> table_pb2.Rebuilt:
    """That a table was made anew from the ledger, as everybody learns it."""
    return table_pb2.Rebuilt(
        at=timestamp(stored.at_ms), reason=REBUILT, void_hand_id=stored.hand_id
    )


def told(
    played: Played, owner: str = "", proof: shuffler_pb2.DrawnCard | None = None
) -> Told | None:
    """How an event of a hand is told. None where the players learn it in other words.

    owner: the player of the seat that a card was dealt to. proof: what the shuffler said of it.
    """
    event = played.event
    if event[0] in _OF_SEAT:
        return _told_of_seat(event)
    seen = hand_event(played, proof)
    if seen is None:
        return None
    if _is_public(event):
        return Told(encoded(hand=seen))
    return Told(_dealt_down(event[1], played.position), owner, encoded(hand=seen))


@lru_cache(maxsize=16_384)
def _told_of_seat(event: Event) -> Told:
    """What a seat did, of which there are few at a stake: nothing that anybody holds hidden."""
    return Told(encoded(hand=_MAKERS[event[0]](event)))


@lru_cache(maxsize=1024)
def _dealt_down(number: int, position: int) -> bytes:
    """That a seat was dealt a card face down, and from where in the deck."""
    return encoded(hand={"dealt": {"seat": number, "position": position}})


def events(happened: Sequence[Told], joined: Iterable[str] = ()) -> dict[str, bytes]:
    """Audience -> the encoded events of a version: everybody, and each player for himself.

    joined: players whose seat knows of no stream; they get an empty entry, by which a replica that
    has one knows: under their id, or behind `UNKNOWN_STREAM` where that has events.
    """
    owners = {each.owner: None for each in happened if each.private}
    told = {UNKNOWN_STREAM + each if each in owners else each: b"" for each in joined}
    told[PUBLIC] = b"".join([each.public for each in happened])
    for owner in owners:
        told[owner] = b"".join([each.private for each in happened if each.owner == owner])
    return told


def frame(
    table_id: str,
    *,
    snapshot: table_pb2.TableView | None = None,
    result: Fields | None = None,
    reconnect: table_pb2.Reconnect | None = None,
    update: table_pb2.TableUpdate | None = None,
    player_ids: Sequence[str] = (),
) -> bytes:
    """One encoded frame; those of commits are made by `frames`."""
    response = table_pb2.PlayResponse()
    response.frames.add(
        table_id=table_id,
        snapshot=snapshot,
        update=update,
        result=result,
        reconnect=reconnect,
        player_ids=player_ids,
    )
    return response.SerializeToString()


def reached(table_id: str, version: int, player_id: str) -> bytes:
    """One encoded frame that tells a gateway's player that he is at a version, and no more."""
    update = table_pb2.TableUpdate(version=version)
    return frame(table_id, update=update, player_ids=(player_id,))


def rebuilt_update(table: Table, stored: Rebuild) -> bytes:
    """For those who saw the table before it was rebuilt: one encoded frame that says so, of the
    version that their snapshot has.
    """
    update = table_pb2.TableUpdate(version=table.version, at=timestamp(stored.at_ms))
    update.events.add(rebuilt=rebuilt(stored))
    return frame(table.table_id, update=update)


@lru_cache(maxsize=4096)
def config(table_id: str, stored: Config) -> table_pb2.TableConfig:
    """What a table is; not to be changed, since it is made once for all who ask."""
    shown = table_pb2.TableConfig(
        table_id=table_id, name=stored.name, seats=stored.seats, currency=stored.currency
    )
    shown.format.CopyFrom(game_views.format_of(stored))
    if stored.rulebook:
        rulebook = unpack_rulebook(stored.rulebook)
        shown.game = GAMES[rulebook.game]
        shown.rulebook = rulebook.name
        shown.rulebook_sha256 = rulebook_sha256(stored.rulebook)
        shown.stake.CopyFrom(stake(stored))
    if stored.rake_schedule:
        schedule = wallet_pb2.RakeSchedule.FromString(stored.rake_schedule)
        shown.rake_schedule_id = schedule.schedule_id
        shown.rake_schedule_version = schedule.version
    return shown


def summary(table: Table) -> table_pb2.TableSummary:
    """What of the table stands in the lobby."""
    recent = statistics.shown(table)
    return table_pb2.TableSummary(
        config=config(table.table_id, table.blob.config),
        state=table_pb2.TableState.ValueType(table.state),
        players=len(table.blob.seats),
        hands=table.blob.hands,
        game_started=table.blob.game is not None,
        waiting=len(waiting(table)),
        average_pot=recent.average_pot,
        hands_per_hour=recent.hands_per_hour,
        players_per_fourth_street=recent.on_fourth_percent,
    )


def seat(table: Table, number: int) -> table_pb2.Seat:
    """A taken seat."""
    stored: Seat = table.blob.seats[number]
    shown = table_pb2.Seat(
        seat=number,
        player_id=stored.player_id,
        name=stored.name,
        stack=table.behind(number),
        state=table_pb2.SeatState.ValueType(stored.status),
        connected=bool(stored.connection),
        held=stored.held.amount if stored.held is not None else 0,
        missed_hands=stored.missed,
    )
    if turn_times.times_of(table).bank_ms:
        shown.time_bank.FromMilliseconds(turn_times.bank_left_ms(table, stored))
    return shown


def own_options(table: Table, number: int) -> table_pb2.SeatOptions:
    """What a seat does by itself; for its player only."""
    flags, running = table.blob.seats[number].flags, table.blob.hand
    options = table_pb2.SeatOptions(
        auto_ante=not flags & SeatFlag.ASKED_ANTE,
        show_beaten=bool(flags & SeatFlag.SHOWS_BEATEN),
        sit_out_next=bool(flags & SeatFlag.OUT_NEXT),
    )
    if running is not None and number in running.chosen:
        kind, street = running.chosen[number]
        options.next_action.kind = table_pb2.PreAction.Kind.ValueType(kind)
        options.next_action.hand_id = running.hand_id
        options.next_action.street = street
    return options


def strength(table: Table, number: int) -> str:
    """The seat's best hand as it stands, in words; for its player only. Empty when he is out."""
    hand = table.hand
    if hand is None or number in hand.folded:
        return ""
    rules = hand.setup.rulebook
    shared = () if hand.community < 0 else (hand.community,)
    cards = (*hand.cards(number), *shared)
    return names.strength(cards, rules.game, wild_deuces=rules.wild_deuces)


def turn(table: Table) -> table_pb2.Turn | None:
    """Whose turn it is; None while it is nobody's."""
    want = table.hand.want if table.hand is not None else None
    if not isinstance(want, Act):
        return None
    running = table.blob.hand
    shown = table_pb2.Turn(turn=want.turn, seat=want.seat)
    _offer(shown.legal, want.legal)
    if running is not None and table.clock_runs:
        shown.deadline.CopyFrom(timestamp(table.blob.due_ms))
        shown.renewed = running.renewed
        if running.countdown_ms:
            shown.countdown_from.CopyFrom(timestamp(running.countdown_ms))
        if running.stage is Stage.BANK:
            left_ms = turn_times.bank_left_ms(table, table.blob.seats[want.seat])
            shown.time_bank.FromMilliseconds(left_ms)
    return shown


def _offer(shown: game_pb2.LegalActions, offered: Legal) -> None:
    shown.fold = offered.fold
    shown.check = offered.check
    shown.call = offered.call
    shown.bring_in = offered.bring_in
    if offered.wagers:
        shown.wager_kind = game_pb2.ActionKind.ValueType(offered.wager_kind)
        shown.wagers.extend(offered.wagers)


def stake(stored: Config) -> game_pb2.Stake:
    """The table's fixed amounts."""
    name, ante, bring_in, small_bet, big_bet, buy_in_min, buy_in_max = stored.stake
    return game_pb2.Stake(
        name=name,
        ante=ante,
        bring_in=bring_in,
        small_bet=small_bet,
        big_bet=big_bet,
        buy_in_min=buy_in_min,
        buy_in_max=buy_in_max,
    )


@lru_cache(maxsize=256)
def rulebook_sha256(packed: bytes) -> bytes:
    """32 bytes that name the settings of a packed rulebook."""
    return bytes.fromhex(unpack_rulebook(packed).sha256())


def hand_event(played: Played, proof: shuffler_pb2.DrawnCard | None = None) -> Fields | None:
    """The fields of a HandEvent for those who may see all of it: a dealt card is in it, with its
    proof. None where the players learn it in other words.
    """
    event = played.event
    make = _MAKERS.get(event[0])
    if make is not None:
        return make(event)
    if event[0] != _DEALT:
        return None
    _, number, card, up = event
    dealt: Fields = {
        "seat": number,
        "up": up,
        "position": played.position,
        "card": card_name(card),
    }
    if proof is not None:
        dealt["salt"] = proof.salt
        dealt["path"] = proof.path
    return {"dealt": dealt}


def _is_public(event: Event) -> bool:
    return event[0] != _DEALT or bool(event[3])


def _hand(table: Table, viewer: str) -> table_pb2.HandView:
    running, hand = table.blob.hand, table.hand
    if running is None or hand is None:
        raise ValueError("no hand is running")
    up: dict[int, list[str]] = {number: [] for number in running.seats}
    down: dict[int, list[str]] = {number: [] for number in running.seats}
    community = ""
    round_over = hand.result is not None
    tabled = set()
    for event, _ in table.played:
        if event[0] == EventKind.DEALT:
            if event[1] == COMMUNITY:
                community = card_name(event[2])
            else:
                (up if event[3] else down)[event[1]].append(card_name(event[2]))
        elif event[0] == EventKind.SHOWN:
            tabled.add(event[1])
    shown = table_pb2.HandView(
        hand_id=running.hand_id,
        street=hand.street,
        button=running.button,
        deck_root=running.decks[-1].root,
        pots=_pots(table),
        turn=turn(table),
        community=community,
        first_version=table.blob.hand_version,
    )
    bets, put_in = hand.bets, hand.put_in
    for number in running.seats:
        mine = viewer != PUBLIC and table.blob.seats[number].player_id == viewer
        shown.seats.add(
            seat=number,
            up_cards=up[number],
            down_count=len(down[number]),
            down_cards=down[number] if mine or number in tabled else (),
            bet=0 if round_over else bets[number],
            put_in=put_in[number],
            folded=number in hand.folded,
            all_in=number in hand.all_in,
        )
        if mine:
            shown.strength = strength(table, number)
            shown.dead_cards.extend(_dead_cards(table, number))
    return shown


def _dead_cards(table: Table, viewer: int) -> list[str]:
    """Up cards of those who folded while the viewer's seat was in, in that order."""
    up: dict[int, list[str]] = {}
    dead: list[str] = []
    for event, _ in table.played:
        if event[0] == EventKind.DEALT and event[3]:
            up.setdefault(event[1], []).append(card_name(event[2]))
        elif event[0] == EventKind.FOLDED:
            if event[1] == viewer:
                break
            dead += up.get(event[1], ())
    return dead


def _pots(table: Table) -> list[game_pb2.Pot]:
    hand = table.hand
    if hand is None:
        return []
    if hand.result is not None:
        return [pot(*each) for each in hand.result.pots]
    bets = hand.bets
    before = {number: total - bets[number] for number, total in hand.put_in.items()}
    return [pot(amount, seats) for amount, seats in pots.layers(before, hand.folded)]


def pot(amount: int, seats: Iterable[int]) -> game_pb2.Pot:
    """A pot."""
    return game_pb2.Pot(amount=amount, seats=seats)


def award(event: Event) -> game_pb2.Award:
    """An AWARDED event."""
    _, index, number, amount, part, name = event
    return game_pb2.Award(pot=index, seat=number, amount=amount, part=PARTS[part], hand_name=name)


def _seat_amount(event: Event) -> Fields:
    return {"seat": event[1], "amount": event[2]}


_MAKERS: Final[dict[int, Callable[[Event], Fields]]] = {
    EventKind.ANTE: lambda e: {"ante": _seat_amount(e)},
    EventKind.STREET: lambda e: {"street": e[1]},
    EventKind.BURNED: lambda e: {"burned": e[1]},
    EventKind.BROUGHT_IN: lambda e: {"brought_in": _seat_amount(e)},
    EventKind.COMPLETED: lambda e: {"completed": _seat_amount(e)},
    EventKind.BET: lambda e: {"bet": _seat_amount(e)},
    EventKind.RAISED: lambda e: {"raised": _seat_amount(e)},
    EventKind.CALLED: lambda e: {"called": _seat_amount(e)},
    EventKind.CHECKED: lambda e: {"checked": e[1]},
    EventKind.FOLDED: lambda e: {"folded": e[1]},
    EventKind.ALL_IN: lambda e: {"all_in": e[1]},
    EventKind.TIMED_OUT: lambda e: {"timed_out": e[1]},
    EventKind.PROTECTED: lambda e: {"protected": e[1]},
    EventKind.LEFT: lambda e: {"left": e[1]},
    EventKind.UNCALLED: lambda e: {"uncalled": _seat_amount(e)},
    EventKind.POTS: lambda e: {
        "pots": {"pots": [{"amount": amount, "seats": seats} for amount, seats in e[1]]}
    },
    EventKind.RAKED: lambda e: {"raked": {"shares": e[1]}},
    EventKind.SHOWN: lambda e: {
        "shown": {"seat": e[1], "cards": [card_name(card) for card in e[2]], "hand_name": e[3]}
    },
    EventKind.MUCKED: lambda e: {"mucked": e[1]},
    EventKind.AWARDED: lambda e: {"awarded": award(e)},
    EventKind.ENDED: lambda _: {"ended": ""},
    EventKind.VOIDED: lambda _: {"ended": "void: every stake went back"},
}
"""Events that hold nothing but what everybody sees: not DEALT. RESHUFFLED is told by the new deck's
root.
"""
_OF_SEAT: Final = frozenset(
    {
        EventKind.ANTE,
        EventKind.BROUGHT_IN,
        EventKind.COMPLETED,
        EventKind.BET,
        EventKind.RAISED,
        EventKind.CALLED,
        EventKind.CHECKED,
        EventKind.FOLDED,
        EventKind.ALL_IN,
    }
)
"""Of those, what nearly every action is told by: a seat, and an amount of the stake's."""
