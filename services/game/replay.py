"""A recorded hand fed to `Hand`: was every action legal and asked for, does the money come out?

Pure. A record does not say where the button was. Where it matters (equal boards, odd chips, a
bring-in that passes on) a hand played in some room is right if it is right for one seat of the
button; a case that names its rulebook has p1 nearest to the left of it.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from services.game.events import HIGH, LOW, WHOLE, EventKind
from services.game.hand import Act, ActionKind, Deal, Hand, HandSetup, Rake, Refused, Showdown
from services.game.invariant import InvariantError
from services.game.phh import RecordedAction, RecordedHand, Trial, Word
from services.game.pots import Pot, rake_shares
from services.game.recorded_cards import CHOICES, RecordedCards
from services.game.recorded_rules import rake_of, rulebook_name, rules_of, setup_of
from services.game.rooms import (
    Habits,
    habits_of,
)
from services.game.rulebook import (
    RakeOnThird,
    Rulebook,
)
from services.game.showdown import divide
from services.game.wants import Legal, ShowdownResult

ROOM_RAISE_RULE: Final = "room raise rule"
"""In `_situations` of a hand whose room priced a raise by a rule of its own."""


@dataclass(frozen=True, slots=True)
class ReplayedPot:
    """A pot of the replayed hand; players are seats, 0 is p1."""

    amount: int
    """Before rake, after uncalled bets went back."""
    eligible: tuple[int, ...]
    winners: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out of a record. `error` is the first difference, or empty."""

    error: str
    at: int
    """How many actions of the record fitted."""
    pots: tuple[ReplayedPot, ...] = ()
    uncalled: tuple[int, ...] = ()
    rake: int = 0
    payouts: tuple[int, ...] = ()
    """Taken from the pots, by seat, net of rake and without uncalled bets."""
    finishing_stacks: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing differs from the record."""
        return not self.error


class Difference(Exception):  # noqa: N818 (what was found, not a fault of the program)
    """Where the record and the rules part."""


def replay(
    recorded: RecordedHand, *, rulebook: str = "", lenient_amounts: bool = False
) -> Replayed:
    """Feed a recorded hand to `Hand` and compare.

    rulebook: name that goes before the record's own and its room's. lenient_amounts: take a
    recorded wager whatever its amount, the result of the hand is what counts. Raises PhhError where
    the record names rules that there are not, or amounts no hand can be played for.
    """
    name = rulebook_name(recorded, rulebook)
    rules = rules_of(recorded, name)
    lenient = lenient_amounts or ROOM_RAISE_RULE in recorded.situations
    best: Replayed | None = None
    for habits, button in product(habits_of(name), _buttons(recorded)):
        setup = setup_of(recorded, rules, button)
        for choice in range(CHOICES):
            cards = RecordedCards(recorded, choice)
            replayed = _Replay(recorded, setup, cards, lenient, habits).run()
            if replayed.ok:
                return replayed
            if best is None or replayed.at > best.at:
                best = replayed
            if not cards.has_choices:
                break
    if best is None:
        raise InvariantError("a record is replayed at least once")
    return best


def _buttons(recorded: RecordedHand) -> Iterator[int]:
    last = len(recorded.starting_stacks) - 1
    yield last
    if not recorded.rulebook:
        yield from range(last)


@dataclass(slots=True)
class _Replay:
    """One run of a record with the button in one seat."""

    recorded: RecordedHand
    setup: HandSetup
    cards: RecordedCards
    lenient: bool
    habits: Habits
    at: int = 0
    """Actions of the record that are done."""
    timed_out: int = 0
    """How many of the record's time-outs are done."""
    hand: Hand = field(init=False)

    def run(self) -> Replayed:
        self.hand = Hand(self.setup)
        error = ""
        try:
            self._play()
            self._compare()
        except Difference as difference:
            error = str(difference)
        except Refused as refused:
            error = f"{self._where()}: {refused} ({refused.reason}, {refused.rule})"
        return self._replayed(error)

    # Playing

    def _play(self) -> None:
        self.hand.start()
        actions = self.recorded.actions
        while True:
            self._answer_house()
            self._time_out_protected()
            self._try_all(self.at)
            if self.at >= len(actions):
                break
            if self._time_out_due():
                self._time_out_into(actions[self.at])
            else:
                self._take(actions[self.at])
        if not self.hand.over:
            raise Difference(f"the record ends, but {_wanted(self.hand)}")

    def _take(self, action: RecordedAction) -> None:
        """One action of the record, or all the deals that answer one want."""
        match action.word:
            case Word.COMMENT:
                self.at += 1
            case Word.SHOW:
                self._check_show(action)
                self.at += 1
            case Word.DEAL | Word.BOARD:
                self._deal()
            case _:
                self._act(self.hand, action)
                self.at += 1

    def _deal(self) -> None:
        """Takes deals until the want is answered; each is checked as it comes."""
        want = self.hand.want
        if not isinstance(want, Deal):
            raise Difference(f"{self._where()}: {_wanted(self.hand)}, not cards")
        got: dict[int, list[int | None]] = {}
        missing = len(want.cards)
        while missing > 0:
            action = self._next_deal(missing)
            wanted = _slots(want, action.seat)
            if len(action.cards) != wanted or action.seat in got:
                raise Difference(f"{self._where()}: {_player(action.seat)} gets {wanted} cards")
            got[action.seat] = self.cards.take(action)
            missing -= wanted
            self.at += 1
            if missing:
                self._try_all(self.at)
        hand = self.hand
        boards = {seat: hand.up_cards(seat) for seat in hand.seats}
        dealt = self.cards.fill(got, boards, self.at)
        hand.deal([dealt[seat].pop(0) for seat, _ in want.cards])

    def _next_deal(self, missing: int) -> RecordedAction:
        actions = self.recorded.actions
        while self.at < len(actions) and actions[self.at].word is Word.COMMENT:
            self.at += 1
        if self.at >= len(actions) or actions[self.at].word not in (Word.DEAL, Word.BOARD):
            raise Difference(f"{self._where()}: {missing} cards are still to be dealt")
        return actions[self.at]

    def _act(self, hand: Hand, action: RecordedAction, trial: bool = False) -> None:
        want = hand.want
        if not isinstance(want, Act):
            raise Difference(f"{self._where()}: {_wanted(hand)}")
        legal = want.legal
        match action.word:
            case Word.FOLD:
                hand.act(action.seat, ActionKind.FOLD)
            case Word.BRING_IN:
                hand.act(action.seat, ActionKind.BRING_IN)
            case Word.CHECK_OR_CALL:
                kind = ActionKind.CALL if legal.call else ActionKind.CHECK
                hand.act(action.seat, kind)
            case Word.WAGER:
                if not trial and (self.lenient or action.amount == _capped(hand, want)):
                    hand.want = _widened(want, action.amount)
                hand.act(action.seat, legal.wager_kind, action.amount)
            case _:
                raise Difference(f"{self._where()}: not an action")

    # Time

    def _time_out_due(self) -> bool:
        return self.recorded.time_outs[self.timed_out : self.timed_out + 1] == (self.at,)

    def _time_out_protected(self) -> None:
        """Time-outs that protect come before whatever the record has next: they are no action."""
        while self._time_out_due():
            hand = copy.deepcopy(self.hand)
            events = hand.time_out()
            if not any(event[0] == EventKind.PROTECTED for event in events):
                return
            self.hand = hand
            self.timed_out += 1
            self._answer_house()

    def _time_out_into(self, action: RecordedAction) -> None:
        """A time-out whose consequence is the record's next action."""
        want = self.hand.want
        if not isinstance(want, Act) or want.seat != action.seat:
            raise Difference(f"{self._where()}: {_wanted(self.hand)}, not a time-out")
        events = {event[0] for event in self.hand.time_out()}
        if not any(kind in events for kind in _FOLLOWS.get(action.word, ())):
            raise Difference(f"{self._where()}: something else follows from running out of time")
        self.timed_out += 1
        self.at += 1

    # What the house and the showdown answer

    def _answer_house(self) -> None:
        while True:
            want = self.hand.want
            if isinstance(want, Rake):
                self.hand.rake(self._rake_shares(want))
            elif isinstance(want, Showdown):
                self._settle(want)
            else:
                return

    def _rake_shares(self, want: Rake) -> tuple[int, ...]:
        rake = self._rake(want)
        if not self.habits.rake_from_main_pot:
            return rake_shares(rake, want.pots)
        shares = []
        for pot in want.pots:
            shares.append(min(rake, pot.amount))
            rake -= shares[-1]
        return tuple(shares)

    def _rake(self, want: Rake) -> int:
        total = sum(pot.amount for pot in want.pots)
        terms, rake = self.recorded.rake_terms, self.recorded.rake
        if terms is not None:
            assessed = rake_of(terms, total, want.street)
            if want.street == 3 and self.setup.rulebook.rake_on_third_street is RakeOnThird.NO:
                assessed = 0
            if rake is not None and rake != assessed:
                raise Difference(f"rake {rake} is recorded, {assessed} is due by its schedule")
            return assessed
        if rake is not None and rake > total:
            raise Difference(f"a rake of {rake} is recorded, {total} is in the pots")
        return rake or 0

    def _settle(self, want: Showdown) -> None:
        """Who mucks, or stays with cards that nobody ever saw, shows nothing and wins nothing."""
        unseen = self.cards.unseen
        hands = {seat: () if seat in unseen else cards for seat, cards in want.hands.items()}
        for pot in want.pots:
            if not any(hands[seat] for seat in pot.seats):
                players = " and ".join(_player(seat) for seat in pot.seats)
                raise Difference(f"nobody shows a hand for the pot of {pot.amount} of {players}")
        showdown = Showdown(want.pots, hands, want.community, want.order, want.button, want.tabled)
        rules = self.setup.rulebook
        to_low = self.habits.odd_unit_to_low
        self.hand.settle((_divide_odd_to_low if to_low else divide)(showdown, rules))

    # Trials

    def _try_all(self, at: int) -> None:
        for trial in _trials(self.recorded.legal, at):
            refused = self._refusal(trial)
            if refused:
                raise Difference(f"after {at} actions {trial.action.text!r} is refused: {refused}")
        for trial in _trials(self.recorded.illegal, at):
            before = (list(self.hand.inputs), self.hand.stacks, self.hand.put_in)
            if not self._refusal(trial):
                raise Difference(f"after {at} actions {trial.action.text!r} is accepted")
            if (list(self.hand.inputs), self.hand.stacks, self.hand.put_in) != before:
                raise Difference(f"the refusal of {trial.action.text!r} changed the hand")

    def _refusal(self, trial: Trial) -> str:
        """Why the action is not taken here; empty if it is."""
        action = trial.action
        try:
            if action.word in (Word.DEAL, Word.BOARD):
                return self._refusal_of_deal(action)
            trying = copy.deepcopy(self.hand)
            self._act(trying, action, trial=True)
        except (Refused, Difference) as refused:
            return str(refused)
        return ""

    def _refusal_of_deal(self, action: RecordedAction) -> str:
        want = self.hand.want
        if not isinstance(want, Deal):
            return f"{_wanted(self.hand)}, not cards"
        if _slots(want, action.seat) != len(action.cards) or not action.cards:
            return "these cards are not wanted"
        hand = self.hand
        seen = {hand.community}.union(*(hand.cards(seat) for seat in hand.seats))
        return "a card was dealt before" if seen.intersection(action.cards) else ""

    # Comparing

    def _check_show(self, action: RecordedAction) -> None:
        if not (self.hand.over or self.hand.betting_is_over):
            raise Difference(f"{self._where()}: {_wanted(self.hand)}, not a show")
        if action.seat in self.hand.folded and action.cards:
            raise Difference(f"{self._where()}: {_player(action.seat)} has folded")
        if self.at in self.cards.wrong_shows:
            raise Difference(f"{self._where()}: shows a card that he was not dealt")

    def _compare(self) -> None:
        done, recorded = self._replayed(""), self.recorded
        _same("uncalled", recorded.uncalled, done.uncalled)
        if recorded.pots is not None:
            pots = tuple(Pot(pot.amount, pot.eligible) for pot in done.pots)
            _same("pots", _listed(recorded.pots), _listed(pots))
        _same("payouts", recorded.payouts, done.payouts)
        _same("finishing_stacks", recorded.finishing_stacks, done.finishing_stacks)
        due = recorded.time_outs[self.timed_out :]
        if due:
            raise Difference(f"nobody was to act after {due[0]} actions, but ran out of time")

    def _replayed(self, error: str) -> Replayed:
        result, seats = self.hand.result, self.setup.seats
        if result is None or not self.hand.over:
            return Replayed(error, self.at)
        uncalled = dict(result.uncalled)
        return Replayed(
            error=error,
            at=self.at,
            pots=tuple(
                ReplayedPot(
                    pot.amount,
                    pot.seats,
                    tuple(sorted({award[1] for award in result.awards if award[0] == index})),
                )
                for index, pot in enumerate(result.pots)
            ),
            uncalled=tuple(uncalled.get(seat, 0) for seat in seats),
            rake=sum(result.rake),
            payouts=tuple(
                sum(award[2] for award in result.awards if award[1] == seat) for seat in seats
            ),
            finishing_stacks=tuple(self.hand.stacks[seat] for seat in seats),
        )

    def _where(self) -> str:
        actions = self.recorded.actions
        text = repr(actions[self.at].text) if self.at < len(actions) else "its end"
        return f"action {self.at} {text}"


