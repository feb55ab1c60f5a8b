"""Who shows, who may muck, and how each pot is divided at the showdown (docs/rules.md, 6).

Pure: the answer depends on the cards, the pots, the seats and the house's rules alone.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from services.game.events import HIGH, LOW, WHOLE
from services.game.invariant import require
from services.game.names import name_of_high, name_of_low
from services.game.pots import Pot
from services.game.ranking import ace_to_five, deuces_wild, high, low8
from services.game.ranking.best_five import equal_fives, low_order, sorted_low
from services.game.rulebook import (
    Game,
    OddChipHigh,
    OddChipLow,
    OddChipRemainder,
    ShowdownRule,
)
from services.game.wants import Showdown, ShowdownResult

HAND_CARDS: Final = 7
"""Cards of a hand at the showdown, a community card among them."""
SEATS_MAX: Final = 8
"""Seats of a table (docs/rules.md, 1)."""


class SplitRules(Protocol):
    """The house rules that decide a showdown; a `Rulebook` has them."""

    @property
    def game(self) -> Game:
        """What is played for."""

    @property
    def wild_deuces(self) -> bool:
        """Deuces are wild; in a high game only."""

    @property
    def showdown(self) -> ShowdownRule:
        """Who turns up his cards."""

    @property
    def odd_chip_high(self) -> OddChipHigh:
        """Odd chips among equal high hands."""

    @property
    def odd_chip_low(self) -> OddChipLow:
        """Odd chips among equal lows, in razz too."""

    @property
    def odd_chip_remainder(self) -> OddChipRemainder:
        """Whether a remainder goes out one each or all to the first."""


def divide(showdown: Showdown, rules: SplitRules, showing: Collection[int] = ()) -> ShowdownResult:
    """Divides every pot among its own players and says who shows.

    showing: seats that show also where they may muck.

    A hand without cards was mucked unseen and loses. Awards of a pot add up to it; of two equal
    hands the one that got an odd unit comes first. Raises ValueError where the input is not a
    showdown: cards repeated or not seven to a hand, a pot nobody can win, suits deciding odd chips
    among wild cards.
    """
    _check(showdown, rules)
    sides = sides_of(showdown, rules)
    reveals = _reveals(showdown, rules, sides, showing)
    mucked = {seat for seat, shown, _ in reveals if not shown}
    awards: list[tuple[int, int, int, int, str]] = []
    for index, pot in enumerate(showdown.pots):
        if len(pot.seats) == 1:
            if pot.amount:
                awards.append((index, pot.seats[0], pot.amount, WHOLE, ""))
            continue
        paid = 0
        for part, side, amount in _parts(pot, sides):
            for seat, chips in _split(amount, pot, side, showdown, rules.odd_chip_remainder):
                require(seat not in mucked, "a mucked hand wins nothing")
                awards.append((index, seat, chips, part, side.name(side.ranks[seat])))
                paid += chips
        require(paid == pot.amount, "the awards of a pot add up to it")
    return ShowdownResult(tuple(awards), tuple(reveals))


class Side(NamedTuple):
    """One way to win: the high or the low hands of everybody."""

    ranks: dict[int, int]
    """Class of each seat's hand, bigger is better; 0 where it cannot win this way."""
    name: Callable[[int], str]
    """The name of a class."""
    precedence: Callable[[Sequence[int]], tuple[int, ...]] | None
    """From cards to what decides odd chips, smallest first; None where position alone does."""


def sides_of(showdown: Showdown, rules: SplitRules) -> tuple[Side, ...]:
    """The ways to win under these rules, each hand ranked once: high, low, or high first and then
    low.
    """
    hands = {seat: (*cards, *showdown.community) for seat, cards in showdown.hands.items() if cards}
    sides = []
    if rules.game is not Game.RAZZ:
        rank = deuces_wild if rules.wild_deuces else high
        ranks = {seat: rank(cards) for seat, cards in hands.items()}
        by_suit = rules.odd_chip_high is OddChipHigh.SUIT_HIGH
        sides.append(Side(ranks, name_of_high, _by_high_card if by_suit else None))
    if rules.game is not Game.HIGH:
        qualifies = rules.game is Game.RAZZ
        ranks = {
            seat: ace_to_five(cards) if qualifies or low8(cards) else 0
            for seat, cards in hands.items()
        }
        sides.append(Side(ranks, name_of_low, _LOW_PRECEDENCE[rules.odd_chip_low]))
    return tuple(sides)


def _parts(pot: Pot, sides: tuple[Side, ...]) -> list[tuple[int, Side, int]]:
    """The parts of a pot: (part, how it is won, minor units). High gets the odd unit of halves."""
    if len(sides) == 1 or not any(sides[1].ranks.get(seat) for seat in pot.seats):
        return [(WHOLE, sides[0], pot.amount)]
    low = pot.amount // 2
    return [(HIGH, sides[0], pot.amount - low), (LOW, sides[1], low)]


