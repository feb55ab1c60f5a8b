"""Reading recorded hands: what is there, and which field is at fault for what reason."""

import re

import pytest

from services.game.cards import parse_cards
from services.game.phh import PhhError, Word, parse_phh
from services.game.pots import Pot
from services.game.rulebook import Game

HAND = """
variant = 'F7S'
antes = [1, 1]
bring_in = 2
small_bet = 5
big_bet = 10
starting_stacks = [100, 50]
actions = ['d dh p1 AsAd2c', 'd dh p2 ????Kh', 'p1 pb',
           'p2 cbr 5  # a comment', '# only that', 'p1 f']
finishing_stacks = [97, 53]
"""


def with_field(field: str, value: str) -> str:
    """The hand with a field replaced or added."""
    line = f"{field} = {value}"
    changed, count = re.subn(rf"(?ms)^{field} = .*?$(?!\n )", lambda _: line, HAND)
    return changed if count else f"{HAND}{line}\n"


def without(field: str) -> str:
    return re.sub(rf"(?ms)^{field} = .*?$(?!\n )", "", HAND)


def test_a_hand_is_read_as_it_stands() -> None:
    hand = parse_phh(HAND)
    assert (hand.game, hand.ante, hand.bring_in) == (Game.HIGH, 1, 2)
    assert (hand.starting_stacks, hand.finishing_stacks) == ((100, 50), (97, 53))
    dealt, unknown, posted, raised, comment, folded = hand.actions
    assert (dealt.word, dealt.seat, dealt.cards) == (Word.DEAL, 0, parse_cards("AsAd2c"))
    assert unknown.cards == (None, None, *parse_cards("Kh"))
    assert (posted.word, posted.seat) == (Word.BRING_IN, 0)
    assert (raised.word, raised.amount) == (Word.WAGER, 5)
    assert (comment.word, folded.word) == (Word.COMMENT, Word.FOLD)
    assert (hand.rake, hand.pots, hand.rake_terms, hand.rulebook) == (None, None, None, "")


def test_the_users_own_fields_are_read() -> None:
    hand = parse_phh(
        HAND
        + """
_rulebook = "club"
_house = {wild_deuces = true}
_rake = 3
_legal = [[3, 'p2 cc']]
_illegal = [[3, 'd db 9s']]
_time_out = [2]
_pots = [[7, [2]]]
_uncalled = [0, 3]
_payouts = [0, 7]
_site = "stars"
_situations = ["room raise rule"]
"""
    )
    assert (hand.rulebook, hand.house, hand.rake) == ("club", {"wild_deuces": True}, 3)
    assert [(trial.at, trial.action.text) for trial in hand.legal] == [(3, "p2 cc")]
    assert hand.illegal[0].action.word is Word.BOARD
    assert (hand.time_outs, hand.pots) == ((2,), (Pot(7, (1,)),))
    assert (hand.uncalled, hand.payouts) == ((0, 3), (0, 7))
    assert (hand.site, hand.situations) == ("stars", ("room raise rule",))


def test_shows_and_mucks_are_told_apart() -> None:
    actions = "['p1 sm AsAd2c', 'p2 sm', 'p2 sm -']"
    shown, mucked, dashed = parse_phh(with_field("actions", actions)).actions
    assert shown.cards
    assert mucked.cards == dashed.cards == ()


@pytest.mark.parametrize(
    ("schedule", "percent", "per_full", "units"),
    [
        ('{percent = 5, rounding = "half_even"}', 5, 0, 0),
        ("{percent = 2.5}", 2.5, 0, 0),
        ("{per_full = 20, units = 1}", 0, 20, 1),
    ],
)
def test_rake_schedules_are_by_percentage_or_by_steps(
    schedule: str, percent: float, per_full: int, units: int
) -> None:
    terms = parse_phh(with_field("_rake_schedule", schedule)).rake_terms
    assert terms is not None
    assert (float(terms.percent), terms.per_full, terms.units) == (percent, per_full, units)


@pytest.mark.parametrize(
    ("field", "value", "at_fault"),
    [
        ("variant", "'NT'", "variant"),
        ("antes", "[1]", "antes"),
        ("antes", "[1, 2]", "antes"),
        ("antes", "[1, 'a']", "antes[1]"),
        ("bring_in", "-1", "bring_in"),
        ("small_bet", "0", "small_bet"),
        ("small_bet", "2.5", "small_bet"),
        ("big_bet", "nan", "big_bet"),
        ("big_bet", "true", "big_bet"),
        ("starting_stacks", "[100, 0]", "starting_stacks[1]"),
        ("starting_stacks", "[100]", "starting_stacks"),
        ("starting_stacks", "[9, 9, 9, 9, 9, 9, 9, 9, 9]", "starting_stacks"),
        ("starting_stacks", "100", "starting_stacks"),
        ("starting_stacks", "[100, 9007199254740992]", "starting_stacks[1]"),
        ("finishing_stacks", "[100, 50, 3]", "finishing_stacks"),
        ("actions", "['p3 f']", "actions[0]"),
        ("actions", "['p1 f', 'd dh p1 Xx']", "actions[1]"),
        ("actions", "['d dh p1 AsA']", "actions[0]"),
        ("actions", "['p1 cbr']", "actions[0]"),
        ("actions", "['p1 cbr 99999999999999999']", "actions[0]"),
        ("actions", "['p1 jumps']", "actions[0]"),
        ("actions", "[7]", "actions[0]"),
        ("_site", "7", "_site"),
        ("_house", "7", "_house"),
        ("_rake", "-3", "_rake"),
        ("_time_out", "['a']", "_time_out[0]"),
        ("_legal", "[[1]]", "_legal[0]"),
        ("_illegal", "[[1, 'p9 f']]", "_illegal[0]"),
        ("_pots", "[[7, [3]]]", "_pots[0]"),
        ("_pots", "[[7, 1]]", "_pots[0]"),
        ("_uncalled", "[0]", "_uncalled"),
        ("_rake_schedule", "{}", "_rake_schedule"),
        ("_rake_schedule", "{percent = 5, per_full = 20}", "_rake_schedule"),
        ("_rake_schedule", "{percent = 101}", "_rake_schedule.percent"),
        ("_rake_schedule", "{percent = nan}", "_rake_schedule.percent"),
        ("_rake_schedule", "{percent = 5, rounding = 'up'}", "_rake_schedule.rounding"),
        ("_rake_schedule", "{percent = 5, seats = 3}", "_rake_schedule.seats"),
        ("_rake_schedule", "{per_full = 0, units = 0}", "_rake_schedule"),
    ],
)
def test_a_fault_names_its_field(field: str, value: str, at_fault: str) -> None:
    with pytest.raises(PhhError) as fault:
        parse_phh(with_field(field, value))
    assert fault.value.field == at_fault
    assert fault.value.reason


@pytest.mark.parametrize(
    "field",
    [
        "variant",
        "antes",
        "bring_in",
        "small_bet",
        "big_bet",
        "starting_stacks",
        "actions",
        "finishing_stacks",
    ],
)
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(PhhError) as fault:
        parse_phh(without(field))
    assert (fault.value.field, fault.value.reason) == (field, "is missing")


@pytest.mark.parametrize("text", ["", "{", "variant = ", "a = [" * 5000])
def test_what_is_no_toml_or_no_hand_is_refused(text: str) -> None:
    with pytest.raises(PhhError):
        parse_phh(text)
