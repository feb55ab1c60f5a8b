"""Actions chosen before one's turn: taken by the commit that makes it his turn, once, and void when
the hand has gone on; nobody else learns of them before.
"""

import random
from typing import Any

import pytest
from doorcard.table.v1 import table_pb2

from services.game.events import EventKind
from services.game.hand import Act, ActionKind
from services.runtime.clock import monotonic_s
from services.runtime.errors import AlreadyExists, FailedPrecondition
from services.table.hands.options import CALL_ANY, CHECK, CHECK_OR_FOLD, Wish
from services.table.state import views
from services.table.state.state import RunningHand
from tests.unit.table.rooms import FakeRoom, any_action

PLAYERS = ("anna", "ben", "carla")


async def playing(**fields: Any) -> FakeRoom:
    room = FakeRoom(seed=7)
    await room.create(**fields)
    await room.seat(*PLAYERS, buy_in=max(room.table.stake.buy_in_min, 1))
    await room.start_hand()
    return room


def running(room: FakeRoom) -> RunningHand:
    assert room.table.blob.hand is not None
    return room.table.blob.hand


def street(room: FakeRoom) -> int:
    assert room.table.hand is not None
    return room.table.hand.street


def after(room: FakeRoom, places: int = 1) -> str:
    """The player so many places behind who is to act."""
    hand = room.table.hand
    assert hand is not None
    seats = [number for number in running(room).seats if number not in hand.folded]
    number = seats[(seats.index(room.to_act()[1].seat) + places) % len(seats)]
    return room.table.blob.seats[number].player_id


async def choose(room: FakeRoom, player_id: str, kind: int, **changes: Any) -> int:
    fields = {
        "request_id": room.request_id(),
        "hand_id": running(room).hand_id,
        "street": street(room),
        **changes,
    }
    wish = Wish(
        player_id=player_id,
        auto_ante=True,
        show_beaten=False,
        sit_out_next=False,
        confirm_ante=False,
        kind=kind,
        **fields,
    )
    return await room.tables.set_options(room.table_id, wish, monotonic_s())


def kinds(room: FakeRoom, version: int) -> list[str]:
    """What everybody was told in the hand after a version."""
    return [
        event.hand.WhichOneof("event") or ""
        for event in room.events(version=version)
        if event.HasField("hand")
    ]


async def test_a_call_is_made_by_the_commit_before_it() -> None:
    room = await playing()
    player = after(room)
    await choose(room, player, CALL_ANY)
    version, commits = room.table.version, len(room.store.commits)
    await room.act()
    assert len(room.store.commits) == commits + 1
    assert kinds(room, version) == ["brought_in", "called"]
    turns = [each.turn for each in room.events(version=version) if each.HasField("turn")]
    assert [each.turn for each in turns] == [2], "his own turn was never announced"
    assert running(room).chosen == {}


async def test_a_whole_round_of_choices_is_one_commit() -> None:
    room = await playing()
    for places in (1, 2):
        await choose(room, after(room, places), CALL_ANY)
    version, commits = room.table.version, len(room.store.commits)
    await room.act()
    assert len(room.store.commits) == commits + 1
    assert kinds(room, version)[:3] == ["brought_in", "called", "called"]
    assert "dealt" in kinds(room, version)
    assert street(room) == 4
    assert room.table.version == version + 1


async def test_check_or_fold_checks_if_that_is_free_and_folds_if_not() -> None:
    room = await playing()
    player = after(room)
    await choose(room, player, CHECK_OR_FOLD)
    version = room.table.version
    await room.act()
    assert kinds(room, version) == ["brought_in", "folded"]
    while street(room) == 3:
        await room.act()
    player = after(room)
    await choose(room, player, CHECK_OR_FOLD)
    version = room.table.version
    await room.act(ActionKind.CHECK)
    assert kinds(room, version)[:2] == ["checked", "checked"]


async def test_a_check_that_is_not_free_is_void_and_he_has_his_turn() -> None:
    room = await playing()
    player = after(room)
    await choose(room, player, CHECK)
    await room.act()
    assert room.to_act()[0] == player
    assert running(room).chosen == {}
    (cleared,) = [
        each.options_changed.options
        for each in room.events(player)[-3:]
        if each.HasField("options_changed")
    ]
    assert not cleared.HasField("next_action")


