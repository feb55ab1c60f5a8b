"""What a player is told of his own hand, and which dead cards he is reminded of; nothing in it
depends on a card that he may not see.
"""

import random
import re
from typing import Any

import pytest
from doorcard.table.v1 import table_pb2
from google.protobuf.message import Message

from services.game.cards import parse_card
from services.game.events import COMMUNITY, EventKind
from services.game.hand import ActionKind
from services.game.names import strength
from services.game.rulebook import Game
from services.table.state import views
from services.table.state.state import Table
from tests.unit.table.rooms import FakeRoom, any_action
from tests.unit.table.test_no_view_shows_a_hidden_card import take_hashes_out

PLAYERS = ("anna", "ben", "carla", "dan")
GAMES = ("club", "interpoker", "razz", "eight-or-better")


async def playing(rulebook: str, seed: int) -> FakeRoom:
    room = FakeRoom(seed=seed)
    stake = {"club": "5/10", "razz": "5/10"}.get(rulebook, "1/2")
    await room.create(rulebook=rulebook, stake_name=stake)
    await room.seat(*PLAYERS, buy_in=max(room.table.stake.buy_in_min, 1))
    await room.start_hand()
    return room


def told(room: FakeRoom, player: str) -> str:
    """The words that he was told last."""
    words = [each.strength.words for each in room.events(player) if each.HasField("strength")]
    return words[-1] if words else ""


def made(table: Table, number: int) -> str:
    """The words for a seat's own cards, worked out from the events of the hand."""
    assert table.rulebook is not None
    cards = [e[2] for e, _ in table.played if e[0] == EventKind.DEALT and e[1] == number]
    shared = [e[2] for e, _ in table.played if e[0] == EventKind.DEALT and e[1] == COMMUNITY]
    return strength(cards + shared, table.rulebook.game, wild_deuces=table.rulebook.wild_deuces)


@pytest.mark.parametrize("rulebook", GAMES)
@pytest.mark.parametrize("seed", [1, 2])
async def test_each_player_is_told_what_his_own_cards_make(rulebook: str, seed: int) -> None:
    room = await playing(rulebook, seed)
    while room.table.hand is not None:
        table = room.table
        assert table.hand is not None
        for player in PLAYERS:
            number = table.seat_of(player)
            assert number is not None
            shown = views.view(table, player).hand.strength
            if number in table.hand.folded:
                assert shown == ""
            else:
                assert shown == told(room, player) == made(table, number)
        assert not views.view(table, "").hand.strength
        assert not any(each.HasField("strength") for each in room.events())
        await room.act(*any_action(room.to_act()[1], room.rng))


async def test_dead_cards_are_those_that_he_saw_folded_while_he_was_in() -> None:
    room = await playing("interpoker", 4)
    up: list[list[str]] = []
    quitters = []
    await room.act()
    for _ in range(2):
        player, want, _ = room.to_act()
        quitters.append(player)
        view = views.view(room.table, "")
        up.append([c for s in view.hand.seats if s.seat == want.seat for c in s.up_cards])
        await room.act(ActionKind.FOLD)
    table = room.table
    first, second = quitters
    for player in PLAYERS:
        dead = list(views.view(table, player).hand.dead_cards)
        if player == first:
            assert dead == []
        elif player == second:
            assert dead == up[0]
        else:
            assert dead == up[0] + up[1]
    assert not views.view(table, "").hand.dead_cards
    assert not views.view(table, "stranger").hand.dead_cards


@pytest.mark.parametrize("rulebook", GAMES)
@pytest.mark.parametrize("seed", range(4))
async def test_other_hidden_cards_change_nothing_of_what_a_player_sees(
    rulebook: str, seed: int
) -> None:
    """Two rooms whose decks differ in what anna may not see, and nowhere else: all that she is
    told and shown is the same to the byte, up to the showdown.
    """
    first, second = [await twin(rulebook, seed, swapped=each) for each in (False, True)]
    for number in range(len(PLAYERS)):
        assert first.table.hand is not None
        assert second.table.hand is not None
        same = first.table.hand.down_cards(number) == second.table.hand.down_cards(number)
        assert same == (number == first.table.seat_of("anna"))
    dice = random.Random(seed)
    while first.table.hand is not None and second.table.hand is not None:
        views_of = [seen(room) for room in (first, second)]
        assert views_of[0] == views_of[1]
        want = first.to_act()[1]
        kind, amount = any_action(want, dice)
        standing = len(first.table.hand.seats) - len(first.table.hand.folded)
        if kind is ActionKind.FOLD and standing == 2:
            break
        await first.act(kind, amount)
        await second.act(kind, amount)


