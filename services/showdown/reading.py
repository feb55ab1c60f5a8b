"""What a showdown's request says, checked whole."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb

from services.game.pots import Pot
from services.game.rulebook import (
    UNITS_MAX,
    Game,
    OddChipHigh,
    OddChipLow,
    OddChipRemainder,
    ShowdownRule,
)
from services.game.showdown import HAND_CARDS, SEATS_MAX
from services.game.wants import Showdown
from services.showdown.faults import Faults

GAMES: Final[Mapping[int, Game]] = {
    game_pb2.GAME_HIGH: Game.HIGH,
    game_pb2.GAME_HI_LO: Game.HI_LO,
    game_pb2.GAME_RAZZ: Game.RAZZ,
}
ODD_CHIPS_HIGH: Final[Mapping[int, OddChipHigh]] = {
    pb.ODD_CHIP_RULE_UNSPECIFIED: OddChipHigh.POSITION,
    pb.ODD_CHIP_RULE_POSITION: OddChipHigh.POSITION,
    pb.ODD_CHIP_RULE_SUIT_HIGH: OddChipHigh.SUIT_HIGH,
}
ODD_CHIPS_LOW: Final[Mapping[int, OddChipLow]] = {
    pb.ODD_CHIP_RULE_UNSPECIFIED: OddChipLow.POSITION,
    pb.ODD_CHIP_RULE_POSITION: OddChipLow.POSITION,
    pb.ODD_CHIP_RULE_SUIT_HIGH: OddChipLow.SUIT_HIGH,
    pb.ODD_CHIP_RULE_SUIT_LOW: OddChipLow.SUIT_LOW,
}
REMAINDERS: Final[Mapping[int, OddChipRemainder]] = {
    pb.ODD_CHIP_REMAINDER_UNSPECIFIED: OddChipRemainder.ONE_EACH,
    pb.ODD_CHIP_REMAINDER_ONE_EACH: OddChipRemainder.ONE_EACH,
    pb.ODD_CHIP_REMAINDER_ALL_TO_FIRST: OddChipRemainder.ALL_TO_FIRST,
}
SHOWDOWN_RULES: Final[Mapping[int, ShowdownRule]] = {
    pb.SHOWDOWN_RULE_UNSPECIFIED: ShowdownRule.ALL_SHOW,
    pb.SHOWDOWN_RULE_ALL_SHOW: ShowdownRule.ALL_SHOW,
    pb.SHOWDOWN_RULE_BEATEN_MAY_MUCK: ShowdownRule.BEATEN_MAY_MUCK,
}


class Split(NamedTuple):
    """The house rules of a showdown (`services.game.showdown.SplitRules`)."""

    game: Game
    wild_deuces: bool
    showdown: ShowdownRule
    odd_chip_high: OddChipHigh
    odd_chip_low: OddChipLow
    odd_chip_remainder: OddChipRemainder


def read_showdown(
    request: pb.DivideShowdownRequest,
) -> tuple[Showdown, Split, frozenset[int]]:
    """The showdown, its house rules, and who shows in any case. Raises InvalidArgument with every
    fault.
    """
    faults = Faults()
    split = Split(
        game=faults.one_of(GAMES, request.game, "game", Game.HIGH),
        wild_deuces=request.wild_deuces,
        showdown=faults.one_of(SHOWDOWN_RULES, request.showdown, "showdown", ShowdownRule.ALL_SHOW),
        odd_chip_high=faults.one_of(
            ODD_CHIPS_HIGH, request.odd_chip_high, "odd_chip_high", OddChipHigh.POSITION
        ),
        odd_chip_low=faults.one_of(
            ODD_CHIPS_LOW, request.odd_chip_low, "odd_chip_low", OddChipLow.POSITION
        ),
        odd_chip_remainder=faults.one_of(
            REMAINDERS, request.odd_chip_remainder, "odd_chip_remainder", OddChipRemainder.ONE_EACH
        ),
    )
    if split.wild_deuces and split.game is not Game.HIGH:
        faults.add("wild_deuces", "deuces are wild in high games only")
    if split.wild_deuces and split.odd_chip_high is not OddChipHigh.POSITION:
        faults.add("odd_chip_high", "with wild deuces odd chips go by position only")
    if not 2 <= request.table_seats <= SEATS_MAX:
        faults.add("table_seats", f"must be 2 to {SEATS_MAX}")
    if not 0 <= request.button < request.table_seats:
        faults.add("button", "is not a seat of the table")
    community, hands = _read_hands(request, faults)
    pots = _read_pots(request, hands, faults)
    for index, seat in enumerate(request.showing):
        if seat not in hands:
            faults.add(f"showing[{index}]", "has no hand")
    faults.raise_if_any()
    return (
        Showdown(
            pots=pots,
            hands=hands,
            community=community,
            order=tuple(hands),
            button=request.button,
            tabled=False,
        ),
        split,
        frozenset(request.showing),
    )


def _read_hands(
    request: pb.DivideShowdownRequest, faults: Faults
) -> tuple[tuple[int, ...], dict[int, tuple[int, ...]]]:
    """The community card and everyone's own cards by seat, in showing order."""
    seen: set[int] = set()
    shared = faults.card(request.community, "community", seen) if request.community else None
    community = () if shared is None else (shared,)
    if not 2 <= len(request.hands) <= SEATS_MAX:
        faults.add("hands", f"must be 2 to {SEATS_MAX}")
        faults.raise_if_any()
    own = HAND_CARDS - bool(request.community)
    hands: dict[int, tuple[int, ...]] = {}
    for index, hand in enumerate(request.hands):
        where = f"hands[{index}]"
        if not 0 <= hand.seat < request.table_seats:
            faults.add(f"{where}.seat", "is not a seat of the table")
        elif hand.seat in hands:
            faults.add(f"{where}.seat", "has a hand already")
        if len(hand.cards) not in (0, own):
            faults.add(f"{where}.cards", f"must be {own}, or none where he mucked unseen")
        hands[hand.seat] = faults.cards(hand.cards, f"{where}.cards", seen)
    return community, hands


def _read_pots(
    request: pb.DivideShowdownRequest, hands: Mapping[int, tuple[int, ...]], faults: Faults
) -> tuple[Pot, ...]:
    if not 1 <= len(request.pots) <= SEATS_MAX:
        faults.add("pots", f"must be 1 to {SEATS_MAX}")
        faults.raise_if_any()
    for index, pot in enumerate(request.pots):
        where = f"pots[{index}]"
        if not 0 <= pot.amount <= UNITS_MAX:
            faults.add(f"{where}.amount", f"must be 0 to {UNITS_MAX}")
        if not pot.seats:
            faults.add(f"{where}.seats", "must name who can win it")
        for place, seat in enumerate(pot.seats):
            if seat not in hands:
                faults.add(f"{where}.seats[{place}]", "has no hand")
            elif seat in pot.seats[:place]:
                faults.add(f"{where}.seats[{place}]", "occurs a second time")
        if len(pot.seats) > 1 and not any(hands.get(seat) for seat in pot.seats):
            faults.add(f"{where}.seats", "every hand was mucked unseen")
    return tuple(Pot(pot.amount, tuple(pot.seats)) for pot in request.pots)
