"""Why an input is refused: a reason for machines, the rule, a sentence (docs/rules.md, 3 and 5)."""

from collections.abc import Sequence
from typing import Final

from services.game import betting
from services.game.cards import CARDS
from services.game.pots import Pot
from services.game.wants import (
    Act,
    ActionKind,
    Deal,
    Legal,
    Rake,
    Showdown,
    ShowdownResult,
)

_CLOSED: Final = {
    betting.CAP_REACHED: ("3 cap", "one bet and the raises of the round have been made"),
    betting.NOT_REOPENED: (
        "3 steps",
        "he has acted, and less than half of a wager stands against him",
    ),
    betting.NOBODY_CAN_CALL: ("3 price", "no opponent still in can put in more"),
    betting.STACK_TOO_SHORT: ("3 amounts", "the stack is not above the amount to call"),
    betting.BRING_IN_ONLY: ("3 bring-in", "only the bring-in itself may be posted"),
}
_WAGERS: Final = (ActionKind.BET, ActionKind.COMPLETE, ActionKind.RAISE)


class Refused(ValueError):  # noqa: N818 - an answer to the player, not a fault of the program
    """An input that the rules do not allow now; nothing was changed."""

    def __init__(self, reason: str, rule: str, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason
        """Machine-readable: "CAP_REACHED"."""
        self.rule: Final = rule
        """Section of docs/rules.md and the rule in it: "3 cap"."""


def not_wanted(reason: str, what: str) -> Refused:
    """An input that the hand does not wait for."""
    return Refused(f"NO_{reason}_WANTED", "3 acting", f"the hand does not wait for {what} now")


def hand_over(over: bool) -> Refused:
    """Nothing can be done to a hand that has not begun, or has ended."""
    if over:
        return Refused("HAND_OVER", "5 leaving", "the hand is over")
    return Refused("NOT_STARTED", "5 leaving", "the hand has not begun")


def no_such_seat(seat: int) -> Refused:
    """A seat that is not in the hand."""
    return Refused("NOT_DEALT_IN", "1 seats", f"seat {seat} is not in this hand")


def not_in_turn(want: Act | Deal | Rake | Showdown | None, seat: int) -> Refused:
    """An action out of turn."""
    if isinstance(want, Act):
        return Refused("NOT_YOUR_TURN", "3 acting", f"seat {want.seat} is to act, not seat {seat}")
    return Refused("NO_ACTION_WANTED", "3 acting", "nobody is to act now")


def not_offered(legal: Legal, kind: int, amount: int, to: int) -> Refused:
    """An action in turn that is not among the legal ones."""
    if kind in _WAGERS:
        return _no_wager(legal, kind, amount)
    if amount:
        return Refused(
            "AMOUNT_NOT_TAKEN", "3 amounts", "check, call, fold and bring-in carry no amount"
        )
    if kind == ActionKind.BRING_IN:
        return Refused("NOT_BRING_IN", "3 bring-in", "there is no bring-in for him to post")
    if not legal.fold:
        return Refused(
            "BRING_IN_REQUIRED", "3 bring-in", "who holds the bring-in card posts it or opens full"
        )
    if kind == ActionKind.CHECK:
        return Refused(
            "CHECK_NOT_FREE", "3 acting", f"there is {to or legal.bring_in} to be put in"
        )
    if kind == ActionKind.CALL:
        return Refused("NOTHING_TO_CALL", "3 acting", "there is nothing to call")
    return Refused("NO_SUCH_ACTION", "3 acting", f"{kind} is not an action")


def _no_wager(legal: Legal, kind: int, amount: int) -> Refused:
    if legal.closed:
        return Refused(legal.closed, *_CLOSED[legal.closed])
    offered = " or ".join(str(wager) for wager in legal.wagers)
    if kind != legal.wager_kind:
        wanted = ActionKind(legal.wager_kind).name.lower()
        return Refused("WRONG_WAGER", "3 acting", f"a wager here is to {wanted} to {offered}")
    return Refused("AMOUNT_NOT_OFFERED", "3 steps", f"the wager is to {offered}, not to {amount}")


def unfit_cards(cards: Sequence[int], count: int) -> Refused:
    """Cards that are not as many as wanted, or not all of them unseen cards of the deck."""
    if len(cards) != count:
        return Refused("WRONG_NUMBER_OF_CARDS", "3 streets", f"{count} cards are wanted")
    if any(card not in range(CARDS) for card in cards):
        return Refused("NO_SUCH_CARD", "2 cards", "a card is 0 to 51")
    return Refused("CARD_DEALT_TWICE", "2 cards", "a card was dealt before in this hand")


def check_shares(shares: Sequence[int], pots: tuple[Pot, ...]) -> None:
    """Refused unless there is a share for each pot, none negative or above its pot."""
    fits = len(shares) == len(pots)
    for share, pot in zip(shares, pots, strict=False):
        fits = fits and 0 <= share <= pot.amount
    if not fits:
        raise Refused("RAKE_DOES_NOT_FIT", "7 rake", "one share a pot, from 0 to the pot")


def check_awards(result: ShowdownResult, want: Showdown) -> None:
    """Refused unless the awards of each pot add up to it, go to seats that can win it, and
    everyone still in is revealed once, the first of them showing."""
    rest = [pot.amount for pot in want.pots]
    for index, seat, amount, _, _ in result.awards:
        if not 0 <= index < len(rest) or seat not in want.pots[index].seats or amount < 0:
            raise Refused("AWARD_DOES_NOT_FIT", "4 side pots", "an award outside of its pot")
        rest[index] -= amount
    if any(rest):
        raise Refused("AWARDS_DO_NOT_ADD_UP", "6 showdown", "the awards are not the pots")
    if sorted([seat for seat, _, _ in result.reveals]) != sorted(want.order):
        raise Refused("REVEALS_DO_NOT_FIT", "6 showdown", "everyone still in, once")
