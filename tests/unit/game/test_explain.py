"""A hand told with its rules: who begins and why, prices, what is closed, pots, rake, odd chips."""

import re
from pathlib import Path

import pytest

from services.game import refusals
from services.game.explain import RULES
from services.game.phh import RecordedHand, parse_phh
from services.game.replay import explained
from services.game.story import Remark, Topic, remark_entry

HANDS = Path(__file__).parents[2] / "hands"
DOCS = Path(__file__).parents[3] / "docs" / "rules.md"

THREE = """
variant = 'F7S'
antes = [1, 1, 1]
bring_in = 3
small_bet = 10
big_bet = 20
starting_stacks = [200, 200, 200]
actions = [
    'd dh p1 AsAd2d', 'd dh p2 TdTs2c', 'd dh p3 KsKd9h', 'p2 pb', 'p3 cc', 'p1 cc',
    'd dh p1 7d', 'd dh p2 Tc', 'd dh p3 Jh', 'p3 cc', 'p1 cc', 'p2 cc',
]
"""


def hand(text: str, *changes: tuple[str, str], more: str = "") -> RecordedHand:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_phh(text + more, to_compare=False)


def case(name: str, *changes: tuple[str, str], more: str = "") -> RecordedHand:
    return hand((HANDS / "cases" / f"{name}.phh").read_text(), *changes, more=more)


def remarks(recorded: RecordedHand, topic: Topic, player: int = 0) -> list[Remark]:
    """Those of a topic, of one player if there is one."""
    told = explained(recorded)[1]
    return [each for each in told if each.topic is topic and player in (0, each.seat + 1)]


def texts(recorded: RecordedHand, topic: Topic, player: int = 0) -> list[str]:
    return [remark.text for remark in remarks(recorded, topic, player)]


# The rules cited


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_stands_in_its_section_of_the_rules(rule: str) -> None:
    number = rule.partition(" ")[0]
    sections = re.split(r"(?m)^## ", DOCS.read_text())
    [section] = [each for each in sections if each.startswith(f"{number}.")]
    assert RULES[rule] in section


def test_every_refusal_cites_one_of_them() -> None:
    source = Path(refusals.__file__).read_text()
    cited = set(re.findall(r'"(\d [a-z][a-z -]*)"', source))
    assert len(cited) > 8
    assert cited <= set(RULES)


# Forced steps, and who begins


def test_the_bring_in_names_the_door_card_and_the_suit_that_decides() -> None:
    assert texts(hand(THREE), Topic.FIRST)[0] == (
        "p2 has the lowest door card, 2c, by its suit the lowest of its rank: he brings in"
    )


def test_in_razz_the_highest_door_card_brings_in() -> None:
    [first, *_] = remarks(case("razz-tie-by-suit"), Topic.FIRST)
    assert (
        first.text == "p2 has the highest door card, As: he brings in" or "door card" in first.text
    )
    assert first.rule == "3 bring-in"


def test_the_duty_passes_on_from_a_player_who_has_no_chips_left() -> None:
    short = hand(THREE, ("[200, 200, 200]", "[200, 1, 200]"), ("'p2 pb'", "'p3 f'"))
    [first] = remarks(short, Topic.FIRST)
    assert "p2 has the lowest door card" in first.text
    assert "the duty is p3's, the next who has chips" in first.text
    assert first.rule == "3 price"
    assert texts(short, Topic.NO_MORE_BETTING) == [
        "only p1 can act and nothing is owed: no more betting, the cards run out"
    ]


def test_equal_boards_open_by_position_or_by_suit() -> None:
    by_position = remarks(case("odd-chips-101-all-to-first"), Topic.FIRST)[1]
    assert "equal to that of p4 and p6, but he is nearer to the left" in by_position.text
    by_suit = remarks(case("razz-tie-by-suit"), Topic.FIRST)[1]
    assert "equal to that of p1, but he has the higher suit" in by_suit.text
    assert by_position.rule == by_suit.rule == "3 visible hands"


def test_an_opener_who_cannot_act_is_followed_by_the_next_who_can() -> None:
    all_in = hand(
        THREE,
        ("[200, 200, 200]", "[200, 200, 4]"),
        ("'p3 cc', 'p1 cc', 'p2 cc'", "'p1 cc', 'p2 cc'"),
    )
    remark = remarks(all_in, Topic.FIRST)[1]
    assert remark.text == (
        "p3 has the best visible hand, 9hJh; he cannot act, p1 is the next who can"
    )
    assert remark.rule == "3 opener"


