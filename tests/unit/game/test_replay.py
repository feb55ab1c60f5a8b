"""Replaying a recorded hand: what fits is right, and the first thing that does not is named."""

from decimal import Decimal
from pathlib import Path

import pytest

from services.game.phh import PhhError, RakeTerms, RecordedHand, parse_phh
from services.game.recorded_rules import rake_of, rulebook_name
from services.game.replay import Replayed, replay
from services.game.rooms import habits_of, room_names, rulebook_named

HANDS = Path(__file__).parents[2] / "hands"

HEADS_UP = """
variant = 'F7S'
antes = [1, 1]
bring_in = 2
small_bet = 5
big_bet = 10
starting_stacks = [100, 100]
actions = [
    'd dh p1 AsAd2c', 'd dh p2 QdJdKh', 'p1 pb', 'p2 cbr 5', 'p1 cc',
    'd dh p1 3c', 'd dh p2 4d', 'p2 cbr 5', 'p1 cc',
    'd dh p1 4c', 'd dh p2 5d', 'p2 cc', 'p1 cc',
    'd dh p1 5c', 'd dh p2 9d', 'p2 cc', 'p1 cc',
    'd dh p1 7h', 'd dh p2 9h', 'p2 cc', 'p1 cc',
    'p2 sm QdJdKh4d5d9d9h', 'p1 sm AsAd2c3c4c5c7h',
]
finishing_stacks = [89, 111]
"""
SHOWS = "'p2 sm QdJdKh4d5d9d9h', 'p1 sm AsAd2c3c4c5c7h',"
COMPLETES = "'p2 cbr 5', 'p1 cc',\n    'd dh p1 3c'"


def heads_up(*changes: tuple[str, str], more: str = "") -> RecordedHand:
    """The hand above, which p2 wins with a flush against a straight, changed in some places."""
    text = HEADS_UP
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_phh(text + more)


def error_of(*changes: tuple[str, str], more: str = "") -> str:
    return replay(heads_up(*changes, more=more)).error


def test_a_right_hand_is_told_with_pots_winners_and_stacks() -> None:
    assert replay(heads_up()) == Replayed(
        error="",
        at=23,
        pots=replay(heads_up()).pots,
        uncalled=(0, 0),
        rake=0,
        payouts=(0, 22),
        finishing_stacks=(89, 111),
    )
    [pot] = replay(heads_up()).pots
    assert (pot.amount, pot.eligible, pot.winners) == (22, (0, 1), (1,))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("'p1 pb'", "'p2 pb'"), "NOT_YOUR_TURN"),
        (("'p1 pb'", "'p1 f'"), "BRING_IN_REQUIRED"),
        ((COMPLETES, COMPLETES.replace("5", "6", 1)), "not to 6"),
        (("'d dh p2 4d', ", "'d dh p2 4d4h', "), "p2 gets 1 cards"),
        (("'d dh p1 3c', ", ""), "1 cards are still to be dealt"),
        (("'d dh p1 4c', 'd dh p2 5d', ", ""), "cards are to be dealt"),
        (("'d dh p1 7h'", "'d db 7h'"), "gets 0 cards"),
        (("'d dh p1 7h'", "'d dh p1 9d'"), "CARD_DEALT_TWICE"),
        (("'p2 sm QdJdKh4d5d9d9h'", "'p2 sm QdJdKh4d5d9d8s'"), "not dealt"),
        (("[89, 111]", "[90, 110]"), "finishing_stacks"),
        (("'p2 cc', 'p1 cc',\n    'p2 sm", "'p2 sm"), "p2 is to act"),
        ((", 'p1 sm AsAd2c3c4c5c7h',", ", 'p1 cc',"), "the hand is over"),
    ],
)
def test_the_first_difference_is_named(change: tuple[str, str], said: str) -> None:
    assert said in error_of(change)


def test_a_record_that_ends_too_early_is_a_difference() -> None:
    assert "ends" in error_of((f"'p2 cc', 'p1 cc',\n    {SHOWS}", ""))


def test_money_in_the_users_fields_is_compared() -> None:
    assert not error_of(more="_pots = [[22, [1, 2]]]\n_uncalled = [0, 0]\n_payouts = [0, 22]")
    assert "pots" in error_of(more="_pots = [[22, [2]]]")
    assert "uncalled" in error_of(more="_uncalled = [0, 1]")
    assert "payouts" in error_of(more="_payouts = [22, 0]")


def test_a_recorded_rake_is_taken_as_recorded_before_the_pot_is_divided() -> None:
    done = replay(heads_up(("[89, 111]", "[89, 108]"), more="_rake = 3"))
    assert (done.error, done.rake, done.payouts) == ("", 3, (0, 19))
    assert "23" in error_of(more="_rake = 23")


