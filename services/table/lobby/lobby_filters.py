"""Which tables somebody wants to see."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.game.rulebook import UNITS_MAX
from services.game.setup import SEATS_MAX
from services.runtime.errors import InvalidArgument

NAME_MAX: Final = 64
LISTED_MAX: Final = 16
HANDS_PER_HOUR_MAX: Final = 100_000
PERCENT_MAX: Final = 100

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_MOST: Final = {
    "small_bet_min": UNITS_MAX,
    "small_bet_max": UNITS_MAX,
    "seats": SEATS_MAX,
    "free_seats_min": SEATS_MAX,
    "players_min": SEATS_MAX,
    "average_pot_min": UNITS_MAX,
    "hands_per_hour_min": HANDS_PER_HOUR_MAX,
    "players_per_fourth_street_min": PERCENT_MAX,
}

Fits = Callable[[table_pb2.TableSummary], bool]


def everything(_summary: table_pb2.TableSummary) -> bool:
    """What an unset filter lets through."""
    return True


def fits_of(wanted: table_pb2.LobbyFilter) -> Fits:
    """Whether a table is one of those. Raises InvalidArgument with every fault of the filter."""
    _check(wanted)
    checks = list(_checks(wanted))

    def fits(summary: table_pb2.TableSummary) -> bool:
        for check in checks:  # noqa: SIM110 (all() over a generator takes twice as long)
            if not check(summary):
                return False
        return True

    return fits


def _checks(wanted: table_pb2.LobbyFilter) -> Iterator[Fits]:
    """What has to be so, of what the filter says anything about: lobbies are long."""
    if wanted.states:
        states = frozenset(wanted.states)
        yield lambda summary: summary.state in states
    else:
        yield lambda summary: summary.state != table_pb2.TABLE_STATE_CLOSED
    if wanted.players_min:
        yield lambda summary: summary.players >= wanted.players_min
    if wanted.average_pot_min:
        yield lambda summary: summary.average_pot >= wanted.average_pot_min
    if wanted.hands_per_hour_min:
        yield lambda summary: summary.hands_per_hour >= wanted.hands_per_hour_min
    if wanted.players_per_fourth_street_min:
        yield (
            lambda summary: (
                summary.players_per_fourth_street >= wanted.players_per_fourth_street_min
            )
        )
    if wanted.free_seats_min:
        yield lambda summary: summary.config.seats - summary.players >= wanted.free_seats_min
    if wanted.seats:
        yield lambda summary: summary.config.seats == wanted.seats
    if wanted.games:
        games = frozenset(wanted.games)
        yield lambda summary: summary.config.game in games
    if wanted.formats:
        formats = frozenset(wanted.formats)
        yield lambda summary: summary.config.format.kind in formats
    if wanted.rulebook:
        yield lambda summary: summary.config.rulebook == wanted.rulebook
    if wanted.currency:
        yield lambda summary: summary.config.currency == wanted.currency
    if wanted.small_bet_min or wanted.small_bet_max:
        bets = range(wanted.small_bet_min, (wanted.small_bet_max or UNITS_MAX) + 1)
        yield lambda summary: summary.config.stake.small_bet in bets


def _check(wanted: table_pb2.LobbyFilter) -> None:
    faults = [
        (f"filter.{field}", f"must be 0 to {most}")
        for field, most in _MOST.items()
        if not 0 <= getattr(wanted, field) <= most
    ]
    if wanted.seats == 1:
        faults.append(("filter.seats", f"must be 0, or 2 to {SEATS_MAX}"))
    if 0 < wanted.small_bet_max < wanted.small_bet_min:
        faults.append(("filter.small_bet_max", "must not be below small_bet_min"))
    if wanted.currency and not _CURRENCY.fullmatch(wanted.currency):
        faults.append(("filter.currency", "must be three capital letters"))
    if len(wanted.rulebook) > NAME_MAX or not wanted.rulebook.isprintable():
        faults.append(("filter.rulebook", f"must be at most {NAME_MAX} printable characters"))
    for field, given, known in (
        ("games", wanted.games, game_pb2.Game.values()),
        ("states", wanted.states, table_pb2.TableState.values()),
        ("formats", wanted.formats, table_pb2.FormatKind.values()),
    ):
        if not _are_known(given, known):
            faults.append((f"filter.{field}", f"must be at most {LISTED_MAX} that the room knows"))
    if faults:
        text = "; ".join(f"{field}: {reason}" for field, reason in faults)
        raise InvalidArgument("BAD_FILTER", text, violations=faults)


def _are_known(given: Iterable[int], known: Iterable[int]) -> bool:
    listed = list(given)
    return len(listed) <= LISTED_MAX and 0 not in listed and set(listed) <= set(known)