def _split(
    amount: int, pot: Pot, side: Side, showdown: Showdown, remainder: OddChipRemainder
) -> list[tuple[int, int]]:
    """What each of the best hands gets: (seat, minor units above 0), odd units first."""
    ranks = side.ranks
    best = max([ranks.get(seat, 0) for seat in pot.seats])
    winners = [seat for seat in pot.seats if ranks.get(seat) == best]
    if len(winners) == 1:
        return [(winners[0], amount)] if amount else []
    winners.sort(key=lambda seat: (seat - showdown.button - 1) % SEATS_MAX)
    share, odd = divmod(amount, len(winners))
    precedence = side.precedence
    if odd and precedence:
        # Sorting keeps the order of position where the deciding cards are all shared.
        winners.sort(key=lambda seat: precedence((*showdown.hands[seat], *showdown.community)))
    if remainder is OddChipRemainder.ONE_EACH:
        chips = [share + (place < odd) for place in range(len(winners))]
    else:
        chips = [share + odd] + [share] * (len(winners) - 1)
    return [(seat, units) for seat, units in zip(winners, chips, strict=True) if units]


def _by_high_card(cards: Sequence[int]) -> tuple[int, ...]:
    """The best high five from the highest card down, higher cards and suits first."""
    return tuple(-card for card in equal_fives(cards, high)[0])


def _by_lower_suit(cards: Sequence[int]) -> tuple[int, ...]:
    """The best low from its top card down, lower suits first."""
    return min(_lows(cards))


def _by_higher_suit(cards: Sequence[int]) -> tuple[int, ...]:
    """The best low from its top card down, higher suits first."""
    return tuple(-place for place in max(_lows(cards)))


def _lows(cards: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for five in equal_fives(cards, ace_to_five):
        yield tuple(low_order(card) for card in sorted_low(five))


_LOW_PRECEDENCE: Final = {
    OddChipLow.POSITION: None,
    OddChipLow.SUIT_LOW: _by_lower_suit,
    OddChipLow.SUIT_HIGH: _by_higher_suit,
}


def _reveals(
    showdown: Showdown, rules: SplitRules, sides: tuple[Side, ...], showing: Collection[int]
) -> list[tuple[int, bool, str]]:
    """Who shows and who mucks, in showing order: (seat, shown, name of the hand)."""
    everyone = showdown.tabled or rules.showdown is ShowdownRule.ALL_SHOW
    # The best hand shown so far, by contested pot and side.
    leads = [(pot.seats, [0] * len(sides)) for pot in showdown.pots if len(pot.seats) > 1]
    reveals: list[tuple[int, bool, str]] = []
    nobody_yet = True
    for seat in showdown.order:
        if not showdown.hands[seat]:
            reveals.append((seat, False, ""))
            continue
        ranks = [side.ranks[seat] for side in sides]
        can_win = False
        for seats, lead in leads:
            if seat in seats:
                for index, rank in enumerate(ranks):
                    if rank and rank >= lead[index]:
                        can_win = True
                        lead[index] = rank
        if can_win or everyone or nobody_yet or seat in showing:
            nobody_yet = False
            names = [side.name(rank) for side, rank in zip(sides, ranks, strict=True) if rank]
            reveals.append((seat, True, ", and ".join(names)))
        else:
            reveals.append((seat, False, ""))
    return reveals


def _check(showdown: Showdown, rules: SplitRules) -> None:
    """Raises ValueError where the input is not a showdown."""
    dealt = list(showdown.community)
    for seat, cards in showdown.hands.items():
        if cards and len(cards) + len(showdown.community) != HAND_CARDS:
            raise ValueError(f"seat {seat} has {len(cards)} cards")
        dealt.extend(cards)
    if len(set(dealt)) != len(dealt):
        raise ValueError("a card occurs twice")
    if len(showdown.order) != len(showdown.hands) or set(showdown.order) != set(showdown.hands):
        raise ValueError("the showing order does not name each hand once")
    for pot in showdown.pots:
        if not pot.seats or not showdown.hands.keys() >= set(pot.seats):
            raise ValueError("a pot names a seat without a hand")
        if len(pot.seats) > 1 and not any(showdown.hands[seat] for seat in pot.seats):
            raise ValueError("every hand that could win a pot was mucked unseen")
    if rules.wild_deuces and (
        rules.game is not Game.HIGH or rules.odd_chip_high is not OddChipHigh.POSITION
    ):
        raise ValueError("deuces are wild in high games with odd chips by position only")
