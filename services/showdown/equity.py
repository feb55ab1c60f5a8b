"""What a hand is worth before all cards are out: every deal that is left, or a sample of them.

    estimation = Estimation(spot, exact_deals_max=5_000_000, standard_error_max=0.002, seed=1)
    while part := estimation.next_part():
        estimation.add(part())

A part is a plain function with its arguments, a few hundredths of a second of work that keeps
nothing, so that it can be sent to another process and left undone when nobody waits any more.

All that is kept of a deal is who won: a set of players for the high or only side, one for the low.
Counts of such outcomes give every figure.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain, combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.game.cards import CARDS
from services.game.ranking import batch
from services.game.rulebook import Game
from services.game.showdown import HAND_CARDS

CHOICES_MAX: Final = 1_500_000
"""With more ways than this to complete one player's hand, deals are sampled: for want of memory."""
PART_DEALS: Final = 1 << 20
"""About how many deals one part of an enumeration looks at."""
SAMPLE_DEALS: Final = 1 << 15
"""Deals of one part of a sample."""
BLOCK: Final = 1 << 17
"""Pairs of choices that are looked at together, so that they stay in the cache."""

Outcomes = Mapping[int, int]
"""Deals by outcome: the winners, a bit each, of the high or only side; 8 bits up, of the low."""
Part = Callable[[], Outcomes]
_LOW_AT: Final = 8


@dataclass(frozen=True)
class Spot:
    """What is known of a hand in progress.

    Everybody ends with seven cards, those that are not known dealt from those that nobody sees.
    Raises ValueError when there are not enough of them.
    """

    game: Game
    hands: tuple[tuple[int, ...], ...]
    """Known own cards of each player, up to seven; six where there is a community card."""
    wild_deuces: bool = False
    """In a high game."""
    dead: tuple[int, ...] = ()
    """Cards that are out: folded boards, burned cards that were seen."""
    community: int | None = None
    """The card that is everybody's seventh."""

    def __post_init__(self) -> None:
        if min(self.missing) < 0 or self._dealt > len(self.unseen):
            raise ValueError("there are not enough cards to give everyone a hand")

    @cached_property
    def unseen(self) -> tuple[int, ...]:
        """The cards that may still come, ascending."""
        known = {*chain.from_iterable(self.hands), *self.dead, self.community}
        return tuple(card for card in range(CARDS) if card not in known)

    @cached_property
    def community_to_come(self) -> bool:
        """Too few cards for a seventh each: one is turned up for all (docs/rules.md, 3)."""
        wanted = sum(HAND_CARDS - len(hand) for hand in self.hands)
        return self.community is None and wanted > len(self.unseen)

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """How many cards of his own each player is still dealt."""
        own = HAND_CARDS - (self.community is not None or self.community_to_come)
        return tuple(own - len(hand) for hand in self.hands)

    @property
    def _dealt(self) -> int:
        return sum(self.missing) + self.community_to_come

    @cached_property
    def deals(self) -> int:
        """How many different deals can follow."""
        left, deals = len(self.unseen), 1
        for count in (*self.missing, int(self.community_to_come)):
            deals *= math.comb(left, count)
            left -= count
        return deals

    def with_community(self, card: int) -> "Spot":
        """The same with a community card."""
        return Spot(self.game, self.hands, self.wild_deuces, self.dead, card)


class Worth(NamedTuple):
    """What one player's hand is worth, in parts of the pot."""

    equity: float
    """What he gets on average, 0 to 1."""
    standard_error: float
    """Of `equity`; 0 when every deal was looked at."""
    whole: float
    """How often he gets the whole pot."""
    part: float
    """How often he gets a part of it."""
    high: float
    """What of `equity` comes from the high side; all in a high game."""
    low: float
    """What of `equity` comes from the low side; all in razz."""


