"""Builds showdowns for tests: seats by letter, cards by name, house rules with usual values."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from services.game.cards import parse_cards
from services.game.pots import Pot
from services.game.rulebook import Game, OddChipHigh, OddChipLow, OddChipRemainder, ShowdownRule
from services.game.showdown import divide
from services.game.wants import Showdown, ShowdownResult

A, B, C, D, E, F, G, H = range(8)


class Split(NamedTuple):
    """The house rules of a showdown."""

    game: Game = Game.HIGH
    wild_deuces: bool = False
    showdown: ShowdownRule = ShowdownRule.ALL_SHOW
    odd_chip_high: OddChipHigh = OddChipHigh.POSITION
    odd_chip_low: OddChipLow = OddChipLow.POSITION
    odd_chip_remainder: OddChipRemainder = OddChipRemainder.ONE_EACH


HI_LO = Split(game=Game.HI_LO)
RAZZ = Split(game=Game.RAZZ)
EIGHT_OR_BETTER = Split(
    game=Game.HI_LO, odd_chip_high=OddChipHigh.SUIT_HIGH, odd_chip_low=OddChipLow.SUIT_LOW
)


def showdown(
    hands: Mapping[int, str],
    pots: int | Sequence[tuple[int, tuple[int, ...]]],
    *,
    community: str = "",
    button: int = H,
    order: Sequence[int] | None = None,
    tabled: bool = False,
) -> Showdown:
    """A showdown; a number for `pots` is one pot of everybody."""
    if isinstance(pots, int):
        pots = [(pots, tuple(hands))]
    return Showdown(
        pots=tuple(Pot(amount, seats) for amount, seats in pots),
        hands={seat: parse_cards(cards.replace(" ", "")) for seat, cards in hands.items()},
        community=parse_cards(community),
        order=tuple(order if order is not None else hands),
        button=button,
        tabled=tabled,
    )


def won(result: ShowdownResult) -> dict[int, int]:
    """What each seat gets from all pots together."""
    totals: dict[int, int] = {}
    for _, seat, amount, _, _ in result.awards:
        totals[seat] = totals.get(seat, 0) + amount
    return totals


def payout(
    hands: Mapping[int, str],
    pots: int | Sequence[tuple[int, tuple[int, ...]]],
    rules: Split,
    *,
    community: str = "",
    button: int = H,
) -> dict[int, int]:
    """What each seat gets from all pots together."""
    return won(divide(showdown(hands, pots, community=community, button=button), rules))
