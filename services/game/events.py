"""What happens in a hand, in order.

Inside the game an event is a tuple whose first item is an `EventKind`; the comments beside the
kinds name the others. `describe` turns one into the frozen dataclass of its kind, for the edges.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

Event = tuple[Any, ...]


class EventKind(IntEnum):
    """First item of every event."""

    ANTE = 1  # seat, amount
    STREET = 2  # street 3..7
    DEALT = 3  # seat or -1 for a community card, card, up
    BURNED = 4  # count
    RESHUFFLED = 5  # count
    BROUGHT_IN = 6  # seat, amount
    COMPLETED = 7  # seat, to
    BET = 8  # seat, to
    RAISED = 9  # seat, to
    CALLED = 10  # seat, amount added
    CHECKED = 11  # seat
    FOLDED = 12  # seat
    ALL_IN = 13  # seat
    TIMED_OUT = 14  # seat
    PROTECTED = 15  # seat
    LEFT = 16  # seat
    UNCALLED = 17  # seat, amount
    POTS = 18  # ((amount, (seat, ...)), ...)
    RAKED = 19  # (share of each pot, ...)
    SHOWN = 20  # seat, (card, ...), name of the hand
    MUCKED = 21  # seat
    AWARDED = 22  # pot index, seat, amount, part, name of the hand
    ENDED = 23  # ((seat, stack), ...)
    VOIDED = 24


WHOLE: Final = 0
"""Part of an award: the whole pot."""
HIGH: Final = 1
"""Part of an award: the high half."""
LOW: Final = 2
"""Part of an award: the low half."""

COMMUNITY: Final = -1
"""Stands for a seat where a card is everybody's."""


@dataclass(frozen=True, slots=True)
class AntePosted:
    """A player posted his ante, or what he had of it."""

    seat: int
    amount: int


@dataclass(frozen=True, slots=True)
class StreetBegan:
    """Cards of a street, 3 to 7, are about to be dealt."""

    street: int


@dataclass(frozen=True, slots=True)
class CardDealt:
    """A card went to a seat, or (-1) to everybody; `up` cards are public."""

    seat: int
    card: int
    up: bool


@dataclass(frozen=True, slots=True)
class CardsBurned:
    """Cards left the top of the deck unseen."""

    count: int


@dataclass(frozen=True, slots=True)
class CardsReshuffled:
    """Cards were shuffled into a new deck (docs/rules.md, 3, not enough cards)."""

    count: int


@dataclass(frozen=True, slots=True)
class BroughtIn:
    """The bring-in was posted, or what its player had of it."""

    seat: int
    amount: int


@dataclass(frozen=True, slots=True)
class Completed:
    """A bring-in or a short all-in was completed; `to` is the player's total for the round."""

    seat: int
    to: int


@dataclass(frozen=True, slots=True)
class BetMade:
    """The round was opened; `to` is the player's total for the round."""

    seat: int
    to: int


@dataclass(frozen=True, slots=True)
class Raised:
    """A raise; `to` is the player's total for the round."""

    seat: int
    to: int


@dataclass(frozen=True, slots=True)
class Called:
    """A call; `amount` is what it added."""

    seat: int
    amount: int


@dataclass(frozen=True, slots=True)
class Checked:
    """A check."""

    seat: int


@dataclass(frozen=True, slots=True)
class Folded:
    """A fold."""

    seat: int


@dataclass(frozen=True, slots=True)
class WentAllIn:
    """The last chip of a player went in."""

    seat: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The player to act ran out of time; what followed from it comes next."""

    seat: int


@dataclass(frozen=True, slots=True)
class Protected:
    """The player plays for what he has put in (docs/rules.md, 5)."""

    seat: int


@dataclass(frozen=True, slots=True)
class PlayerLeft:
    """A player left in the middle of the hand."""

    seat: int


@dataclass(frozen=True, slots=True)
class UncalledReturned:
    """The part of a wager that nobody matched went back."""

    seat: int
    amount: int


@dataclass(frozen=True, slots=True)
class PotsFormed:
    """The pots before rake: amount, and the seats that can win it; main pot first."""

    pots: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Raked:
    """The house's fee from each pot."""

    shares: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HandShown:
    """A hand was turned up; `name` is empty where it is tabled before the last card."""

    seat: int
    cards: tuple[int, ...]
    name: str


@dataclass(frozen=True, slots=True)
class HandMucked:
    """A beaten hand was not shown."""

    seat: int


@dataclass(frozen=True, slots=True)
class Awarded:
    """A part of a pot went to a seat: 0 the whole, 1 the high half, 2 the low half."""

    pot: int
    seat: int
    amount: int
    part: int
    name: str


@dataclass(frozen=True, slots=True)
class HandEnded:
    """The stacks at the end, by seat."""

    stacks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class HandVoided:
    """Every stake went back."""


Described = (
    AntePosted
    | StreetBegan
    | CardDealt
    | CardsBurned
    | CardsReshuffled
    | BroughtIn
    | Completed
    | BetMade
    | Raised
    | Called
    | Checked
    | Folded
    | WentAllIn
    | TimedOut
    | Protected
    | PlayerLeft
    | UncalledReturned
    | PotsFormed
    | Raked
    | HandShown
    | HandMucked
    | Awarded
    | HandEnded
    | HandVoided
)

_CLASSES: Final[dict[int, type[Described]]] = {
    EventKind.ANTE: AntePosted,
    EventKind.STREET: StreetBegan,
    EventKind.DEALT: CardDealt,
    EventKind.BURNED: CardsBurned,
    EventKind.RESHUFFLED: CardsReshuffled,
    EventKind.BROUGHT_IN: BroughtIn,
    EventKind.COMPLETED: Completed,
    EventKind.BET: BetMade,
    EventKind.RAISED: Raised,
    EventKind.CALLED: Called,
    EventKind.CHECKED: Checked,
    EventKind.FOLDED: Folded,
    EventKind.ALL_IN: WentAllIn,
    EventKind.TIMED_OUT: TimedOut,
    EventKind.PROTECTED: Protected,
    EventKind.LEFT: PlayerLeft,
    EventKind.UNCALLED: UncalledReturned,
    EventKind.POTS: PotsFormed,
    EventKind.RAKED: Raked,
    EventKind.SHOWN: HandShown,
    EventKind.MUCKED: HandMucked,
    EventKind.AWARDED: Awarded,
    EventKind.ENDED: HandEnded,
    EventKind.VOIDED: HandVoided,
}


def describe(event: Event) -> Described:
    """The dataclass of an event tuple, field by field; raises KeyError for an unknown kind."""
    return _CLASSES[event[0]](*event[1:])
