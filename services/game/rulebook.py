"""House rules as data: one field per rule in which houses differ (docs/rules.md, 10).

A `Rulebook` is read from TOML, checked as a whole and never changed; every fault of a file is
reported at once. `shipped` reads the ones in `rulebooks/`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from services.game.bounded_toml import TomlRefusedError, load_toml
from services.game.settings_read import SHORT_TEXT_MAX, Fault, read_table, shown, unread

UNITS_MAX: Final = 2**53 - 1
"""The largest amount of money anywhere, in minor units."""
RAISE_CAP_MAX: Final = 99
"""More raises a round than any house allows."""
SECONDS_MAX: Final = 3600
"""The longest time a clock may be set to."""
COUNT_MAX: Final = 1000
"""The most hands, or protections a day, that a house may name."""
STAKES_MAX: Final = 64
"""The most stakes of one house."""
VARIANTS_MAX: Final = 16
"""The most other games of one house."""


class Game(StrEnum):
    """What is played for."""

    HIGH = "high"
    HI_LO = "hi_lo"
    RAZZ = "razz"


class BringInRule(StrEnum):
    """Whether the lowest door card must bring in, or (private round) nobody."""

    FORCED = "forced"
    NONE = "none"


class Reopens(StrEnum):
    """The part of a wager from which a short all-in counts as a full one."""

    HALF = "half"
    FULL = "full"


class CapLifted(StrEnum):
    """When raises are no longer counted."""

    NEVER = "never"
    TWO_IN_HAND = "two_in_hand"
    ROUND_BEGAN_TWO = "round_began_two"


class TieBreak(StrEnum):
    """Who opens among equal boards."""

    POSITION = "position"
    SUIT = "suit"


class ShortDeck(StrEnum):
    """What is done when seventh street lacks cards."""

    RESHUFFLE_BURNS = "reshuffle_burns"
    COMMUNITY = "community"
    TDA = "tda"


class ShowdownRule(StrEnum):
    """Who turns his cards up."""

    ALL_SHOW = "all_show"
    BEATEN_MAY_MUCK = "beaten_may_muck"


class OddChipHigh(StrEnum):
    """Who gets the odd chips of a high hand."""

    POSITION = "position"
    SUIT_HIGH = "suit_high"


class OddChipLow(StrEnum):
    """Who gets the odd chips of a low half, or of razz."""

    POSITION = "position"
    SUIT_LOW = "suit_low"
    SUIT_HIGH = "suit_high"


class OddChipRemainder(StrEnum):
    """How an indivisible remainder goes out."""

    ONE_EACH = "one_each"
    ALL_TO_FIRST = "all_to_first"


class TimeOut(StrEnum):
    """What happens to a player who is out of time."""

    ALL_IN_IF_INVESTED = "all_in_if_invested"
    CHECK_OR_FOLD = "check_or_fold"


class BuyIn(StrEnum):
    """How a stake's buy-in is meant."""

    ANNOUNCED_MINIMUM = "announced_minimum"
    EQUAL_STACKS = "equal_stacks"
    TEN_SMALL_BETS = "ten_small_bets"
    TEN_TO_FORTY_BIG_BETS = "ten_to_forty_big_bets"
    OPERATOR = "operator"


class AnteConfirmation(StrEnum):
    """Whether a player may switch automatic posting off and confirm each hand instead."""

    AUTO = "auto"
    NO = "no"


