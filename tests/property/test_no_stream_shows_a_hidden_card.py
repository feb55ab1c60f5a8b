"""Whatever happens, no frame on any stream, of a player, a spectator or a gateway, holds a card
that whoever it is for may not see: updates, snapshots, words, dead cards, shown hands, options.
"""

import random
from dataclasses import dataclass, field

import pytest
from doorcard.table.v1 import table_pb2

from services.game.hand import Act
from services.runtime.clock import monotonic_s
from services.runtime.errors import FailedPrecondition
from services.table.draft.draft import Draft
from services.table.hands import shown
from services.table.hands.options import CALL_ANY, CHECK, CHECK_OR_FOLD, Wish
from services.table.state.views import PUBLIC
from services.table.streams.watchers import Watchers
from tests.unit.table.rooms import FakeRoom, any_action
from tests.unit.table.test_no_view_shows_a_hidden_card import (
    NAMES,
    Knowledge,
    cards_in,
    check_bytes,
    learn_the_end,
)
from tests.unit.table.test_watchers import Reader, settled, watching

PLAYERS = ("anna", "ben", "carla", "dan", "eva")
RULEBOOKS = ("club", "interpoker", "razz", "eight-or-better")
STAKES = {"club": "5/10", "razz": "5/10"}


@dataclass
class Watched:
    """A stream and how much of it was looked at; audience: of frames that name nobody."""

    reader: Reader
    players: tuple[str, ...]
    seen: int = 0

    def check(self, knowledge: Knowledge) -> None:
        """Look at what is new on it."""
        frames = self.reader.frames()
        for frame in frames[self.seen :]:
            named = list(frame.player_ids)
            assert set(named) <= {*self.players, PUBLIC}, "a frame for somebody else's player"
            whom = named[0] if named else PUBLIC
            if not named and not self.reader.stream.gateway:
                whom = self.reader.stream.player_id
            assert cards_in(frame) <= knowledge.of(whom), f"{whom or 'everybody'} sees too much"
            if named or self.reader.stream.gateway:
                words = {each.strength.words for each in frame.update.events}
                assert whom or words <= {""}, "a hand in words was told to everybody"
            check_bytes(frame, NAMES - knowledge.of(whom))
        self.seen = len(frames)


@dataclass
class Play:
    """A room with streams of every kind, and what everybody may know."""

    room: FakeRoom
    hub: Watchers
    rng: random.Random
    knowledge: Knowledge = field(default_factory=Knowledge)
    streams: list[Watched] = field(default_factory=list)

    async def open(self, players: tuple[str, ...], gateway: str = "") -> None:
        """A stream, and its players join."""
        player_id = "" if gateway else players[0]
        reader = Reader(self.hub, player_id, gateway)
        self.streams.append(Watched(reader, players))
        for player in players:
            await self.hub.join(reader.stream, self.room.table_id, 0, player)

    async def look(self) -> None:
        """Everything that came since the last look."""
        await settled(self.room)
        if self.room.table.hand is not None:
            self.knowledge.learn(self.room.table)
        elif self.room.store.outbox[-1].HasField("hand"):
            learn_the_end(self.room, self.knowledge)
        for each in self.streams:
            each.check(self.knowledge)

    async def disturb(self) -> None:
        """Somebody loses his place, joins again, chooses beforehand, or shows."""
        roll = self.rng.random()
        if roll < 0.3:
            self.rng.choice(self.streams).reader.stream.lose(self.room.table_id)
        elif roll < 0.5:
            each = self.rng.choice(self.streams)
            stream, player = each.reader.stream, self.rng.choice(each.players)
            await self.hub.join(stream, self.room.table_id, 0, player)
        elif roll < 0.8:
            await self.choose()
        await self.look()

    async def choose(self) -> None:
        """Options of a player, with an action for his next decision or none."""
        running, hand = self.room.table.blob.hand, self.room.table.hand
        wish = Wish(
            player_id=self.rng.choice(PLAYERS),
            request_id=self.room.request_id(),
            auto_ante=True,
            show_beaten=self.rng.random() < 0.3,
            sit_out_next=False,
            confirm_ante=False,
            kind=self.rng.choice((0, CHECK, CHECK_OR_FOLD, CALL_ANY)),
            hand_id=running.hand_id if running else "",
            street=hand.street if hand else 0,
        )
        await self.room.tables.set_options(self.room.table_id, wish, monotonic_s())

    async def end(self) -> None:
        """The hand is over: what its record says was shown, and who still shows."""
        await self.look()
        hand = self.room.store.outbox[-1].hand
        for player in hand.players:
            if self.rng.random() < 0.5 and await self.shows(player.player_id, hand.hand_id):
                self.knowledge.public |= set(player.cards)
        await self.look()

    async def shows(self, player_id: str, hand_id: str) -> bool:
        """Whether he had anything to show."""

        async def change(draft: Draft) -> int:
            return await shown.show(draft, player_id, self.room.request_id(), hand_id)

        try:
            await self.room.tables.change(self.room.table_id, player_id, "show_cards", change)
        except FailedPrecondition:
            return False
        return True


@pytest.mark.parametrize("rulebook", RULEBOOKS)
@pytest.mark.parametrize("seed", range(3))
async def test_no_stream_shows_a_hidden_card(rulebook: str, seed: int) -> None:
    room = FakeRoom(seed=seed)
    await room.create(rulebook=rulebook, stake_name=STAKES.get(rulebook, "1/2"))
    await room.seat(*PLAYERS, buy_in=max(room.table.stake.buy_in_min, 1))
    play = Play(room, watching(room), random.Random(seed))
    await play.open(("anna",))
    await play.open(("",))
    await play.open(("anna", "ben", ""), gateway="web")
    await play.open(("carla", "dan", "eva", "stranger"), gateway="app")
    for _ in range(3):
        if len(room.table.ready()) < 2:
            break
        await room.start_hand()
        while room.table.hand is not None:
            await play.look()
            await play.disturb()
            if room.table.hand is None:
                break
            want = room.table.hand.want
            assert isinstance(want, Act)
            await room.act(*any_action(want, room.rng))
        await play.end()
    for each in play.streams:
        assert any(frame.HasField("snapshot") for frame in each.reader.frames())
        await each.reader.close()


def test_the_search_finds_a_card_anywhere() -> None:
    frame = table_pb2.PlayResponseFrame()
    frame.snapshot.hand.dead_cards.append("As")
    frame.snapshot.hand.seats.add(down_cards=["Kd"])
    frame.update.events.add().cards_shown.cards.append("Qh")
    assert cards_in(frame) == {"Qh"}, "one of snapshot and update is set"
    frame.snapshot.hand.dead_cards.append("As")
    assert cards_in(frame) == {"As"}
