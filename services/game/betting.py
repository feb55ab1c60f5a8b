"""One betting round after another: who owes what, and who may raise to what (docs/rules.md, 3).

Players are places 0, 1, .. clockwise from the left of the button. A round keeps `to`, the highest
amount in; `full`, the last amount that counts as a full wager; and the number of full wagers.
"""
# ruff: noqa: B905 (saying that lengths agree, as they do here, triples what zip costs)

from typing import Final

from services.game.rulebook import CapLifted, Reopens, Rulebook, Stake
from services.game.steps import STEPS_MAX, Rounds, Step, Terms, rounds_of
from services.game.wants import ActionKind, Legal

NOBODY: Final = -1

CAP_REACHED: Final = "CAP_REACHED"
NOT_REOPENED: Final = "NOT_REOPENED"
NOBODY_CAN_CALL: Final = "NOBODY_CAN_CALL"
STACK_TOO_SHORT: Final = "STACK_TOO_SHORT"
BRING_IN_ONLY: Final = "BRING_IN_ONLY"

_HALF: Final = Reopens.HALF
_TWO_IN_HAND: Final = CapLifted.TWO_IN_HAND
_ROUND_BEGAN_TWO: Final = CapLifted.ROUND_BEGAN_TWO

UNASKED: Final = -1
_BEYOND: Final = 1 << 60

_BET: Final = int(ActionKind.BET)
_COMPLETE: Final = int(ActionKind.COMPLETE)
_RAISE: Final = int(ActionKind.RAISE)

# Every place of n once, clockwise from each start; n, the place after the last, is 0 again.
_CLOCKWISE: Final = tuple(
    tuple(tuple((start + step) % n for step in range(n)) for start in range(n + 1))
    for n in range(1, 9)
)


BETTING_FIELDS: Final = (
    "acted",
    "active",
    "active_count",
    "answered",
    "began_two",
    "big",
    "bring_in",
    "bring_in_card",
    "cap",
    "clockwise",
    "duty",
    "duty_step",
    "first",
    "fresh",
    "full",
    "half_reopens",
    "holder",
    "last_wager",
    "lifted_in_two",
    "lifted_rounds",
    "lifted_when_began_two",
    "may_open_full",
    "paid",
    "places",
    "put_in",
    "rounds",
    "shallowest",
    "size",
    "small",
    "stack",
    "standing",
    "standing_count",
    "step",
    "third",
    "to",
    "two_sizes",
    "wagers",
)


