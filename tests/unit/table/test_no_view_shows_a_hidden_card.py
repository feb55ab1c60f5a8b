"""Nobody is told a card that he may not see: every byte of every frame and view is searched."""

import pytest
from doorcard.table.v1 import table_pb2
from google.protobuf.message import Message

from services.game.cards import CARDS, card_name
from services.game.events import EventKind
from services.game.hand import Act
from services.game.wants import ActionKind
from services.table.state import views
from services.table.state.state import Table
from tests.unit.table.rooms import FakeRoom, any_action

PLAYERS = ("anna", "ben", "carla", "dan", "eva")
VIEWERS = ("", "someone", *PLAYERS)
NAMES = {card_name(card) for card in range(CARDS)}


def cards_in(message: Message) -> set[str]:
    """Every text of two letters that is a card, anywhere in a message; by a walk of its fields."""
    found: set[str] = set()
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                found |= cards_in(each)
        elif field.type == field.TYPE_STRING:
            found |= {text for text in (value if field.is_repeated else [value]) if text in NAMES}
    return found


def salts_in(message: Message) -> set[bytes]:
    """Every salt in a message."""
    found: set[bytes] = set()
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                found |= salts_in(each)
        elif field.name == "salt":
            found.add(value)
    return found


class Knowledge:
    """What each viewer may know of the running hand, worked out from the engine's events."""

    def __init__(self) -> None:
        self.public: set[str] = set()
        self.own: dict[str, set[str]] = {}

    def learn(self, table: Table) -> None:
        """Take in everything of the running hand so far."""
        self.public, self.own = set(), {}
        for event, _ in table.played:
            if event[0] == EventKind.DEALT:
                name = card_name(event[2])
                if event[3]:
                    self.public.add(name)
                else:
                    owner = table.blob.seats[event[1]].player_id
                    self.own.setdefault(owner, set()).add(name)
            elif event[0] == EventKind.SHOWN:
                self.public |= {card_name(card) for card in event[2]}

    def of(self, viewer: str) -> set[str]:
        """What a viewer may know."""
        return self.public | self.own.get(viewer, set())


def check_views(room: FakeRoom, knowledge: Knowledge) -> None:
    """No view of the table as it stands holds more than its viewer may know."""
    table = room.table
    for viewer in VIEWERS:
        view = views.view(table, viewer)
        seen = cards_in(view)
        assert seen <= knowledge.of(viewer), f"{viewer} sees too much"
        if viewer in knowledge.own and table.hand is not None:
            assert seen >= knowledge.own[viewer], f"{viewer} does not see his own cards"
        check_bytes(view, NAMES - knowledge.of(viewer))


def check_frames(room: FakeRoom, knowledge: Knowledge, version: int) -> None:
    """No frame of the versions after one holds more than its audience may know."""
    for _, frames in room.frames(version):
        for audience, encoded in frames.items():
            assert audience in ("", *PLAYERS)
            message = table_pb2.PlayResponse.FromString(encoded)
            seen = cards_in(message)
            assert seen <= knowledge.of(audience), f"{audience or 'everybody'} is told too much"
            if audience == "":
                assert len(salts_in(message)) <= len(seen)
            check_bytes(message, NAMES - knowledge.of(audience))


def check_bytes(message: Message, hidden: set[str]) -> None:
    """No hidden card stands in the encoded bytes, whatever the field; takes its hashes out."""
    before = message.ByteSize()
    assert len(message.SerializeToString()) == before
    take_hashes_out(message)
    encoded = message.SerializeToString()
    for card in hidden:
        # A card as a field: its length before it. Names and ids may hold two such letters.
        assert b"\x02" + card.encode() not in encoded


def take_hashes_out(message: Message) -> None:
    """Random bytes are taken out, in which any two letters may stand by chance."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                take_hashes_out(each)
        elif field.type == field.TYPE_BYTES:
            message.ClearField(field.name)


@pytest.mark.parametrize("rulebook", ["club", "modern", "triopoker", "eight-or-better", "razz"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_no_view_or_frame_shows_a_hidden_card(rulebook: str, seed: int) -> None:
    room = FakeRoom(seed=seed)
    stake = {"club": "5/10", "razz": "5/10"}.get(rulebook, "1/2")
    await room.create(rulebook=rulebook, stake_name=stake)
    buy_in = max(room.table.stake.buy_in_min, 1)
    await room.seat(*PLAYERS, buy_in=buy_in)
    knowledge = Knowledge()
    for _ in range(4):
        if len(room.table.ready()) < 2:
            break
        await play_hand(room, knowledge)


async def play_hand(room: FakeRoom, knowledge: Knowledge) -> None:
    """One hand of any actions; after each, everything told and shown is searched."""
    version = room.table.version
    table = await room.start_hand()
    while table.hand is not None:
        knowledge.learn(table)
        check_views(room, knowledge)
        check_frames(room, knowledge, version)
        version = table.version
        want = table.hand.want
        assert isinstance(want, Act)
        await room.act(*any_action(want, room.rng))
        table = room.table
    learn_the_end(room, knowledge)
    check_views(room, knowledge)
    check_frames(room, knowledge, version)


def learn_the_end(room: FakeRoom, knowledge: Knowledge) -> None:
    """What the last commit of a hand may tell: its record says what was dealt and shown."""
    record = room.store.outbox[-1].hand
    for player in record.players:
        knowledge.own[player.player_id] = set(player.cards)
        knowledge.public |= set(player.cards[2:6])
        if player.shown:
            knowledge.public |= set(player.cards)
    if record.community:
        knowledge.public.add(record.community)


async def test_the_last_frame_of_an_uncontested_hand_shows_nothing() -> None:
    room = FakeRoom(seed=5)
    await room.create()
    await room.seat("anna", "ben")
    await room.start_hand()
    await room.act()
    player, want, _ = room.to_act()
    version = room.table.version
    await room.act(ActionKind.FOLD)
    assert room.table.hand is None, (player, want)
    for _, frames in room.frames(version):
        assert set(frames) == {""}
        assert not cards_in(table_pb2.PlayResponse.FromString(frames[""]))


async def test_own_down_cards_come_with_position_and_salt() -> None:
    room = FakeRoom(seed=3)
    await room.create()
    await room.seat("anna", "ben")
    table = await room.start_hand()
    assert table.hand is not None
    number = table.seat_of("anna")
    own = [
        event.hand.dealt
        for event in room.events("anna")
        if event.hand.HasField("dealt") and event.hand.dealt.seat == number
    ]
    down = [each for each in own if not each.up and each.card]
    assert [each.card for each in down] == [
        card_name(card) for card in table.hand.down_cards(number or 0)
    ]
    assert all(len(each.salt) == 32 and not each.path for each in down)
    hidden = [each for each in own if not each.up and not each.card]
    assert [each.position for each in hidden] == [each.position for each in down]
    assert not any(each.salt or each.path for each in hidden)
