"""Cards that their owner may keep hidden: shown by his wish, and only by his."""

from typing import Any

import pytest

from services.game.cards import card_name
from services.game.hand import ActionKind
from services.runtime.clock import monotonic_s
from services.runtime.errors import AlreadyExists, FailedPrecondition
from services.table.draft.draft import Draft
from services.table.hands import shown
from services.table.hands.options import Wish
from tests.unit.table.rooms import FakeRoom

PLAYERS = ("anna", "ben", "carla")


async def playing(rulebook: str = "club", seed: int = 11) -> FakeRoom:
    room = FakeRoom(seed=seed)
    await room.create(rulebook=rulebook, stake_name="5/10" if rulebook == "club" else "1/2")
    await room.seat(*PLAYERS, buy_in=max(room.table.stake.buy_in_min, 1))
    await room.start_hand()
    return room


async def show(room: FakeRoom, player_id: str, hand_id: str, request_id: str = "") -> int:
    async def change(draft: Draft) -> int:
        return await shown.show(draft, player_id, request_id or room.request_id(), hand_id)

    return await room.tables.change(room.table_id, player_id, "show_cards", change)


async def won_uncalled(room: FakeRoom) -> tuple[str, str, list[str]]:
    """Everybody folds but one: (winner, hand, his cards)."""
    await room.act()
    hand_id = room.to_act()[2]
    await room.act(ActionKind.FOLD)
    assert room.table.hand is not None
    hand = room.table.hand
    loser = room.to_act()[1].seat
    winner = next(n for n in hand.seats if n not in hand.folded and n != loser)
    cards = [card_name(card) for card in hand.cards(winner)]
    await room.act(ActionKind.FOLD)
    return room.table.blob.seats[winner].player_id, hand_id, cards


async def test_the_winner_whom_nobody_called_may_show() -> None:
    room = await playing()
    winner, hand_id, cards = await won_uncalled(room)
    version = room.table.version
    assert await show(room, winner, hand_id, "once") == version + 1
    (event,) = [e.cards_shown for e in room.events(version=version) if e.HasField("cards_shown")]
    assert (event.hand_id, list(event.cards)) == (hand_id, cards)
    assert event.seat == room.table.seat_of(winner)
    assert await show(room, winner, hand_id, "once") == version + 1
    with pytest.raises(FailedPrecondition, match="hidden"):
        await show(room, winner, hand_id)
    with pytest.raises(AlreadyExists):
        await show(room, winner, "0192f0c4-0000-7000-8000-000000000000", "once")


async def test_who_folded_who_watches_and_who_comes_late_shows_nothing() -> None:
    room = await playing()
    winner, hand_id, _ = await won_uncalled(room)
    version = room.table.version
    for player in PLAYERS:
        if player != winner:
            with pytest.raises(FailedPrecondition, match="hidden"):
                await show(room, player, hand_id)
    with pytest.raises(FailedPrecondition, match="no seat"):
        await show(room, "stranger", hand_id)
    assert room.table.version == version
    await room.start_hand()
    with pytest.raises(FailedPrecondition, match="last hand"):
        await show(room, winner, hand_id)
    assert room.table.blob.hidden is None


async def test_who_takes_the_winners_seat_cannot_show_his_cards() -> None:
    room = await playing()
    winner, hand_id, cards = await won_uncalled(room)
    number = room.table.seat_of(winner)
    await room.tables.leave(room.table_id, winner)
    await room.take_seat("dan", number=number)
    with pytest.raises(FailedPrecondition, match="hidden"):
        await show(room, "dan", hand_id)
    assert not any(card in repr(room.events()[-5:]) for card in cards[:2])


async def test_after_a_showdown_where_all_show_nothing_is_kept() -> None:
    room = await playing()
    await room.play_out()
    assert room.table.blob.hidden is None


async def beaten(room: FakeRoom) -> dict[str, Any]:
    """A hand played to the showdown: the record of its outbox entry."""
    await room.play_out()
    record = room.store.outbox[-1].hand
    return {player.player_id: player for player in record.players}


async def mucking() -> tuple[FakeRoom, str, dict[str, Any]]:
    """A room after a hand that somebody mucked; who."""
    for seed in range(60):
        room = await playing("interpoker", seed)
        players = await beaten(room)
        mucked = [p for p, each in players.items() if each.at_showdown and not each.shown]
        if mucked:
            return room, mucked[0], players
    raise AssertionError("nobody mucked")


async def test_a_mucked_hand_may_be_shown_by_its_owner() -> None:
    room, mucked, players = await mucking()
    version = room.table.version
    hand_id = room.store.outbox[-1].hand.hand_id
    await show(room, mucked, hand_id)
    (event,) = [e.cards_shown for e in room.events(version=version) if e.HasField("cards_shown")]
    assert list(event.cards) == list(players[mucked].cards)


async def test_who_wants_his_beaten_hands_shown_mucks_none() -> None:
    seed = (await mucking())[0].seed
    room = await playing("interpoker", seed)
    for player in PLAYERS:
        wish = Wish(
            player_id=player,
            request_id=room.request_id(),
            auto_ante=True,
            show_beaten=True,
            sit_out_next=False,
            confirm_ante=False,
        )
        await room.tables.set_options(room.table_id, wish, monotonic_s())
    players = await beaten(room)
    assert all(each.shown for each in players.values() if each.at_showdown)
    assert room.table.blob.hidden is None


async def test_what_is_kept_of_a_hand_is_small() -> None:
    room = await playing()
    before = len(room.table.encode())
    await won_uncalled(room)
    hidden = room.table.blob.hidden
    assert hidden is not None
    assert len(hidden.cards) == 1
    assert len(room.table.encode()) < before
