"""The pots of a hand: uncalled money, layers of side pots, the rake of each.

See docs/rules.md, 4 and 7.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class Pot(NamedTuple):
    """A main or side pot."""

    amount: int
    """Minor units in the pot."""
    seats: tuple[int, ...]
    """The seats, ascending, that can win it: those still in who paid the whole of its layer."""


class Uncalled(NamedTuple):
    """The part of a wager that nobody matched; it goes back before any pot is counted."""

    seat: int
    """Whose money it is."""
    amount: int
    """Minor units that go back."""


def uncalled(put_in: Mapping[int, int]) -> Uncalled | None:
    """The highest total less the second-highest, folded and antes included (docs/rules.md, 4).

    `put_in` holds each seat's total of antes and bets in minor units. None when the highest total
    was matched.
    """
    place, amount = unmatched(list(put_in.values()))
    return Uncalled(list(put_in)[place], amount) if amount else None


def unmatched(totals: Sequence[int]) -> tuple[int, int]:
    """As `uncalled`, of totals by place: (place of the highest, what goes back, which may be 0)."""
    if len(totals) < 2:
        return 0, sum(totals)
    *_, second, highest = sorted(totals)
    return totals.index(highest), highest - second


def layers(put_in: Mapping[int, int], folded: Collection[int] = ()) -> tuple[Pot, ...]:
    """The pots, main pot first, of totals that had their uncalled part returned (docs/rules.md, 4).

    One layer stands at each distinct total of the seats not in `folded`; folded money fills the
    layers it reaches, and what lies above the highest goes to the last pot. The amounts add up to
    the sum of `put_in`. Raises ValueError when a total is negative, or when there is money and no
    seat that put in any is still in.
    """
    if put_in and min(put_in.values()) < 0:
        raise ValueError("a total put in is below zero")
    live = sorted(seat for seat in put_in if seat not in folded)
    levels = sorted({put_in[seat] for seat in live} - {0})
    if not levels:
        if any(put_in.values()):
            raise ValueError("money was put in, but no seat is left that can win it")
        return ()
    pots = []
    rest = sum(put_in.values())
    floor = 0
    for level in levels[:-1]:
        amount = sum([min(total, level) - floor for total in put_in.values() if total > floor])
        pots.append(Pot(amount, tuple([seat for seat in live if put_in[seat] >= level])))
        rest -= amount
        floor = level
    # The last layer has no ceiling: folded money above it belongs to the last pot.
    pots.append(Pot(rest, tuple([seat for seat in live if put_in[seat] >= levels[-1]])))
    return tuple(pots)


def rake_shares(rake: int, pots: Sequence[Pot]) -> tuple[int, ...]:
    """What the rake takes from each pot (docs/rules.md, 7): minor units, adding up to `rake`.

    A share is floor(rake x pot / total); left-over units one each, main pot first. Raises
    ValueError when the rake is negative or more than the pots hold.
    """
    total = sum(pot.amount for pot in pots)
    if not 0 <= rake <= total:
        raise ValueError(f"rake {rake} is not between 0 and the {total} in the pots")
    if not rake:
        return (0,) * len(pots)
    shares = [rake * pot.amount // total for pot in pots]
    for index in range(rake - sum(shares)):
        shares[index] += 1
    return tuple(shares)
