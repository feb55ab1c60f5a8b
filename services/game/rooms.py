"""Rulebooks of the rooms whose recorded hands are replayed, and their habits beside.

A file each in `rulebooks/rooms/`: a shipped rulebook with a few settings laid over it, and the
habits that no house rule covers. Of these a room has one, but its hands may not tell which; the
file lists what to try, all of it where it says nothing.

    base = "modern"
    odd_unit = ["high"]         # of "high", "low": which half of a hi-lo pot gets the odd unit
    rake_from = ["each_pot"]    # of "each_pot", "main_pot": what a rake is taken from first
    raises_over_bring_in = true # false where it says nothing
    [settings]
    fourth_street_pair = true
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import Any, Final

from services.game.events import HIGH, LOW, WHOLE
from services.game.pots import Pot, rake_shares
from services.game.rulebook import Rulebook, shipped
from services.game.showdown import divide
from services.game.wants import Showdown, ShowdownResult

ROOMS: Final = "rooms/"
ANY_ROOM: Final = "rooms/any"


@dataclass(frozen=True, slots=True)
class Habits:
    """How a room does what docs/rules.md, 6 and 7, settles without a choice."""

    odd_unit_to_low: bool = False
    """The low half of a hi-lo pot gets the odd unit, not the high."""
    rake_from_main_pot: bool = False
    """Rake is taken from the main pot as far as it goes, not from each by its size."""
    raises_over_bring_in: bool = False
    """On third street the first raise may be to the bring-in and a small bet, over a completion to
    the small bet and over an all-in below that alike (docs/rules.md, 3: it is to the small bet or
    twice as much).
    """

    def shares(self, rake: int, pots: Sequence[Pot]) -> tuple[int, ...]:
        """What the rake takes from each pot, as `rake_shares` does."""
        if not self.rake_from_main_pot:
            return rake_shares(rake, pots)
        shares = []
        for pot in pots:
            shares.append(min(rake, pot.amount))
            rake -= shares[-1]
        return tuple(shares)

    def divide(self, showdown: Showdown, rules: Rulebook) -> ShowdownResult:
        """Who gets what of each pot, as `divide` does."""
        return (_divide_odd_to_low if self.odd_unit_to_low else divide)(showdown, rules)


def rulebook_named(name: str) -> Rulebook:
    """A shipped rulebook, a variant of one ("club/razz"), or a room's ("rooms/stars"). Raises
    KeyError.
    """
    if not name.startswith(ROOMS):
        return shipped(name)
    content = _room(name)
    return shipped(content["base"]).with_house(name=name, **content["settings"])


def habits_of(name: str) -> tuple[Habits, ...]:
    """The habits that a hand under this rulebook may show, in the order to try them. Only rooms
    have any of their own.
    """
    if not name.startswith(ROOMS):
        return (Habits(),)
    content = _room(name)
    odd_units: Sequence[str] = content.get("odd_unit", ("high", "low"))
    rakes: Sequence[str] = content.get("rake_from", ("each_pot", "main_pot"))
    over_bring_in: bool = content.get("raises_over_bring_in", False)
    return tuple(
        Habits(odd_unit == "low", rake == "main_pot", over_bring_in)
        for rake, odd_unit in product(rakes, odd_units)
    )


def room_names() -> tuple[str, ...]:
    """The rooms with a file of their own: "rooms/stars"."""
    folder = resources.files(__package__) / "rulebooks" / "rooms"
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".toml"))
    return tuple(ROOMS + name.removesuffix(".toml") for name in files)


@lru_cache(maxsize=64)
def _room(name: str) -> Mapping[str, Any]:
    if name not in room_names():
        raise KeyError(name)
    file = resources.files(__package__) / "rulebooks" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _divide_odd_to_low(showdown: Showdown, rules: Rulebook) -> ShowdownResult:
    """Of each odd pot the high half is that of one unit less, the low half that of one more."""
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