class Betting:
    """The chips of a hand and the wagering with them. Callers check what is legal first."""

    __slots__ = BETTING_FIELDS

    def __init__(self, rulebook: Rulebook, stake: Stake, stacks: list[int]) -> None:
        n = len(stacks)
        self.places: int = n
        self.clockwise: tuple[tuple[int, ...], ...] = _CLOCKWISE[n - 1]
        self.small: int = stake.small_bet
        self.big: int = stake.big_bet
        self.bring_in: int = stake.bring_in
        self.half_reopens: bool = rulebook.short_all_in_reopens_at is _HALF
        self.cap: int = 1 + rulebook.raise_cap
        self.lifted_in_two: bool = rulebook.cap_lifted is _TWO_IN_HAND
        self.lifted_when_began_two: bool = rulebook.cap_lifted is _ROUND_BEGAN_TWO
        self.may_open_full: bool = rulebook.bring_in_may_open_full
        terms = Terms(self.small, self.big, self.bring_in, self.may_open_full, self.cap)
        rounds, lifted_rounds = rounds_of(terms)
        self.rounds: Rounds = rounds
        self.lifted_rounds: Rounds = lifted_rounds

        self.stack: list[int] = stacks
        self.put_in: list[int] = [0] * n
        """Antes and bets of the hand."""
        self.standing: list[bool] = [True] * n
        """Not folded."""
        self.active: list[bool] = [True] * n
        """Can act: not folded, chips behind, and not playing for what he has put in."""
        self.standing_count: int = n
        self.active_count: int = n

        self.fresh: list[int] = [UNASKED] * n
        """`answered` at the beginning of a round."""
        self.begin(3, two_sizes=False)

    # Rounds

    def begin(self, street: int, two_sizes: bool) -> None:
        """A new round; with `two_sizes` the size is the small bet until someone bets big."""
        self._nobody_acted()
        self.third: bool = street == 3
        self.two_sizes: bool = two_sizes
        """Fourth street with an open pair, and no big wager yet."""
        self.began_two: bool = self.standing_count == 2
        lifted = self.began_two and (self.lifted_in_two or self.lifted_when_began_two)
        rounds = self.lifted_rounds if lifted else self.rounds
        self.size: int = self.big if street > 4 else self.small
        self.shallowest: int = min(self.stack)
        """The least that a player who can act has at the beginning of the round."""
        self.step: Step | None = None
        """Where the round is, as long as nobody is short."""
        step = rounds.two_sizes if two_sizes else rounds.streets[street]
        if self.active_count < 2:
            return
        if self.shallowest <= step.most:
            # Those who cannot act any more are short for nobody.
            self.shallowest = min([s for s, active in zip(self.stack, self.active) if active])
        if step.most < self.shallowest:
            self.step = step

    def _nobody_acted(self) -> None:
        """What the players did in a round, before they do."""
        n = self.places
        self.paid: list[int] = [0] * n
        """Put in this round."""
        self.answered: list[int] = self.fresh.copy()
        """What the player had in after he last acted in this round; of one who cannot act, beyond
        every amount."""
        self.acted: list[int] = [NOBODY] * n
        """Full wagers there had been when the player last acted in this round; -1: not yet."""
        self.to: int = 0
        self.full: int = 0
        self.wagers: int = 0
        self.holder: int = NOBODY
        """A player who has put in `to`, so that others can be asked for it."""
        self.duty: int = NOBODY
        """Who is to bring in, while nobody has."""
        self.duty_step: Step | None = None
        """The step before the bring-in, as long as nobody is short."""
        self.bring_in_card: int = NOBODY
        """Who holds the card that brings in; he alone may not fold."""
        self.first: int = NOBODY
        """Who acted first in the round."""
        self.last_wager: int = NOBODY
        """Who bet, completed or raised last in the round."""

    def over(self) -> bool:
        """Where at most one player can act: betting is over for the hand, for he owes nothing."""
        return self.active_count == 0 or self.owed(self.active.index(True)) == 0

    def expect_bring_in(self, i: int) -> None:
        """The player holds the card that brings in."""
        self.duty = self.bring_in_card = i
        self.duty_step = self.step
        self.step = None

    def next_to_act(self, start: int) -> int:
        """The first place from `start` clockwise that has to act, or -1: the round is over."""
        answered, to = self.answered, self.to
        for i in self.clockwise[start]:
            # Who answered less and yet owes nothing is the last who can act: `over` sees to him.
            if answered[i] < to:
                return i
        return NOBODY

    def claims_alone(self, i: int, may_add: bool) -> bool:
        """Whether there is a layer that only this player can claim: money that others matched, and
        that nobody still in has put in or (with `may_add`) can still put in."""
        matched = claimed = 0
        for j in range(self.places):
            if j != i:
                put_in = self.put_in[j]
                matched = max(matched, put_in)
                if self.standing[j]:
                    more = self.stack[j] if may_add and self.active[j] else 0
                    claimed = max(claimed, put_in + more)
        return min(matched, self.put_in[i]) > claimed

    # What a player owes and may do

    def owed(self, i: int) -> int:
        """Chips a call adds: to the highest amount in that an opponent still in has put in or can
        still put in, at most the stack."""
        need = self.to - self.paid[i]
        if need <= 0:
            return 0
        holder, stack = self.holder, self.stack[i]
        if holder < 0 or not self.standing[holder]:
            need = max(0, min(need, self._reach_of_opponents(i) - self.paid[i]))
        return need if need < stack else stack  # noqa: FURB136 - a hot path

    def legal(self, i: int) -> Legal:
        """Everything the player in turn may do."""
        step = self.step
        if step is None:
            return self._legal(i)
        offered = step.offered.get(self.paid[i])
        if offered is None:
            offered = step.offered[self.paid[i]] = self._legal(i)
        return offered

    def _legal(self, i: int) -> Legal:
        if self.duty >= 0:
            # Who holds the card and cannot bring in passes the duty on (TDA RP-10E).
            self.duty = i
            return self._legal_bring_in(i)
        to, paid = self.to, self.paid[i]
        reach = paid + self.stack[i]
        owed = self.owed(i) if paid < to else 0
        closed = self._closed(i, reach)
        wagers = () if closed else self._wagers(reach)
        kind = _RAISE if self.wagers else _COMPLETE if to else _BET
        return Legal(True, not owed, owed, 0, kind, wagers, closed)

    def _legal_bring_in(self, i: int) -> Legal:
        if self.duty_step is not None and i == self.bring_in_card:
            offered = self.duty_step.offered.get(UNASKED)
            if offered is None:
                offered = self.duty_step.offered[UNASKED] = self._bring_in(i)
            return offered
        return self._bring_in(i)

    def _bring_in(self, i: int) -> Legal:
        stack = self.stack[i]
        amount = min(self.bring_in, stack, self._reach_of_opponents(i))
        wagers: tuple[int, ...] = ()
        closed = ""
        if not self.may_open_full or self.bring_in >= self.small:
            closed = BRING_IN_ONLY
        elif stack <= self.bring_in:
            closed = STACK_TOO_SHORT
        else:
            wagers = (min(self.small, stack),)
        return Legal(i != self.bring_in_card, False, 0, amount, _COMPLETE, wagers, closed)

    def _closed(self, i: int, reach: int) -> str:
        """Why the player, who can put in `reach` this round, may make no wager; or nothing."""
        to = self.to
        if reach <= to:
            return STACK_TOO_SHORT
        if self._is_capped():
            return CAP_REACHED
        if self.answered[i] != UNASKED and not self._reopened(i):
            return NOT_REOPENED
        paid, stack = self.paid, self.stack
        for j, active in enumerate(self.active):
            if active and j != i and paid[j] + stack[j] > to:
                return ""
        return NOBODY_CAN_CALL

    def _is_capped(self) -> bool:
        """Whether the bet and every raise of the round have been made, and the cap holds."""
        return self.wagers >= self.cap and not (
            (self.lifted_in_two and self.standing_count == 2)
            or (self.lifted_when_began_two and self.began_two)
        )

    def _reopened(self, i: int) -> bool:
        """Whether he who has acted may raise: half of a wager or more stands against him."""
        # On third street the completion starts afresh for those who acted before it.
        before_completion = self.third and self.acted[i] == 0 and self.wagers > 0
        return self._is_full(self.to - (0 if before_completion else self.paid[i]))

    def _is_full(self, amount: int) -> bool:
        return 2 * amount >= self.size if self.half_reopens else amount >= self.size

    def _wagers(self, reach: int) -> tuple[int, ...]:
        """The totals for a player who can put in `reach` in this round, which is above `to`."""
        first = self.full + self.size
        if reach <= first:
            return (reach,)
        if not self.two_sizes:
            return (first,)
        return (first, min(reach, self.full + self.big))

    def _reach_of_opponents(self, i: int) -> int:
        """The most that one opponent still in has put in or can still put in this round."""
        most = 0
        for j in range(self.places):
            if j != i and self.standing[j]:
                reach = self.paid[j] + (self.stack[j] if self.active[j] else 0)
                if reach > most:
                    most = reach
        return most

    # What players do; where chips go in, those left behind are the answer

    def post_antes(self, ante: int) -> list[int]:
        """Everybody posts what he has of the ante; the amounts."""
        posted = [ante if chips > ante else chips for chips in self.stack]  # noqa: FURB136 - hot
        self.put_in = posted
        self.stack = [chips - amount for chips, amount in zip(self.stack, posted)]
        for i, left in enumerate(self.stack):
            if not left:
                self.freeze(i)
        return posted

    def post_bring_in(self, i: int, amount: int) -> int:
        """The bring-in, which `legal` worked out."""
        if self.bring_in == self.small:
            # It is the bet itself, and for less it is judged like any short all-in.
            return self.wager(i, amount)
        # The price stays the whole bring-in for the others, also where this is less.
        self.to = self.bring_in
        self.duty = NOBODY
        self.step = self.duty_step
        self._climb(0)
        return self.call(i, amount)

    def wager(self, i: int, to: int) -> int:
        """A bet, completion or raise to a total for the round."""
        if self.duty >= 0:
            self.duty = NOBODY
            self.step = self.duty_step
        above = to - self.full
        if self.two_sizes and above > self.small:
            self.two_sizes = False
            self.size = self.big
        if self.step is not None or self._is_full(above):
            self.full = to
            self.wagers += 1
        self.to = to
        self.last_wager = i
        self._climb(to)
        return self.call(i, to - self.paid[i])

    def call(self, i: int, amount: int) -> int:
        """A call that adds what `legal` worked out."""
        left = self.stack[i] - amount
        self.stack[i] = left
        paid = self.paid[i] + amount
        self.paid[i] = paid
        self.put_in[i] += amount
        if paid == self.to:
            self.holder = i
        self.answered[i] = paid
        self.acted[i] = self.wagers
        if self.first < 0:
            self.first = i
        if not left:
            self.freeze(i)
        return left

    def check(self, i: int) -> None:
        """A check."""
        self.answered[i] = self.paid[i]
        self.acted[i] = self.wagers
        if self.first < 0:
            self.first = i

    def fold(self, i: int) -> None:
        """A fold in turn."""
        if self.first < 0:
            self.first = i
        self.drop(i)

    def drop(self, i: int) -> None:
        """The player is out of the hand; what he put in stays."""
        self.standing[i] = False
        self.standing_count -= 1
        if self.standing_count == 2 and self.lifted_in_two:
            # The cap is off from here, which the steps of this round do not know.
            self.step = self.duty_step = None
        self.freeze(i)

    def freeze(self, i: int) -> None:
        """From now on he plays for what he has put in; chips behind are out of play."""
        if self.active[i]:
            self.active[i] = False
            self.active_count -= 1
            self.answered[i] = self.fresh[i] = _BEYOND
            if self.active_count < 2:
                self.step = self.duty_step = None

    # Steps

    def _climb(self, to: int) -> None:
        """The next step, after a wager to this total or, 0, the bring-in."""
        step = self.step
        if step is None:
            return
        after = step.next.get(to)
        if after is None:
            if self._is_capped():
                after = Step(self.to)
            else:
                after = Step(self.full + (self.big if self.two_sizes else self.size))
            step.next[to] = after
        self.step = after if after.most < self.shallowest and self.wagers < STEPS_MAX else None
