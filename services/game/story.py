"""A recorded hand told step by step, each step with the rule behind it.

A `Story` listens to a hand that is played and writes remarks: what happened and why, what the
player to act may do, what was tried and refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from services.game import explain
from services.game.cards import card_name
from services.game.events import Event, EventKind
from services.game.explain import Reason, Steps, player
from services.game.hand import Act, Deal, Hand, HandSetup, Legal, Refused, Showdown, ShowdownResult
from services.game.phh import UNKNOWN_CARD, RecordedAction
from services.game.pots import Pot
from services.game.wants import Rake


class Topic(StrEnum):
    """What a remark is about."""

    TABLE = "table"
    ANTE = "ante"
    CARDS = "cards"
    FIRST = "first"
    DECISION = "decision"
    ACTION = "action"
    TRIAL = "trial"
    TIME_OUT = "time_out"
    NO_MORE_BETTING = "no_more_betting"
    UNCALLED = "uncalled"
    POT = "pot"
    RAKE = "rake"
    SHOWDOWN = "showdown"
    AWARD = "award"
    RESULT = "result"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing in a hand and why it is so."""

    after: int
    """Actions of the record that were done before; an action of the record has this index."""
    street: int
    """3 to 7; 0 before the first card."""
    topic: Topic
    seat: int
    """Whom it concerns; -1 for nobody in particular."""
    text: str
    rule: str = ""
    """One of `explain.RULES`, or empty."""
    code: str = ""
    """Machine-readable reason of what is refused or closed."""
    legal: Legal | None = None
    """With a decision: everything that its player may do."""


_DOES: Final = {
    EventKind.CALLED: "calls",
    EventKind.CHECKED: "checks",
    EventKind.FOLDED: "folds",
    EventKind.BROUGHT_IN: "brings in",
}
_WAGERS: Final = {
    EventKind.COMPLETED: "completes to",
    EventKind.BET: "bets",
    EventKind.RAISED: "raises to",
}
_CARDS: Final = (EventKind.DEALT, EventKind.BURNED, EventKind.RESHUFFLED)
_AFTER_BETTING: Final = (EventKind.STREET, EventKind.SHOWN, EventKind.UNCALLED, EventKind.POTS)


