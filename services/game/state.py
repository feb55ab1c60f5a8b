"""What a hand consists of, and what can be read from it."""
# ruff: noqa: B905 (saying that lengths agree, as they do here, triples what zip costs)

from typing import Any, Final

from services.game import dealing, pots
from services.game.betting import BETTING_FIELDS, NOBODY, Betting
from services.game.boards import Boards
from services.game.forking import copy_fields
from services.game.rulebook import Game, TieBreak
from services.game.setup import RESULT_FIELDS, HandResult, HandSetup
from services.game.stub import STUB_FIELDS, Stub
from services.game.wants import Want

_SUIT: Final = TieBreak.SUIT
_RAZZ: Final = Game.RAZZ


_OWN_FIELDS: Final = (
    "_cards",
    "_chips",
    "_dealt_in",
    "_lacking",
    "_left",
    "_net_pots",
    "_place",
    "_round",
    "_seat",
    "_seen",
    "betting_is_over",
    "community",
    "inputs",
    "over",
    "street",
    "tabled",
    "turn",
    "want",
)
_PARTS: Final = {"_b": BETTING_FIELDS, "_boards": ("packed", "shared"), "_stub": STUB_FIELDS}


class HandState:
    """The table in the middle of a hand. Places count clockwise from the left of the button, so
    that of several the lowest is the nearest; outside of the game there are seats only."""

    __slots__ = (*_OWN_FIELDS, *_PARTS, "result", "setup")

    def __init__(self, setup: HandSetup) -> None:
        self.setup: Final = setup
        seats, stacks = setup.seats, setup.stacks
        first = seats.index(setup.button) + 1
        self._seat: tuple[int, ...] = seats[first:] + seats[:first]
        self._place: dict[int, int] = dealing.places(self._seat)
        self._chips: int = sum(stacks)
        rulebook = setup.rulebook
        self._b: Betting = Betting(rulebook, setup.stake, list(stacks[first:] + stacks[:first]))
        self._stub: Stub = Stub(rulebook.burn_cards, rulebook.short_deck)
        self._cards: list[list[int]] = [[] for _ in seats]
        by_suit = rulebook.first_to_act_tie is _SUIT
        self._boards: Boards = Boards(self._cards, rulebook.game is _RAZZ, by_suit)
        self._seen: int = 0
        self._dealt_in: int = 0
        self._round: dealing.Round = dealing.NO_CARDS
        self._lacking: int = 0
        self._left: int = 0
        self._net_pots: tuple[pots.Pot, ...] = ()
        self.want: Want | None = None
        """What the hand waits for; None before `start` and after the end."""
        self.street: int = 0
        """3 to 7; 0 before the start."""
        self.turn: int = 0
        """Number of the decision in the hand."""
        self.community: int = NOBODY
        """The card that is everybody's seventh, or -1."""
        self.betting_is_over: bool = False
        """Nobody will be asked any more (docs/rules.md, 3, price)."""
        self.tabled: bool = False
        """Hands lie face up before the showdown (docs/rules.md, 6)."""
        self.over: bool = False
        """The hand has ended."""
        self.result: HandResult | None = None
        """How it ended."""
        self.inputs: list[tuple[Any, ...]] = []
        """Everything fed so far: tuples of ints and strings for `replay`."""

    @property
    def betting(self) -> Betting:
        """The running round, by place: to be read, as explanations do."""
        return self._b

    @property
    def boards(self) -> Boards:
        """The up cards, by place: to be read, as explanations do."""
        return self._boards

    def take_over(self, other: "HandState") -> None:
        """The state of another hand with the same setup; what is fed to one leaves the other."""
        copy_fields(other, self, _OWN_FIELDS)
        for part, fields in _PARTS.items():
            copy_fields(getattr(other, part), getattr(self, part), fields)
        self._boards.hands = self._cards
        if other.result is not None:
            self.result = HandResult(self.setup)
            copy_fields(other.result, self.result, RESULT_FIELDS)

    @property
    def seats(self) -> tuple[int, ...]:
        """The seats dealt in, clockwise from the left of the button."""
        return self._seat

    @property
    def stacks(self) -> dict[int, int]:
        """Chips behind, by seat."""
        return dict(zip(self._seat, self._b.stack))

    @property
    def put_in(self) -> dict[int, int]:
        """Antes and bets of the hand, by seat."""
        return dict(zip(self._seat, self._b.put_in))

    @property
    def bets(self) -> dict[int, int]:
        """What is in for the running round, by seat."""
        return dict(zip(self._seat, self._b.paid))

    @property
    def to(self) -> int:
        """The highest amount in of the running round."""
        return self._b.to

    @property
    def folded(self) -> frozenset[int]:
        """Seats out of the hand."""
        return frozenset(s for s, stands in zip(self._seat, self._b.standing) if not stands)

    @property
    def all_in(self) -> frozenset[int]:
        """Seats that are in and cannot act: no chips behind, or playing for what they put in."""
        b = self._b
        return frozenset(
            seat for i, seat in enumerate(self._seat) if b.standing[i] and not b.active[i]
        )

    @property
    def left(self) -> frozenset[int]:
        """Seats whose players left in mid-hand."""
        return frozenset(seat for i, seat in enumerate(self._seat) if self._left >> i & 1)

    def cards(self, seat: int) -> tuple[int, ...]:
        """A seat's own cards in the order dealt."""
        return tuple(self._cards[self._place[seat]])

    def up_cards(self, seat: int) -> tuple[int, ...]:
        """Its up cards: the board."""
        return tuple(self._boards.up(self._place[seat]))

    def down_cards(self, seat: int) -> tuple[int, ...]:
        """Its down cards."""
        cards = self._cards[self._place[seat]]
        return tuple(cards[:2] + cards[6:])
