"""Our engine and PokerKit play the same random hands: who acts, what he may do, where the money
goes. Every way in which they part is listed here with the rule that decides it (docs/rules.md).
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from services.game.hand import Act, ActionKind, Deal, Hand, HandSetup, Legal, Rake, Showdown
from services.game.pots import Pot
from services.game.ranking import low8
from services.game.rulebook import Game, Stake
from services.game.showdown import divide
from tests.pokerkit_table import PokerKitTable, shared_rulebook

QUICK_HANDS = 500
DEEP_HANDS = 20_000


class Parts(StrEnum):
    """Where PokerKit does otherwise, and why we do as we do."""

    NEXT_RAISE_AFTER_SHORT_ALL_IN = (
        "3 steps: an all-in of less than half leaves the price of the next raise as it was, one of "
        "half or more counts as full; PokerKit prices from every all-in and reopens by full bets"
    )
    PASSED_BRING_IN_MAY_BE_FOLDED = (
        "3 price (TDA RP-10E): with the low card all-in for the ante, the next brings in or folds"
    )
    PRICE_OF_A_SHORT_BRING_IN = (
        "3 price: behind a bring-in all-in for less the others face the whole bring-in"
    )
    BRING_IN_NOBODY_CAN_MATCH = "3 price: nobody puts in more than an opponent still in can"
    LOW_OF_AN_OUTSIDER = (
        "6: each side pot's low is judged among its own players; PokerKit gives the low half of a "
        "pot that only an outsider qualifies for to everyone"
    )
    ODD_UNIT_OF_MERGED_POTS = (
        "6: each pot is split by itself; PokerKit merges pots once a beaten all-in hand is killed"
    )


STOP = frozenset({Parts.PRICE_OF_A_SHORT_BRING_IN, Parts.BRING_IN_NOBODY_CAN_MATCH})
"""After these the chips differ, and the rest of the hand compares nothing."""


@dataclass
class Duel:
    """One random hand on both tables."""

    seed: int
    parted: set[Parts] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.game = self.random.choice(list(Game))
        small = self.random.choice((10, 20, 40))
        players = self.random.randint(2, 7)
        bring_in = self.random.choice((3, 5, small // 2))
        stake = Stake("duel", self.random.randint(1, 5), bring_in, small, 2 * small, 1, 0)
        stacks = tuple(self._stack(small) for _ in range(players))
        self.rulebook = shared_rulebook(self.game)
        setup = HandSetup(self.rulebook, stake, tuple(range(players)), stacks, players - 1)
        self.ours = Hand(setup)
        self.theirs = PokerKitTable(self.game, stake, stacks)
        self.deck = self.random.sample(range(52), 52)
        self.short_all_in = False
        self.showdown: Showdown | None = None

    def play(self) -> set[Parts]:
        """To the end of the hand; raises AssertionError where they part for no listed reason."""
        self.ours.start()
        while not self.ours.over:
            match self.ours.want:
                case Deal() as deal:
                    self._deal(deal)
                case Act() as act:
                    self._act(act)
                    if self.parted & STOP:
                        return self.parted
                case Rake(pots=pots):
                    self.ours.rake((0,) * len(pots))
                case Showdown() as showdown:
                    self.showdown = showdown
                    self.theirs.show_all()
                    self.ours.settle(divide(showdown, self.rulebook))
        self._compare_stacks()
        return self.parted

    def _stack(self, small: int) -> int:
        shortest = self.random.random() < 0.3
        if self.random.random() < 0.4:
            return self.random.randrange(60 * small, 90 * small)
        return self.random.randrange(1, 4 * small if shortest else 15 * small)

    def _deal(self, deal: Deal) -> None:
        # PokerKit deals to an all-in table only once the hands lie open.
        self.theirs.show_all()
        cards = [self.deck[position] for position in deal.positions]
        self.theirs.deal(deal.cards, cards)
        self.ours.deal(cards)
        self.short_all_in = False

    def _act(self, act: Act) -> None:
        assert self.theirs.actor == act.seat
        legal = act.legal
        fold, call, bring_in, wager = self.theirs.offers()
        if fold != legal.fold:
            assert legal.fold
            assert legal.bring_in
            self.parted.add(Parts.PASSED_BRING_IN_MAY_BE_FOLDED)
        if bring_in != legal.bring_in:
            assert bring_in > legal.bring_in
            self.parted.add(Parts.BRING_IN_NOBODY_CAN_MATCH)
            return
        if call != legal.call:
            assert self.ours.street == 3
            assert call < legal.call
            self.parted.add(Parts.PRICE_OF_A_SHORT_BRING_IN)
            return
        our_wager = legal.wagers[-1] if legal.wagers else 0
        # A stack no larger than the bring-in: PokerKit calls the same all-in a completion as well.
        if wager != our_wager and not (bring_in and wager <= bring_in):
            assert self.short_all_in, (legal.wagers, wager, legal.closed)
            self.parted.add(Parts.NEXT_RAISE_AFTER_SHORT_ALL_IN)
        self._take(act, self._choice(legal, may_fold=fold, may_wager=wager == our_wager))

    def _choice(self, legal: Legal, *, may_fold: bool, may_wager: bool) -> ActionKind:
        """A random action that both offer, rarely a fold, never one that a check would save."""
        offered = [ActionKind.CALL] * 4 * bool(legal.call) + [ActionKind.CHECK] * 3 * legal.check
        offered += [ActionKind.BRING_IN] * 2 * bool(legal.bring_in)
        if legal.wagers and may_wager:
            offered += [ActionKind(legal.wager_kind)] * 3
        if legal.fold and may_fold and not legal.check:
            offered.append(ActionKind.FOLD)
        return self.random.choice(offered)

    def _take(self, act: Act, kind: ActionKind) -> None:
        theirs = self.theirs.state
        match kind:
            case ActionKind.FOLD:
                self.ours.act(act.seat, kind)
                theirs.fold()
            case ActionKind.CHECK | ActionKind.CALL:
                self.ours.act(act.seat, kind)
                theirs.check_or_call()
            case ActionKind.BRING_IN:
                self.ours.act(act.seat, kind)
                theirs.post_bring_in()
            case _:
                to = act.legal.wagers[-1]
                self.ours.act(act.seat, kind, to)
                theirs.complete_bet_or_raise_to(to)
        if kind not in (ActionKind.CALL, ActionKind.FOLD) and not self.ours.stacks[act.seat]:
            self.short_all_in = True

    def _compare_stacks(self) -> None:
        assert not self.theirs.state.status
        ours = [self.ours.stacks[seat] for seat in self.ours.setup.seats]
        if ours == self.theirs.stacks:
            return
        assert self.showdown is not None
        if self._low_of_an_outsider():
            assert sum(ours) == sum(self.theirs.stacks)
            self.parted.add(Parts.LOW_OF_AN_OUTSIDER)
            return
        assert self._with_merged_pots() == self.theirs.stacks
        self.parted.add(Parts.ODD_UNIT_OF_MERGED_POTS)

    def _low_of_an_outsider(self) -> bool:
        assert self.showdown is not None
        if self.game is not Game.HI_LO:
            return False
        lows = {seat for seat, cards in self.showdown.hands.items() if low8(cards)}
        return bool(lows) and any(lows.isdisjoint(pot.seats) for pot in self.showdown.pots)

    def _with_merged_pots(self) -> list[int]:
        """The stacks if pots with the same unbeaten players were one."""
        result, showdown = self.ours.result, self.showdown
        assert result is not None
        assert showdown is not None
        winners = {award[1] for award in result.awards}
        merged: dict[tuple[int, ...], int] = {}
        for pot in showdown.pots:
            unbeaten = tuple(seat for seat in pot.seats if seat in winners)
            merged[unbeaten] = merged.get(unbeaten, 0) + pot.amount
        pots = tuple(Pot(amount, seats) for seats, amount in merged.items())
        again = Showdown(
            pots, showdown.hands, showdown.community, showdown.order, showdown.button, False
        )
        stacks = dict(self.ours.stacks)
        contested = range(len(showdown.pots))
        for pot_index, seat, amount, _, _ in result.awards:
            stacks[seat] -= amount if pot_index in contested else 0
        for _, seat, amount, _, _ in divide(again, self.rulebook).awards:
            stacks[seat] += amount
        return [stacks[seat] for seat in self.ours.setup.seats]


def parted_in(seeds: range) -> Counter[Parts]:
    """How often the engines part for each reason; an unlisted one fails with its seed."""
    parted: Counter[Parts] = Counter()
    for seed in seeds:
        try:
            parted.update(Duel(seed).play())
        except (AssertionError, ValueError) as difference:
            raise AssertionError(f"seed {seed}: {difference!r}") from difference
    return parted


def test_they_part_only_where_the_rules_say_so() -> None:
    parted = parted_in(range(QUICK_HANDS))
    assert sum(parted[reason] for reason in STOP) < QUICK_HANDS // 20


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_they_part_only_where_the_rules_say_so_in_many_hands() -> None:
    parted = parted_in(range(1_000_000, 1_000_000 + DEEP_HANDS))
    assert sum(parted[reason] for reason in STOP) < DEEP_HANDS // 20
    assert set(parted) == set(Parts)