async def test_who_is_to_act_already_acts_at_once() -> None:
    room = await playing()
    await room.act()
    player, want, _ = room.to_act()
    version, commits = room.table.version, len(room.store.commits)
    await choose(room, player, CHECK_OR_FOLD)
    assert len(room.store.commits) == commits + 1
    assert kinds(room, version)[0] == "folded"
    assert room.to_act()[1].turn == want.turn + 1


@pytest.mark.parametrize(
    "wrong", [{"street": 5}, {"hand_id": "0192f0c4-0000-7000-8000-000000000000"}]
)
async def test_a_choice_for_another_hand_or_street_is_void(wrong: dict[str, Any]) -> None:
    room = await playing()
    player = after(room)
    version = room.table.version
    assert await choose(room, player, CHECK_OR_FOLD, **wrong) == version
    await room.act()
    assert room.to_act()[0] == player


async def test_a_choice_does_not_outlive_its_street() -> None:
    room = await playing()
    await room.act()
    await room.act()
    # Two have acted; what they choose now is for this street, which ends with the third.
    player = after(room)
    await choose(room, player, CHECK_OR_FOLD)
    await room.act()
    assert street(room) == 4
    assert running(room).chosen == {}
    number = room.table.seat_of(player)
    assert number is not None
    assert not views.own_options(room.table, number).HasField("next_action")


async def test_a_repeated_request_chooses_once() -> None:
    room = await playing()
    player = after(room)
    version = await choose(room, player, CALL_ANY, request_id="once")
    await room.act()
    assert await choose(room, player, CALL_ANY, request_id="once") == version
    assert running(room).chosen == {}
    with pytest.raises(AlreadyExists):
        await choose(room, player, CHECK, request_id="once")


async def test_a_choice_can_be_changed_and_taken_back() -> None:
    room = await playing()
    player = after(room)
    await choose(room, player, CHECK_OR_FOLD)
    await choose(room, player, CALL_ANY)
    number = room.table.seat_of(player)
    assert running(room).chosen == {number: (CALL_ANY, 3)}
    await choose(room, player, 0)
    await room.act()
    assert room.to_act()[0] == player


async def test_who_folded_or_has_no_seat_chooses_nothing() -> None:
    room = await playing()
    await room.act()
    folded = room.to_act()[0]
    await room.act(ActionKind.FOLD)
    version = room.table.version
    assert await choose(room, folded, CALL_ANY) == version
    with pytest.raises(FailedPrecondition, match="seat"):
        await choose(room, "stranger", CALL_ANY)


async def test_nobody_chooses_while_the_table_is_paused() -> None:
    room = await playing()
    await room.act()
    player = room.to_act()[0]
    await room.pause()
    await choose(room, player, CHECK_OR_FOLD)
    assert running(room).chosen == {}
    assert room.to_act()[0] == player


async def test_nobody_else_learns_what_was_chosen() -> None:
    room = await playing()
    player = after(room)
    version = room.table.version
    await choose(room, player, CALL_ANY)
    ((at, frames),) = room.frames(version)
    assert at == version + 1, "a hidden event keeps its version"
    assert set(frames) == {"", player}
    (public,) = table_pb2.PlayResponse.FromString(frames[""]).frames
    assert not public.update.events
    table = room.table
    for viewer in ("", "stranger", *PLAYERS):
        shown = views.view(table, viewer)
        assert shown.own_options.HasField("next_action") == (viewer == player)
        assert shown.HasField("own_options") == (viewer in PLAYERS)


@pytest.mark.parametrize("seed", range(5))
async def test_hands_with_choices_play_as_if_they_were_made_in_turn(seed: int) -> None:
    """Whatever is chosen when, the same engine inputs give the same hand when replayed, and chips
    add up; a choice never acts twice or for a decision that was not there.
    """
    rng = random.Random(seed)
    room = await playing()
    for _ in range(6):
        if room.table.hand is None:
            await room.start_hand()
        while room.table.hand is not None:
            if rng.random() < 0.6:
                wanted = rng.choice((0, CHECK, CHECK_OR_FOLD, CALL_ANY))
                before = room.table.hand.turn
                await choose(room, rng.choice(PLAYERS), wanted)
                if room.table.hand is None:
                    break
                assert room.table.hand.turn - before <= len(PLAYERS)
            want = room.table.hand.want
            assert isinstance(want, Act)
            await room.act(*any_action(want, rng))
            room.table.check()
            if room.table.hand is not None:
                done = [each.event[0] for each in room.table.played]
                assert done.count(EventKind.STREET) == street(room) - 2
        if len(room.table.ready()) < 2:
            break