class Estimation:
    """An estimation in progress. Counts what the parts it gives out find."""

    def __init__(
        self, spot: Spot, *, exact_deals_max: int, standard_error_max: float, seed: int
    ) -> None:
        self.spot: Final = spot
        self.exact: Final = spot.deals <= exact_deals_max and _choices_max(spot) <= CHOICES_MAX
        """Every deal is looked at; otherwise random ones until the equities are precise enough."""
        self.deals = 0
        """Deals looked at."""
        self._standard_error_max = standard_error_max
        self._seed = seed
        self._outcomes: Counter[int] = Counter()
        self._worths: list[Worth] = []
        self._parts = self._enumeration() if self.exact else self._sample()

    @property
    def precise(self) -> bool:
        """Nothing is left to do: all deals are counted, or enough of them."""
        if self.exact:
            return self.deals == self.spot.deals
        return self.deals > 0 and self._standard_error() <= self._standard_error_max

    @property
    def progress(self) -> float:
        """0 to 1; of a sample, judged by how precise it is."""
        if self.exact:
            return self.deals / self.spot.deals
        if not self.deals:
            return 0.0
        return min(1.0, (self._standard_error_max / self._standard_error()) ** 2)

    def next_part(self) -> Part | None:
        """Work to be done by anyone, anywhere, and its result given to `add`; None at the end."""
        return None if self.precise else next(self._parts, None)

    def add(self, outcomes: Outcomes) -> None:
        """Count what a part found."""
        self._outcomes.update(outcomes)
        self.deals += sum(outcomes.values())
        self._worths = []

    def worths(self) -> list[Worth]:
        """Of every player, from the deals counted so far. Raises ValueError before there are any.

        Of an enumeration this means something only when it is complete.
        """
        if not self.deals:
            raise ValueError("no deal was looked at yet")
        if not self._worths:
            self._worths = self._worked_out()
        return self._worths

    def _enumeration(self) -> Iterator[Part]:
        units = _first_choices(self.spot)
        step = max(1, PART_DEALS // (self.spot.deals // units))
        cards = self.spot.unseen if self.spot.community_to_come else (self.spot.community,)
        for card in cards:
            spot = self.spot if card is None else self.spot.with_community(card)
            rows = _first_choices(spot)
            for start in range(0, rows, step):
                yield partial(enumerate_part, spot, start, min(start + step, rows))

    def _sample(self) -> Iterator[Part]:
        number = 0
        while True:
            yield partial(sample_part, self.spot, (self._seed, number), SAMPLE_DEALS)
            number += 1

    def _standard_error(self) -> float:
        return max(worth.standard_error for worth in self.worths())

    def _worked_out(self) -> list[Worth]:
        often = np.array([*self._outcomes.values()]) / self.deals
        first, second = _shares(np.array([*self._outcomes]), len(self.spot.hands))
        high, low = (second, first) if self.spot.game is Game.RAZZ else (first, second)
        share = high + low
        equity = often @ share
        variance = np.maximum(0, often @ (share * share) - equity * equity)
        # What never happened in n deals may still happen in one of n.
        error = np.maximum(np.sqrt(variance / self.deals), 1 / self.deals) * (not self.exact)
        columns = (
            equity,
            error,
            often @ (share == 1),
            often @ ((share > 0) & (share < 1)),
            often @ high,
            often @ low,
        )
        return [Worth(*figures) for figures in np.stack(columns, axis=1).tolist()]


def enumerate_part(spot: Spot, start: int, stop: int) -> Outcomes:
    """Every deal in which the player with most choices has one of those from `start` to `stop`.

    `spot` has its community card if there is to be one.
    """
    first, *others = _all_choices(spot)
    sides = [_Side(first.player, ranks[start:stop]) for ranks in first.ranks]
    counts = np.zeros(1 << _LOW_AT * len(sides), np.int64)
    _deal_on(first.cards[start:stop], sides, others, counts)
    return _as_outcomes(counts)


def sample_part(spot: Spot, seed: Sequence[int], deals: int) -> Outcomes:
    """Random deals; the same for the same seed."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(list(seed))))
    dealt = _deal_randomly(spot, random, deals)
    shared = _shared_cards(spot, dealt)
    won = [_Side() for _ in _rankings(spot)]
    for player, (hand, count) in enumerate(zip(spot.hands, spot.missing, strict=True)):
        rows = np.empty((deals, HAND_CARDS), np.uint8)
        rows[:, : len(hand)] = hand
        for place in range(len(hand), len(hand) + count):
            rows[:, place] = next(dealt)
        rows[:, len(hand) + count :] = shared
        for side, rank in zip(won, _rankings(spot), strict=True):
            side.meet(player, rank(rows))
    return _as_outcomes(np.bincount(_joined(won)))


class _Side:
    """Who holds the best hand of one side, deal by deal."""

    def __init__(self, player: int | None = None, ranks: NDArray[np.unsignedinteger] | None = None):
        self.best: NDArray[np.uint16] = np.zeros(1, np.uint16)
        self.winners: NDArray[np.uint8] = np.zeros(1, np.uint8)
        if player is not None and ranks is not None:
            self.meet(player, ranks)

    def meet(self, player: int, ranks: NDArray[np.unsignedinteger]) -> None:
        """Compare with one more player's hands; a rank of 0 wins nothing."""
        bit = np.uint8(1 << player)
        better = ranks > self.best
        equal = (ranks == self.best) & (ranks > 0)
        self.winners = np.where(better, bit, self.winners | equal * bit)
        self.best = np.maximum(self.best, ranks)

    def of(self, rows: NDArray[np.intp]) -> "_Side":
        """Of these deals alone."""
        found = _Side()
        found.best, found.winners = self.best[rows], self.winners[rows]
        return found


class _Choices(NamedTuple):
    """Every way to complete the hand of one player."""

    player: int
    cards: NDArray[np.uint64]
    """The cards that it takes, a bit each."""
    ranks: tuple[NDArray[np.unsignedinteger], ...]
    """The class of the hand on each side."""


@lru_cache(maxsize=2)
def _all_choices(spot: Spot) -> list[_Choices]:
    """Of every player; first of the one who has most."""
    choices = [_choices_of(spot, player) for player in range(len(spot.hands))]
    return sorted(choices, key=lambda each: len(each.cards), reverse=True)


def _choices_of(spot: Spot, player: int) -> _Choices:
    hand, count = spot.hands[player], spot.missing[player]
    ways = math.comb(len(spot.unseen), count)
    drawn = np.fromiter(chain.from_iterable(combinations(spot.unseen, count)), np.uint8)
    rows = np.empty((ways, HAND_CARDS), np.uint8)
    rows[:, : len(hand)] = hand
    rows[:, len(hand) : len(hand) + count] = drawn.reshape(ways, count)
    if spot.community is not None:
        rows[:, -1] = spot.community
    bits = np.uint64(1) << rows[:, len(hand) : len(hand) + count].astype(np.uint64)
    return _Choices(
        player,
        bits.sum(axis=1, dtype=np.uint64),
        tuple(rank(rows) for rank in _rankings(spot)),
    )


def _deal_on(
    used: NDArray[np.uint64],
    sides: list[_Side],
    others: Sequence[_Choices],
    counts: NDArray[np.int64],
) -> None:
    """Complete the hands of the others in every way that the cards allow, and count who wins."""
    if not others:
        counts += np.bincount(_joined(sides), minlength=len(counts))
        return
    his, *rest = others
    step = max(1, BLOCK // len(his.cards))
    for start in range(0, len(used), step):
        block = used[start : start + step]
        deals, choices = np.nonzero((block[:, None] & his.cards) == 0)
        met = [side.of(deals + start) for side in sides]
        for side, ranks in zip(met, his.ranks, strict=True):
            side.meet(his.player, ranks[choices])
        _deal_on(block[deals] | his.cards[choices], met, rest, counts)


def _deal_randomly(
    spot: Spot, random: np.random.Generator, deals: int
) -> Iterator[NDArray[np.uint8]]:
    """One card after another for each of the deals, none of them twice in a deal."""
    unseen = np.array(spot.unseen, np.uint8)
    deck = np.repeat(unseen[:, None], deals, axis=1)
    columns = np.arange(deals)
    for place in range(len(unseen)):
        chosen = random.integers(place, len(unseen), deals)
        card = deck[chosen, columns]
        deck[chosen, columns] = deck[place]
        yield card


def _shared_cards(spot: Spot, dealt: Iterator[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """What ends every hand: a column of community cards, (deals, 1) or (1, 1), or no column."""
    if spot.community_to_come:
        return next(dealt)[:, None]
    return np.array([[] if spot.community is None else [spot.community]], np.uint8)


def _rankings(
    spot: Spot,
) -> tuple[Callable[[batch.Hands], NDArray[np.unsignedinteger]], ...]:
    """How the sides of a pot are ranked; the high or only one first."""
    if spot.game is Game.RAZZ:
        return (batch.ace_to_five,)
    if spot.wild_deuces:
        return (batch.deuces_wild,)
    return (batch.high, batch.low8) if spot.game is Game.HI_LO else (batch.high,)


def _joined(sides: Sequence[_Side]) -> NDArray[np.int64]:
    """The outcome of each deal."""
    outcome = sides[0].winners.astype(np.int64)
    for side in sides[1:]:
        outcome |= side.winners.astype(np.int64) << _LOW_AT
    return outcome


def _as_outcomes(counts: NDArray[np.int64]) -> Outcomes:
    return {int(outcome): int(counts[outcome]) for outcome in np.flatnonzero(counts)}


def _shares(
    outcomes: NDArray[np.int64], players: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What of the pot each player gets from the high or only side, and from the low.

    By outcome and player.
    """
    bits = 1 << np.arange(players)
    highs, lows = outcomes & ((1 << _LOW_AT) - 1), outcomes >> _LOW_AT
    half = np.where(lows, 0.5, 1.0)
    by_side = [
        ((winners[:, None] & bits) > 0) * (half / np.maximum(1, np.bitwise_count(winners)))[:, None]
        for winners in (highs, lows)
    ]
    return by_side[0], by_side[1]


def _choices_max(spot: Spot) -> int:
    """The most ways that any player's hand can be completed in."""
    left = len(spot.unseen) - spot.community_to_come
    return max(math.comb(left, count) for count in spot.missing)


def _first_choices(spot: Spot) -> int:
    """How many choices an enumeration is cut up by; equally many deals follow from each."""
    return _choices_max(spot) * (len(spot.unseen) if spot.community_to_come else 1)
