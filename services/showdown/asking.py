"""What analysts ask for, checked whole."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from doorcard.showdown.v1 import showdown_pb2 as pb

from services.game.cards import CARDS
from services.game.rulebook import Game
from services.game.showdown import HAND_CARDS, SEATS_MAX
from services.showdown.equity import Estimation, Spot
from services.showdown.evaluation import Cards, Fault, Order
from services.showdown.faults import Faults
from services.showdown.reading import GAMES

HANDS_MAX: Final = 1_000
"""Most hands given by name in one request."""
PACKED_MAX: Final = 500_000
"""Most packed hands of one request: 3.5 MB of seven cards each, below the limit of a message."""
EXACT_DEALS_USUAL: Final = 5_000_000
EXACT_DEALS_MAX: Final = 200_000_000
"""Some seconds of one core."""
STANDARD_ERROR_USUAL: Final = 0.002
STANDARD_ERROR_MIN: Final = 0.0001
"""At most 25 million deals."""
STANDARD_ERROR_MAX: Final = 0.1

ORDERS: Final[Mapping[int, Order]] = {
    pb.RANKING_HIGH: Order.HIGH,
    pb.RANKING_LOW_EIGHT: Order.LOW8,
    pb.RANKING_ACE_TO_FIVE: Order.ACE_TO_FIVE,
    pb.RANKING_DEUCES_WILD: Order.DEUCES_WILD,
}


class Packed(NamedTuple):
    """Hands as bytes, a card each."""

    cards: int
    """Cards of each hand."""
    hands: bytes


def read_evaluation(request: pb.EvaluateHandsRequest) -> tuple[Order, list[Cards] | Packed]:
    """The hands, five to seven cards each; those given by name are distinct cards.

    Raises InvalidArgument with every fault.
    """
    faults = Faults()
    order = faults.one_of(ORDERS, request.ranking, "ranking", Order.HIGH)
    hands: list[Cards] | Packed
    if request.packed_hands or request.packed_cards:
        hands = _packed(request, faults)
    else:
        hands = _by_name(request, faults)
    faults.raise_if_any()
    return order, hands


def refuse_packed(found: Sequence[Fault], first: int) -> NoReturn:
    """Raises InvalidArgument for cards that cannot be, in hands counted from the `first`."""
    faults = Faults()
    for hand, place, reason in found:
        faults.add(f"packed_hands[{first + hand}].cards[{place}]", reason)
    faults.refuse()


def read_equity(request: pb.EstimateEquityRequest) -> tuple[Estimation, int]:
    """The estimation asked for, and the seed of its sample, 0 where it needs none.

    Raises InvalidArgument with every fault.
    """
    faults = Faults()
    game = faults.one_of(GAMES, request.game, "game", Game.HIGH)
    if request.wild_deuces and game is not Game.HIGH:
        faults.add("wild_deuces", "deuces are wild in high games only")
    if request.exact_deals_max > EXACT_DEALS_MAX:
        faults.add("exact_deals_max", f"must be at most {EXACT_DEALS_MAX}")
    error = request.standard_error_max or STANDARD_ERROR_USUAL
    if not STANDARD_ERROR_MIN <= error <= STANDARD_ERROR_MAX:  # Also where it is no number.
        error = STANDARD_ERROR_USUAL
        faults.add("standard_error_max", f"must be {STANDARD_ERROR_MIN} to {STANDARD_ERROR_MAX}")
    hands, dead, community = _known_cards(request, faults)
    faults.raise_if_any()
    try:
        spot = Spot(game, hands, request.wild_deuces, dead, community)
    except ValueError as too_few:
        faults.add("players", str(too_few))
        faults.refuse()
    seed = request.seed or secrets.randbits(63) + 1
    estimation = Estimation(
        spot,
        exact_deals_max=request.exact_deals_max or EXACT_DEALS_USUAL,
        standard_error_max=error,
        seed=seed,
    )
    return estimation, 0 if estimation.exact else seed


def _by_name(request: pb.EvaluateHandsRequest, faults: Faults) -> list[Cards]:
    if not 1 <= len(request.hands) <= HANDS_MAX:
        faults.add("hands", f"must be 1 to {HANDS_MAX}")
        faults.raise_if_any()
    hands = []
    for index, hand in enumerate(request.hands):
        where = f"hands[{index}].cards"
        if not 5 <= len(hand.cards) <= 7:
            faults.add(where, "must be five, six or seven")
        hands.append(faults.cards(hand.cards, where, seen=set()))
    return hands


def _packed(request: pb.EvaluateHandsRequest, faults: Faults) -> Packed:
    packed = Packed(request.packed_cards, request.packed_hands)
    if request.hands:
        faults.add("hands", "must be empty where there are packed hands")
    if not 5 <= packed.cards <= 7:
        faults.add("packed_cards", "must be five, six or seven")
    elif not packed.hands or len(packed.hands) % packed.cards:
        faults.add("packed_hands", "must hold whole hands")
    elif len(packed.hands) // packed.cards > PACKED_MAX:
        faults.add("packed_hands", f"must be at most {PACKED_MAX}")
    return packed


def _known_cards(
    request: pb.EstimateEquityRequest, faults: Faults
) -> tuple[tuple[Cards, ...], Cards, int | None]:
    """Everybody's own cards, the dead ones and the community card, all different."""
    seen: set[int] = set()
    community = faults.card(request.community, "community", seen) if request.community else None
    if not 2 <= len(request.players) <= SEATS_MAX:
        faults.add("players", f"must be 2 to {SEATS_MAX}")
        faults.raise_if_any()
    if len(request.dead_cards) > CARDS:
        faults.add("dead_cards", f"must be at most {CARDS}")
        faults.raise_if_any()
    own = HAND_CARDS - bool(request.community)
    hands = []
    for index, hand in enumerate(request.players):
        where = f"players[{index}].cards"
        if len(hand.cards) > own:
            faults.add(where, f"must be at most {own}")
        hands.append(faults.cards(hand.cards, where, seen))
    return tuple(hands), faults.cards(request.dead_cards, "dead_cards", seen), community