def test_a_rake_schedule_is_worked_out_and_compared_with_a_recorded_rake() -> None:
    by_steps = "_rake_schedule = {per_full = 20, units = 1}"
    assert not error_of(("[89, 111]", "[89, 110]"), more=by_steps)
    assert "rake 2" in error_of(("[89, 111]", "[89, 109]"), more=f"{by_steps}\n_rake = 2")


@pytest.mark.parametrize(
    ("terms", "pot", "rake"),
    [
        (RakeTerms(percent=Decimal(5)), 59, 2),
        (RakeTerms(percent=Decimal(5)), 60, 3),
        (RakeTerms(percent=Decimal(5), half_even=True), 50, 2),
        (RakeTerms(percent=Decimal(5), half_even=True), 70, 4),
        (RakeTerms(percent=Decimal(5), half_even=True), 51, 3),
        (RakeTerms(percent=Decimal("2.5")), 100, 2),
        (RakeTerms(per_full=20, units=1), 59, 2),
        (RakeTerms(percent=Decimal(50), cap=7), 100, 7),
        (RakeTerms(percent=Decimal(50), minimum_pot=101), 100, 0),
    ],
)
def test_rake_by_percentage_and_by_steps(terms: RakeTerms, pot: int, rake: int) -> None:
    assert rake_of(terms, pot, street=7) == rake


def test_no_rake_on_third_where_the_schedule_says_so() -> None:
    terms = RakeTerms(percent=Decimal(5), no_rake_on_third=True)
    assert (rake_of(terms, 100, street=3), rake_of(terms, 100, street=4)) == (0, 5)


def test_trials_are_made_in_place_of_an_action_and_change_nothing() -> None:
    right = """
_legal = [[3, 'p2 cc'], [3, 'p2 f'], [2, 'p1 cbr 5'], [0, 'd dh p2 2s2h3h']]
_illegal = [[3, 'p2 cbr 6'], [3, 'p1 cc'], [2, 'p1 f'], [2, 'd dh p1 9s'],
            [5, 'd db 9s'], [5, 'd dh p1 As']]
"""
    assert not error_of(more=right)
    assert "is refused" in error_of(more="_legal = [[3, 'p2 cbr 10']]")
    assert "is accepted" in error_of(more="_illegal = [[3, 'p2 cc']]")


def test_a_time_out_leads_to_the_next_action() -> None:
    club = '_rulebook = "club"\n_time_out = [2, 11, 12]'
    assert not error_of(more=club)
    assert "something else follows" in error_of(more='_rulebook = "club"\n_time_out = [3]')
    assert "nobody was to act" in error_of(more='_rulebook = "club"\n_time_out = [99]')


def test_a_muck_wins_nothing() -> None:
    mucked = ("'p1 sm AsAd2c3c4c5c7h'", "'p1 sm'")
    assert not error_of(mucked)
    both = (("'p2 sm QdJdKh4d5d9d9h'", "'p2 sm'"), mucked)
    assert "nobody shows a hand" in error_of(*both)


def test_unknown_cards_lose_unless_shown() -> None:
    unknown = (("AsAd2c'", "????2c'"), ("'d dh p1 7h'", "'d dh p1 ??'"))
    assert not error_of(*unknown)
    assert not error_of(*unknown, (", 'p1 sm AsAd2c3c4c5c7h',", ","))
    assert "nobody shows" in error_of(
        *unknown,
        ("QdJdKh', 'p1", "????Kh', 'p1"),
        (SHOWS, ""),
    )


def test_unknown_up_cards_open_for_whom_the_record_has_open() -> None:
    unseen = [("AsAd2c'", "??????'"), ("QdJdKh', 'p1", "??????', 'p1")]
    unseen += [("'p1 sm AsAd2c3c4c5c7h',", "")]
    unseen += [(f"p1 {card}'", "p1 ??'") for card in ("3c", "4c", "5c", "7h")]
    unseen += [(f"p2 {card}'", "p2 ??'") for card in ("4d", "5d", "9d", "9h")]
    assert not error_of(*unseen)


def test_the_button_is_where_it_makes_a_rooms_hand_right() -> None:
    file = HANDS / "online" / "stars-razz-0025.phh"  # equal boards on fourth
    assert replay(parse_phh(file.read_text())).ok


def test_what_no_opponent_can_match_may_be_recorded_short_or_whole() -> None:
    # p1 raises to 600000 with p2 able to reach 750000: the record has what was matched.
    text = (HANDS / "wsop" / "wsop-2023-43-5-85.phh").read_text()
    assert replay(parse_phh(text)).uncalled == (0, 0)
    whole = replay(parse_phh(text.replace("p2 cbr 750000", "p2 cbr 1200000")))
    assert (whole.error, whole.uncalled) == ("", (0, 450000))
    assert not replay(parse_phh(text.replace("p2 cbr 750000", "p2 cbr 800000"))).ok


