"""The scripted shuffler keeps the contract and deals what its script says."""

import json
from pathlib import Path
from typing import Any

from doorcard.shuffler.v1 import shuffler_pb2 as pb
from doorcard.shuffler.v1 import shuffler_pb2_grpc
from scripted_shuffler import Script, ScriptedDeck, deck_of, scripted_shuffler

from services.game.cards import card_name, parse_cards
from services.runtime.channels import call, connect
from services.shuffler.receipts import HandContext
from services.shuffler.verify import verify_card
from tests.conftest import Room


def test_a_scripted_deck_is_whole_and_begins_as_the_script_says() -> None:
    deck = deck_of("AsKdQh")
    assert sorted(deck) == list(range(52))
    assert [card_name(card) for card in deck[:3]] == ["As", "Kd", "Qh"]


def test_gaps_are_filled_with_cards_that_the_script_does_not_name() -> None:
    deck = deck_of([None, 0, None, 1])
    assert sorted(deck) == list(range(52))
    assert (deck[1], deck[3]) == (0, 1)


def test_a_script_file_names_decks_by_table(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps({"*": [{"cards": "2c3d", "reshuffled": "4h5s"}]}))
    script = Script.load(file)
    deck = script.deck(HandContext("t9", "h1"))
    assert deck is not None
    assert tuple(deck.cards[:2]) == parse_cards("2c3d")
    assert script.deck(HandContext("t9", "h1")) is deck
    assert script.deck(HandContext("t9", "h2")) is None


async def test_it_deals_its_script_says_so_and_proves_it(room: Room) -> None:
    reshuffled = parse_cards("KdAsQh")
    script = Script({"t1": [ScriptedDeck(deck_of("AsKdQh"), reshuffled)]})
    settings = room.settings(token_file=room.token_file("table-1", ["service"]))
    async with (
        scripted_shuffler(settings, script) as running,
        connect(running.address, settings) as channel,
    ):
        stub = shuffler_pb2_grpc.ShufflerServiceStub(channel)
        hand: dict[str, Any] = {"table_id": "t1", "hand_id": "h1"}
        deck = await call(
            stub.CreateDeck, pb.CreateDeckRequest(request_id="r", **hand), timeout_s=5
        )
        assert deck.source == pb.DECK_SOURCE_SCRIPTED
        draw = await call(
            stub.Draw,
            pb.DrawRequest(sealed_deck=deck.sealed_deck, positions=[0, 1, 2], **hand),
            timeout_s=5,
        )
        assert [card.card for card in draw.cards] == ["As", "Kd", "Qh"]
        for card in draw.cards:
            assert verify_card(
                root=deck.root,
                position=card.position,
                card=card.card,
                salt=card.salt,
                path=list(card.path),
            )
        mixed = await call(
            stub.Reshuffle,
            pb.ReshuffleRequest(sealed_deck=deck.sealed_deck, positions=[2, 0, 1], **hand),
            timeout_s=5,
        )
        again = await call(
            stub.Draw,
            pb.DrawRequest(sealed_deck=mixed.sealed_deck, positions=[0, 1, 2], **hand),
            timeout_s=5,
        )
        assert [card.card for card in again.cards] == ["Kd", "As", "Qh"]


async def test_hands_beyond_the_script_get_a_deck_all_the_same(room: Room) -> None:
    settings = room.settings(token_file=room.token_file("table-1", ["service"]))
    async with (
        scripted_shuffler(settings, Script({})) as running,
        connect(running.address, settings) as channel,
    ):
        stub = shuffler_pb2_grpc.ShufflerServiceStub(channel)
        request = pb.CreateDeckRequest(request_id="r", table_id="t", hand_id="h")
        deck = await call(stub.CreateDeck, request, timeout_s=5)
        assert (deck.size, deck.source) == (52, pb.DECK_SOURCE_SCRIPTED)
