"""A recorded hand fed to `Hand`: was every action legal and asked for, does the money come out?

Pure. A record does not say where the button was. Where it matters (equal boards, odd chips, a
bring-in that passes on) a hand played in some room is right if it is right for one seat of the
button; a case that names its rulebook has p1 nearest to the left of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, NamedTuple

from services.game.events import Event, EventKind
from services.game.explain import Reason, player, players
from services.game.hand import Act, ActionKind, Deal, Hand, HandSetup, Rake, Refused, Showdown
from services.game.invariant import InvariantError
from services.game.phh import RecordedAction, RecordedHand, Word
from services.game.pots import Pot
from services.game.recorded_cards import CHOICES, RecordedCards
from services.game.recorded_rules import rake_of, rulebook_name, rules_of, setup_of, why_rake
from services.game.refusals import not_wanted, unfit_cards
from services.game.rooms import Habits, habits_of
from services.game.rulebook import RakeOnThird
from services.game.story import Remark, Story, Topic
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


@dataclass(frozen=True, slots=True)
class Reading:
    """How a record is read where it leaves something open."""

    recorded: RecordedHand
    setup: HandSetup
    """Under which rules, with the button in which seat."""
    habits: Habits
    lenient: bool
    """Wagers are taken whatever their amount."""
    choice: int
    """Which stand-ins for cards that nobody saw."""


class Move(NamedTuple):
    """What a player did in his turn."""

    at: int
    """Actions of the record that were done before it."""
    turn: int
    """Number of the decision in the hand."""
    seat: int
    kind: int
    """One of `ActionKind`; 0 where he ran out of time."""
    amount: int
    """The total of a wager as the rules offer it, even where the record has only what an opponent
    could match; else 0.
    """


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
    return best_replay(recorded, rulebook, lenient_amounts).replayed


def explained(
    recorded: RecordedHand, *, rulebook: str = "", lenient_amounts: bool = False
) -> tuple[Replayed, list[Remark]]:
    """As `replay`, with a remark for each thing that happened, was offered or refused, and why."""
    best = best_replay(recorded, rulebook, lenient_amounts)
    told = Replay(best.reading)
    told.story = Story(told.cards.stand_ins)
    told.story.begin(best.reading.setup, told=bool(recorded.rulebook))
    told.run()
    return told.replayed, told.story.remarks


def best_replay(recorded: RecordedHand, rulebook: str, lenient_amounts: bool) -> "Replay":
    """The first reading of a record that is right, else the one that is right the longest; played.
    Raises PhhError as `replay` does.
    """
    best: Replay | None = None
    for reading in _readings(recorded, rulebook, lenient_amounts):
        run = Replay(reading)
        run.run()
        if best is None or run.replayed.ok or run.replayed.at > best.replayed.at:
            best = run
        if run.replayed.ok:
            break
    if best is None:
        raise InvariantError("a record is replayed at least once")
    return best


def _readings(recorded: RecordedHand, rulebook: str, lenient_amounts: bool) -> Iterator[Reading]:
    name = rulebook_name(recorded, rulebook)
    rules = rules_of(recorded, name)
    lenient = lenient_amounts or ROOM_RAISE_RULE in recorded.situations
    choices = CHOICES if RecordedCards(recorded).has_choices else 1
    for habits, button, choice in product(habits_of(name), _buttons(recorded), range(choices)):
        yield Reading(recorded, setup_of(recorded, rules, button), habits, lenient, choice)


def _buttons(recorded: RecordedHand) -> Iterator[int]:
    last = len(recorded.starting_stacks) - 1
    yield last
    if not recorded.rulebook:
        yield from range(last)


class Replay:
    """One run of a record as a reading has it."""

    def __init__(self, reading: Reading) -> None:
        self.reading: Final = reading
        self.recorded: Final = reading.recorded
        self.cards: Final = RecordedCards(reading.recorded, reading.choice)
        self.hand: Hand = Hand(reading.setup)
        self.replayed = Replayed("", 0)
        """What came out; to be read after `run`."""
        self.story: Story | None = None
        """Listens, if there is one."""
        self.moves: Final[list[Move]] = []
        self.deals: Final[list[tuple[Deal, tuple[int, ...]]]] = []
        """What the hand wanted, and the cards that it got."""
        self.showdown: Showdown | None = None
        """As the hand wanted it, with stand-ins in the hands that nobody saw."""
        self.divided: ShowdownResult | None = None
        self.by_rule = True
        """No wager was taken that the rules do not offer."""
        self._at = 0
        """Actions of the record that are done."""
        self._timed_out = 0
        """How many of the record's time-outs are done."""
        self._dealt: dict[int, list[int | None]] = {}
        """Cards of the running deal that the hand has not been given yet, by seat."""
        self._tried: set[int] = set()
        """After how many actions there was time to try something."""

    def run(self) -> None:
        """Play the record and compare; once."""
        error, rule, code = "", "", ""
        try:
            self._play()
            self._compare()
        except Difference as difference:
            error = str(difference)
        except Refused as refused:
            rule, code = refused.rule, refused.reason
            error = f"{self._where()}: {refused} ({code}, {rule})"
        if error and self.story:
            self.story.note(self._at, Topic.DIFFERENCE, Reason(error, rule, code))
        self.replayed = self._outcome(error)

    # Playing

    def _play(self) -> None:
        self._tell(self.hand.start(), self._at)
        actions = self.recorded.actions
        while True:
            self._answer_house()
            self._time_out_protected()
            self._try_all()
            if self._at >= len(actions):
                break
            if self._time_out_due():
                self._time_out_into(actions[self._at])
            else:
                self._take(actions[self._at])
        if not self.hand.over:
            raise Difference(f"the record ends, but {_wanted(self.hand)}")

    def _take(self, action: RecordedAction) -> None:
        """One action of the record, or all the deals that answer one want."""
        match action.word:
            case Word.COMMENT:
                self._at += 1
            case Word.SHOW:
                self._check_show(self._at, action)
                self._at += 1
            case Word.DEAL | Word.BOARD:
                self._deal()
            case _:
                self._move(action)

    def _deal(self) -> None:
        """Takes deals until the want is answered; each is checked as it comes."""
        want = self.hand.want
        if not isinstance(want, Deal):
            raise Difference(f"{self._where()}: {_wanted(self.hand)}, not cards")
        missing = len(want.cards)
        while missing > 0:
            action = self._next_deal(missing)
            wanted = self._slots(action.seat)
            if len(action.cards) != wanted:
                raise Difference(f"{self._where()}: {player(action.seat)} gets {wanted} cards")
            self._dealt[action.seat] = self.cards.take(action)
            missing -= wanted
            self._at += 1
            if missing:
                self._try_all()
        hand = self.hand
        boards = {seat: hand.up_cards(seat) for seat in hand.seats}
        dealt = self.cards.fill(self._dealt, boards, self._at)
        self._dealt = {}
        cards = tuple([dealt[seat].pop(0) for seat, _ in want.cards])
        self.deals.append((want, cards))
        self._tell(hand.deal(cards), self._at - 1)

    def _next_deal(self, missing: int) -> RecordedAction:
        actions = self.recorded.actions
        while self._at < len(actions) and actions[self._at].word is Word.COMMENT:
            self._at += 1
            self._try_all()
        if self._at >= len(actions) or actions[self._at].word not in (Word.DEAL, Word.BOARD):
            raise Difference(f"{self._where()}: {missing} cards are still to be dealt")
        return actions[self._at]

    def _slots(self, seat: int) -> int:
        """How many cards the seat is to get now, -1 for a community card."""
        want = self.hand.want
        if not isinstance(want, Deal) or seat in self._dealt:
            return 0
        return sum(each == seat for each, _ in want.cards)

    def _move(self, action: RecordedAction) -> None:
        want, turn = self.hand.want, self.hand.turn
        if not isinstance(want, Act):
            raise Difference(f"{self._where()}: {_wanted(self.hand)}")
        events = self._act(self.hand, action)
        kind, amount = _kind_of(want.legal, action), action.amount
        if amount and amount not in want.legal.wagers:
            amount = max(want.legal.wagers, default=amount)
        self.moves.append(Move(self._at, turn, action.seat, kind, amount))
        self._at += 1
        self._tell(events, self._at - 1)

    def _act(self, hand: Hand, action: RecordedAction, trial: bool = False) -> list[Event]:
        want = hand.want
        if not isinstance(want, Act):
            return hand.act(action.seat, ActionKind.CHECK)  # which says why nobody can act
        if not trial and action.amount and action.amount not in want.legal.wagers:
            self._widen(hand, want, action)
        return hand.act(action.seat, _kind_of(want.legal, action), action.amount)

    def _widen(self, hand: Hand, want: Act, action: RecordedAction) -> None:
        """Offer a recorded amount as well, where records may have such."""
        if action.amount == _capped(hand, want):
            text = f"{action.amount} is taken, as no opponent can put in more"
            reason = Reason(text, "3 amounts")
        elif self.reading.habits.raises_over_bring_in and action.amount == _over_bring_in(hand):
            text = f"{action.amount} is the bring-in and a small bet"
            reason = Reason(f"{text}: so this room raises on third street")
            # It counts from the bring-in, as if nothing had been put in above that.
            hand.betting.full = hand.setup.stake.bring_in
            self.by_rule = False
        elif self.reading.lenient:
            reason = Reason(f"{action.amount} is taken as recorded: a rule of the room's own")
            self.by_rule = False
        else:
            return
        hand.want = _widened(want, action.amount)
        if self.story:
            self.story.note(self._at, Topic.DECISION, reason, action.seat)

    # Time

    def _time_out_due(self) -> bool:
        return self.recorded.time_outs[self._timed_out : self._timed_out + 1] == (self._at,)

    def _time_out_protected(self) -> None:
        """Time-outs that protect come before whatever the record has next: they are no action."""
        while self._time_out_due():
            hand = self.hand.fork()
            events = hand.time_out()
            if not any(event[0] == EventKind.PROTECTED for event in events):
                return
            self.moves.append(Move(self._at, self.hand.turn, events[0][1], 0, 0))
            self.hand = hand
            self._timed_out += 1
            self._tell(events, self._at)
            self._answer_house()

    def _time_out_into(self, action: RecordedAction) -> None:
        """A time-out whose consequence is the record's next action."""
        want = self.hand.want
        if not isinstance(want, Act) or want.seat != action.seat:
            raise Difference(f"{self._where()}: {_wanted(self.hand)}, not a time-out")
        self.moves.append(Move(self._at, self.hand.turn, want.seat, 0, 0))
        events = self.hand.time_out()
        if not any(event[0] in _FOLLOWS.get(action.word, ()) for event in events):
            raise Difference(f"{self._where()}: something else follows from running out of time")
        self._timed_out += 1
        self._at += 1
        self._tell(events, self._at - 1)

    # What the house and the showdown answer

    def _answer_house(self) -> None:
        while True:
            want = self.hand.want
            if isinstance(want, Rake):
                self._take_rake(want)
            elif isinstance(want, Showdown):
                self._settle(want)
            else:
                return

    def _take_rake(self, want: Rake) -> None:
        rake, reason = self._rake(want)
        habits = self.reading.habits
        shares = habits.shares(rake, want.pots)
        if self.story:
            self.story.rake(self._at, want, reason, shares, habits.rake_from_main_pot)
        self._tell(self.hand.rake(shares), self._at)

    def _rake(self, want: Rake) -> tuple[int, Reason]:
        total = sum(pot.amount for pot in want.pots)
        terms, rake = self.recorded.rake_terms, self.recorded.rake
        if terms is not None:
            if self.reading.setup.rulebook.rake_on_third_street is RakeOnThird.NO:
                terms = replace(terms, no_rake_on_third=True)
            due = rake_of(terms, total, want.street)
            if rake is not None and rake != due:
                raise Difference(f"rake {rake} is recorded, {due} is due by its schedule")
            return due, why_rake(terms, total, want.street)
        if rake is not None and rake > total:
            raise Difference(f"a rake of {rake} is recorded, {total} is in the pots")
        return rake or 0, Reason("no rake" if not rake else f"rake {rake}, as recorded", "7 rake")

    def _settle(self, want: Showdown) -> None:
        """Who mucks, or stays with cards that nobody ever saw, shows nothing and wins nothing."""
        unseen = self.cards.unseen
        hands = {seat: () if seat in unseen else cards for seat, cards in want.hands.items()}
        for pot in want.pots:
            if not any(hands[seat] for seat in pot.seats):
                raise Difference(
                    f"nobody shows a hand for the pot of {pot.amount} of {players(pot.seats)}"
                )
        showdown = Showdown(want.pots, hands, want.community, want.order, want.button, want.tabled)
        result = self.reading.habits.divide(showdown, self.reading.setup.rulebook)
        self.showdown, self.divided = want, result
        if self.story:
            self.story.divided(self._at, self.hand, showdown, result)
        self._tell(self.hand.settle(result), self._at)

    # Trials

    def _try_all(self) -> None:
        """What the record has tried here, each on a copy of the hand."""
        at, recorded = self._at, self.recorded
        self._tried.add(at)
        for allowed, trials in ((True, recorded.legal), (False, recorded.illegal)):
            for trial in trials:
                if trial.at == at:
                    self._try(trial.action, allowed)

    def _try(self, action: RecordedAction, allowed: bool) -> None:
        trying = self.hand.fork()
        refused = self._refusal(trying, action)
        if self.story:
            self.story.trial(self._at, self.hand, action, allowed, refused)
        if allowed and refused:
            raise Difference(f"after {self._at} actions {action.text!r} is refused: {refused}")
        if not allowed and not refused:
            raise Difference(f"after {self._at} actions {action.text!r} is accepted")
        if refused and _state(trying) != _state(self.hand):
            raise Difference(f"the refusal of {action.text!r} changed the hand")

    def _refusal(self, trying: Hand, action: RecordedAction) -> Refused | None:
        """Why the action is not taken here; None if it is."""
        try:
            match action.word:
                case Word.DEAL | Word.BOARD:
                    self._check_deal(action)
                case Word.SHOW:
                    self._check_show(-1, action)
                case _:
                    self._act(trying, action, trial=True)
        except Refused as refused:
            return refused
        except Difference as difference:
            return Refused("NO_SHOW", "6 showdown", str(difference))
        return None

    def _check_deal(self, action: RecordedAction) -> None:
        """Raises Refused where these cards are not wanted, or not all unseen."""
        if not isinstance(self.hand.want, Deal):
            raise not_wanted("DEAL", "cards")
        wanted, hand = self._slots(action.seat), self.hand
        if wanted != len(action.cards) or not wanted:
            raise unfit_cards(range(len(action.cards)), wanted)
        given = {hand.community}.union(*(hand.cards(seat) for seat in hand.seats))
        seen = [card for cards in (*self._dealt.values(), action.cards) for card in cards]
        known = [card for card in seen if card is not None]
        if len(set(known)) < len(known) or given.intersection(known):
            raise unfit_cards(known, len(known))

    # Comparing

    def _check_show(self, at: int, action: RecordedAction) -> None:
        if not (self.hand.over or self.hand.betting_is_over):
            raise Difference(f"{self._where()}: {_wanted(self.hand)}, not a show")
        if action.seat in self.hand.folded and action.cards:
            raise Difference(f"{self._where()}: {player(action.seat)} has folded")
        if at in self.cards.wrong_shows:
            raise Difference(f"{self._where()}: shows a card that he was not dealt")

    def _compare(self) -> None:
        done, recorded = self._outcome(""), self.recorded
        _same("uncalled", recorded.uncalled, done.uncalled)
        if recorded.pots is not None:
            pots = tuple(Pot(pot.amount, pot.eligible) for pot in done.pots)
            _same("pots", _listed(recorded.pots), _listed(pots))
        _same("payouts", recorded.payouts, done.payouts)
        _same("finishing_stacks", recorded.finishing_stacks, done.finishing_stacks)
        due = recorded.time_outs[self._timed_out :]
        if due:
            raise Difference(f"nobody was to act after {due[0]} actions, but ran out of time")
        for trial in (*recorded.legal, *recorded.illegal):
            if trial.at not in self._tried:
                raise Difference(f"{trial.action.text!r} after {trial.at} actions: there are fewer")

    def _outcome(self, error: str) -> Replayed:
        result, seats = self.hand.result, self.reading.setup.seats
        if result is None or not self.hand.over:
            return Replayed(error, self._at)
        uncalled = dict(result.uncalled)
        return Replayed(
            error=error,
            at=self._at,
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

    def _tell(self, events: Sequence[Event], at: int) -> None:
        """at: actions of the record that were done before these events."""
        if self.story:
            self.story.tell(at, self.hand, events, self._at)

    def _where(self) -> str:
        actions = self.recorded.actions
        text = repr(actions[self._at].text) if self._at < len(actions) else "its end"
        return f"action {self._at} {text}"


_FOLLOWS: Final[Mapping[Word, tuple[EventKind, ...]]] = {
    Word.BRING_IN: (EventKind.BROUGHT_IN,),
    Word.CHECK_OR_CALL: (EventKind.CHECKED,),
    Word.FOLD: (EventKind.FOLDED,),
}


def _kind_of(legal: Legal, action: RecordedAction) -> ActionKind:
    """What a recorded action is where this is legal."""
    match action.word:
        case Word.FOLD:
            return ActionKind.FOLD
        case Word.BRING_IN:
            return ActionKind.BRING_IN
        case Word.CHECK_OR_CALL:
            return ActionKind.CALL if legal.call else ActionKind.CHECK
        case _:
            return ActionKind(legal.wager_kind)


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


def _over_bring_in(hand: Hand) -> int:
    """The bring-in and a small bet, where that is a raise; else 0."""
    to = hand.setup.stake.bring_in + hand.setup.stake.small_bet
    return to if hand.street == 3 and hand.setup.stake.bring_in < hand.to < to else 0


def _state(hand: Hand) -> tuple[object, ...]:
    """Everything of a hand that an action may change."""
    want = hand.want
    asked = (want.seat, want.turn, want.legal.wagers) if isinstance(want, Act) else type(want)
    chips = (hand.stacks, hand.put_in, hand.bets, hand.to)
    return (hand.inputs, chips, hand.folded, hand.all_in, hand.street, hand.turn, asked)


def _wanted(hand: Hand) -> str:
    """What the hand waits for, in words."""
    match hand.want:
        case Act(seat=seat):
            return f"{player(seat)} is to act"
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