async def twin(rulebook: str, seed: int, *, swapped: bool) -> FakeRoom:
    room = FakeRoom(seed=seed)
    stake = {"club": "5/10", "razz": "5/10"}.get(rulebook, "1/2")
    await room.create(rulebook=rulebook, stake_name=stake)
    await room.seat(*PLAYERS, buy_in=max(room.table.stake.buy_in_min, 1))
    deck = random.Random(seed).sample(range(52), 52)
    button = random.Random(seed + 1).sample(range(52), 52)
    if swapped:
        # Down cards of third street: two rounds of four, from the left of the button; anna's stay.
        table = room.table
        number = table.seat_of("anna")
        assert number is not None
        seats = sorted(table.blob.seats)
        cards = button[: len(seats)]
        holder = seats[cards.index(max(cards))]
        order = sorted(seats, key=lambda each: (each - holder - 1) % 8)
        own = order.index(number)
        hidden = [at for at in range(8) if at % 4 != own]
        values = [deck[at] for at in hidden]
        for at, value in zip(hidden, [*values[1:], values[0]], strict=True):
            deck[at] = value
    room.shuffler.stacked = [button, deck]
    await room.start_hand()
    return room


def seen(room: FakeRoom) -> list[bytes]:
    """Anna's view and all her frames, without what is random in both rooms."""
    table = room.table
    assert table.blob.hand is not None
    found: list[Any] = [views.view(table, "anna")]
    for _, frames in room.frames():
        told = [frames[audience] for audience in ("", "anna") if frames.get(audience)]
        found += map(table_pb2.PlayResponse.FromString, told)
    return [plain(message, table.blob.hand.hand_id) for message in found]


def plain(message: Message, hand_id: str) -> bytes:
    take_hashes_out(message)
    text = message.SerializeToString(deterministic=True)
    text = text.replace(hand_id.encode(), b"hand")
    return re.sub(rb"[0-9a-f]{8}-[0-9a-f-]{27}", b"id", text)


def test_few_cards_are_named_too() -> None:
    cases = {
        ("Ks Kd As", Game.HIGH, False): "a pair of kings, ace",
        ("As Ks Td", Game.HI_LO, False): "ace high, king ten",
        ("Ks Kd Ad Ac", Game.HIGH, False): "two pair, aces and kings",
        ("Ks Kd Kh Ac", Game.HIGH, False): "three of a kind, kings, ace",
        ("Ks Kd Kh Kc", Game.HIGH, False): "four of a kind, kings",
        ("2s Kd 5h", Game.HIGH, True): "a pair of kings, five",
        ("2s 2d 2h", Game.HIGH, True): "three of a kind, aces",
        ("2s 2d Kh Kd", Game.HIGH, True): "four of a kind, kings",
        ("As 7d 5c", Game.RAZZ, False): "a seven-five-ace low so far",
        ("8s 7d 5c As", Game.RAZZ, False): "an eight-seven-five-ace low so far",
        ("As Ad 5c", Game.RAZZ, False): "a pair of aces, five",
        ("As Ad 5c 5d", Game.RAZZ, False): "two pair, fives and aces",
        ("As 2d 3c 4h 8d", Game.HI_LO, False): (
            "ace high, eight four three two, and an eight-four-three-two-ace low"
        ),
        ("", Game.HIGH, False): "",
    }
    for (cards, game, wild), words in cases.items():
        dealt = [parse_card(each) for each in cards.split()]
        assert strength(dealt, game, wild_deuces=wild) == words