class RakeOnThird(StrEnum):
    """Whether a hand that ends on third street is raked; `schedule`: as the schedule says."""

    YES = "yes"
    NO = "no"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Stake:
    """The amounts of a game, whole minor units (docs/rules.md, 1 and 9)."""

    name: str
    """What players call it: "5/10"."""
    ante: int
    """Posted by everyone dealt in, before any card."""
    bring_in: int
    """Posted by the lowest door card; 0 where nobody brings in."""
    small_bet: int
    """Size on third and fourth street."""
    big_bet: int
    """Size from fifth street on, and on fourth with an open pair where the house allows it."""
    buy_in_min: int
    """Least stack to sit down with."""
    buy_in_max: int
    """Most, or 0 for no limit."""
    published_ante: int | None = None
    """What the house's document prints; None where it prints nothing else than is in force."""
    published_bring_in: int | None = None
    """Likewise for the bring-in."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time to act, whole seconds (docs/rules.md, 5)."""

    act_s: int
    """Time before anything is shown."""
    countdown_s: int
    """Further time shown as a countdown; 0 for none."""
    reconnect_s: int
    """New deadline after a connection lost in the countdown came back, once per decision; or 0."""
    time_bank_s: int
    """Reserve of a player for the whole sitting, used when his time is over; 0 for none."""
    time_bank_accrual_s: int
    """What comes back to the reserve, up to the whole of it; 0 for nothing."""
    time_bank_accrual_hands: int
    """After so many hands that he was dealt into; 0 where nothing comes back."""


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules of a house. Field and value names are those of docs/rules.md, section 10."""

    name: str
    """What the house calls it."""
    game: Game
    """Stud high, hi-lo eight or better, or razz (section 2)."""
    wild_deuces: bool
    """A two stands for any card at the showdown; high only (section 2)."""
    bring_in_rule: BringInRule
    """Forced, or none: the private round (section 3)."""
    bring_in_may_open_full: bool
    """The player with the bring-in may open for a full small bet (section 3)."""
    short_all_in_reopens_at: Reopens
    """From where a short all-in counts as a wager and lets others raise (section 3)."""
    raise_cap: int
    """Raises a round after the bet (section 3)."""
    cap_lifted: CapLifted
    """When the cap does not hold (section 3)."""
    fourth_street_pair: bool
    """An open pair on fourth street lets everyone bet big; high only (section 3)."""
    first_to_act_tie: TieBreak
    """Which of equal boards opens (section 3)."""
    burn_cards: bool
    """A card is burned before fourth, fifth, sixth and seventh street (section 3)."""
    short_deck: ShortDeck
    """What happens when seventh street lacks cards (section 3)."""
    community_card_opens: bool
    """A community card counts in the boards that decide who opens (section 3)."""
    showdown: ShowdownRule
    """All show, or the beaten may muck (section 6)."""
    all_in_face_up: bool
    """Hands are tabled as soon as no more betting is possible (section 6)."""
    odd_chip_high: OddChipHigh
    """Odd chips of a high pot or half (section 6)."""
    odd_chip_low: OddChipLow
    """Odd chips of a low half, or of a razz pot (section 6)."""
    odd_chip_remainder: OddChipRemainder
    """Remainders one each or all to the first (section 6)."""
    clock: Clock
    """Time to act (section 5)."""
    time_out: TimeOut
    """What follows when it is up (section 5)."""
    protection_per_day: int
    """How often a day `all_in_if_invested` holds for one player, at all tables together; after it
    `check_or_fold`. 0 for no limit (section 5).
    """
    buy_in: BuyIn
    """How the buy-ins of the stakes are meant (section 1)."""
    ante_confirmation: AnteConfirmation
    """Whether posting may be switched to hand by hand (section 1)."""
    rake_schedule: str
    """Name of the wallet's rake schedule; empty for no rake at all (section 7)."""
    rake_on_third_street: RakeOnThird
    """Whether hands that end on third street are raked (section 7)."""
    stakes: tuple[Stake, ...]
    """The stakes on offer."""

    def with_house(self, **settings: Any) -> "Rulebook":
        """This rulebook with some fields laid over it, checked; raises RulebookError.

        Where `bring_in_rule` becomes "none" and no stakes are given, the stakes lose their
        bring-in with it; where `time_out` becomes "check_or_fold", `protection_per_day` becomes 0.
        """
        return Rulebook.from_mapping(_laid_over(self.to_mapping(), settings), source=self.name)

    def stake(self, name: str) -> Stake:
        """The stake of that name; raises KeyError."""
        for stake in self.stakes:
            if stake.name == name:
                return stake
        raise KeyError(name)

    def to_mapping(self) -> dict[str, Any]:
        """Plain dicts, lists, strings, ints and bools, always in the same order."""
        mapping: dict[str, Any] = {
            field: str(value) if isinstance(value, StrEnum) else value
            for field, value in asdict(self).items()
        }
        mapping["stakes"] = [
            {key: value for key, value in stake.items() if value is not None}
            for stake in mapping["stakes"]
        ]
        return mapping

    @staticmethod
    def from_mapping(mapping: Mapping[str, Any], source: str = "mapping") -> "Rulebook":
        """The inverse of `to_mapping`; raises RulebookError with every fault."""
        values, faults = _read_settings(mapping)
        if faults:
            raise RulebookError(source, faults)
        return Rulebook(**values)

    def sha256(self) -> str:
        """Hex digest of the settings; equal exactly when all of them are."""
        text = json.dumps(self.to_mapping(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RulebookPage:
    """A rulebook file: the rulebook, and what a reader of it wants to know."""

    title: str
    """The house's document."""
    rulebook: Rulebook
    """Its settings."""
    sources: Mapping[str, str]
    """Where a setting comes from, by field."""
    variants: Mapping[str, Rulebook]
    """The same house's other games, by name: "razz"."""


class RulebookError(ValueError):
    """A rulebook that cannot be used, with all of its faults."""

    def __init__(self, source: str, faults: Sequence[Fault]) -> None:
        self.source = source
        """The file, or where else it came from."""
        self.faults = tuple(faults)
        """Every fault, in the order of the fields."""
        super().__init__("\n".join([f"{source}: {fault}" for fault in faults]))


def parse_rulebook(text: str, source: str = "rulebook") -> Rulebook:
    """The rulebook in a TOML text; raises RulebookError with every fault."""
    return parse_page(text, source).rulebook


def parse_page(text: str, source: str = "rulebook") -> RulebookPage:
    """A whole rulebook file: settings, `title`, `[sources]` and `[variants.*]`."""
    try:
        mapping = load_toml(text)
    except TomlRefusedError as error:
        raise RulebookError(source, [Fault("file", source, str(error))]) from None
    title = mapping.pop("title", mapping.get("name", ""))
    sources = mapping.pop("sources", {})
    variants = mapping.pop("variants", {})
    values, faults = _read_settings(mapping)
    if not isinstance(title, str):
        faults.append(Fault("title", shown(title), "must be a text"))
    faults += _source_faults(sources)
    overlaid: dict[str, dict[str, Any]] = {}
    if not isinstance(variants, dict) or not all(isinstance(v, dict) for v in variants.values()):
        faults.append(Fault("variants", shown(variants), "must be tables of settings"))
    elif len(variants) > VARIANTS_MAX:
        faults.append(Fault("variants", shown(variants), f"at most {VARIANTS_MAX}"))
    else:
        own = set(faults)
        for name, settings in variants.items():
            overlaid[name], more = _read_variant(name, mapping, settings)
            faults += [
                Fault(f"variants.{shown(name)}.{fault.field}", fault.value, fault.reason)
                for fault in more
                if fault not in own
            ]
    if faults:
        raise RulebookError(source, faults)
    games = {name: Rulebook(**settings) for name, settings in overlaid.items()}
    return RulebookPage(title, Rulebook(**values), sources, games)


def check_stake(rulebook: Rulebook, stake: Stake) -> list[Fault]:
    """Each way in which a stake contradicts itself or the rulebook (docs/rules.md, at its top)."""
    return _stake_faults(asdict(stake), rulebook.bring_in_rule, rulebook.buy_in, "stake")


def shipped_names() -> tuple[str, ...]:
    """The rulebooks that come with the room, variants as "club/razz"."""
    names: list[str] = []
    for name in _file_names():
        names.append(name)
        names += [f"{name}/{variant}" for variant in shipped_page(name).variants]
    return tuple(names)


def shipped(name: str) -> Rulebook:
    """A rulebook that comes with the room, or a variant of one; raises KeyError."""
    house, _, variant = name.partition("/")
    page = shipped_page(house)
    return page.variants[variant] if variant else page.rulebook


@lru_cache(maxsize=32)
def shipped_page(name: str) -> RulebookPage:
    """The file of a rulebook that comes with the room; raises KeyError."""
    if name not in _file_names():
        raise KeyError(name)
    file = resources.files(__package__) / "rulebooks" / f"{name}.toml"
    return parse_page(file.read_text(encoding="utf-8"), f"{name}.toml")


@lru_cache(maxsize=1)
def _file_names() -> tuple[str, ...]:
    folder = resources.files(__package__) / "rulebooks"
    return tuple(
        sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
    )


_MOST: Final = {
    "raise_cap": RAISE_CAP_MAX,
    "protection_per_day": COUNT_MAX,
    **dict.fromkeys([field.name for field in fields(Clock)], SECONDS_MAX),
    "time_bank_accrual_hands": COUNT_MAX,
    **dict.fromkeys([field.name for field in fields(Stake)], UNITS_MAX),
}
"""The largest value of every setting that is a whole number."""

# Reading: every function returns what could be read, and the faults of the rest.


def _read_settings(mapping: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    settings = dict(mapping)
    stakes = settings.pop("stakes", None)
    values, faults = read_table(Rulebook, settings, "", _MOST, without=("clock", "stakes"))
    if isinstance(settings.get("clock"), dict):
        clock, clock_faults = read_table(Clock, settings["clock"], "clock.", _MOST)
        faults += clock_faults
        if not clock_faults:
            values["clock"] = Clock(**clock)
            faults += _clock_faults(values["clock"])
    else:
        faults.append(unread("clock", settings, "must be a table of seconds"))
    if isinstance(stakes, list | tuple) and len(stakes) <= STAKES_MAX:
        read, stake_faults = _read_stakes(stakes, values)
        values["stakes"] = read
        faults += stake_faults
    else:
        faults.append(unread("stakes", mapping, f"must be a list of at most {STAKES_MAX} tables"))
    return values, faults + _contradictions(values)


def _read_variant(
    name: str, house: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Fault]]:
    """A variant is the house with some settings laid over it, and is named after it."""
    values, faults = _read_settings(_laid_over(house, settings))
    values["name"] = f"{shown(house.get('name'))}/{name}"
    if len(name) > SHORT_TEXT_MAX:
        faults.append(Fault("name", shown(name), "must be a short text"))
    if "name" in settings:
        faults.append(Fault("name", shown(settings["name"]), "a variant has its table's name"))
    return values, faults


def _laid_over(house: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Where nobody brings in any more, the house's stakes lose their bring-in; where nobody is
    protected any more, nobody is so many times a day."""
    stakes = house.get("stakes")
    laid = {**house, **settings}
    if settings.get("time_out") == TimeOut.CHECK_OR_FOLD and "protection_per_day" not in settings:
        laid["protection_per_day"] = 0
    if (
        settings.get("bring_in_rule") == BringInRule.NONE
        and "stakes" not in settings
        and isinstance(stakes, list | tuple)
    ):
        laid["stakes"] = [{**each, "bring_in": 0} for each in stakes if isinstance(each, dict)]
    return laid


def _read_stakes(
    stakes: Sequence[Any], settings: Mapping[str, Any]
) -> tuple[tuple[Stake, ...], list[Fault]]:
    read: list[Stake] = []
    faults: list[Fault] = []
    names: set[str] = set()
    for index, stake in enumerate(stakes):
        where = f"stakes[{index}]"
        if isinstance(stake, Stake):
            stake = asdict(stake)
        if not isinstance(stake, dict):
            faults.append(Fault(where, shown(stake), "must be a table"))
            continue
        values, stake_faults = read_table(Stake, stake, where + ".", _MOST)
        faults += stake_faults + _stake_faults(
            values, settings.get("bring_in_rule"), settings.get("buy_in"), where
        )
        if values.get("name") in names:
            faults.append(Fault(f"{where}.name", values["name"], "stands there twice"))
        names.add(values.get("name", ""))
        if not stake_faults:
            read.append(Stake(**values))
    return tuple(read), faults


def _clock_faults(clock: Clock) -> list[Fault]:
    faults: list[Fault] = []

    def fault(field: str, reason: str) -> None:
        faults.append(Fault(f"clock.{field}", str(getattr(clock, field)), reason))

    if clock.act_s == 0:
        fault("act_s", "a player needs time to act")
    if clock.reconnect_s and not clock.countdown_s:
        fault("reconnect_s", "is for a connection lost in the countdown, and there is none")
    if clock.time_bank_accrual_s and not clock.time_bank_s:
        fault("time_bank_accrual_s", "there is no time bank that it could come back to")
    if bool(clock.time_bank_accrual_s) != bool(clock.time_bank_accrual_hands):
        fault("time_bank_accrual_hands", "goes with time_bank_accrual_s: both, or both 0")
    return faults


def _contradictions(v: Mapping[str, Any]) -> list[Fault]:
    """What the settings that could be read say against one another."""
    faults: list[Fault] = []
    game = v.get("game", Game.HIGH)
    if game != Game.HIGH:
        faults += [
            Fault(field, "true", f"is for stud high only, not {game}")
            for field in ("wild_deuces", "fourth_street_pair")
            if v.get(field)
        ]
    if v.get("short_deck") in (ShortDeck.RESHUFFLE_BURNS, ShortDeck.TDA) and not v.get(
        "burn_cards", True
    ):
        faults.append(
            Fault("short_deck", v["short_deck"], "there are no burns where burn_cards is false")
        )
    if v.get("wild_deuces"):
        faults += [
            Fault(field, v[field], "suits cannot decide where deuces are wild")
            for field in ("odd_chip_high", "odd_chip_low")
            if str(v.get(field, "")).startswith("suit")
        ]
    if v.get("protection_per_day") and v.get("time_out") == TimeOut.CHECK_OR_FOLD:
        faults.append(
            Fault(
                "protection_per_day",
                str(v["protection_per_day"]),
                "nobody is protected where time_out is check_or_fold",
            )
        )
    return faults


def _stake_faults(
    stake: Mapping[str, Any], bring_in_rule: Any, buy_in: Any, where: str
) -> list[Fault]:
    faults: list[Fault] = []

    def fault(field: str, reason: str) -> None:
        faults.append(Fault(f"{where}.{field}", str(stake[field]), reason))

    small, big = stake.get("small_bet"), stake.get("big_bet")
    ante, bring_in = stake.get("ante"), stake.get("bring_in")
    if small == 0:
        fault("small_bet", "must be at least 1")
    if ante == 0:
        fault("ante", "must be at least 1")
    if small is not None:
        if big is not None and big != 2 * small:
            fault("big_bet", f"must be twice the small bet of {small}")
        if ante is not None and ante >= small:
            fault("ante", f"must be below the small bet of {small}")
        if bring_in is not None and bring_in > small:
            fault("bring_in", f"must not be above the small bet of {small}")
    if bring_in is not None and bring_in_rule is not None:
        if bring_in_rule == BringInRule.NONE and bring_in:
            fault("bring_in", "there is none in a private round")
        if bring_in_rule == BringInRule.FORCED and not bring_in:
            fault("bring_in", "must be at least 1 where it is forced")
    return faults + _buy_in_faults(stake, buy_in, where)


def _buy_in_faults(stake: Mapping[str, Any], buy_in: Any, where: str) -> list[Fault]:
    least, most = stake.get("buy_in_min"), stake.get("buy_in_max")
    small = stake.get("small_bet")
    if least is None or most is None or small is None:
        return []
    wrong: list[tuple[str, str]] = []
    if least == 0:
        wrong.append(("buy_in_min", "must be at least 1"))
    if most and most < least:
        wrong.append(("buy_in_max", f"must not be below the least buy-in of {least}"))
    if buy_in == BuyIn.EQUAL_STACKS and most != least:
        wrong.append(("buy_in_max", f"everyone begins with the same stack of {least}"))
    if buy_in == BuyIn.TEN_SMALL_BETS and least < 10 * small:
        wrong.append(("buy_in_min", f"must be at least ten small bets, {10 * small}"))
    if buy_in == BuyIn.TEN_TO_FORTY_BIG_BETS:
        if least < 20 * small:
            wrong.append(("buy_in_min", f"must be at least ten big bets, {20 * small}"))
        if not 0 < most <= 80 * small:
            wrong.append(("buy_in_max", f"must be at most forty big bets, {80 * small}"))
    return [Fault(f"{where}.{field}", str(stake[field]), reason) for field, reason in wrong]


def _source_faults(sources: Any) -> list[Fault]:
    if not isinstance(sources, dict):
        return [Fault("sources", shown(sources), "must be a table of texts")]
    known = {field.name for field in fields(Rulebook)}
    return [
        Fault(f"sources.{shown(name)}", shown(text), "must be a text about a setting")
        for name, text in sources.items()
        if name not in known or not isinstance(text, str)
    ]
