"""The showdown's contract over gRPC: cards and pots in, awards, ranks and equities out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb
from doorcard.showdown.v1 import showdown_pb2_grpc
from grpc import aio

from services.game.cards import card_name
from services.game.events import HIGH, LOW, WHOLE
from services.game.showdown import divide
from services.game.wants import ShowdownResult
from services.runtime.batches import Answering, Batch
from services.runtime.errors import DeadlineExceeded
from services.showdown.analysts import Analysts
from services.showdown.asking import Packed, read_equity, read_evaluation, refuse_packed
from services.showdown.equity import Estimation, Worth
from services.showdown.evaluation import Cards, Order, Ranked, rank_hands, rank_packed
from services.showdown.reading import read_showdown

SERVICE_NAME: Final = pb.DESCRIPTOR.services_by_name["ShowdownService"].full_name

HANDS_HERE: Final = 16
"""So few hands are ranked at once, in about a millisecond: a table's all-in display does not wait
behind analysts. More go to the analysts, in parts."""
HANDS_PART: Final = 250
PACKED_PART: Final = 100_000
ESTIMATE_SECONDS: Final = 60.0
"""The most time for one estimate."""
ANSWER_SECONDS: Final = 0.2
"""Kept from the caller's time for the last answer of a sample."""
PROGRESS_SECONDS: Final = 0.25
"""Between answers of an estimate at work."""

Context = aio.ServicerContext[Any, Any]

_BATCH: Final = Answering(
    Batch(pb.DESCRIPTOR.services_by_name["ShowdownService"], "BatchDivideShowdown")
)
_PARTS: Final = {
    WHOLE: game_pb2.POT_PART_WHOLE,
    HIGH: game_pb2.POT_PART_HIGH,
    LOW: game_pb2.POT_PART_LOW,
}


class ShowdownServicer(showdown_pb2_grpc.ShowdownServiceServicer):
    """ShowdownService. Keeps nothing, logs no card."""

    def __init__(self, analysts: Analysts) -> None:
        self._analysts = analysts

    async def DivideShowdown(  # noqa: N802 (the contract's name)
        self, request: pb.DivideShowdownRequest, _context: Context
    ) -> pb.DivideShowdownResponse:
        return _divided(divide(*read_showdown(request)))

    async def BatchDivideShowdown(  # noqa: N802
        self, request: pb.BatchDivideShowdownRequest, context: Context
    ) -> pb.BatchDivideShowdownResponse:
        response: pb.BatchDivideShowdownResponse = await _BATCH.answer(self, request, context)
        return response

    async def EvaluateHands(  # noqa: N802
        self, request: pb.EvaluateHandsRequest, _context: Context
    ) -> pb.EvaluateHandsResponse:
        few = not request.packed_hands and len(request.hands) <= HANDS_HERE
        with nullcontext() if few else self._analysts.let_in():
            order, hands = read_evaluation(request)
            if isinstance(hands, Packed):
                return await self._rank_packed(order, hands)
            if few:
                return _ranked(rank_hands(order, hands))
            return await self._rank(order, hands)

    async def EstimateEquity(  # noqa: N802
        self, request: pb.EstimateEquityRequest, context: Context
    ) -> AsyncIterator[pb.EstimateEquityResponse]:
        with self._analysts.let_in():
            estimation, seed = read_equity(request)
            now_s = asyncio.get_running_loop().time
            end_s = now_s() + _seconds_for(context)
            told_s = now_s()
            while part := estimation.next_part():
                try:
                    # A sample is worth nothing before its first part: that one has all the time.
                    has_answer = estimation.exact or estimation.deals
                    async with asyncio.timeout_at(end_s if has_answer else None):
                        estimation.add(await self._analysts.do(part))
                except TimeoutError:
                    break
                if now_s() >= told_s + PROGRESS_SECONDS:
                    told_s = now_s()
                    yield _estimate(estimation, seed, done=False)
            if estimation.exact and not estimation.precise:
                raise DeadlineExceeded(
                    "ESTIMATE_TOO_LONG", "the time was too short to look at every deal"
                )
            yield _estimate(estimation, seed, done=True)

    async def _rank(self, order: Order, hands: Sequence[Cards]) -> pb.EvaluateHandsResponse:
        answer = pb.EvaluateHandsResponse()
        for start in range(0, len(hands), HANDS_PART):
            part = hands[start : start + HANDS_PART]
            ranked = await self._analysts.do(partial(rank_hands, order, part))
            answer.MergeFrom(_ranked(ranked))
        return answer

    async def _rank_packed(self, order: Order, packed: Packed) -> pb.EvaluateHandsResponse:
        size = PACKED_PART * packed.cards
        ranks = []
        for start in range(0, len(packed.hands), size):
            part = partial(rank_packed, order, packed.cards, packed.hands[start : start + size])
            found = await self._analysts.do(part)
            if isinstance(found, bytes):
                ranks.append(found)
            else:
                refuse_packed(found, start // packed.cards)
        return pb.EvaluateHandsResponse(packed_ranks=b"".join(ranks))


def get_tables_ready() -> None:
    """Do what the first ranking would do, so that the first showdown does not wait for it."""
    for order in Order:
        rank_hands(order, [(0, 5, 10, 15, 20, 25, 30)])


def _seconds_for(context: Context) -> float:
    """How long an estimate may work, so that its answer still reaches the caller."""
    given_s = context.time_remaining()
    return ESTIMATE_SECONDS if given_s is None else min(ESTIMATE_SECONDS, given_s - ANSWER_SECONDS)


def _divided(result: ShowdownResult) -> pb.DivideShowdownResponse:
    return pb.DivideShowdownResponse(
        awards=[
            game_pb2.Award(pot=pot, seat=seat, amount=amount, part=_PARTS[part], hand_name=name)
            for pot, seat, amount, part, name in result.awards
        ],
        reveals=[
            game_pb2.Reveal(seat=seat, shown=shown, hand_name=name)
            for seat, shown, name in result.reveals
        ],
    )


def _ranked(hands: Sequence[Ranked | None]) -> pb.EvaluateHandsResponse:
    return pb.EvaluateHandsResponse(
        hands=[
            pb.RankedHand(
                rank=hand.rank,
                name=hand.name,
                best=[card_name(card) for card in hand.best],
                qualifies=True,
            )
            if hand
            else pb.RankedHand(qualifies=False)
            for hand in hands
        ]
    )


def _estimate(estimation: Estimation, seed: int, *, done: bool) -> pb.EstimateEquityResponse:
    told = done or not estimation.exact
    return pb.EstimateEquityResponse(
        players=[_equity(worth) for worth in estimation.worths()] if told else (),
        deals=estimation.deals,
        deals_total=estimation.spot.deals if estimation.exact else 0,
        exact=estimation.exact,
        progress=estimation.progress,
        done=done,
        precise=estimation.precise,
        seed=seed,
    )


def _equity(worth: Worth) -> pb.PlayerEquity:
    return pb.PlayerEquity(**worth._asdict())
