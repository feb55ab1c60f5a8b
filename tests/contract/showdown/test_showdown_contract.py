"""What a caller of the showdown service can rely on, over gRPC."""

from collections.abc import Mapping
from typing import Any

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb
from structlog.testing import capture_logs

from services.game.cards import card_name
from services.runtime.errors import InvalidArgument, PermissionDenied, Unauthenticated
from tests.conftest import Room
from tests.contract.showdown.showdowns import answered, names, showdown_of

DECK = frozenset(card_name(card) for card in range(52))
A, B, C = range(3)
QUARTERING = {A: "Ah2d4c5s7hKdKs", B: "As2c4d5h7sQdJh"}


def division(
    cards_of: Mapping[int, str] = QUARTERING, amount: int = 103, **fields: Any
) -> pb.DivideShowdownRequest:
    """A request for a hi-lo hand with one pot of everybody, changed by `fields`."""
    settings: dict[str, Any] = {
        "game": game_pb2.GAME_HI_LO,
        "pots": [game_pb2.Pot(amount=amount, seats=list(cards_of))],
        "hands": [pb.PlayerHand(seat=seat, cards=names(cards)) for seat, cards in cards_of.items()],
        "button": 7,
        "table_seats": 8,
    }
    return pb.DivideShowdownRequest(**{**settings, **fields})


def won(answer: pb.DivideShowdownResponse) -> list[tuple[int, int, int, int]]:
    return [(award.pot, award.seat, award.amount, award.part) for award in answer.awards]


async def test_pots_are_divided_part_by_part_with_hands_in_words(room: Room) -> None:
    async with showdown_of(room) as showdown:
        request = division(
            odd_chip_high=pb.ODD_CHIP_RULE_SUIT_HIGH, odd_chip_low=pb.ODD_CHIP_RULE_SUIT_HIGH
        )
        answer = await answered(showdown.DivideShowdown, request)
        assert won(answer) == [
            (0, A, 52, game_pb2.POT_PART_HIGH),
            (0, B, 26, game_pb2.POT_PART_LOW),
            (0, A, 25, game_pb2.POT_PART_LOW),
        ]
        assert [award.hand_name for award in answer.awards] == [
            "a pair of kings, ace seven five",
            "a seven-five-four-two-ace low",
            "a seven-five-four-two-ace low",
        ]
        assert [(reveal.seat, reveal.shown) for reveal in answer.reveals] == [(A, True), (B, True)]


async def test_settings_that_are_not_given_are_position_one_each_and_all_show(room: Room) -> None:
    async with showdown_of(room) as showdown:
        answer = await answered(showdown.DivideShowdown, division())
        assert [award.amount for award in answer.awards] == [52, 26, 25]
        assert [award.seat for award in answer.awards] == [A, A, B]


async def test_side_pots_community_card_and_mucking(room: Room) -> None:
    hands = {C: "QsQd7c7h3s2c", A: "KsKd9c8h4s2d", B: "JsJd6c6h4d3d"}
    async with showdown_of(room) as showdown:
        request = division(
            hands,
            game=game_pb2.GAME_HIGH,
            community="Qh",
            pots=[
                game_pb2.Pot(amount=30, seats=[A, B, C]),
                game_pb2.Pot(amount=20, seats=[A, B]),
            ],
            showdown=pb.SHOWDOWN_RULE_BEATEN_MAY_MUCK,
        )
        answer = await answered(showdown.DivideShowdown, request)
        assert [(award.pot, award.seat, award.amount) for award in answer.awards] == [
            (0, C, 30),
            (1, B, 20),
        ]
        assert [(reveal.seat, reveal.shown) for reveal in answer.reveals] == [
            (C, True),
            (A, True),
            (B, True),
        ]


