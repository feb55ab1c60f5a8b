"""Random showdowns paid out a second way: every choice of five cards, unit by unit.

The oracle knows docs/rules.md (2, 4, 6) and the slow ranker, and nothing of the code it checks.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest

from services.game.events import HIGH, LOW, WHOLE
from services.game.pots import Pot, layers, rake_shares, uncalled
from services.game.rulebook import Game, OddChipHigh, OddChipLow, OddChipRemainder, ShowdownRule
from services.game.showdown import divide
from services.game.wants import Showdown
from tests.unit.ranking import slow_ranker
from tests.unit.showdown.showdowns import Split

SEED = 20240615
SHOWDOWNS = 200
"""For each number of players."""


def random_split(draw: random.Random) -> Split:
    game = draw.choice(list(Game))
    wild = game is Game.HIGH and draw.random() < 0.25
    return Split(
        game=game,
        wild_deuces=wild,
        showdown=draw.choice(list(ShowdownRule)),
        odd_chip_high=OddChipHigh.POSITION if wild else draw.choice(list(OddChipHigh)),
        odd_chip_low=draw.choice(list(OddChipLow)),
        odd_chip_remainder=draw.choice(list(OddChipRemainder)),
    )


def random_showdown(draw: random.Random, players: int, wild: bool) -> Showdown:
    """A showdown of `players`, from few ranks where that leaves enough cards, so that hands tie."""
    seats = sorted(draw.sample(range(8), players))
    shared = players == 8 or draw.random() < 0.2
    needed = players * (7 - shared) + shared
    ranks = draw.sample(range(13), max(7, -(-needed // 4)))
    deck = [rank * 4 + suit for rank in ranks for suit in range(4)]
    if wild:  # The oracle tries every card for a deuce: more than one takes too long.
        deck = [card for card in deck if card > 3]
        deck.append(draw.randrange(4))
        deck += [card for card in range(4, 52) if card not in deck][: max(0, needed - len(deck))]
        deck += [card for card in range(4) if card not in deck][: max(0, needed - len(deck))]
    draw.shuffle(deck)
    hands: dict[int, tuple[int, ...]] = {}
    for seat in seats:
        alike = hands[seats[0]] if hands and draw.random() < 0.5 else ()
        hands[seat] = tuple(take(deck, alike[i] // 4 if alike else None) for i in range(7 - shared))
    put_in = {seat: draw.choice((5, 20, 20, 50, draw.randint(1, 60))) for seat in range(8)}
    folded = set(range(8)) - set(seats)
    back = uncalled(put_in)
    if back:
        put_in[back.seat] -= back.amount
    pots = layers(put_in, folded)
    assert Counter({pot.seats: pot.amount for pot in pots}) == chip_by_chip(put_in, folded)
    rakes = rake_shares(draw.randint(0, sum(pot.amount for pot in pots) // 5), pots)
    net = tuple(Pot(pot.amount - rake, pot.seats) for pot, rake in zip(pots, rakes, strict=True))
    return Showdown(
        pots=net,
        hands=hands,
        community=(deck.pop(),) if shared else (),
        order=tuple(draw.sample(seats, players)),
        button=draw.randrange(8),
        tabled=draw.random() < 0.1,
    )


def take(deck: list[int], rank: int | None) -> int:
    """A card off the deck, of this rank if it has one: so that hands tie in different suits."""
    of_rank = [card for card in deck if card // 4 == rank]
    card = of_rank[-1] if of_rank else deck[-1]
    deck.remove(card)
    return card


def chip_by_chip(put_in: dict[int, int], folded: set[int]) -> Counter[tuple[int, ...]]:
    """The pots, by who can win each: every unit goes where those who can match it are."""
    pots: Counter[tuple[int, ...]] = Counter()
    last: tuple[int, ...] = ()
    for level in range(1, max(put_in.values()) + 1):
        paid = [seat for seat, total in put_in.items() if total >= level]
        last = tuple(seat for seat in paid if seat not in folded) or last
        pots[last] += len(paid)
    return pots


class Oracle:
    """Pays out one showdown."""

    def __init__(self, showdown: Showdown, rules: Split) -> None:
        self.rules = rules
        self.button = showdown.button
        self.cards = {seat: (*own, *showdown.community) for seat, own in showdown.hands.items()}
        of_five = slow_ranker.wild_of_five if rules.wild_deuces else slow_ranker.high_of_five
        self.of_five: dict[int, Any] = {
            HIGH: of_five,
            LOW: slow_ranker.razz_of_five
            if rules.game is Game.RAZZ
            else slow_ranker.eight_or_better_of_five,
        }
        ways = {Game.HIGH: [HIGH], Game.RAZZ: [LOW], Game.HI_LO: [HIGH, LOW]}[rules.game]
        self.strength = {
            way: {
                seat: slow_ranker.best(cards, self.of_five[way])
                for seat, cards in self.cards.items()
            }
            for way in ways
        }

    def winners(self, way: int, seats: Iterable[int]) -> list[int]:
        counting = {s: self.strength[way][s] for s in seats if self.strength[way][s] is not None}
        return [seat for seat, strength in counting.items() if strength == max(counting.values())]

    def pay(self, pot: Pot) -> Counter[tuple[int, int]]:
        """Units by (seat, part) of a pot."""
        if len(pot.seats) == 1:
            return Counter({(pot.seats[0], WHOLE): pot.amount})
        if self.rules.game is Game.HI_LO and self.winners(LOW, pot.seats):
            halves = {HIGH: (pot.amount + 1) // 2, LOW: pot.amount // 2}
            paid = {way: self.unit_by_unit(way, units, pot) for way, units in halves.items()}
            return Counter({(s, way): n for way, each in paid.items() for s, n in each.items()})
        way = LOW if self.rules.game is Game.RAZZ else HIGH
        whole = self.unit_by_unit(way, pot.amount, pot)
        return Counter({(seat, WHOLE): units for seat, units in whole.items()})

    def unit_by_unit(self, way: int, units: int, pot: Pot) -> Counter[int]:
        line = sorted(self.winners(way, pot.seats), key=lambda seat: self.place(way, seat))
        paid: Counter[int] = Counter()
        while units >= len(line):
            paid.update(line)
            units -= len(line)
        if self.rules.odd_chip_remainder is OddChipRemainder.ALL_TO_FIRST:
            line = line[:1] * units
        paid.update(line[:units])
        return paid

    def place(self, way: int, seat: int) -> tuple[Any, ...]:
        """The place of a winner in the line for odd units, first things first."""
        steps_from_button = (seat - self.button) % 8 or 8
        rule = self.rules.odd_chip_high if way == HIGH else self.rules.odd_chip_low
        if rule == "position":
            return (steps_from_button,)
        ranks_from = 0 if way == HIGH else 1
        best_five: list[list[tuple[int, int]]] = []
        for five in combinations(self.cards[seat], 5):
            if self.of_five[way](five) == self.strength[way][seat]:
                sign = -1 if rule == "suit_high" else 1
                from_top = sorted(((card // 4 + ranks_from) % 13, card % 4) for card in five)[::-1]
                best_five.append([(-rank, sign * suit) for rank, suit in from_top])
        return (min(best_five), steps_from_button)

    def can_win(self, seat: int, shown: Sequence[int], pots: Sequence[Pot]) -> bool:
        """Whether `seat` wins a part of a contested pot if only `shown` and he had hands."""
        return any(
            seat in self.winners(way, {seat, *shown} & {*pot.seats})
            for pot in pots
            if seat in pot.seats and len(pot.seats) > 1
            for way in self.strength
        )


@pytest.mark.parametrize("players", range(2, 9))
def test_payouts_and_mucks_are_those_of_the_oracle(players: int) -> None:
    for number in range(SHOWDOWNS):
        draw = random.Random(f"{SEED} {players} {number}")
        rules = random_split(draw)
        showdown = random_showdown(draw, players, rules.wild_deuces)
        case = f"seed {SEED} {players} {number}: {rules} {vars_of(showdown)}"
        oracle = Oracle(showdown, rules)
        result = divide(showdown, rules)

        for index, pot in enumerate(showdown.pots):
            paid = Counter({(s, part): n for i, s, n, part, _ in result.awards if i == index})
            assert paid == +oracle.pay(pot), f"pot {index}, {case}"

        shown: list[int] = []
        all_show = showdown.tabled or rules.showdown is ShowdownRule.ALL_SHOW
        for (seat, face_up, name), expected_seat in zip(
            result.reveals, showdown.order, strict=True
        ):
            must = all_show or not shown or oracle.can_win(seat, shown, showdown.pots)
            assert (seat, face_up, bool(name)) == (expected_seat, must, must), case
            if face_up:
                shown.append(seat)


def vars_of(showdown: Showdown) -> dict[str, Any]:
    names = ("pots", "hands", "community", "order", "button", "tabled")
    return {name: getattr(showdown, name) for name in names}
