"""Recorded hands: Poker Hand History files (PHH, TOML) of stud games.

A file names its players p1, p2, .. in clockwise order; here they are seats 0, 1, .. . Fields that
begin with an underscore are the user's own; the ones read here say under which rules a hand was
played and what more is known of its result. Money is in whole minor units.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, TypeVar

from services.game.cards import CARDS, parse_card
from services.game.pots import Pot
from services.game.rulebook import UNITS_MAX, Game

PLAYERS_MAX: Final = 8
ACTIONS_MAX: Final = 1000
"""More than any hand of eight players has."""
UNKNOWN_CARD: Final = "??"

GAMES: Final[Mapping[str, Game]] = {"F7S": Game.HIGH, "F7S/8": Game.HI_LO, "FR": Game.RAZZ}
"""PHH's names of the games."""

Read = TypeVar("Read")


class PhhError(ValueError):
    """A file that is not a recorded hand of stud: which field, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field: Final = field
        self.reason: Final = reason


class Word(StrEnum):
    """What a recorded action does."""

    DEAL = "d dh"
    BOARD = "d db"
    BRING_IN = "pb"
    CHECK_OR_CALL = "cc"
    WAGER = "cbr"
    FOLD = "f"
    SHOW = "sm"
    COMMENT = "#"


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """One entry of `actions`."""

    text: str
    """As it stands in the file."""
    word: Word
    seat: int = -1
    """Whose action it is, or whose card; -1 for a community card or a comment."""
    cards: tuple[int | None, ...] = ()
    """Cards dealt or shown, None for an unknown one; a show of none is a muck."""
    amount: int = 0
    """The total "to" of a wager."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An action to be tried in place of another (`_legal`, `_illegal`)."""

    at: int
    """After this many actions."""
    action: RecordedAction


@dataclass(frozen=True, slots=True)
class RakeTerms:
    """`_rake_schedule`: so much per cent, or so many units per full amount (docs/rules.md, 7)."""

    percent: Decimal = Decimal(0)
    half_even: bool = False
    """Rounding of a percentage; else down."""
    per_full: int = 0
    units: int = 0
    cap: int | None = None
    minimum_pot: int = 0
    """Smaller pots are not raked."""
    no_rake_on_third: bool = False


@dataclass(frozen=True, slots=True)
class RecordedHand:
    """What a file says. What it does not say is None or empty."""

    game: Game
    ante: int
    """The nominal one; a shorter stack posts what it has."""
    bring_in: int
    """0: there is none."""
    small_bet: int
    big_bet: int
    starting_stacks: tuple[int, ...]
    actions: tuple[RecordedAction, ...]
    finishing_stacks: tuple[int, ...] | None
    site: str
    """The room the hand was played in."""
    event: str
    """The tournament."""
    situations: tuple[str, ...]
    rulebook: str
    house: Mapping[str, Any]
    """Settings laid over the rulebook."""
    rake: int | None
    rake_terms: RakeTerms | None
    time_outs: tuple[int, ...]
    """After so many actions the player to act ran out of time; ascending."""
    legal: tuple[Trial, ...]
    illegal: tuple[Trial, ...]
    pots: tuple[Pot, ...] | None
    """After uncalled bets went back, before rake."""
    uncalled: tuple[int, ...] | None
    payouts: tuple[int, ...] | None


