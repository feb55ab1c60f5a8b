"""Who sees which cards of a finished hand (docs/rules.md, 6, history on request)."""

from collections.abc import Iterator
from typing import Any

import pytest
from doorcard.history.v1.history_pb2 import HandRecord
from google.protobuf.message import Message

from services.history import views
from tests import hand_records as hands

SEATS = {name: seat for seat, name in hands.NAMES.items()}


def values_of(message: Message) -> Iterator[Any]:
    """Every scalar in a message, however deep."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Message):
                yield from values_of(each)
            else:
                yield each


def secrets_in(view: HandRecord, secret: list[str]) -> list[str]:
    """Those of the cards that are anywhere in the view: by field, and in its bytes and text."""
    told = {value for value in values_of(view) if isinstance(value, str)}
    whole = view.SerializeToString() + str(view).encode()
    return [card for card in secret if card in told or f'"{card}"'.encode() in whole]


@pytest.mark.parametrize("reader", hands.NAMES.values())
def test_a_player_sees_his_own_cards_and_those_of_everyone_who_stayed(reader: str) -> None:
    view = views.for_player(hands.showdown(), reader)
    cards = {player.player_id: list(player.cards) for player in view.players}
    assert cards[reader] == hands.CARDS[SEATS[reader]]
    assert cards["anna"] == hands.CARDS[0]  # shown
    assert cards["carla"] == hands.CARDS[3]  # mucked at the showdown


@pytest.mark.parametrize("reader", hands.NAMES.values())
def test_no_field_holds_a_down_card_of_a_player_who_folded(reader: str) -> None:
    view = views.for_player(hands.showdown(), reader)
    for folded in ("ben", "dan"):
        if folded != reader:
            assert not secrets_in(view, hands.down_cards_of(SEATS[folded]))


def test_up_cards_of_players_who_folded_stay_what_everybody_saw() -> None:
    view = views.for_player(hands.showdown(), "anna")
    assert list(view.players[1].cards) == ["", "", "3d"]
    assert list(view.players[3].cards) == ["", "", "9h", "8d"]


@pytest.mark.parametrize("reader", ["ben", "carla", "dan"])
def test_an_uncontested_winner_shows_nothing(reader: str) -> None:
    record = hands.uncontested()
    record.players[0].at_showdown = True  # even if the table thought he had been there
    view = views.for_player(record, reader)
    assert not secrets_in(view, hands.CARDS[0][:2])


def test_an_uncontested_winner_who_chose_to_show_is_seen() -> None:
    record = hands.uncontested()
    record.players[0].shown = True
    assert list(views.for_player(record, "ben").players[0].cards) == hands.CARDS[0][:3]


def test_a_void_hand_reveals_only_the_reader_s_own_cards() -> None:
    record = hands.uncontested(void=True)
    for player in record.players:
        player.at_showdown = True
    view = views.for_player(record, "ben")
    assert list(view.players[1].cards) == hands.CARDS[2][:3]
    assert not secrets_in(view, [card for seat in (0, 3, 5) for card in hands.CARDS[seat][:2]])


@pytest.mark.parametrize("reader", hands.NAMES.values())
def test_the_deck_the_inputs_and_others_sittings_never_reach_a_player(reader: str) -> None:
    view = views.for_player(hands.showdown(), reader)
    raw = view.SerializeToString()
    assert hands.SEALED_DECK not in raw
    assert hands.INPUTS not in raw
    sittings = [player.sitting_id for player in view.players if player.sitting_id]
    assert sittings == [f"sitting-{reader}"]


def test_the_proof_of_a_down_card_is_its_owner_s_alone() -> None:
    view = views.for_player(hands.showdown(), "ben")
    for event in view.events:
        if event.WhichOneof("event") == "dealt" and not event.dealt.up:
            assert bool(event.dealt.salt) == (event.dealt.seat == SEATS["ben"])


def test_the_public_view_knows_up_cards_and_shown_hands_only() -> None:
    view = views.public(hands.showdown())
    assert list(view.players[0].cards) == hands.CARDS[0]
    secret = [card for seat in (2, 3, 5) for card in hands.down_cards_of(seat)]
    assert not secrets_in(view, secret)


def test_a_reader_who_was_not_dealt_in_gets_the_public_view() -> None:
    record = hands.showdown()
    assert views.for_player(record, "eve") == views.public(record)


def test_staff_see_every_card_but_never_the_sealed_deck() -> None:
    view = views.whole(hands.showdown())
    assert [list(player.cards) for player in view.players] == list(hands.CARDS.values())
    assert view.inputs == hands.INPUTS
    assert not view.sealed_deck
