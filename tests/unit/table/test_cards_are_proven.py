"""What players are told proves their cards, by the leaves of the deck, told before the first."""

from collections.abc import Sequence

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.shuffler.v1 import shuffler_pb2
from doorcard.table.v1 import table_pb2

from services.game.cards import card_name
from services.game.wants import ActionKind
from services.shuffler.verify import verify_card, verify_dealt
from services.table.state.state import SCHEMA, decode
from services.table.state.views import view
from tests.unit.table.rooms import FakeRoom
from tests.unit.table.test_watchers import Reader, settled, watching

LEAF = 32


def proven(events: Sequence[table_pb2.TableEvent]) -> list[str]:
    """The cards that a viewer was told of a hand, each checked against the deck it came from."""
    deck, cards = game_pb2.HandEvent.DeckCommitted(), []
    for event in events:
        if event.hand.HasField("deck_committed"):
            deck = event.hand.deck_committed
        dealt = event.hand.dealt
        if dealt.card:
            assert not dealt.path
            assert verify_dealt(
                root=deck.root,
                leaves=deck.leaves,
                position=dealt.position,
                card=dealt.card,
                salt=dealt.salt,
            )
            cards.append(dealt.card)
    return cards


async def with_a_hand(**fields: str) -> FakeRoom:
    room = FakeRoom(seed=4)
    await room.create(**fields)
    await room.seat("anna", "ben", "carla")
    return room


async def until_a_reshuffle() -> FakeRoom:
    """8-8-8-6-6: three left in the stub and three burned, for six players."""
    room = FakeRoom(seed=9)
    await room.create(rulebook="triopoker", stake_name="1/2", seats=8)
    players = [f"player-{n}" for n in range(8)]
    await room.seat(*players, buy_in=room.table.stake.buy_in_min)
    await room.start_hand()
    folds = 0
    while "Reshuffle" not in room.shuffler.calls:
        assert room.table.hand is not None
        _, want, _ = room.to_act()
        if room.table.hand.street == 6 and folds < 2 and want.legal.fold:
            folds += 1
            await room.act(ActionKind.FOLD)
        else:
            await room.act()
    return room


async def test_every_card_is_proven_by_leaves_that_were_told_before_it() -> None:
    room = await with_a_hand()
    before = room.table.version
    table = await room.start_hand()
    await room.act()
    (version, frames), *_ = room.frames(before)
    (first,) = table_pb2.PlayResponse.FromString(frames[""]).frames
    (leaves,) = [
        each.hand.deck_committed.leaves
        for each in first.update.events
        if each.hand.HasField("deck_committed")
    ]
    assert (version, len(leaves)) == (before + 1, 52 * LEAF)
    assert table.hand is not None
    for player in ("", "anna", "ben", "carla"):
        cards = proven(room.events(player, before))
        number = table.seat_of(player)
        own = table.hand.down_cards(number) if number is not None else ()
        assert {card_name(card) for card in own} <= set(cards)
        assert len(cards) == len(own) + 3


async def test_a_player_who_resynced_gets_leaves_and_salts_again_and_proves_his_cards() -> None:
    room = await with_a_hand()
    await room.start_hand()
    for _ in range(6):
        await room.act()
    hub = watching(room)
    reader = Reader(hub, "ben")
    await hub.join(reader.stream, room.table_id, 0)
    await settled(room)
    shown, *_ = reader.frames()
    hand = shown.snapshot.hand
    assert hand.first_version == room.table.blob.hand_version
    again = Reader(hub, "ben")
    await hub.join(again.stream, room.table_id, hand.first_version - 1)
    await settled(room)
    updates = [frame.update for frame in again.frames()]
    assert updates[0].version == hand.first_version
    cards = proven([event for update in updates for event in update.events])
    (own,) = [each for each in hand.seats if each.down_cards]
    ups = [card for each in hand.seats for card in each.up_cards]
    assert sorted(cards) == sorted([*own.down_cards, *ups])
    await reader.close()
    await again.close()


async def test_who_resynced_after_a_reshuffle_proves_the_cards_of_both_decks() -> None:
    room = await until_a_reshuffle()
    hub = watching(room)
    player = room.table.blob.seats[0].player_id
    version = view(room.table, player).hand.first_version
    reader = Reader(hub, player)
    await hub.join(reader.stream, room.table_id, version - 1)
    await settled(room)
    events = [event for frame in reader.frames() for event in frame.update.events]
    decks = [e.hand.deck_committed for e in events if e.hand.HasField("deck_committed")]
    assert room.table.blob.hand is not None
    made_from = room.table.blob.hand.decks[-1].made_from
    assert [len(deck.leaves) for deck in decks] == [52 * LEAF, len(made_from) * LEAF]
    at = next(n for n, e in enumerate(events) if e.hand.deck_committed.reshuffled)
    assert proven(events)[len(proven(events[:at])) :]
    await reader.close()


async def test_a_shuffler_of_the_release_before_is_asked_for_paths() -> None:
    room = await with_a_hand()
    room.shuffler.tells_leaves = False
    before = room.table.version
    await room.start_hand()
    # The shuffler is another by now; the deck is still one whose leaves nobody has.
    room.shuffler.tells_leaves = True
    while room.table.hand is not None:
        await room.act()
    events = room.events("anna", before)
    (deck,) = [e.hand.deck_committed for e in events if e.hand.HasField("deck_committed")]
    told = [e.hand.dealt for e in events if e.hand.dealt.card]
    assert not deck.leaves
    assert len(told) == 3 * 4 + 3
    for dealt in told:
        assert verify_card(
            root=deck.root,
            position=dealt.position,
            card=dealt.card,
            salt=dealt.salt,
            path=list(dealt.path),
        )


@pytest.mark.parametrize("leaves", [1, 51 * LEAF, 53 * LEAF])
async def test_a_deck_that_has_not_a_leaf_for_each_card_is_refused(leaves: int) -> None:
    room = await with_a_hand()
    create = room.shuffler.on_CreateDeck

    async def wrong(
        request: shuffler_pb2.CreateDeckRequest,
    ) -> shuffler_pb2.CreateDeckResponse:
        answer = await create(request)
        answer.leaves = bytes(leaves)
        return answer

    room.shuffler.on_CreateDeck = wrong  # type: ignore[method-assign]
    await room.start_hand()
    assert room.table.hand is None
    room.shuffler.on_CreateDeck = create  # type: ignore[method-assign]
    await room.start_hand()
    assert room.table.hand is not None


async def test_leaves_are_neither_in_the_blob_nor_in_the_record() -> None:
    room = await with_a_hand()
    before = room.table.version
    table = await room.start_hand()
    leaves = next(
        e.hand.deck_committed.leaves
        for e in room.events(version=before)
        if e.hand.HasField("deck_committed")
    )
    assert table.stored is not None
    blob = table.stored.blob
    assert blob[0] == SCHEMA
    hand = decode(blob).hand
    assert hand is not None
    assert hand.decks[0].leaves_told
    assert leaves[:LEAF] not in blob
    while room.table.hand is not None:
        await room.act()
    record = room.store.outbox[-1].hand
    assert record.deck_root == hand.decks[0].root
    assert not any(each.deck_committed.leaves for each in record.events)