def parse_phh(text: str, *, to_compare: bool = True) -> RecordedHand:
    """The hand in the text of a file. Raises PhhError naming the field and the reason.

    to_compare: the stacks at the end must be there.
    """
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PhhError("file", f"not TOML: {error}") from None
    file = _File(content)
    stacks = file.amounts("starting_stacks", least=1)
    if not 2 <= len(stacks) <= PLAYERS_MAX:
        raise PhhError("starting_stacks", f"two to {PLAYERS_MAX} players, not {len(stacks)}")
    file.players = len(stacks)
    return RecordedHand(
        game=_game(file),
        ante=_ante(file),
        bring_in=file.amount("bring_in"),
        small_bet=file.amount("small_bet", least=1),
        big_bet=file.amount("big_bet", least=1),
        starting_stacks=stacks,
        actions=file.each("actions", file.action, needed=True),
        finishing_stacks=(
            file.amounts("finishing_stacks")
            if to_compare or "finishing_stacks" in content
            else None
        ),
        site=file.text("_site"),
        event=file.text("event"),
        situations=file.each("_situations", _text),
        rulebook=file.text("_rulebook"),
        house=file.table("_house"),
        rake=file.amount("_rake") if "_rake" in content else None,
        rake_terms=_rake_terms(file),
        time_outs=tuple(sorted(file.each("_time_out", _whole))),
        legal=file.each("_legal", file.trial),
        illegal=file.each("_illegal", file.trial),
        pots=file.each("_pots", file.pot) if "_pots" in content else None,
        uncalled=file.amounts("_uncalled") if "_uncalled" in content else None,
        payouts=file.amounts("_payouts") if "_payouts" in content else None,
    )


class _Misfit(ValueError):  # noqa: N818 (becomes a PhhError once the field is known)
    """Why a value cannot be read."""


