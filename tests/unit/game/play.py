"""Ways to play a hand in a test: a room without services, and recorded cases."""

import random
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
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
    Refused,
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


def deal(hand: Hand, *hands: str) -> list[Event]:
    """Deals each player still wanting cards his, in order: "AsAd2c" on third street."""
    assert isinstance(hand.want, Deal)
    rows = [parse_cards(text) for text in hands]
    return hand.deal([row[i] for i in range(len(rows[0])) for row in rows])


def deal_any(hand: Hand, rng: random.Random | None = None) -> list[Event]:
    """Deals what is wanted from the cards not yet seen, at random or from the two upwards."""
    assert isinstance(hand.want, Deal)
    gone = {card for seat in hand.seats for card in hand.cards(seat)} | {hand.community}
    left = [card for card in range(52) if card not in gone]
    if rng:
        rng.shuffle(left)
    return hand.deal(left[: len(hand.want.cards)])


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


class Recorded:
    """A recorded hand, action by action."""

    def __init__(self, path: Path, rulebook: Rulebook | None = None) -> None:
        self.record = tomllib.loads(path.read_text())
        record = self.record
        rules = rulebook or shipped(record["_rulebook"]).with_house(**record["_house"])
        bets = Stake(
            "recorded",
            record["antes"][0],
            record["bring_in"],
            record["small_bet"],
            record["big_bet"],
            1,
            0,
        )
        stacks = tuple(record["starting_stacks"])
        seats = tuple(range(len(stacks)))
        self.hand = Hand(HandSetup(rules, bets, seats, stacks, seats[-1]))
        self.hand.start()
        self.cards: dict[int, list[int]] = {}
        self.time_outs: list[int] = record.get("_time_out", [])
        self.pots: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def play(self, each: Callable[[int, "Recorded"], None] | None = None) -> None:
        """Plays all of it; `each` is called before every action with its index."""
        actions = self.record["actions"]
        for index, action in enumerate(actions):
            answers_time_out = index in self.time_outs
            if answers_time_out:
                turn = self.hand.turn
                before = self.hand.want
                self.hand.time_out()
                assert self.hand.turn == turn + 1, before
                answers_time_out = not any(self.hand.all_in) or action.split()[1] in ("pb", "f")
            if each:
                each(index, self)
            words = action.split()
            if words[1] == "sm" or (answers_time_out and words[1] in ("pb", "cc", "f")):
                continue
            self.take(words)
        finish(self.hand)

    def take(self, words: list[str]) -> None:
        """One recorded action; cards are kept until all that are wanted are there."""
        if words[0] != "d":
            _act(self.hand, words)
            return
        seat = -1 if words[1] == "db" else int(words[2][1:]) - 1
        self.cards.setdefault(seat, []).extend(parse_cards(words[-1]))
        want = self.hand.want
        if not isinstance(want, Deal):
            raise Refused("NO_DEAL_WANTED", "3 acting", "no cards are wanted")
        held = sum(map(len, self.cards.values()))
        if held < len(want.cards):
            return
        rows = {place: iter(cards) for place, cards in self.cards.items()}
        self.hand.deal([next(rows[place]) for place, _ in want.cards])
        self.cards = {}
