"""The worked example of the rules (docs/rules.md, 11) through the services, card by card.

The shuffler is scripted; everything else is a room like any other. A deck that was not drawn at
random is play money's only.
"""

import asyncio
import json
from collections.abc import Iterator

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.local.room import Room
from tests.integration.rooms import Client, Hosted, Places, client, new_home, player_to_act

PLAYERS = ("anna", "ben", "carla", "dan")
DECKS = 100
# Door cards and Anna's fourth card are the rules' own, the others are ours. Two down cards, then
# the door card, one to each in turn from Anna, who sits left of the button. Ben folds before the
# fourth cards.
CARDS = "7c8d9sAd" "4c6dQsTd" "Ks3d3c9h" "Kh5h2s"  # fmt: skip
# The first button is for the highest of the cards that a deck of its own begins with. It is the
# same deck here, and the highest of its first four is Dan's.
BUTTON = 3
Kind = game_pb2.ActionKind


@pytest.fixture(scope="module")
def hosted() -> Iterator[tuple[Hosted, Room]]:
    """A room whose decks are all the example's."""
    with new_home() as home:
        host = Hosted(home)
        try:
            script = home / "script.json"
            script.write_text(json.dumps({"*": [{"cards": CARDS}] * DECKS}))
            yield host, host.start(shuffler=("scripted_shuffler", str(script)))
        finally:
            host.close()


def test_the_example_comes_out_exactly(hosted: tuple[Hosted, Room]) -> None:
    host, room = hosted
    host.run(example(Places.of(room.home)))


async def example(places: Places) -> None:
    async with asyncio.timeout(60), client(places) as at:
        table_id = await at.create_table(name="The example")
        await at.sit_down(table_id, PLAYERS)

        view = await at.turn(table_id)
        assert view.hand.button == BUTTON
        assert up_cards(view) == {"anna": "Ks", "ben": "3d", "carla": "3c", "dan": "9h"}
        assert pot(view) == 4
        assert player_to_act(view) == "carla", "clubs under diamonds"
        assert options(view) == {"bring_in": 2, "complete": [5]}
        await at.act(view, "carla", game_pb2.Action(kind=Kind.ACTION_KIND_BRING_IN))

        view = await at.turn(table_id)
        assert player_to_act(view) == "dan"
        assert options(view) == {"fold": True, "call": 2, "complete": [5]}
        complete = game_pb2.Action(kind=Kind.ACTION_KIND_COMPLETE, amount=5)
        await at.act(view, "dan", complete, at=1)

        view = await at.turn(table_id)
        assert player_to_act(view) == "anna"
        assert options(view) == {"fold": True, "call": 5, "raise": [10]}
        await at.act(view, "anna", game_pb2.Action(kind=Kind.ACTION_KIND_CALL))

        view = await at.turn(table_id)
        assert player_to_act(view) == "ben"
        assert options(view) == {"fold": True, "call": 5, "raise": [10]}
        await at.act(view, "ben", game_pb2.Action(kind=Kind.ACTION_KIND_FOLD), at=1)

        view = await at.turn(table_id)
        assert player_to_act(view) == "carla"
        assert options(view) == {"fold": True, "call": 3, "raise": [10]}
        await at.act(view, "carla", game_pb2.Action(kind=Kind.ACTION_KIND_CALL))

        view = await at.turn(table_id)
        assert view.hand.street == 4
        assert pot(view) == 19
        assert [pot.amount for pot in view.hand.pots] == [19]
        assert up_cards(view) == {"anna": "KsKh", "ben": "3d", "carla": "3c5h", "dan": "9h2s"}
        assert {seat.player_id: seat.stack for seat in view.seats} == {
            "anna": 194, "ben": 199, "carla": 194, "dan": 194,
        }  # fmt: skip
        assert player_to_act(view) == "anna"
        assert options(view) == {"fold": True, "check": True, "bet": [5, 10]}
        await everybody_sees_his_own_cards_only(at, table_id)


async def everybody_sees_his_own_cards_only(at: Client, table_id: str) -> None:
    downs = dict(zip(PLAYERS, ("7c4c", "8d6d", "9sQs", "AdTd"), strict=True))
    for viewer in (*PLAYERS, ""):
        view = await at.view(table_id, viewer)
        seen = {player: "".join(seat.down_cards) for player, seat in by_player(view).items()}
        assert seen == {player: downs[player] if player == viewer else "" for player in PLAYERS}
        assert {seat.down_count for seat in view.hand.seats} == {2}


def test_a_scripted_deck_is_refused_where_money_is_real(hosted: tuple[Hosted, Room]) -> None:
    host, room = hosted
    host.run(no_hand_for_euros(Places.of(room.home)))


async def no_hand_for_euros(places: Places) -> None:
    def said(view: table_pb2.TableView) -> bool:
        return view.state == table_pb2.TABLE_STATE_PAUSED

    async with asyncio.timeout(60), client(places) as at:
        table_id = await at.create_table(name="Euros", currency="EUR")
        await at.sit_down(table_id, ("emil", "frida"), currency="EUR")
        view = await at.until(table_id, said)
        assert view.hands == 0
        assert not view.HasField("hand")
        assert {seat.player_id: seat.stack for seat in view.seats} == {"emil": 200, "frida": 200}


def by_player(view: table_pb2.TableView) -> dict[str, table_pb2.HandSeat]:
    """The hand's seats by player id."""
    players = {seat.seat: seat.player_id for seat in view.seats}
    return {players[seat.seat]: seat for seat in view.hand.seats}


def up_cards(view: table_pb2.TableView) -> dict[str, str]:
    """What everybody sees, by player id."""
    return {player: "".join(seat.up_cards) for player, seat in by_player(view).items()}


def pot(view: table_pb2.TableView) -> int:
    """All that is in the middle."""
    return sum(seat.put_in for seat in view.hand.seats)


def options(view: table_pb2.TableView) -> dict[str, object]:
    """All that the player to act may do, and nothing else."""
    legal = view.hand.turn.legal
    wager = Kind.Name(legal.wager_kind).removeprefix("ACTION_KIND_").lower()
    found = {
        "fold": legal.fold,
        "check": legal.check,
        "call": legal.call,
        "bring_in": legal.bring_in,
        wager: list(legal.wagers),
    }
    return {what: how for what, how in found.items() if how}