def test_a_private_round_is_opened_by_the_best_visible_hand() -> None:
    [first, *_] = remarks(case("private-round-no-bring-in"), Topic.FIRST)
    assert first.text == "p2 has the best visible hand, Ad: he opens"
    assert first.rule == "3 private round"


# Decisions


def test_a_decision_says_what_is_offered_and_how_the_amount_comes_about() -> None:
    offered, steps = remarks(case("worked-example-club"), Topic.DECISION, 1)[:2]
    assert offered.text == "p1 may fold, call 5 or raise to 10"
    assert steps.text == "10 is the last full wager of 5, and 5 more"
    legal = remark_entry(offered)["legal"]
    assert (legal["call"], legal["wagers"], legal["check"]) == (5, (10,), False)


def test_both_sizes_are_explained_by_the_open_pair() -> None:
    told = remarks(case("pair-sizes-5-10"), Topic.DECISION)
    sizes = [each.text for each in told if each.rule == "3 fourth-street pair"]
    assert sizes[0] == "an open pair, no big wager yet: 500 or 1000"
    assert len(sizes) == 3


@pytest.mark.parametrize(
    ("name", "code", "rule"),
    [
        ("cases/pair-sizes-5-10", "CAP_REACHED", "3 cap"),
        ("cases/step-third-all-in-4-of-10", "NOT_REOPENED", "3 steps"),
        ("cases/three-side-pots-hi-lo", "STACK_TOO_SHORT", "3 amounts"),
        ("online/stars-razz-0009", "NOBODY_CAN_CALL", "3 price"),
    ],
)
def test_a_closed_wager_names_reason_and_rule(name: str, code: str, rule: str) -> None:
    closed = parse_phh((HANDS / f"{name}.phh").read_text())
    found = [each for each in remarks(closed, Topic.DECISION) if each.code == code]
    assert found
    assert {each.rule for each in found} == {rule}


def test_a_price_below_what_was_bet_is_explained() -> None:
    told = texts(case("bring-in-all-in-two-callers"), Topic.DECISION)
    assert "2 is all he has of 3: he would be all-in" in told
    assert "the price is the bring-in of 3, though less was posted" in told


def test_a_lifted_cap_is_explained() -> None:
    told = remarks(case("cap-lifted-heads-up-triopoker"), Topic.DECISION)
    lifted = [each for each in told if each.rule == "3 cap"]
    assert lifted[0].text == "4 wagers have been made, but only two are in the hand: no cap"


def test_a_wager_says_what_it_counts_as() -> None:
    done = texts(case("step-third-all-in-4-of-10"), Topic.ACTION, 2)
    assert done[0] == "p2 completes to 4: 4 above 0 is less than half of 10, only a price to call"
    done = texts(case("pair-sizes-5-10"), Topic.ACTION, 3)
    assert "p3 raises to 2000: raise 2 of 3; it is big, so that only big ones follow" in done


def test_refused_and_accepted_trials_are_told_with_their_reasons() -> None:
    told = remarks(case("time-out-protected-triopoker"), Topic.TRIAL)
    assert [each.code for each in told] == [
        "NO_ACTION_WANTED",
        "NO_ACTION_WANTED",
        "NOT_YOUR_TURN",
    ]
    assert told[2].text == "tried 'p1 cc': refused, p3 is to act"
    told = remarks(case("short-deck-88855-reshuffle"), Topic.TRIAL)
    assert [each.code for each in told] == ["WRONG_NUMBER_OF_CARDS", "CARD_DEALT_TWICE"]


def test_time_outs_name_the_policy() -> None:
    told = remarks(case("time-out-check-or-fold-club"), Topic.TIME_OUT)
    assert [each.text.partition(": ")[2] for each in told] == [
        "the bring-in is posted for him (check_or_fold)",
        "he checks, it is free (check_or_fold)",
        "he is folded (check_or_fold)",
    ]
    [protected] = remarks(case("time-out-protected-triopoker"), Topic.TIME_OUT)
    assert "keeps his cards" in protected.text
    assert protected.rule == "5 time-out"


def test_too_few_cards_on_seventh_street_are_explained() -> None:
    told = [
        each.text
        for each in remarks(case("short-deck-88855-reshuffle"), Topic.CARDS)
        if each.rule == "3 short deck"
    ]
    assert told == [
        "4 cards are left for 5 players, 3 were burned: burned cards and stub are shuffled together"
    ]


