"""Hands a second of the engine alone against PokerKit with all its automations: six seats, every
decision at random among the legal ones, or everybody checking and calling to the showdown.
"""

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pokerkit import (
    Automation,
    FixedLimitRazz,
    FixedLimitSevenCardStud,
    FixedLimitSevenCardStudHighLowSplitEightOrBetter,
    Mode,
)

from bench.row import Row, at_least, interleaved_rates
from services.game.hand import Act, ActionKind, Deal, Hand, HandSetup, Rake, Showdown
from services.game.rulebook import Game, Rulebook, Stake, shipped
from services.game.showdown import divide

SEATS: Final = 6
STACK: Final = 2_000
STAKE: Final = Stake("bench", 1, 3, 10, 20, 1, 0)
ROUNDS: Final = 9
OUR_HANDS: Final = 1_000
THEIR_HANDS: Final = 30
RANDOM_TIMES: Final = 20
SHOWDOWN_TIMES: Final = 50
SEED: Final = 20230622

PEERS: Final[dict[Game, Any]] = {
    Game.HIGH: FixedLimitSevenCardStud,
    Game.HI_LO: FixedLimitSevenCardStudHighLowSplitEightOrBetter,
    Game.RAZZ: FixedLimitRazz,
}
AUTOMATIONS: Final = tuple(
    each for each in Automation if each is not Automation.RUNOUT_COUNT_SELECTION
)

Deck = Sequence[int]
Play = Callable[[random.Random, Deck], None]


def rows() -> Iterator[Row]:
    """The engine's figures, three games each."""
    warnings.simplefilter("ignore", UserWarning)  # PokerKit on folds that a check would save
    styles = (
        ("random", play_random, peer_plays_random, RANDOM_TIMES),
        ("showdown", play_to_showdown, peer_plays_to_showdown, SHOWDOWN_TIMES),
    )
    for style, ours, theirs, times in styles:
        for game in Game:
            rate, floor, ratio = interleaved_rates(
                _round(our_hands(game, ours), OUR_HANDS),
                _round(their_hands(game, theirs), THEIR_HANDS),
                ROUNDS,
            )
            yield at_least(f"engine_{style}_{game}", rate, "hands/s", floor, ratio, times)


def our_hands(game: Game, play: Callable[[Hand, Rulebook, random.Random, Deck], None]) -> Play:
    """Plays one hand of ours with the deck given."""
    rulebook = shipped("modern").with_house(game=str(game))
    setup = HandSetup(rulebook, STAKE, tuple(range(SEATS)), (STACK,) * SEATS, SEATS - 1)

    def hand(dice: random.Random, deck: Deck) -> None:
        play(Hand(setup), rulebook, dice, deck)

    return hand


def play_random(hand: Hand, rulebook: Rulebook, dice: random.Random, deck: Deck) -> None:
    """A hand in which every action is as likely as any other that is legal."""
    random_below = dice.random
    hand.start()
    while True:
        want = hand.want
        if isinstance(want, Act):
            legal = want.legal
            wagers = legal.wagers
            pick = int(random_below() * (len(wagers) + 1 + legal.fold))
            if pick < len(wagers):
                hand.act(want.seat, legal.wager_kind, wagers[pick])
            elif pick > len(wagers):
                hand.act(want.seat, ActionKind.FOLD)
            elif legal.check:
                hand.act(want.seat, ActionKind.CHECK)
            else:
                hand.act(want.seat, ActionKind.CALL if legal.call else ActionKind.BRING_IN)
        elif want is None:
            return
        else:
            answer(hand, want, rulebook, deck)


def play_to_showdown(hand: Hand, rulebook: Rulebook, _dice: random.Random, deck: Deck) -> None:
    """A hand in which everybody checks and calls."""
    hand.start()
    while True:
        want = hand.want
        if isinstance(want, Act):
            legal = want.legal
            if legal.check:
                hand.act(want.seat, ActionKind.CHECK)
            else:
                hand.act(want.seat, ActionKind.CALL if legal.call else ActionKind.BRING_IN)
        elif want is None:
            return
        else:
            answer(hand, want, rulebook, deck)


def answer(hand: Hand, want: Deal | Rake | Showdown, rulebook: Rulebook, deck: Deck) -> None:
    """What the hand wants of the house: cards, no rake, the pots divided."""
    if isinstance(want, Deal):
        hand.deal([deck[position] for position in want.positions])
    elif isinstance(want, Rake):
        hand.rake((0,) * len(want.pots))
    else:
        hand.settle(divide(want, rulebook))


def their_hands(game: Game, play: Callable[[Any, random.Random], None]) -> Play:
    """Plays one hand of PokerKit's, which shuffles its own deck."""

    def hand(dice: random.Random, _deck: Deck) -> None:
        state = PEERS[game].create_state(
            AUTOMATIONS,
            True,
            STAKE.ante,
            STAKE.bring_in,
            STAKE.small_bet,
            STAKE.big_bet,
            STACK,
            SEATS,
            mode=Mode.CASH_GAME,
        )
        play(state, dice)

    return hand


def peer_plays_random(state: Any, dice: random.Random) -> None:
    """As `play_random`."""
    while state.status:
        options = []
        if state.can_complete_bet_or_raise_to():
            options.append(state.complete_bet_or_raise_to)
        if state.can_post_bring_in():
            options.append(state.post_bring_in)
        else:
            options.append(state.check_or_call)
            if state.can_fold():
                options.append(state.fold)
        options[int(dice.random() * len(options))]()


def peer_plays_to_showdown(state: Any, _dice: random.Random) -> None:
    """As `play_to_showdown`."""
    state.post_bring_in()
    while state.status:
        state.check_or_call()


def _round(play: Play, hands: int) -> Callable[[], int]:
    dice = random.Random(SEED)
    # Ours is measured with the deck given; the peer shuffles as part of its hand.
    decks = [dice.sample(range(52), 52) for _ in range(hands)]

    def one_round() -> int:
        for deck in decks:
            play(dice, deck)
        return hands

    return one_round