_FOLLOWS: Final[Mapping[Word, tuple[EventKind, ...]]] = {
    Word.BRING_IN: (EventKind.BROUGHT_IN,),
    Word.CHECK_OR_CALL: (EventKind.CHECKED,),
    Word.FOLD: (EventKind.FOLDED,),
}


def _divide_odd_to_low(showdown: Showdown, rules: Rulebook) -> ShowdownResult:
    """As `divide`, but of halves the low one gets the odd unit: of each odd pot the high half is
    that of one unit less and the low half that of one unit more.
    """
    result = divide(showdown, rules)
    halved = {pot for pot, _, _, part, _ in result.awards if part != WHOLE}

    def half(part: int, more: int) -> list[tuple[int, int, int, int, str]]:
        pots = tuple(Pot(pot.amount + more * (pot.amount % 2), pot.seats) for pot in showdown.pots)
        changed = Showdown(
            pots, showdown.hands, showdown.community, showdown.order, showdown.button, False
        )
        awards = divide(changed, rules).awards
        return [award for award in awards if award[0] in halved and award[3] == part]

    whole = [award for award in result.awards if award[3] == WHOLE]
    return ShowdownResult((*whole, *half(HIGH, -1), *half(LOW, 1)), result.reveals)


def _widened(want: Act, amount: int) -> Act:
    """The same decision with a recorded amount among the offered ones."""
    legal = want.legal
    wagers = tuple(sorted({*legal.wagers, amount}))
    return Act(
        want.seat,
        want.turn,
        Legal(legal.fold, legal.check, legal.call, legal.bring_in, legal.wager_kind, wagers, ""),
    )


