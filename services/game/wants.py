"""What a hand waits for, and what a player may do."""

from enum import IntEnum
from typing import Final

from services.game.pots import Pot


class ActionKind(IntEnum):
    """What a player does in his turn (docs/rules.md, 3)."""

    BRING_IN = 1
    FOLD = 2
    CHECK = 3
    CALL = 4
    BET = 5
    COMPLETE = 6
    RAISE = 7


class Legal:
    """What the player to act may do, worked out once for the decision."""

    __slots__ = ("bring_in", "call", "check", "closed", "fold", "wager_kind", "wagers")

    def __init__(
        self,
        fold: bool,
        check: bool,
        call: int,
        bring_in: int,
        wager_kind: int,
        wagers: tuple[int, ...],
        closed: str,
    ) -> None:
        self.fold: Final = fold
        """He may fold: always, except with the bring-in card."""
        self.check: Final = check
        """He may check."""
        self.call: Final = call
        """Chips that a call adds, what his stack allows; 0 where there is nothing to call."""
        self.bring_in: Final = bring_in
        """Chips of the bring-in; 0 where it is not his."""
        self.wager_kind: Final = wager_kind
        """BET, COMPLETE or RAISE of `ActionKind`: what a wager would be."""
        self.wagers: Final = wagers
        """Every total "to" for the round that he may make, ascending; a short all-in is one."""
        self.closed: Final = closed
        """Why there is no wager: the reason of the refusal ("CAP_REACHED"), else empty."""


class Deal:
    """Wants cards. Burn first, then deal one by one in this order."""

    __slots__ = ("burn", "cards", "positions", "reshuffle")

    def __init__(
        self,
        cards: tuple[tuple[int, bool], ...],
        burn: int,
        positions: tuple[int, ...],
        reshuffle: tuple[int, ...] = (),
    ) -> None:
        self.cards: Final = cards
        """(seat or -1 for a community card, up) of each card."""
        self.burn: Final = burn
        """Cards that are burned before."""
        self.positions: Final = positions
        """Where each card lies in the current deck, which is the new one after `reshuffle`."""
        self.reshuffle: Final = reshuffle
        """Positions in the current deck to be shuffled into a new one first; usually none."""


class Act:
    """Wants a player's action."""

    __slots__ = ("legal", "seat", "turn")

    def __init__(self, seat: int, turn: int, legal: Legal) -> None:
        self.seat: Final = seat
        """Who is to act."""
        self.turn: Final = turn
        """Number of this decision in the hand."""
        self.legal: Final = legal
        """What he may do."""


class Rake:
    """Wants the house's fee: one share for each pot."""

    __slots__ = ("dealt_in", "pots", "street")

    def __init__(self, pots: tuple[Pot, ...], dealt_in: int, street: int) -> None:
        self.pots: Final = pots
        """The pots after uncalled bets went back, main pot first."""
        self.dealt_in: Final = dealt_in
        """Players dealt in."""
        self.street: Final = street
        """Last street that was dealt, 3 to 7."""


class Showdown:
    """Wants the pots divided: `showdown.divide` takes it as it is."""

    __slots__ = ("button", "community", "hands", "order", "pots", "tabled")

    def __init__(
        self,
        pots: tuple[Pot, ...],
        hands: dict[int, tuple[int, ...]],
        community: tuple[int, ...],
        order: tuple[int, ...],
        button: int,
        tabled: bool,
    ) -> None:
        self.pots: Final = pots
        """Pots that two or more can win, net of rake; a pot's place here is its index."""
        self.hands: Final = hands
        """Own cards of everyone still in, by seat, in the order dealt."""
        self.community: Final = community
        """The card that is everybody's seventh, if there is one."""
        self.order: Final = order
        """Seats in the order of showing."""
        self.button: Final = button
        """Seat of the button; position counts clockwise from the seat after it."""
        self.tabled: Final = tabled
        """All hands lie face up already: nobody can muck."""


Want = Deal | Act | Rake | Showdown


class ShowdownResult:
    """How the pots of a `Showdown` are divided."""

    __slots__ = ("awards", "reveals")

    def __init__(
        self,
        awards: tuple[tuple[int, int, int, int, str], ...],
        reveals: tuple[tuple[int, bool, str], ...],
    ) -> None:
        self.awards: Final = awards
        """(pot index, seat, amount, part, name of the hand); the parts of a pot add up to it."""
        self.reveals: Final = reveals
        """(seat, shown or mucked, name of the hand) of everyone still in, in showing order."""
