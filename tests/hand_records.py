"""Finished hands for tests of the archive and of mails: records as tables write them."""

from collections.abc import Iterable
from typing import Final

from doorcard.game.v1.game_pb2 import GAME_HIGH, POT_PART_WHOLE, Award, HandEvent, Pot, Stake
from doorcard.history.v1.history_pb2 import ArchiveEntry, HandPlayer, HandRecord

from services.runtime.clock import timestamp
from services.runtime.ids import uuid7

STARTED_MS: Final = 1_750_000_000_000
TABLE: Final = "0190a000-0000-7000-8000-000000000001"
NAMES: Final = {0: "anna", 2: "ben", 3: "carla", 5: "dan"}
CARDS: Final = {
    0: ["As", "Ad", "Ks", "Kh", "7c", "4d", "2h"],
    2: ["Qd", "Qc", "3d"],
    3: ["Js", "Jd", "3c", "8c", "8h", "6s", "5h"],
    5: ["Ts", "Th", "9h", "8d"],
}
"""In the order dealt; no card is in two hands. anna shows down against carla, who mucks; ben folds
on third street, dan on fourth.
"""
UP: Final = (False, False, True, True, True, True, False)
SALT: Final = b"\x5a" * 32
SEALED_DECK: Final = b"sealed-deck-bytes"
INPUTS: Final = b"engine-inputs-bytes"


def down_cards_of(seat: int) -> list[str]:
    """Cards that only their owner saw during the hand."""
    return [card for card, up in zip(CARDS[seat], UP, strict=False) if not up]


def showdown(
    hand_id: str = "", *, table_id: str = TABLE, ended_ms: int = STARTED_MS + 60_000
) -> HandRecord:
    """Four players, pot 79, rake 3: anna wins 76 with aces and kings."""
    record = _record(hand_id, table_id, ended_ms)
    told = record.events
    told.add().deck_committed.root = record.deck_root
    for seat in CARDS:
        told.add().ante.CopyFrom(_amount(seat, 1))
    _deal_street(record, 3, CARDS)
    told.add().brought_in.CopyFrom(_amount(3, 2))
    told.add().completed.CopyFrom(_amount(5, 5))
    told.add().called.CopyFrom(_amount(0, 5))
    told.add().folded = 2
    told.add().called.CopyFrom(_amount(3, 3))
    _deal_street(record, 4, (0, 3, 5))
    told.add().bet.CopyFrom(_amount(0, 10))
    told.add().called.CopyFrom(_amount(3, 10))
    told.add().folded = 5
    for street in (5, 6, 7):
        _deal_street(record, street, (0, 3))
        if street == 6:
            told.add().checked = 0
            told.add().checked = 3
        else:
            told.add().bet.CopyFrom(_amount(0, 10))
            told.add().called.CopyFrom(_amount(3, 10))
    told.add().pots.pots.append(Pot(amount=79, seats=[0, 3]))
    told.add().raked.shares.append(3)
    told.add().shown.CopyFrom(
        HandEvent.Shown(seat=0, cards=CARDS[0], hand_name="two pairs, aces and kings")
    )
    told.add().mucked = 3
    award = Award(
        pot=0, seat=0, amount=76, part=POT_PART_WHOLE, hand_name="two pairs, aces and kings"
    )
    told.add().awarded.CopyFrom(award)
    told.add().ended = ""
    record.pots.append(Pot(amount=79, seats=[0, 3]))
    record.awards.append(award)
    record.rake = 3
    for seat, net in ((0, 40), (2, -1), (3, -36), (5, -6)):
        _player(record, seat, net, folded=seat in (2, 5), at_showdown=seat in (0, 3))
    record.players[0].shown = True
    return record


def uncontested(hand_id: str = "", *, void: bool = False) -> HandRecord:
    """Everyone folds to anna on third street; or, `void`, the hand is called off there."""
    record = _record(hand_id, TABLE, STARTED_MS + 60_000)
    told = record.events
    for seat in CARDS:
        told.add().ante.CopyFrom(_amount(seat, 1))
    _deal_street(record, 3, CARDS)
    record.void = void
    if void:
        told.add().ended = "the hand was void"
    else:
        for seat in (2, 3, 5):
            told.add().folded = seat
        told.add().awarded.CopyFrom(Award(seat=0, amount=4, part=POT_PART_WHOLE))
        told.add().ended = ""
        record.pots.append(Pot(amount=4, seats=[0]))
        record.awards.append(Award(seat=0, amount=4, part=POT_PART_WHOLE))
    for seat in CARDS:
        net = 0 if void else 3 if seat == 0 else -1
        _player(record, seat, net, folded=seat != 0 and not void, at_showdown=False)
        record.players[-1].cards[:] = CARDS[seat][:3]
    return record


def entry(seq: int, hand: HandRecord | None = None) -> ArchiveEntry:
    """An outbox entry's part for the archive."""
    return ArchiveEntry(seq=seq, hand=hand)


def _record(hand_id: str, table_id: str, ended_ms: int) -> HandRecord:
    return HandRecord(
        hand_id=hand_id or uuid7(),
        table_id=table_id,
        table_name="Vienna",
        currency="XTS",
        game=GAME_HIGH,
        rulebook="club",
        rulebook_sha256=b"\x01" * 32,
        stake=Stake(name="5/10", ante=1, bring_in=2, small_bet=5, big_bet=10),
        rake_schedule_id="club",
        rake_schedule_version=1,
        button=5,
        started=timestamp(STARTED_MS),
        ended=timestamp(ended_ms),
        inputs=INPUTS,
        engine_version="1",
        deck_root=b"\x02" * 32,
        sealed_deck=SEALED_DECK,
    )


def _deal_street(record: HandRecord, street: int, seats: Iterable[int]) -> None:
    record.events.add().street = street
    places = range(3) if street == 3 else (street - 1,)
    for place in places:
        for seat in seats:
            record.events.add().dealt.CopyFrom(
                HandEvent.Dealt(
                    seat=seat,
                    up=UP[place],
                    card=CARDS[seat][place],
                    position=len(record.events),
                    salt=SALT,
                    path=[SALT],
                )
            )


def _player(record: HandRecord, seat: int, net: int, *, folded: bool, at_showdown: bool) -> None:
    record.players.append(
        HandPlayer(
            seat=seat,
            player_id=NAMES[seat],
            name=NAMES[seat].title(),
            sitting_id=f"sitting-{NAMES[seat]}",
            starting_stack=200,
            finishing_stack=200 + net,
            cards=CARDS[seat],
            folded=folded,
            at_showdown=at_showdown,
        )
    )


def _amount(seat: int, amount: int) -> HandEvent.SeatAmount:
    return HandEvent.SeatAmount(seat=seat, amount=amount)
