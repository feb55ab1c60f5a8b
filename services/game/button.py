"""Who has the button, which marks the nominal dealer (docs/rules.md, 1)."""

from collections.abc import Sequence

from services.game.setup import SEATS_MAX


def drawn_button(seats: Sequence[int], cards: Sequence[int]) -> int:
    """The first button: the seat with the highest card, equal ranks by suit.

    cards: one each, of a deck that is not used for the hand. Raises ValueError for no seats, or for
    more or fewer cards than seats.
    """
    return max(zip(cards, seats, strict=True))[1]


def moved_button(last: int, seats: Sequence[int]) -> int:
    """The next button: clockwise from the seat that had it last to the next that is dealt in.

    That seat may be empty by now. Raises ValueError for no seats.
    """
    return min(seats, key=lambda seat: (seat - last - 1) % SEATS_MAX)
