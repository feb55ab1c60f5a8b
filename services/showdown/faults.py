"""Faults of a request, gathered so that all are reported at once, each with its field and index.

They name places, never cards.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, TypeVar

from services.game.cards import parse_card
from services.runtime.errors import InvalidArgument

Value = TypeVar("Value")


class Faults:
    """The faults of one request."""

    LISTED_MAX: Final = 20
    """No more are reported; a request of rubbish must not cost a long answer."""

    def __init__(self) -> None:
        self._violations: list[tuple[str, str]] = []

    def add(self, field: str, description: str) -> None:
        """Note a fault of a field, for instance "hands[1].cards[3]"."""
        self._violations.append((field, description))

    def one_of(
        self, values: Mapping[int, Value], number: int, field: str, otherwise: Value
    ) -> Value:
        """The meaning of an enum's number; `otherwise` when it has none, which is a fault."""
        if number not in values:
            self.add(field, "is not one of the allowed values")
        return values.get(number, otherwise)

    def cards(self, names: Sequence[str], field: str, seen: set[int]) -> tuple[int, ...]:
        """The cards that are cards; the others, and those in `seen`, are faults. Adds to `seen`."""
        read = [self.card(name, f"{field}[{index}]", seen) for index, name in enumerate(names)]
        return tuple(card for card in read if card is not None)

    def card(self, name: str, field: str, seen: set[int]) -> int | None:
        """As `cards`, of one card."""
        try:
            card = parse_card(name)
        except ValueError:
            self.add(field, "is not a card")
            return None
        if card in seen:
            self.add(field, "occurs a second time")
        seen.add(card)
        return card

    def raise_if_any(self) -> None:
        """Raises InvalidArgument when there was a fault."""
        if self._violations:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raises InvalidArgument with the faults noted."""
        listed = self._violations[: self.LISTED_MAX]
        raise InvalidArgument(
            "INVALID_FIELD",
            "; ".join(f"{field}: {description}" for field, description in listed),
            violations=listed,
        )
