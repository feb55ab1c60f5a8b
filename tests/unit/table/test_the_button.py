"""The button: drawn for the first hand, then clockwise to the next seat that is dealt in."""

from services.game.cards import parse_card
from tests.unit.table.rooms import FakeRoom


async def seated(*numbers: int) -> FakeRoom:
    """Players "seat-n" in these seats."""
    room = FakeRoom(seed=8)
    await room.create(seats=8, hand_pause_ms=1000)
    for number in numbers:
        await room.take_seat(f"seat-{number}", number=number)
    return room


async def button(room: FakeRoom) -> int:
    """Of the next hand, which is played."""
    table = await room.start_hand()
    assert table.blob.hand is not None
    found = table.blob.hand.button
    await room.play_out()
    return found


def cards(*first: str) -> list[int]:
    """A whole deck that begins with these cards."""
    top = [parse_card(card) for card in first]
    return [*top, *(card for card in range(52) if card not in top)]


async def test_the_highest_card_of_a_deck_of_its_own_has_the_first_button() -> None:
    room = await seated(1, 4, 6)
    room.shuffler.stacked = [cards("9c", "Kd", "Qs"), cards()]
    assert await button(room) == 4
    assert room.shuffler.calls.count("CreateDeck") == 2


async def test_equal_ranks_are_drawn_by_suit() -> None:
    room = await seated(1, 4, 6)
    room.shuffler.stacked = [cards("Kh", "Kd", "Ks"), cards()]
    assert await button(room) == 6


async def test_it_goes_round_clockwise_over_seats_that_are_far_apart() -> None:
    room = await seated(0, 3, 7)
    first = await button(room)
    order = [0, 3, 7]
    at = order.index(first)
    assert [await button(room) for _ in range(4)] == [order[(at + n) % 3] for n in range(1, 5)]


async def test_who_sits_down_between_it_and_the_next_has_it_next() -> None:
    room = await seated(0, 4)
    first = await button(room)
    between = first + 2
    await room.take_seat("late", number=between)
    assert await button(room) == between
    assert await button(room) == (4 if first == 0 else 0)


async def test_from_a_seat_that_is_empty_it_goes_on_to_the_next_dealt_in() -> None:
    room = await seated(0, 2, 5, 6)
    room.shuffler.stacked = [cards("2c", "Ad", "3c", "4c"), cards()]
    assert await button(room) == 2
    await room.tables.leave(room.table_id, "seat-2")
    assert await button(room) == 5
    # Who takes the very seat that it left does not have it again before his turn.
    await room.take_seat("new", number=2)
    assert [await button(room) for _ in range(3)] == [6, 0, 2]


async def test_who_sits_out_is_passed_over_and_has_it_again_when_it_comes_round() -> None:
    room = await seated(0, 2, 5)
    room.shuffler.stacked = [cards("Ac", "2d", "3c"), cards()]
    assert await button(room) == 0
    await room.tables.sit_out(room.table_id, "seat-2")
    assert await button(room) == 5
    await room.tables.sit_back(room.table_id, "seat-2")
    assert [await button(room) for _ in range(3)] == [0, 2, 5]


async def test_after_all_have_left_it_goes_on_from_where_it_was() -> None:
    room = await seated(1, 3)
    room.shuffler.stacked = [cards("2c", "Ad"), cards()]
    assert await button(room) == 3
    for player in ("seat-1", "seat-3"):
        await room.tables.leave(room.table_id, player)
    await room.take_seat("x", number=0)
    await room.take_seat("y", number=5)
    assert await button(room) == 5
