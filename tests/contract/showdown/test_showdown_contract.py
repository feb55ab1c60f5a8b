"""What a caller of the showdown service can rely on, over gRPC."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb
from doorcard.showdown.v1 import showdown_pb2_grpc
from structlog.testing import capture_logs

from services.game.cards import card_name
from services.runtime.channels import call, connect
from services.runtime.errors import (
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
)
from services.runtime.server import serving
from services.showdown import server as showdown_server
from services.showdown.__main__ import register
from tests.conftest import Room

if TYPE_CHECKING:
    Stub = showdown_pb2_grpc.ShowdownServiceAsyncStub
else:
    Stub = showdown_pb2_grpc.ShowdownServiceStub

Answer = TypeVar("Answer")

DECK = frozenset(card_name(card) for card in range(52))
A, B, C = range(3)
QUARTERING = {A: "Ah2d4c5s7hKdKs", B: "As2c4d5h7sQdJh"}


@asynccontextmanager
async def showdown_of(room: Room, roles: Sequence[str] = ("service",)) -> AsyncIterator[Stub]:
    """A running showdown service seen by a caller with these roles; none sends no token."""
    async with serving(room.settings(service="showdown"), register) as running:
        token_file = room.token_file("table-1", roles) if roles else None
        async with connect(running.address, room.settings(token_file=token_file)) as channel:
            yield showdown_pb2_grpc.ShowdownServiceStub(channel)


async def answered(method: Callable[..., Awaitable[Answer]], request: Any) -> Answer:
    """The answer to one call, or the typed error."""
    return await call(method, request, timeout_s=5, attempts=1)


def names(cards: str) -> list[str]:
    return [cards[at : at + 2] for at in range(0, len(cards), 2)]


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


@pytest.mark.parametrize(
    ("ranking", "cards", "name", "best"),
    [
        (pb.RANKING_HIGH, "KsKdKh9c9d2s3h", "a full house, kings over nines", "KsKhKd9d9c"),
        (pb.RANKING_HIGH, "TcJdQhKsAs", "a straight, ace high", "AsKsQhJdTc"),
        (
            pb.RANKING_LOW_EIGHT,
            "8s6d4c3hAcKdKh",
            "an eight-six-four-three-ace low",
            "8s6d4c3hAc",
        ),
        (pb.RANKING_ACE_TO_FIVE, "KsKd4c4h2c2d", "two pair, fours and twos, king", "Ks4h4c2d2c"),
        (pb.RANKING_DEUCES_WILD, "2c2dAsAhAd9c8d", "five of a kind, aces", "AsAhAd2d2c"),
    ],
)
async def test_hands_are_ranked_named_and_their_five_cards_shown(
    room: Room, ranking: pb.Ranking.ValueType, cards: str, name: str, best: str
) -> None:
    async with showdown_of(room) as showdown:
        request = pb.EvaluateHandsRequest(
            ranking=ranking, hands=[pb.PlayerHand(cards=names(cards))]
        )
        [hand] = (await answered(showdown.EvaluateHands, request)).hands
        assert (hand.name, list(hand.best), hand.qualifies) == (name, names(best), True)
        assert hand.rank > 0


async def test_a_low_that_does_not_qualify_says_so(room: Room) -> None:
    async with showdown_of(room) as showdown:
        request = pb.EvaluateHandsRequest(
            ranking=pb.RANKING_LOW_EIGHT,
            hands=[pb.PlayerHand(cards=names("9s6d4c3hAcKdKh"))],
        )
        [hand] = (await answered(showdown.EvaluateHands, request)).hands
        assert hand == pb.RankedHand(rank=0, qualifies=False)


async def test_a_full_batch_is_ranked_in_order_and_a_larger_one_refused(room: Room) -> None:
    pair, high_card = names("KsKd9c8h4s2d3c"), names("KsQd9c8h4s2d3c")
    hands = [pb.PlayerHand(cards=pair), pb.PlayerHand(cards=high_card)] * 500
    async with showdown_of(room) as showdown:
        request = pb.EvaluateHandsRequest(ranking=pb.RANKING_HIGH, hands=hands)
        ranked = (await answered(showdown.EvaluateHands, request)).hands
        assert len(ranked) == 1000
        assert len({hand.rank for hand in ranked[::2]}) == 1
        assert all(
            one.rank > other.rank for one, other in zip(ranked[::2], ranked[1::2], strict=True)
        )
        request.hands.add(cards=pair)
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.EvaluateHands, request)
        assert [field for field, _ in refused.value.violations] == ["hands"]


async def test_bad_evaluations_are_refused_with_field_and_index(room: Room) -> None:
    hands = [
        pb.PlayerHand(cards=names("KsKd9c8h4s2d3c")),
        pb.PlayerHand(cards=names("KsKdKs8h")),
        pb.PlayerHand(cards=names("KsKd9c8h1s")),
    ]
    async with showdown_of(room) as showdown:
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.EvaluateHands, pb.EvaluateHandsRequest(hands=hands))
        assert [field for field, _ in refused.value.violations] == [
            "ranking",
            "hands[1].cards",
            "hands[1].cards[2]",
            "hands[2].cards[4]",
        ]


async def test_rubbish_gets_a_short_answer(room: Room) -> None:
    hands = [pb.PlayerHand(cards=["rubbish"] * 7)] * 1000
    async with showdown_of(room) as showdown:
        request = pb.EvaluateHandsRequest(ranking=pb.RANKING_HIGH, hands=hands)
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.EvaluateHands, request)
        assert len(refused.value.violations) == 20


async def test_evaluations_beyond_the_limit_are_told_to_come_again(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(showdown_server, "EVALUATIONS_MAX", 0)
    async with showdown_of(room) as showdown:
        request = pb.EvaluateHandsRequest(
            ranking=pb.RANKING_HIGH, hands=[pb.PlayerHand(cards=names("KsKd9c8h4s2d3c"))]
        )
        with pytest.raises(ResourceExhausted) as refused:
            await answered(showdown.EvaluateHands, request)
        assert refused.value.retry_after_ms == showdown_server.RETRY_AFTER_MS
        assert (await answered(showdown.DivideShowdown, division())).awards


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
