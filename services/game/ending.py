"""How a club game ends: a freeze-out, or a game to an agreed time (docs/rules.md, 8).

Cash games have no end. Stacks are whole minor units by player, as they are between two hands: a
running hand is always finished first, so nothing here is asked in the middle of one.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

Player = TypeVar("Player", bound=Hashable)


class Place(NamedTuple, Generic[Player]):
    """A place of the final ranking. Who shares it takes as many places: after two firsts comes a
    third."""

    rank: int
    """1 is the winner's."""
    players: tuple[Player, ...]
    """Who has it, in the order given; two or more share it."""


def is_over(stacks: Mapping[Player, int], *, time_is_up: bool = False) -> bool:
    """Whether no further hand is dealt: one player has all the chips, or the agreed time is up.

    `time_is_up` is false for ever in a freeze-out. Raises ValueError for a stack below zero, or
    where nobody has a chip.
    """
    _check(stacks)
    return time_is_up or sum(1 for stack in stacks.values() if stack) == 1


def out_in_hand(
    before: Mapping[Player, int], after: Mapping[Player, int]
) -> tuple[tuple[Player, ...], ...]:
    """Who lost his last chip in a hand, the better place first; those who tie stand together.

    Of two who are out in one hand the one with the larger stack at its start ranks higher. Raises
    ValueError where the two do not name the same players, or a stack is below zero.
    """
    if before.keys() != after.keys():
        raise ValueError("the stacks before and after a hand are not those of the same players")
    _check(before)
    _check(after)
    return _by_stack(
        {player: before[player] for player in before if before[player] and not after[player]}
    )


def final_ranking(
    stacks: Mapping[Player, int], out: Iterable[Sequence[Sequence[Player]]] = ()
) -> tuple[Place[Player], ...]:
    """Everybody's place: those with chips by their stacks, then those who are out, the last first.

    `out` holds what `out_in_hand` answered for each hand, in the order played. Equal stacks share a
    place. Raises ValueError where a player has chips and is out, is out twice, or has neither
    chips nor a hand in which he lost them.
    """
    _check(stacks)
    with_chips = {player: stack for player, stack in stacks.items() if stack}
    groups = [*_by_stack(with_chips)]
    for hand in reversed(list(out)):
        groups += [tuple(group) for group in hand]
    ranked = [player for group in groups for player in group]
    if len(set(ranked)) != len(ranked):
        raise ValueError("a player stands in the ranking twice")
    if not set(stacks) <= set(ranked):
        raise ValueError("a player without chips is missing among those who are out")
    places = []
    rank = 1
    for group in groups:
        if group:
            places.append(Place(rank, group))
            rank += len(group)
    return tuple(places)


def payout(
    pool: int, percents: Sequence[int], ranking: Sequence[Place[Player]]
) -> dict[Player, int]:
    """What everybody gets of all the chips, whole minor units: together just the pool.

    percents: of each place, the winner's first, 100 together. Who shares a place shares what all
    the places that it takes would get. What does not divide evenly goes one unit each: to the
    places from the first on, then within a place in the order given. Raises ValueError for other
    percents, or where nobody stands in the ranking.
    """
    if sum(percents) != 100 or min(percents) < 0 or pool < 0 or not ranking:
        raise ValueError("prizes are not 100 percent of the chips, or nobody's")
    shares = []
    for place in ranking:
        first = place.rank - 1
        shares.append(sum(percents[first : first + len(place.players)]))
    amounts = [pool * share // 100 for share in shares]
    paid_places = [at for at, share in enumerate(shares) if share] or [0]
    whole, odd_units = divmod(pool - sum(amounts), len(paid_places))
    for nth, at in enumerate(paid_places):
        amounts[at] += whole + (nth < odd_units)
    paid: dict[Player, int] = {}
    for place, amount in zip(ranking, amounts, strict=True):
        share, odd = divmod(amount, len(place.players))
        paid |= {player: share + (at < odd) for at, player in enumerate(place.players)}
    return paid


def _by_stack(stacks: Mapping[Player, int]) -> tuple[tuple[Player, ...], ...]:
    sizes = sorted(set(stacks.values()), reverse=True)
    return tuple(tuple(p for p, stack in stacks.items() if stack == size) for size in sizes)


def _check(stacks: Mapping[Player, int]) -> None:
    if any(stack < 0 for stack in stacks.values()):
        raise ValueError("a stack is below zero")
    if not any(stacks.values()):
        raise ValueError("nobody has a chip")
