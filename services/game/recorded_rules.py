"""Under which rules and for which amounts a recorded hand was played."""

from typing import Any, Final

from services.game.explain import Reason
from services.game.phh import PhhError, RakeTerms, RecordedHand
from services.game.rooms import ANY_ROOM, ROOMS, room_names, rulebook_named
from services.game.rulebook import Game, Rulebook, RulebookError, Stake, shipped_names
from services.game.setup import HandSetup

DEFAULT_RULEBOOK: Final = "modern"
WSOP: Final = "World Series of Poker"


def rulebook_name(recorded: RecordedHand, asked: str = "") -> str:
    """Under which rulebook to replay: the one asked for, else the record's own, else its room's.
    Raises PhhError where a name that somebody gave is none.
    """
    name = asked or recorded.rulebook
    if name:
        if name not in (*shipped_names(), *room_names()):
            raise PhhError("_rulebook", f"there is no rulebook {name!r}")
        return name
    if recorded.site:
        own = f"{ROOMS}{recorded.site}"
        return own if own in room_names() else ANY_ROOM
    return f"{ROOMS}wsop" if WSOP in recorded.event else DEFAULT_RULEBOOK


def rules_of(recorded: RecordedHand, name: str) -> Rulebook:
    """The rulebook of that name with the record's game and its `_house` laid over it. Raises
    PhhError.
    """
    rules = rulebook_named(name)
    overlay: dict[str, Any] = {}
    if rules.game is not recorded.game:
        overlay["game"] = str(recorded.game)
    if recorded.game is not Game.HIGH:
        overlay |= {"fourth_street_pair": False, "wild_deuces": False}
    try:
        return rules.with_house(**{**overlay, **recorded.house})
    except RulebookError as error:
        fault = error.faults[0]
        raise PhhError(f"_house.{fault.field}", fault.reason) from None


def rake_of(terms: RakeTerms, pot: int, street: int) -> int:
    """The rake of a pot that ended on `street` (docs/rules.md, 7), whole minor units."""
    if pot < terms.minimum_pot or (terms.no_rake_on_third and street == 3):
        return 0
    if terms.per_full:
        rake = pot // terms.per_full * terms.units
    else:
        exact = pot * terms.percent / 100
        rake = int(exact.to_integral_value("ROUND_HALF_EVEN" if terms.half_even else "ROUND_FLOOR"))
    return min(rake, pot, pot if terms.cap is None else terms.cap)


def why_rake(terms: RakeTerms, pot: int, street: int) -> Reason:
    """How `rake_of` comes to its amount."""
    rake = rake_of(terms, pot, street)
    if pot < terms.minimum_pot:
        return Reason(f"no rake: the pot is below {terms.minimum_pot}", "7 rake")
    if terms.no_rake_on_third and street == 3:
        return Reason("no rake: the hand ended on third street", "7 rake")
    if terms.per_full:
        how = f"{terms.units} per full {terms.per_full} of {pot}"
    else:
        how = f"{terms.percent} % of {pot}, rounded {'half to even' if terms.half_even else 'down'}"
    capped = terms.cap is not None and rake == terms.cap
    return Reason(f"rake {rake}: {how}{', at most ' + str(rake) if capped else ''}", "7 rake")


def setup_of(recorded: RecordedHand, rules: Rulebook, button: int) -> HandSetup:
    """The hand with the button in that seat; p1 has seat 0. Raises PhhError."""
    stake = Stake(
        name="recorded",
        ante=recorded.ante,
        bring_in=recorded.bring_in,
        small_bet=recorded.small_bet,
        big_bet=recorded.big_bet,
        buy_in_min=1,
        buy_in_max=0,
    )
    seats = tuple(range(len(recorded.starting_stacks)))
    try:
        return HandSetup(rules, stake, seats, recorded.starting_stacks, button)
    except ValueError as error:
        raise PhhError("antes, bring_in, small_bet, big_bet", str(error)) from None
