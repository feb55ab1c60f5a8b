"""A hand of stud from the antes to the last award, as a machine that is fed and asked.

`Hand` takes inputs and answers with events; `want` says what it waits for. It draws no card,
reads no clock and knows nothing random: the same inputs give the same events for ever.
"""
# ruff: noqa: B905 (saying that lengths agree, as they do here, triples what zip costs)

from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Any, Final

from services.game import dealing, pots
from services.game.betting import NOBODY
from services.game.boards import CARD_UNIT
from services.game.cards import CARDS
from services.game.events import COMMUNITY, WHOLE, Event, EventKind
from services.game.invariant import require
from services.game.refusals import (
    Refused,
    check_awards,
    check_shares,
    hand_over,
    no_such_seat,
    not_in_turn,
    not_offered,
    not_wanted,
    unfit_cards,
)
from services.game.rulebook import BringInRule, TimeOut
from services.game.setup import HandResult, HandSetup
from services.game.state import HandState
from services.game.wants import (
    Act,
    ActionKind,
    Deal,
    Legal,
    Rake,
    Showdown,
    ShowdownResult,
    Want,
)

__all__ = [
    "Act",
    "ActionKind",
    "Deal",
    "Hand",
    "HandResult",
    "HandSetup",
    "Legal",
    "Rake",
    "Refused",
    "Showdown",
    "ShowdownResult",
    "Want",
]

# First item of an input.
_START: Final = 0
_DEAL: Final = 1
ACTED: Final = 2
"""An item of `inputs` that is an action: (ACTED, seat, kind, amount)."""
_TIME_OUT: Final = 3
_LEAVE: Final = 4
_RAKE: Final = 5
_SETTLE: Final = 6
_VOID: Final = 7

_bit_of: Final = {card: 1 << card for card in range(CARDS)}.__getitem__

# Members of an enum are slow to look up; these are for the hot path.
_BRING_IN: Final = int(ActionKind.BRING_IN)
_FOLD: Final = int(ActionKind.FOLD)
_CHECK: Final = int(ActionKind.CHECK)
_CALL: Final = int(ActionKind.CALL)

_ANTE: Final = EventKind.ANTE
_STREET: Final = EventKind.STREET
_BROUGHT_IN: Final = EventKind.BROUGHT_IN
_ALL_IN: Final = EventKind.ALL_IN
_FOLDED: Final = EventKind.FOLDED
_CHECKED: Final = EventKind.CHECKED
_CALLED: Final = EventKind.CALLED
_UNCALLED: Final = EventKind.UNCALLED
_POTS: Final = EventKind.POTS
_RAKED: Final = EventKind.RAKED
_AWARDED: Final = EventKind.AWARDED
_ENDED: Final = EventKind.ENDED
_WAGERED: Final = {
    int(ActionKind.BET): EventKind.BET,
    int(ActionKind.COMPLETE): EventKind.COMPLETED,
    int(ActionKind.RAISE): EventKind.RAISED,
}

_FORCED: Final = BringInRule.FORCED
_PROTECTS: Final = TimeOut.ALL_IN_IF_INVESTED