class _File:
    """Typed reading of the fields of a file."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self.players = 0

    def needed(self, field: str) -> Any:
        if field not in self.content:
            raise PhhError(field, "is missing")
        return self.content[field]

    def read(self, field: str, value: Any, reader: Callable[[Any], Read]) -> Read:
        try:
            return reader(value)
        except _Misfit as misfit:
            raise PhhError(field, str(misfit)) from None

    def amount(self, field: str, least: int = 0) -> int:
        value = self.read(field, self.needed(field), _whole)
        if value < least:
            raise PhhError(field, f"must be at least {least}, not {value}")
        return value

    def amounts(self, field: str, least: int = 0) -> tuple[int, ...]:
        values = self.each(field, _whole, needed=True)
        if self.players and len(values) != self.players:
            raise PhhError(field, f"{self.players} players, but {len(values)} amounts")
        for index, value in enumerate(values):
            if value < least:
                raise PhhError(f"{field}[{index}]", f"must be at least {least}, not {value}")
        return values

    def text(self, field: str) -> str:
        return self.read(field, self.content.get(field, ""), _text)

    def table(self, field: str) -> Mapping[str, Any]:
        value = self.content.get(field, {})
        if not isinstance(value, dict):
            raise PhhError(field, "must be a table")
        return value

    def each(
        self, field: str, reader: Callable[[Any], Read], needed: bool = False
    ) -> tuple[Read, ...]:
        values = self.needed(field) if needed else self.content.get(field, [])
        if not isinstance(values, list):
            raise PhhError(field, "must be a list")
        if len(values) > ACTIONS_MAX:
            raise PhhError(field, f"more than {ACTIONS_MAX} entries")
        return tuple(
            self.read(f"{field}[{index}]", value, reader) for index, value in enumerate(values)
        )

    def action(self, value: Any) -> RecordedAction:
        return _action(_text(value), self.players)

    def trial(self, value: Any) -> Trial:
        at, text = _pair(value)
        return Trial(_whole(at), self.action(text))

    def pot(self, value: Any) -> Pot:
        amount, players = _pair(value)
        if not isinstance(players, list):
            raise _Misfit("a pot is an amount and a list of players")
        return Pot(_whole(amount), tuple(sorted(self.player(player) for player in players)))

    def player(self, value: Any) -> int:
        number = _whole(value)
        if not 1 <= number <= self.players:
            raise _Misfit(f"there is no player {number}")
        return number - 1


def _game(file: _File) -> Game:
    variant = file.needed("variant")
    if variant not in GAMES:
        raise PhhError("variant", f"must be {' or '.join(GAMES)}, not {variant!r}")
    return GAMES[variant]


def _ante(file: _File) -> int:
    antes = set(file.amounts("antes"))
    if len(antes) != 1:
        raise PhhError("antes", "everyone posts the same ante")
    return antes.pop()


def _rake_terms(file: _File) -> RakeTerms | None:
    field = "_rake_schedule"
    if field not in file.content:
        return None
    table = dict(file.table(field))
    by_percent, by_steps = "percent" in table, "per_full" in table
    if by_percent == by_steps:
        raise PhhError(field, "needs either percent or per_full with units")
    rounding = table.pop("rounding", "down")
    if rounding not in ("down", "half_even"):
        raise PhhError(f"{field}.rounding", "must be down or half_even")
    no_rake_on_third = table.pop("no_rake_on_third", False)
    if not isinstance(no_rake_on_third, bool):
        raise PhhError(f"{field}.no_rake_on_third", "must be true or false")
    percent = table.pop("percent", 0)
    if isinstance(percent, bool) or not isinstance(percent, int | Decimal):
        raise PhhError(f"{field}.percent", "must be a number")
    if not (Decimal(percent).is_finite() and 0 <= percent <= 100):
        raise PhhError(f"{field}.percent", "must be from 0 to 100")
    whole = {
        name: file.read(f"{field}.{name}", table.pop(name), _whole)
        for name in ("per_full", "units", "cap", "minimum_pot")
        if name in table
    }
    if by_steps and not (whole["per_full"] and whole.get("units", 0) <= whole["per_full"]):
        raise PhhError(field, "units per a full amount of at least as much")
    if table:
        raise PhhError(f"{field}.{next(iter(table))}", "no such setting")
    return RakeTerms(
        percent=Decimal(percent),
        half_even=rounding == "half_even",
        no_rake_on_third=no_rake_on_third,
        **whole,
    )


_ACTION: Final = re.compile(
    r"d dh p(?P<dealt>[1-8]) (?P<down>[0-9A-Za-z?]+)"
    r"|d db (?P<board>[0-9A-Za-z?]+)"
    r"|p(?P<player>[1-8]) (?:(?P<plain>pb|cc|f)|cbr (?P<amount>[0-9]{1,16})"
    r"|sm(?: (?P<shown>[0-9A-Za-z?]+|-))?)"
)


def _action(text: str, players: int) -> RecordedAction:
    bare = text.partition("#")[0].strip()
    if not bare:
        return RecordedAction(text, Word.COMMENT)
    found = _ACTION.fullmatch(bare)
    if found is None:
        raise _Misfit(f"not an action of stud: {text!r}")
    if found["board"]:
        return RecordedAction(text, Word.BOARD, cards=_cards(found["board"]))
    seat = int(found["dealt"] or found["player"]) - 1
    if seat >= players:
        raise _Misfit(f"there is no player {seat + 1}")
    if found["dealt"]:
        return RecordedAction(text, Word.DEAL, seat, _cards(found["down"]))
    if found["plain"]:
        return RecordedAction(text, Word(found["plain"]), seat)
    if found["amount"]:
        return RecordedAction(text, Word.WAGER, seat, amount=_whole(int(found["amount"])))
    shown = found["shown"] or "-"
    return RecordedAction(text, Word.SHOW, seat, () if shown == "-" else _cards(shown))


def _cards(text: str) -> tuple[int | None, ...]:
    if len(text) % 2 or len(text) > 2 * CARDS:
        raise _Misfit(f"not a row of cards: {text!r}")
    try:
        return tuple(
            None if text[i : i + 2] == UNKNOWN_CARD else parse_card(text[i : i + 2])
            for i in range(0, len(text), 2)
        )
    except ValueError as error:
        raise _Misfit(str(error)) from None


def _pair(value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise _Misfit("must be a pair")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Misfit(f"must be a text, not {value!r}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, Decimal) and value.is_finite() and value % 1 == 0:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Misfit(f"must be a whole number of minor units, not {value}")
    if not 0 <= value <= UNITS_MAX:
        raise _Misfit(f"must be from 0 to {UNITS_MAX}, not {value}")
    return value