def test_amounts_by_a_rooms_own_rule_are_taken_where_the_record_says_so_or_when_asked_to() -> None:
    odd = ("'p2 cbr 5', 'p1 cc',\n    'd dh p1 4c'", "'p2 cbr 7', 'p1 cc',\n    'd dh p1 4c'")
    stacks = ("[89, 111]", "[87, 113]")
    assert "not to 7" in error_of(odd, stacks)
    assert not error_of(odd, stacks, more='_situations = ["room raise rule"]')
    assert replay(heads_up(odd, stacks), lenient_amounts=True).ok


def raised_over_the_bring_in(site: str, first: int, second: int) -> str:
    """What differs in a hand of that room's with these raises over a completion to 4400 at a
    bring-in of 1100."""
    text = (HANDS / "online" / "kingsclub-stud-0001.phh").read_text()
    for old, new in [
        ("room raise rule", ""),
        ('"kingsclub"', f'"{site}"'),
        ("bring_in = 3316", "bring_in = 1100"),
        ("cbr 7716", f"cbr {first}"),
        ("cbr 12116", f"cbr {second}"),
        ("_payouts", "_paid"),
        ("_uncalled", "_returned"),
        ("finishing_stacks", "_stacks"),
    ]:
        assert old in text
        text = text.replace(old, new)
    return replay(parse_phh(text, to_compare=False)).error


def test_a_room_may_raise_over_the_bring_in_and_no_other_does() -> None:
    assert raised_over_the_bring_in("kingsclub", 5500, 9900) == ""
    assert raised_over_the_bring_in("kingsclub", 8800, 13200) == ""
    assert "not to 5501" in raised_over_the_bring_in("kingsclub", 5501, 9901)
    assert "not to 12116" in raised_over_the_bring_in("kingsclub", 5500, 12116)
    assert "not to 5500" in raised_over_the_bring_in("stars", 5500, 9900)


def test_trials_are_strict_where_amounts_are_lenient() -> None:
    hand = heads_up(more="_illegal = [[3, 'p2 cbr 6']]")
    assert replay(hand, lenient_amounts=True).ok


def test_the_rulebook_is_the_one_asked_for_else_the_records_else_its_rooms() -> None:
    assert rulebook_name(heads_up()) == "modern"
    assert rulebook_name(heads_up(more='_site = "stars"')) == "rooms/stars"
    assert rulebook_name(heads_up(more='_site = "elsewhere"')) == "rooms/any"
    assert rulebook_name(heads_up(more='event = "2023 World Series of Poker"')) == "rooms/wsop"
    assert rulebook_name(heads_up(more='_site = "stars"\n_rulebook = "club"')) == "club"
    assert rulebook_name(heads_up(more='_rulebook = "club"'), "interpoker") == "interpoker"
    with pytest.raises(PhhError, match="there is no rulebook"):
        rulebook_name(heads_up(), "nobody")


def test_house_rules_are_laid_over_and_checked() -> None:
    with pytest.raises(PhhError) as fault:
        replay(heads_up(more='_rulebook = "club"\n_house = {raise_cap = "three"}'))
    assert fault.value.field == "_house.raise_cap"


def test_amounts_that_no_hand_can_be_played_for_are_refused() -> None:
    with pytest.raises(PhhError, match="small_bet"):
        replay(heads_up(("bring_in = 2", "bring_in = 6")))


@pytest.mark.parametrize("name", room_names())
def test_every_room_has_a_rulebook_that_holds(name: str) -> None:
    assert rulebook_named(name).name == name
    assert habits_of(name)


HI_LO = """
variant = 'F7S/8'
antes = [1, 1]
bring_in = 2
small_bet = 5
big_bet = 10
starting_stacks = [4, 4]
actions = [
    'd dh p1 AsAd2c', 'd dh p2 KdKsKh', 'p1 pb', 'p2 cbr 3', 'p1 cc',
    'd dh p1 3c', 'd dh p2 4d', 'd dh p1 5c', 'd dh p2 Jd',
    'd dh p1 6c', 'd dh p2 9d', 'd dh p1 Jh', 'd dh p2 9h',
    'p2 sm KdKsKh4dJd9d9h', 'p1 sm AsAd2c3c5c6cJh',
]
"""


@pytest.mark.parametrize(
    ("site", "low_stack", "high_stack", "right"),
    [("stars", 3, 4, True), ("stars", 4, 3, False), ("elsewhere", 4, 3, True)],
)
def test_the_odd_unit_goes_to_the_half_that_the_room_gives_it_to(
    site: str, low_stack: int, high_stack: int, right: bool
) -> None:
    record = f'{HI_LO}finishing_stacks = [{low_stack}, {high_stack}]\n_site = "{site}"\n_rake = 1'
    assert replay(parse_phh(record)).ok is right