class Hand(HandState):
    """One hand. Every input method checks first and raises Refused, changing nothing; else it
    returns the events that follow."""

    __slots__ = ()

    @staticmethod
    def replay(setup: HandSetup, inputs: Iterable[Sequence[Any]]) -> "Hand":
        """A hand in the state that the same inputs led to; raises Refused where they do not fit."""
        hand = Hand(setup)
        for item in inputs:
            hand.feed(item)
        return hand

    def fork(self) -> "Hand":
        """Another hand in the same state; what is fed to one leaves the other as it is."""
        other = Hand(self.setup)
        other.take_over(self)
        return other

    def feed(self, item: Sequence[Any]) -> list[Event]:
        """One item of `inputs`; lists may stand for tuples."""
        kind = item[0]
        if kind == ACTED:
            return self.act(item[1], item[2], item[3])
        if kind == _DEAL:
            return self.deal(item[1])
        if kind == _START:
            return self.start()
        if kind == _TIME_OUT:
            return self.time_out(protect=bool(item[1]))
        if kind == _LEAVE:
            return self.leave(item[1])
        if kind == _RAKE:
            return self.rake(item[1])
        if kind == _SETTLE:
            awards = tuple([tuple(award) for award in item[1]])
            reveals = tuple([(seat, bool(shown), name) for seat, shown, name in item[2]])
            return self.settle(ShowdownResult(awards, reveals))
        if kind == _VOID:
            return self.void()
        raise ValueError(f"no such input: {kind}")

    # Inputs

    def start(self) -> list[Event]:
        """Everybody posts his ante; then the hand wants cards."""
        if self.street or self.over:
            raise not_wanted("START", "a start")
        self.inputs.append((_START,))
        events: list[Event] = []
        b = self._b
        posted = b.post_antes(self.setup.stake.ante)
        for seat, amount, left in zip(self._seat, posted, b.stack):
            events.append((_ANTE, seat, amount))
            if not left:
                events.append((_ALL_IN, seat))
        self._next_street(events)
        return events

    def deal(self, cards: Sequence[int]) -> list[Event]:
        """The cards wanted, 0..51, in the order of `want.cards`."""
        want = self.want
        if not isinstance(want, Deal):
            raise not_wanted("DEAL", "cards")
        slots = want.cards
        try:
            bits = sum(map(_bit_of, cards))
        except KeyError:
            raise unfit_cards(cards, len(slots)) from None
        # The sum of equal bits has fewer of them.
        if len(cards) != len(slots) or bits.bit_count() != len(slots) or bits & self._seen:
            raise unfit_cards(cards, len(slots))
        self._seen |= bits
        self.inputs.append((_DEAL, tuple(cards)))
        events: list[Event] = []
        if want.reshuffle:
            events.append((EventKind.RESHUFFLED, len(want.reshuffle)))
        if want.burn:
            events.append((EventKind.BURNED, want.burn))
        events += map(getitem, self._round.events, cards)
        self._stub.dealt(want)
        if slots[0][0] == COMMUNITY:
            self._share(cards[0])
        else:
            self._hand_out(slots, cards)
            if self._lacking and self._want_seventh():
                return events
        self._begin_round(events)
        return events

    def act(self, seat: int, kind: int, amount: int = 0) -> list[Event]:
        """A player's action in turn; `amount` is the total "to" of a bet, completion or raise."""
        want = self.want
        if not isinstance(want, Act) or want.seat != seat:
            raise not_in_turn(want, seat)
        legal = want.legal
        b = self._b
        i = self._place[seat]
        left = 1
        event: Event
        if amount:
            if kind != legal.wager_kind or amount not in legal.wagers:
                raise not_offered(legal, kind, amount, b.to)
            left = b.wager(i, amount)
            event = (_WAGERED[kind], seat, amount)
        elif kind == _CALL and legal.call:
            left = b.call(i, legal.call)
            event = (_CALLED, seat, legal.call)
        elif kind == _CHECK and legal.check:
            b.check(i)
            event = (_CHECKED, seat)
        elif kind == _FOLD and legal.fold:
            b.fold(i)
            event = (_FOLDED, seat)
        elif kind == _BRING_IN and legal.bring_in:
            left = b.post_bring_in(i, legal.bring_in)
            event = (_BROUGHT_IN, seat, legal.bring_in)
        else:
            raise not_offered(legal, kind, amount, b.to)
        self.inputs.append((ACTED, seat, kind, amount))
        events = [event] if left else [event, (_ALL_IN, seat)]
        self.turn += 1
        self._go_on(i + 1, events)
        return events

    @property
    def protects(self) -> bool:
        """Whether the player to act keeps his cards when he is out of time: in a house of
        `all_in_if_invested` and with more than the ante in (docs/rules.md, 5).
        """
        want = self.want
        return (
            isinstance(want, Act)
            and want.legal.fold
            and self.setup.rulebook.time_out is _PROTECTS
            and self._b.put_in[self._place[want.seat]] > self.setup.stake.ante
        )

    def time_out(self, protect: bool = True) -> list[Event]:
        """The player to act is out of time (docs/rules.md, 5).

        `protect=False`: his allowance of `all_in_if_invested` is used up, it is check or fold.
        """
        want = self.want
        if not isinstance(want, Act):
            raise not_wanted("TIME_OUT", "no action")
        self.inputs.append((_TIME_OUT, int(protect)))
        seat, b = want.seat, self._b
        i = self._place[seat]
        events: list[Event] = [(EventKind.TIMED_OUT, seat)]
        checks_if_free = not protect or self.setup.rulebook.time_out is not _PROTECTS
        if not want.legal.fold:
            left = b.post_bring_in(i, want.legal.bring_in)
            events.append((_BROUGHT_IN, seat, want.legal.bring_in))
            if not left:
                events.append((_ALL_IN, seat))
        elif protect and self.protects:
            b.freeze(i)
            events.append((EventKind.PROTECTED, seat))
        elif want.legal.check and checks_if_free:
            b.check(i)
            events.append((_CHECKED, seat))
        else:
            b.fold(i)
            events.append((_FOLDED, seat))
        self.turn += 1
        self._go_on(i + 1, events)
        return events

    def leave(self, seat: int) -> list[Event]:
        """A player leaves in the middle of the hand (docs/rules.md, 5): he is folded at once,
        unless he is all-in or the only one who can claim a layer. Once the cards and the betting
        are done his hand stands."""
        if self.over or not self.street:
            raise hand_over(self.over)
        i = self._place.get(seat, NOBODY)
        if i < 0:
            raise no_such_seat(seat)
        if self._left >> i & 1:
            raise Refused("ALREADY_LEFT", "5 leaving", "this player has left already")
        self.inputs.append((_LEAVE, seat))
        self._left |= 1 << i
        events: list[Event] = [(EventKind.LEFT, seat)]
        b, want = self._b, self.want
        if not b.active[i] or isinstance(want, Rake | Showdown):
            return events
        if b.claims_alone(i, may_add=not self.betting_is_over):
            b.freeze(i)
            events.append((EventKind.PROTECTED, seat))
        else:
            b.drop(i)
            events.append((_FOLDED, seat))
        if isinstance(want, Act):
            if want.seat == seat:
                self.turn += 1
            self._go_on(self._place[want.seat], events)
        elif b.standing_count > 1:
            if not self._want_cards():
                self._begin_round(events)
        elif self._seen:
            self._finish(events)
        else:
            self._return_stakes(events)
        return events

    def rake(self, shares: Sequence[int]) -> list[Event]:
        """What the house takes from each pot of the want, minor units."""
        want = self.want
        if not isinstance(want, Rake):
            raise not_wanted("RAKE", "rake")
        shares = tuple(shares)
        check_shares(shares, want.pots)
        self.inputs.append((_RAKE, shares))
        events: list[Event] = [(_RAKED, shares)]
        self._result().rake = shares
        self._net_pots = want.pots
        if any(shares):
            self._net_pots = tuple(
                [pots.Pot(pot.amount - s, pot.seats) for pot, s in zip(want.pots, shares)]
            )
        contested = tuple([pot for pot in self._net_pots if len(pot.seats) > 1])
        if not contested:
            self._award((), events)
            return events
        b = self._b
        self.want = Showdown(
            contested,
            {seat: tuple(self._cards[i]) for i, seat in enumerate(self._seat) if b.standing[i]},
            () if self.community < 0 else (self.community,),
            self._showing_order(),
            self.setup.button,
            self.tabled,
        )
        return events

    def settle(self, result: ShowdownResult) -> list[Event]:
        """How the pots of the showdown are divided."""
        want = self.want
        if not isinstance(want, Showdown):
            raise not_wanted("SETTLE", "a showdown")
        check_awards(result, want)
        self.inputs.append((_SETTLE, result.awards, result.reveals))
        events: list[Event] = []
        for seat, shown, name in result.reveals:
            if shown:
                events.append((EventKind.SHOWN, seat, want.hands[seat], name))
            else:
                events.append((EventKind.MUCKED, seat))
        outcome = self._result()
        outcome.shown = tuple([seat for seat, shown, _ in result.reveals if shown])
        outcome.mucked = tuple([seat for seat, shown, _ in result.reveals if not shown])
        self._award(result.awards, events)
        return events

    def void(self) -> list[Event]:
        """Every stake goes back and the hand is over."""
        if self.over:
            raise hand_over(True)
        self.inputs.append((_VOID,))
        events: list[Event] = []
        self._return_stakes(events)
        return events

    # Dealing

    def _share(self, card: int) -> None:
        """A community card is everybody's seventh."""
        self.community = card
        if self.setup.rulebook.community_card_opens:
            self._boards.shared.append(card)

    def _next_street(self, events: list[Event]) -> None:
        self.street = self.street + 1 if self.street else 3
        events.append((_STREET, self.street))
        self._want_cards()

    def _want_cards(self) -> bool:
        """Wants the cards of the street; False where nobody lacks any."""
        if self.street == 7:
            return self._want_seventh()
        seats = self._standing_seats()
        self._round = dealing.third_street(seats) if self.street == 3 else dealing.up_cards(seats)
        self.want = self._stub.ordinary(self._round.slots, self.street)
        return True

    def _want_seventh(self) -> bool:
        lacking = tuple(
            [seat for seat in self._standing_seats() if len(self._cards[self._place[seat]]) < 7]
        )
        if not lacking:
            return False
        # The last card lies down, unless the hands are open already.
        self._round = dealing.up_cards(lacking) if self.tabled else dealing.down_cards(lacking)
        self.want = self._stub.seventh(self._round.slots)
        if self.want.cards is not self._round.slots:
            self._round = dealing.in_order(self.want.cards)
        self._lacking = len(lacking) - len(self.want.cards)
        return True

    def _hand_out(self, slots: dealing.Slots, cards: Sequence[int]) -> None:
        hands, place, packed = self._cards, self._place, self._boards.packed
        if self.street == 3:
            n = self._dealt_in = len(cards) // 3
            doors = cards[2 * n :]
            for (seat, _), *hand in zip(slots, cards, cards[n:], doors):
                hands[place[seat]] = hand
            for (seat, _), door in zip(slots, doors):
                packed[place[seat]] = CARD_UNIT[door]
        elif self.street < 7:
            for (seat, _), card in zip(slots, cards):
                i = place[seat]
                hands[i].append(card)
                packed[i] += CARD_UNIT[card]
        else:
            # It is no part of the board, also where it lies up because all hands do.
            for (seat, _), card in zip(slots, cards):
                hands[place[seat]].append(card)

    def _standing_seats(self) -> tuple[int, ...]:
        b = self._b
        if b.standing_count == b.places:
            return self._seat
        return tuple([seat for seat, in_ in zip(self._seat, b.standing) if in_])

    # Betting

    def _begin_round(self, events: list[Event]) -> None:
        """The cards of a street are out: who opens, for what?"""
        b, rulebook, street = self._b, self.setup.rulebook, self.street
        two_sizes = (
            street == 4 and rulebook.fourth_street_pair and self._boards.any_pair(b.standing)
        )
        b.begin(street, two_sizes)
        if self.betting_is_over or (b.active_count < 2 and b.over()):
            self._end_betting(events)
        elif street == 3 and rulebook.bring_in_rule is _FORCED:
            b.expect_bring_in(self._boards.bring_in(b.standing))
            self._go_on(b.duty, events)
        else:
            self._go_on(self._boards.best(b.standing), events)

    def _go_on(self, start: int, events: list[Event]) -> None:
        """Asks the next player from a place clockwise, or ends the round, the betting, the hand."""
        b = self._b
        if b.active_count < 2:
            if b.standing_count == 1:
                self._finish(events)
                return
            if b.over():
                self._end_betting(events)
                return
        i = b.next_to_act(start)
        if i >= 0:
            self.want = Act(self._seat[i], self.turn, b.legal(i))
        elif self.street == 7:
            self._finish(events)
        else:
            self._next_street(events)

    def _end_betting(self, events: list[Event]) -> None:
        self.betting_is_over = True
        if self.street == 7:
            self._finish(events)
            return
        self._table_hands(events)
        self._next_street(events)

    def _table_hands(self, events: list[Event]) -> None:
        """Where the house wants it, hands lie face up once somebody is all-in and no more betting
        is possible (TDA 16)."""
        b = self._b
        if self.tabled or not self.setup.rulebook.all_in_face_up:
            return
        if b.active_count == b.standing_count:
            return
        self.tabled = True
        for i, seat in enumerate(self._seat):
            if b.standing[i]:
                events.append((EventKind.SHOWN, seat, tuple(self._cards[i]), ""))

    # The end

    def _finish(self, events: list[Event]) -> None:
        """Betting and cards are done: uncalled money goes back, and the house is asked."""
        b, seat_of = self._b, self._seat
        if b.standing_count > 1:
            self._table_hands(events)
        result = self._result()
        i, amount = pots.unmatched(b.put_in)
        if amount:
            seat = seat_of[i]
            b.stack[i] += amount
            b.put_in[i] -= amount
            events.append((_UNCALLED, seat, amount))
            result.uncalled = ((seat, amount),)
        if b.standing_count == 1:
            winner = seat_of[b.standing.index(True)]
            result.pots = (pots.Pot(sum(b.put_in), (winner,)),)
        else:
            result.pots = pots.layers(self.put_in, self.folded)
        self._require_conserved(sum([pot.amount for pot in result.pots]))
        events.append((_POTS, tuple([(pot.amount, pot.seats) for pot in result.pots])))
        self.want = Rake(result.pots, self._dealt_in, self.street)

    def _showing_order(self) -> tuple[int, ...]:
        """Who bet or raised last on the last round, else who acted first in it, else the best
        visible hand; then clockwise (docs/rules.md, 6)."""
        b = self._b
        first = b.last_wager if b.last_wager >= 0 else b.first
        if first < 0:
            first = self._boards.best(self._b.standing)
        return tuple([self._seat[i] for i in b.clockwise[first] if b.standing[i]])

    def _award(
        self, awards: tuple[tuple[int, int, int, int, str], ...], events: list[Event]
    ) -> None:
        """Pays the awards and the pots that one player alone can claim, and ends the hand."""
        alone = [
            (index, pot.seats[0], pot.amount, WHOLE, "")
            for index, pot in enumerate(self._net_pots)
            if len(pot.seats) == 1
        ]
        result, stack = self._result(), self._b.stack
        result.awards = (*awards, *alone)
        for award in result.awards:
            stack[self._place[award[1]]] += award[2]
            events.append((_AWARDED, *award))
        self._require_conserved(sum(result.rake))
        self._end(events)

    def _return_stakes(self, events: list[Event]) -> None:
        b = self._b
        first = self._place[self.setup.seats[0]]
        b.stack = list(self.setup.stacks[-first:] + self.setup.stacks[:-first])
        b.put_in = [0] * b.places
        b.paid = [0] * b.places
        self._require_conserved(0)
        events.append((EventKind.VOIDED,))
        self.result = HandResult(self.setup)
        self.result.voided = True
        self._end(events)

    def _end(self, events: list[Event]) -> None:
        setup, stack = self.setup, self._b.stack
        first = self._place[setup.seats[0]]
        after = stack[first:] + stack[:first]
        self._result().end(after)
        self.want = None
        self.over = True
        events.append((_ENDED, tuple(zip(setup.seats, after))))

    def _result(self) -> HandResult:
        if self.result is None:
            self.result = HandResult(self.setup)
        return self.result

    def _require_conserved(self, beside: int) -> None:
        """Chips behind and `beside` (pots or rake) are what came to the table."""
        require(sum(self._b.stack) + beside == self._chips, "chips of the hand do not add up")