class Story:
    """Remarks about one hand, in order. stand_ins: cards that the record does not know."""

    def __init__(self, stand_ins: Iterable[int]) -> None:
        self.remarks: Final[list[Remark]] = []
        self._stand_ins = stand_ins
        self._after = 0
        self._street = 0
        self._steps = Steps(0, 0, False)
        self._could_check = False
        self._burned = 0
        self._dealt = 0
        self._betting_ended = False

    def names(self, cards: Sequence[int]) -> str:
        """Letters of cards; "??" for one that the record does not know."""
        unknown = set(self._stand_ins)
        return "".join(UNKNOWN_CARD if card in unknown else card_name(card) for card in cards)

    def begin(self, setup: HandSetup, told: bool) -> None:
        """Who plays for what under which rules. told: the record tells the seat of the button."""
        rules, stake = setup.rulebook, setup.stake
        text = f"{rules.game} under {rules.name}, bets {stake.small_bet}/{stake.big_bet}, ante"
        text = f"{text} {stake.ante}, bring-in {stake.bring_in}"
        self._add(Topic.TABLE, Reason(text))
        stacks = zip(setup.seats, setup.stacks, strict=True)
        text = ", ".join(f"{player(seat)} {stack}" for seat, stack in stacks)
        self._add(Topic.TABLE, Reason(f"stacks: {text}"))
        text = f"the button is {player(setup.button)}'s"
        text = text if told else f"{text} (not recorded; where it decides, this fits)"
        self._add(Topic.TABLE, Reason(text, "1 seats"), setup.button)

    def note(self, after: int, topic: Topic, reason: Reason, seat: int = -1) -> None:
        """One remark more."""
        self._after = after
        self._add(topic, reason, seat)

    def tell(self, after: int, hand: Hand, events: Sequence[Event], next_after: int) -> None:
        """What happened, and what is asked next. next_after: actions done when it is."""
        self._after = after
        self._antes(hand, events)
        cards: list[Event] = []
        for event in events:
            if event[0] in _CARDS:
                cards.append(event)
                continue
            self._deal(cards)
            cards.clear()
            if event[0] in _AFTER_BETTING:
                self._no_more_betting(hand)
            self._event(hand, event, events)
        self._deal(cards)
        self._after = next_after
        self._no_more_betting(hand)
        self._asked(hand)

    def trial(
        self, after: int, hand: Hand, action: RecordedAction, allowed: bool, refused: Refused | None
    ) -> None:
        """An action that the record has tried. allowed: it is to be accepted."""
        self._after = after
        reason = Reason("accepted", "3 acting")
        if refused:
            reason = explain.why_refused(hand, refused)
            reason = reason._replace(text=f"refused, {reason.text}")
        wrong = "" if allowed is not bool(refused) else " (against the record)"
        text = f"tried {action.text!r}: {reason.text}{wrong}"
        self._add(Topic.TRIAL, reason._replace(text=text), action.seat)

    def rake(self, after: int, want: Rake, how: Reason, shares: Sequence[int], main: bool) -> None:
        """What the house takes, how it comes to that, and how it falls on the pots."""
        self._after = after
        self._add(Topic.RAKE, how)
        on_pots = explain.why_shares(want.pots, shares, main)
        if on_pots:
            self._add(Topic.RAKE, on_pots)

    def divided(self, after: int, hand: Hand, showdown: Showdown, result: ShowdownResult) -> None:
        """Who shows and mucks, who wins which part of which pot."""
        self._after = after
        first = next((seat for seat, shown, _ in result.reveals if shown), showdown.order[0])
        if first == showdown.order[0]:
            self._add(Topic.SHOWDOWN, explain.why_shows_first(hand, first), first)
        for seat, shown, name in result.reveals:
            if shown:
                cards = self.names((*showdown.hands[seat], *showdown.community))
                reason = Reason(f"{player(seat)} shows {cards}: {name}", "6 showdown")
            elif showdown.hands[seat]:
                text = f"{player(seat)} may muck: he can win no part against the hands shown"
                reason = Reason(text, "6 mucking")
            else:
                reason = Reason(f"{player(seat)} shows nothing and wins nothing", "6 mucking")
            self._add(Topic.SHOWDOWN, reason, seat)
        rules = hand.setup.rulebook
        for reason in explain.why_divided(showdown, result, rules, self.names):
            self._add(Topic.AWARD, reason)

    # Events

    def _antes(self, hand: Hand, events: Sequence[Event]) -> None:
        posted = {event[1]: event[2] for event in events if event[0] == EventKind.ANTE}
        for reason in explain.why_antes(hand, posted):
            self._add(Topic.ANTE, reason)

    def _event(self, hand: Hand, event: Event, events: Sequence[Event]) -> None:
        kind, seat = event[0], event[1] if len(event) > 1 else -1
        if kind == EventKind.STREET:
            self._street = event[1]
        elif kind in _WAGERS:
            did = _WAGERS[kind]
            self._add(Topic.ACTION, explain.why_wager(hand, self._steps, seat, did, event[2]), seat)
        elif kind in _DOES:
            self._plain(hand, event, events)
        elif kind == EventKind.ALL_IN:
            text = f"{player(seat)} is all-in: he wins of each opponent only what he put in himself"
            self._add(Topic.ACTION, Reason(text, "4 all-in"), seat)
        elif kind == EventKind.PROTECTED:
            self._add(Topic.TIME_OUT, explain.why_time_out(hand, seat, True, ""), seat)
        elif kind == EventKind.SHOWN and not event[3]:
            text = (
                f"{player(seat)} lays {self.names(event[2])} open: no betting is possible any more"
            )
            self._add(Topic.SHOWDOWN, Reason(text, "6 tabled"), seat)
        elif kind == EventKind.UNCALLED:
            self._add(Topic.UNCALLED, explain.why_returned(hand, seat, event[2]), seat)
        elif kind == EventKind.POTS:
            pots = [Pot(*pot) for pot in event[1]]
            for reason in explain.why_pots(hand, pots):
                self._add(Topic.POT, reason)
        elif kind == EventKind.ENDED:
            self._ended(hand, event[1])

    def _no_more_betting(self, hand: Hand) -> None:
        if hand.betting_is_over and not self._betting_ended:
            self._betting_ended = True
            self._add(Topic.NO_MORE_BETTING, explain.why_no_more_betting(hand))

    def _plain(self, hand: Hand, event: Event, events: Sequence[Event]) -> None:
        """A check, call, fold or bring-in, perhaps out of time."""
        kind, seat = event[0], event[1]
        if any(each == (EventKind.TIMED_OUT, seat) for each in events):
            reason = explain.why_time_out(hand, seat, False, _DOES[kind])
            self._add(Topic.TIME_OUT, reason, seat)
        elif kind == EventKind.BROUGHT_IN:
            self._add(Topic.ACTION, explain.why_bring_in(hand, seat, event[2]), seat)
        else:
            text = f"{player(seat)} {_DOES[kind]}"
            if kind == EventKind.CALLED:
                text += f" {event[2]}"
            elif kind == EventKind.FOLDED and self._could_check:
                text += ", which he may though checking is free"
            self._add(Topic.ACTION, Reason(text, "3 acting"), seat)

    def _deal(self, events: Sequence[Event]) -> None:
        hands: dict[int, str] = {}
        for event in events:
            if event[0] == EventKind.DEALT:
                hands[event[1]] = hands.get(event[1], "") + self.names([event[2]])
                self._dealt += 1
            elif event[0] == EventKind.BURNED:
                self._burned += event[1]
                self._add(Topic.CARDS, Reason(f"{event[1]} burned", "3 burns"))
        dealt = ", ".join(
            f"{player(seat) if seat >= 0 else 'for all'} {cards}" for seat, cards in hands.items()
        )
        if dealt:
            self._add(Topic.CARDS, Reason(dealt, "3 streets"))

    def _asked(self, hand: Hand) -> None:
        """What the hand waits for."""
        want = hand.want
        if isinstance(want, Deal) and hand.street == 7:
            reason = explain.why_seventh(hand, want, self._burned, self._dealt)
            if reason:
                self._add(Topic.CARDS, reason)
        if not isinstance(want, Act):
            return
        first = explain.why_first(hand, self.names)
        if first:
            self._add(Topic.FIRST, first, want.seat)
        self._steps, self._could_check = explain.steps_of(hand), want.legal.check
        for reason in explain.decision(hand):
            self._add(Topic.DECISION, reason, want.seat, want.legal)

    def _ended(self, hand: Hand, stacks: Sequence[tuple[int, int]]) -> None:
        before = dict(zip(hand.setup.seats, hand.setup.stacks, strict=True))
        text = ", ".join(
            f"{player(seat)} {stack} ({stack - before[seat]:+d})" for seat, stack in stacks
        )
        self._add(Topic.RESULT, Reason(f"stacks: {text}"))

    def _add(
        self, topic: Topic, reason: Reason, seat: int = -1, legal: Legal | None = None
    ) -> None:
        self.remarks.append(
            Remark(
                self._after, self._street, topic, seat, reason.text, reason.rule, reason.code, legal
            )
        )


def remark_entry(remark: Remark) -> dict[str, Any]:
    """A remark as JSON: after, street, topic, player (0 for none), text, rule, code and, with a
    decision, `legal`: fold, check, call, bring_in, wagers (totals), closed.
    """
    entry: dict[str, Any] = {
        "after": remark.after,
        "street": remark.street,
        "topic": str(remark.topic),
        "player": remark.seat + 1,
        "text": remark.text,
        "rule": remark.rule,
        "code": remark.code,
    }
    legal = remark.legal
    if legal:
        names = ("fold", "check", "call", "bring_in", "wagers", "closed")
        entry["legal"] = {name: getattr(legal, name) for name in names}
    return entry