# The end


def test_uncalled_money_and_layers_are_worked_out() -> None:
    told = remarks(case("step-third-all-in-4-of-10"), Topic.UNCALLED)
    assert told[0].text == "10 go back to p3: 15 in all against 5, the next highest total"
    pots = texts(case("three-side-pots-hi-lo"), Topic.POT)
    assert pots[2] == "side pot 2 120: 40 each of p3, p4 and p5; p3, p4 and p5 can win it"


def test_rake_is_told_with_its_schedule_and_its_shares() -> None:
    raked = case(
        "bring-in-all-in-two-callers",
        ("_rake = 0", "_rake_schedule = {percent = 30}"),
        ("_house = {}", '_house = {rake_on_third_street = "schedule"}'),
        ("[9, 198, 196]", "[6, 198, 196]"),
    )
    assert texts(raked, Topic.RAKE) == [
        "rake 3: 30 % of 11, rounded down",
        "of the rake 3 + 0 from the pots: by their size, rounded down,"
        " then one each, main pot first",
    ]


def test_halves_and_ties_are_told() -> None:
    told = remarks(case("quartering-101"), Topic.AWARD)
    assert told[0].text == (
        "main pot: of 101 the high half is 51, the low half 50, as the high gets the odd unit"
    )
    assert [each.rule for each in told] == ["6 odd chips", "2 hands", "6 equal hands"]


def test_an_odd_chip_by_suit_shows_the_cards_that_decide() -> None:
    # The two who put in the bring-in and fold make it 103: 52 and 51.
    odd = case("quartering-101", ("bring_in = 3", "bring_in = 4"))
    low = [each for each in remarks(odd, Topic.AWARD) if "left over" in each.text]
    assert [each.text for each in low] == [
        "1 left over to p1: the lower suit on the top card that plays"
        " (p1 7h5s4c2dAh, p2 7s5h4d2cAs)"
    ]


def test_cards_that_nobody_knows_are_not_made_up() -> None:
    unknown = parse_phh((HANDS / "online" / "kingsclub-razz-0001.phh").read_text())
    [dealt, *_] = texts(unknown, Topic.CARDS)
    assert dealt == "p1 ????Tc, p2 9d3h6d"


# Records that break off or differ


def test_a_hand_that_breaks_off_is_told_to_where_the_next_is_asked() -> None:
    done, told = explained(hand(THREE))
    assert done.error == "the record ends, but 3 cards are to be dealt"
    assert told[-1].topic is Topic.DIFFERENCE
    assert told[-1].text == done.error


def test_a_difference_carries_reason_and_rule() -> None:
    done, told = explained(hand(THREE, ("'p3 cc', 'p1 cc',\n", "'p3 cbr 11', 'p1 cc',\n")))
    assert "not to 11" in done.error
    assert (told[-1].topic, told[-1].code, told[-1].rule) == (
        Topic.DIFFERENCE,
        "AMOUNT_NOT_OFFERED",
        "3 steps",
    )


def test_amounts_by_a_rooms_own_rule_are_told_as_such() -> None:
    text = (HANDS / "online" / "kingsclub-stud-0001.phh").read_text()
    told = texts(parse_phh(text), Topic.DECISION)
    assert "7716 is the bring-in and a small bet: so this room raises on third street" in told
    elsewhere = parse_phh(text.replace("kingsclub", "stars"))
    own = "7716 is taken as recorded: a rule of the room's own"
    assert own in texts(elsewhere, Topic.DECISION)


@pytest.mark.parametrize("file", sorted(HANDS.glob("*/*.phh")), ids=lambda file: file.stem)
def test_any_recorded_hand_can_be_told(file: Path) -> None:
    recorded = parse_phh(file.read_text())
    done, told = explained(recorded)
    assert done.ok
    topics = {each.topic for each in told}
    assert {Topic.TABLE, Topic.ANTE, Topic.CARDS, Topic.POT, Topic.RAKE, Topic.RESULT} <= topics
    assert all(each.rule in RULES for each in told if each.rule)
    acted = {each.after for each in told if each.topic in (Topic.ACTION, Topic.TIME_OUT)}
    wanted = {
        index
        for index, action in enumerate(recorded.actions)
        if action.text.split()[1] in ("pb", "cc", "cbr", "f")
    }
    assert wanted <= acted