async def test_a_hand_mucked_unseen_loses_and_names_nothing(room: Room) -> None:
    async with showdown_of(room) as showdown:
        answer = await answered(showdown.DivideShowdown, division({**QUARTERING, C: ""}))
        assert {award.seat for award in answer.awards} == {A, B}
        assert answer.reveals[2] == game_pb2.Reveal(seat=C, shown=False)


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"game": 0}, ["game"]),
        ({"game": 9}, ["game"]),
        ({"table_seats": 9}, ["table_seats"]),
        ({"table_seats": 2, "button": 2}, ["button"]),
        ({"button": -1}, ["button"]),
        ({"wild_deuces": True}, ["wild_deuces"]),
        (
            {
                "game": game_pb2.GAME_HIGH,
                "wild_deuces": True,
                "odd_chip_high": pb.ODD_CHIP_RULE_SUIT_HIGH,
            },
            ["odd_chip_high"],
        ),
        ({"odd_chip_high": pb.ODD_CHIP_RULE_SUIT_LOW}, ["odd_chip_high"]),
        (
            {"odd_chip_low": 7, "odd_chip_remainder": 8, "showdown": 9},
            ["showdown", "odd_chip_low", "odd_chip_remainder"],
        ),
        ({"community": "Xx"}, ["community", "hands[0].cards", "hands[1].cards"]),
        ({"hands": []}, ["hands"]),
        ({"pots": []}, ["pots"]),
        ({"showing": [A, 7]}, ["showing[1]"]),
        ({"pots": [game_pb2.Pot(amount=-1, seats=[A, B])]}, ["pots[0].amount"]),
        ({"pots": [game_pb2.Pot(amount=2**53, seats=[A, B])]}, ["pots[0].amount"]),
        (
            {"pots": [game_pb2.Pot(amount=1, seats=[A]), game_pb2.Pot(amount=1)]},
            ["pots[1].seats"],
        ),
        (
            {"pots": [game_pb2.Pot(amount=1, seats=[A, C, A])]},
            ["pots[0].seats[1]", "pots[0].seats[2]"],
        ),
    ],
)
async def test_malformed_requests_are_refused_with_field_and_index(
    room: Room, fields: dict[str, Any], places: list[str]
) -> None:
    async with showdown_of(room) as showdown:
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.DivideShowdown, division(**fields))
        assert [field for field, _ in refused.value.violations] == places


@pytest.mark.parametrize(
    ("hands", "places"),
    [
        ({A: "Ah2d4c5s7hKdKs", B: "Ah2c4d5h7sQdJh"}, ["hands[1].cards[0]"]),
        ({A: "Ah2d4c5s7hKdKd", B: "As2c4d5h7sQdJh"}, ["hands[0].cards[6]"]),
        (
            {A: "Ah2d4c5s7hKd??", B: "as2c4d5h7sQd10"},
            ["hands[0].cards[6]", "hands[1].cards[0]", "hands[1].cards[6]"],
        ),
        ({A: "Ah2d4c5s7hKd", B: "As2c4d5h7sQdJh9h"}, ["hands[0].cards", "hands[1].cards"]),
        ({A: "Ah2d4c5s7hKdKs", 8: "As2c4d5h7sQdJh"}, ["hands[1].seat"]),
        ({A: "", B: ""}, ["pots[0].seats"]),
        ({A: "Ah2d4c5s7hKdKs"}, ["hands"]),
    ],
)
async def test_bad_hands_are_refused_with_field_and_index_and_without_their_cards(
    room: Room, hands: dict[int, str], places: list[str]
) -> None:
    async with showdown_of(room) as showdown:
        with pytest.raises(InvalidArgument) as refused, capture_logs() as logs:
            await answered(showdown.DivideShowdown, division(hands))
        assert [field for field, _ in refused.value.violations] == places
        told = f"{refused.value} {refused.value.violations} {logs}"
        dealt = {card for cards in hands.values() for card in names(cards) if card in DECK}
        assert not any(card in told for card in dealt)


async def test_two_hands_of_one_seat_are_refused(room: Room) -> None:
    async with showdown_of(room) as showdown:
        request = division()
        request.hands[1].seat = A
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.DivideShowdown, request)
        assert ("hands[1].seat", "has a hand already") in refused.value.violations


async def test_only_services_divide_and_auditors_may_evaluate(room: Room) -> None:
    evaluation = pb.EvaluateHandsRequest(
        ranking=pb.RANKING_HIGH, hands=[pb.PlayerHand(cards=names("KsKd9c8h4s2d3c"))]
    )
    async with showdown_of(room, ["auditor"]) as showdown:
        assert (await answered(showdown.EvaluateHands, evaluation)).hands
        with pytest.raises(PermissionDenied):
            await answered(showdown.DivideShowdown, division())
    async with showdown_of(room, ["player"]) as showdown:
        with pytest.raises(PermissionDenied):
            await answered(showdown.EvaluateHands, evaluation)
    async with showdown_of(room, []) as showdown:
        with pytest.raises(Unauthenticated):
            await answered(showdown.DivideShowdown, division())
