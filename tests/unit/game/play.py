"""Ways to play a hand in a test: a room without services."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from services.game.cards import parse_cards
from services.game.events import Event
from services.game.hand import (
    Act,
    ActionKind,
    Deal,
    Hand,
    HandSetup,
    Legal,
    Rake,
    Showdown,
)
from services.game.rulebook import Rulebook, Stake, shipped
from services.game.showdown import divide

Choice = tuple[int, int]
"""Kind of an action, and the amount of a wager or 0."""


def stake(ante: int = 1, bring_in: int = 3, small: int = 10) -> Stake:
    """A stake in whole chips."""
    return Stake("test", ante, bring_in, small, 2 * small, 1, 0)


def table(
    stacks: Sequence[int],
    rulebook: Rulebook | str = "modern",
    ante: int = 1,
    bring_in: int = 3,
    small: int = 10,
    **house: Any,
) -> Hand:
    """A hand of p1, p2, .. in seats 0, 1, .., p1 nearest to the left of the button; started."""
    rules = shipped(rulebook) if isinstance(rulebook, str) else rulebook
    rules = rules.with_house(**house) if house else rules
    if rules.bring_in_rule == "none":
        bring_in = 0
    seats = tuple(range(len(stacks)))
    hand = Hand(HandSetup(rules, stake(ante, bring_in, small), seats, tuple(stacks), seats[-1]))
    hand.start()
    return hand


def third_street(stacks: Sequence[int], doors: str, keep: str = "", **table_settings: Any) -> Hand:
    """A hand with these door cards out, "2c Kh 9d" for p1, p2, p3; nobody has a down card that is
    in `keep`."""
    hand = table(stacks, **table_settings)
    cards = [parse_cards(door)[0] for door in doors.split()]
    gone = {*cards, *parse_cards(keep.replace(" ", ""))}
    downs = [card for card in range(51, -1, -1) if card not in gone]
    hand.deal(downs[: 2 * len(cards)] + cards)
    return hand


def up(hand: Hand, cards: str) -> list[Event]:
    """Deals the cards wanted, one for each in order: "Kh 5h 2s"."""
    return hand.deal([parse_cards(card)[0] for card in cards.split()])


def deal(hand: Hand, *hands: str) -> list[Event]:
    """Deals each player still wanting cards his, in order: "AsAd2c" on third street."""
    assert isinstance(hand.want, Deal)
    rows = [parse_cards(text) for text in hands]
    return hand.deal([row[i] for i in range(len(rows[0])) for row in rows])


def deal_any(hand: Hand, rng: random.Random | None = None) -> list[Event]:
    """Deals what is wanted from the cards not yet seen, at random or from the two upwards."""
    assert isinstance(hand.want, Deal)
    left = unseen_cards(hand)
    if rng:
        rng.shuffle(left)
    return hand.deal(left[: len(hand.want.cards)])


def unseen_cards(hand: Hand) -> list[int]:
    """The cards not dealt yet."""
    gone = {card for seat in hand.seats for card in hand.cards(seat)} | {hand.community}
    return [card for card in range(52) if card not in gone]


def legal(hand: Hand) -> Legal:
    """What the player to act may do."""
    assert isinstance(hand.want, Act), hand.want
    return hand.want.legal


def to_act(hand: Hand) -> int:
    """Number n of the player pn to act."""
    assert isinstance(hand.want, Act), hand.want
    return hand.want.seat + 1


def act(hand: Hand, *actions: str) -> list[Event]:
    """Actions in the notation of the recorded hands: "p1 cc", "p2 cbr 10", "p3 pb", "p1 f"."""
    events: list[Event] = []
    for action in actions:
        events = _act(hand, action.split())
    return events


def _act(hand: Hand, words: list[str]) -> list[Event]:
    seat = int(words[0][1:]) - 1
    if words[1] == "cbr":
        kind = legal(hand).wager_kind if isinstance(hand.want, Act) else ActionKind.RAISE
        return hand.act(seat, kind, int(words[2]))
    if words[1] == "cc":
        owes = isinstance(hand.want, Act) and hand.want.legal.call
        return hand.act(seat, ActionKind.CALL if owes else ActionKind.CHECK)
    return hand.act(seat, {"pb": ActionKind.BRING_IN, "f": ActionKind.FOLD}[words[1]])


def choices(offered: Legal) -> list[Choice]:
    """Every legal action."""
    found: list[Choice] = []
    if offered.bring_in:
        found.append((ActionKind.BRING_IN, 0))
    if offered.fold:
        found.append((ActionKind.FOLD, 0))
    if offered.check:
        found.append((ActionKind.CHECK, 0))
    if offered.call:
        found.append((ActionKind.CALL, 0))
    return found + [(offered.wager_kind, to) for to in offered.wagers]


def run_out(
    hand: Hand,
    choose: Callable[[list[Choice]], Choice] | None = None,
    rng: random.Random | None = None,
) -> None:
    """Plays a hand to its end: cards as in `deal_any`, no rake, everybody checks, calls or brings
    in unless `choose` picks something else."""
    for _ in range(400):
        want = hand.want
        if want is None:
            return
        if isinstance(want, Deal):
            deal_any(hand, rng)
        elif isinstance(want, Act):
            offered = choices(want.legal)
            passive = [c for c in offered if c[0] not in (ActionKind.FOLD, want.legal.wager_kind)]
            hand.act(want.seat, *(choose(offered) if choose else passive[0]))
        else:
            finish(hand)
    raise AssertionError("the hand does not end")


def finish(hand: Hand, rake: Sequence[int] = ()) -> None:
    """Answers the questions at the end of a hand."""
    if isinstance(hand.want, Rake):
        hand.rake(rake or [0] * len(hand.want.pots))
    if isinstance(hand.want, Showdown):
        hand.settle(divide(hand.want, hand.setup.rulebook))
