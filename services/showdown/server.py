"""The showdown's contract over gRPC: cards and pots in, awards and ranks out."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb
from doorcard.showdown.v1 import showdown_pb2_grpc
from grpc import aio

from services.game.cards import card_name
from services.game.events import HIGH, LOW, WHOLE
from services.game.names import name_of_high, name_of_low
from services.game.ranking import ace_to_five, best_high, best_low, deuces_wild, high, low8
from services.game.showdown import divide
from services.game.wants import ShowdownResult
from services.runtime.errors import ResourceExhausted
from services.showdown.reading import read_evaluation, read_showdown

SERVICE_NAME: Final = pb.DESCRIPTOR.services_by_name["ShowdownService"].full_name
EVALUATIONS_MAX: Final = 4
"""EvaluateHands calls at work at once; the next is told to come again."""
TURN_HANDS: Final = 32
"""Hands ranked before the event loop has its turn, so that showdowns of tables need not wait."""
RETRY_AFTER_MS: Final = 100

Cards = tuple[int, ...]
Context = aio.ServicerContext[Any, Any]

_PARTS: Final = {
    WHOLE: game_pb2.POT_PART_WHOLE,
    HIGH: game_pb2.POT_PART_HIGH,
    LOW: game_pb2.POT_PART_LOW,
}


class _Order(NamedTuple):
    """How hands are ranked, named and shown in one ranking."""

    rank: Callable[[Cards], int | None]
    name: Callable[[Cards], str]
    best: Callable[[Cards], Cards | None]


_ORDERS: Final[Mapping[int, _Order]] = {
    pb.RANKING_HIGH: _Order(
        high,
        lambda cards: name_of_high(high(cards)),
        lambda cards: best_high(cards)[1],
    ),
    pb.RANKING_LOW_EIGHT: _Order(
        low8,
        lambda cards: name_of_low(ace_to_five(cards)),
        best_low,
    ),
    pb.RANKING_ACE_TO_FIVE: _Order(
        ace_to_five,
        lambda cards: name_of_low(ace_to_five(cards)),
        lambda cards: best_low(cards, eight_or_better=False),
    ),
    pb.RANKING_DEUCES_WILD: _Order(
        deuces_wild,
        lambda cards: name_of_high(deuces_wild(cards)),
        lambda cards: best_high(cards, wild_deuces=True)[1],
    ),
}


class ShowdownServicer(showdown_pb2_grpc.ShowdownServiceServicer):
    """ShowdownService. Keeps nothing, logs no card."""

    def __init__(self) -> None:
        self._evaluations = 0

    async def DivideShowdown(  # noqa: N802 (the contract's name)
        self, request: pb.DivideShowdownRequest, _context: Context
    ) -> pb.DivideShowdownResponse:
        return _divided(divide(*read_showdown(request)))

    async def EvaluateHands(  # noqa: N802
        self, request: pb.EvaluateHandsRequest, _context: Context
    ) -> pb.EvaluateHandsResponse:
        if self._evaluations >= EVALUATIONS_MAX:
            raise ResourceExhausted(
                "TOO_MANY_EVALUATIONS",
                f"{EVALUATIONS_MAX} evaluations are at work",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._evaluations += 1
        try:
            hands = read_evaluation(request)
            order = _ORDERS[request.ranking]
            answer = pb.EvaluateHandsResponse()
            for index, cards in enumerate(hands):
                if index % TURN_HANDS == TURN_HANDS - 1:
                    await asyncio.sleep(0)
                answer.hands.append(_ranked(cards, order))
            return answer
        finally:
            self._evaluations -= 1


def build_tables() -> None:
    """Build what ranking needs, so that the first showdown does not wait for it."""
    for order in _ORDERS.values():
        _ranked((0, 5, 10, 15, 20, 25, 30), order)


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


def _ranked(cards: Cards, order: _Order) -> pb.RankedHand:
    rank = order.rank(cards)
    if rank is None:
        return pb.RankedHand(qualifies=False)
    best = order.best(cards) or ()
    return pb.RankedHand(
        rank=rank,
        name=order.name(cards),
        best=[card_name(card) for card in best],
        qualifies=True,
    )
