"""Ranking hands over gRPC: named in words, or packed in big batches."""

import random
import struct
from typing import Any

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb

from services.game.ranking import high, low8
from services.runtime.errors import InvalidArgument, ResourceExhausted
from services.showdown.analysts import RETRY_AFTER_MS
from services.showdown.asking import PACKED_MAX
from tests.conftest import Room
from tests.contract.showdown.showdowns import answered, names, showdown_of

SEED = 20240617


def packed(rows: list[list[int]], **fields: Any) -> pb.EvaluateHandsRequest:
    cards = bytes(card for row in rows for card in row)
    settings: dict[str, Any] = {
        "ranking": pb.RANKING_HIGH,
        "packed_hands": cards,
        "packed_cards": 7,
    }
    return pb.EvaluateHandsRequest(**{**settings, **fields})


def random_hands(count: int) -> list[list[int]]:
    draw = random.Random(SEED)
    return [draw.sample(range(52), 7) for _ in range(count)]


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


async def test_packed_hands_are_ranked_like_named_ones(room: Room) -> None:
    hands = random_hands(2_000)
    async with showdown_of(room) as showdown:
        answer = await answered(showdown.EvaluateHands, packed(hands))
        ranks = [rank for (rank,) in struct.iter_unpack("<H", answer.packed_ranks)]
        assert ranks == [high(hand) for hand in hands]
        assert not answer.hands
        lows = await answered(showdown.EvaluateHands, packed(hands, ranking=pb.RANKING_LOW_EIGHT))
        ranks = [rank for (rank,) in struct.iter_unpack("<H", lows.packed_ranks)]
        assert ranks == [low8(hand) or 0 for hand in hands]


async def test_the_largest_batch_fits_in_a_message_and_one_more_hand_is_refused(
    room: Room,
) -> None:
    hands = random_hands(100) * (PACKED_MAX // 100)
    async with showdown_of(room) as showdown:
        answer = await answered(showdown.EvaluateHands, packed(hands))
        assert len(answer.packed_ranks) == 2 * PACKED_MAX
        assert answer.packed_ranks[:200] * (PACKED_MAX // 100) == answer.packed_ranks
        # Cards that cannot be are found in any part of the batch.
        hands[-2] = [3, 3, 3, 4, 5, 6, 7]
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.EvaluateHands, packed(hands))
        assert refused.value.violations == [
            (f"packed_hands[{PACKED_MAX - 2}].cards[{place}]", "occurs a second time")
            for place in (1, 2)
        ]
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.EvaluateHands, packed([*hands, hands[0]]))
        assert [field for field, _ in refused.value.violations] == ["packed_hands"]


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"ranking": 0}, ["ranking"]),
        ({"packed_cards": 8}, ["packed_cards"]),
        ({"packed_cards": 0}, ["packed_cards"]),
        ({"packed_cards": 6}, ["packed_hands"]),
        ({"packed_hands": b""}, ["packed_hands"]),
        ({"hands": [pb.PlayerHand()]}, ["hands"]),
    ],
)
async def test_malformed_batches_are_refused_by_field(
    room: Room, fields: dict[str, Any], places: list[str]
) -> None:
    async with showdown_of(room) as showdown:
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.EvaluateHands, packed(random_hands(1), **fields))
        assert [field for field, _ in refused.value.violations] == places


async def test_a_tables_hands_are_ranked_though_every_analyst_is_busy(
    room: Room,
) -> None:
    hand = pb.PlayerHand(cards=names("KsKd9c8h4s2d3c"))
    async with showdown_of(room, analyses_max=1) as showdown:
        many = pb.EvaluateHandsRequest(ranking=pb.RANKING_HIGH, hands=[hand] * 17)
        few = pb.EvaluateHandsRequest(ranking=pb.RANKING_HIGH, hands=[hand] * 16)
        estimate = showdown.EstimateEquity(
            pb.EstimateEquityRequest(
                game=game_pb2.GAME_HIGH, players=[pb.KnownHand()] * 8, standard_error_max=0.0001
            )
        )
        assert not (await anext(aiter(estimate))).done
        with pytest.raises(ResourceExhausted) as refused:
            await answered(showdown.EvaluateHands, many)
        assert refused.value.retry_after_ms == RETRY_AFTER_MS
        assert len((await answered(showdown.EvaluateHands, few)).hands) == 16
        estimate.cancel()