def _capped(hand: Hand, want: Act) -> int:
    """What a record may give for a wager that no opponent can match whole: the most that one of
    them can. 0 where they can.
    """
    can_act = set(hand.seats) - hand.folded - hand.all_in - {want.seat}
    most = max((hand.bets[seat] + hand.stacks[seat] for seat in can_act), default=0)
    wagers = want.legal.wagers
    return most if wagers and hand.to < most < wagers[-1] else 0


def _slots(want: Deal, seat: int) -> int:
    return sum(each == seat for each, _ in want.cards)


def _trials(trials: Sequence[Trial], at: int) -> Iterator[Trial]:
    return (trial for trial in trials if trial.at == at)


def _player(seat: int) -> str:
    return f"p{seat + 1}"


def _wanted(hand: Hand) -> str:
    """What the hand waits for, in words."""
    match hand.want:
        case Act(seat=seat):
            return f"{_player(seat)} is to act"
        case Deal(cards=cards):
            return f"{len(cards)} cards are to be dealt"
        case _:
            return "the hand is over" if hand.over else "nobody is to act"


def _listed(pots: Sequence[Pot]) -> list[tuple[int, list[int]]]:
    return [(pot.amount, [seat + 1 for seat in pot.seats]) for pot in pots]


def _same(what: str, recorded: object, replayed: object) -> None:
    if recorded is not None and recorded != replayed:
        raise Difference(f"{what}: {_plain(recorded)} recorded, {_plain(replayed)} replayed")


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
