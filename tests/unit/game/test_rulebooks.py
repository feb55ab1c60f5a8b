"""House rules as data: what is shipped, and what is refused (docs/rules.md, at its top, 9, 10)."""

from dataclasses import fields, replace
from importlib import resources
from typing import Any

import pytest

from services.game.rulebook import (
    Rulebook,
    RulebookError,
    Stake,
    check_stake,
    parse_page,
    parse_rulebook,
    shipped,
    shipped_names,
    shipped_page,
)

HOUSES = ["triopoker", "club", "interpoker", "eight-or-better", "modern"]

# docs/rules.md, section 10, row by row; a dash where a house does not speak of it.
MUCK = "beaten_may_muck"
PROTECTS = "all_in_if_invested"
SECTION_10: dict[str, list[Any]] = {
    "game": ["high", "high", "high", "hi_lo", "high"],
    "bring_in_may_open_full": [True] * 5,
    "short_all_in_reopens_at": ["half"] * 5,
    "ante_confirmation": ["auto", "no", "no", "no", "auto"],
    "raise_cap": [3] * 5,
    "cap_lifted": ["two_in_hand", "never", "never", "never", "round_began_two"],
    "fourth_street_pair": [True, True, True, False, False],
    "first_to_act_tie": ["position"] * 5,
    "burn_cards": [True, False, False, False, False],
    "short_deck": ["reshuffle_burns", "community", "community", "community", "community"],
    "community_card_opens": [False, True, False, False, False],
    "showdown": [MUCK, "all_show", MUCK, MUCK, MUCK],
    "all_in_face_up": [False, False, False, False, True],
    "odd_chip_high": ["position", "position", "position", "suit_high", "position"],
    "odd_chip_low": ["-", "position", "-", "suit_low", "position"],
    "odd_chip_remainder": ["one_each", "one_each", "all_to_first", "one_each", "one_each"],
    "time_out": [PROTECTS, "check_or_fold", "check_or_fold", PROTECTS, "check_or_fold"],
    "protection_per_day": [4, 0, 0, 4, 0],
    "buy_in": [
        "announced_minimum",
        "equal_stacks",
        "ten_small_bets",
        "operator",
        "ten_to_forty_big_bets",
    ],
    "rake_on_third_street": ["schedule", "no", "schedule", "yes", "no"],
}


@pytest.mark.parametrize("field", SECTION_10)
def test_the_documents_set_what_section_10_says(field: str) -> None:
    for house, value in zip(HOUSES, SECTION_10[field], strict=True):
        if value != "-":
            assert getattr(shipped(house), field) == value, house


def test_the_clocks_are_those_of_the_documents() -> None:
    assert shipped("triopoker").clock.act_s == 10
    clock = shipped("eight-or-better").clock
    assert (clock.act_s, clock.countdown_s, clock.reconnect_s) == (10, 20, 20)
    clock = shipped("modern").clock
    assert (clock.act_s, clock.countdown_s, clock.time_bank_s) == (15, 0, 60)
    assert (clock.time_bank_accrual_s, clock.time_bank_accrual_hands) == (5, 10)


def test_the_club_has_its_variants() -> None:
    assert {name for name in shipped_names() if name.startswith("club/")} == {
        "club/hi-lo",
        "club/razz",
        "club/wild-deuces",
        "club/private-round",
        "club/suit-opens",
    }
    assert not shipped("club/razz").fourth_street_pair
    private = shipped("club/private-round")
    assert private.bring_in_rule == "none"
    assert all(stake.bring_in == 0 for stake in private.stakes)
    assert shipped("razz").game == "razz"


@pytest.mark.parametrize("name", shipped_names())
def test_a_rulebook_survives_the_way_through_a_mapping(name: str) -> None:
    rulebook = shipped(name)
    again = Rulebook.from_mapping(rulebook.to_mapping())
    assert again == rulebook
    assert again.sha256() == rulebook.sha256()


def test_every_rulebook_has_a_digest_of_its_own() -> None:
    assert len({shipped(name).sha256() for name in shipped_names()}) == len(shipped_names())


@pytest.mark.parametrize("name", [name for name in shipped_names() if "/" not in name])
def test_every_setting_names_its_source(name: str) -> None:
    settings = {field.name for field in fields(Rulebook)} - {"name"}
    assert set(shipped_page(name).sources) == settings
    assert shipped_page(name).title


def test_triopokers_nine_stakes_keep_both_figures() -> None:
    stakes = shipped("triopoker").stakes
    assert [
        (s.name, s.buy_in_min, s.ante, s.bring_in, s.published_ante, s.published_bring_in)
        for s in stakes
    ] == [
        ("0.10/0.20", 100, 5, 10, 50, 10),
        ("0.25/0.50", 250, 12, 25, 12, 25),
        ("0.50/1", 500, 25, 50, 25, 50),
        ("1/2", 1000, 10, 20, 10, 20),
        ("2/4", 2000, 20, 40, 20, 40),
        ("3/6", 3000, 30, 60, 300, 600),
        ("5/10", 5000, 50, 100, 500, 1000),
        ("10/20", 10000, 100, 200, 1000, 2000),
        ("20/40", 20000, 200, 400, None, None),
    ]
    for stake in stakes:
        assert stake.buy_in_min == 10 * stake.small_bet
        assert stake.big_bet == 2 * stake.small_bet


def toml(name: str, *changes: tuple[str, str]) -> str:
    """The file of a shipped rulebook with lines changed."""
    text = (resources.files("services.game") / "rulebooks" / f"{name}.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def faults(text: str) -> dict[str, str]:
    with pytest.raises(RulebookError) as error:
        parse_rulebook(text, "mine.toml")
    assert error.value.source == "mine.toml"
    assert all(str(error.value).count(fault.reason) for fault in error.value.faults)
    return {fault.field: fault.reason for fault in error.value.faults}


CONTRADICTIONS = [
    ("modern", "bring_in = 50\n", "bring_in = 101\n", "stakes[0].bring_in"),
    ("modern", "big_bet = 200\n", "big_bet = 300\n", "stakes[0].big_bet"),
    ("modern", "ante = 20\n", "ante = 100\n", "stakes[0].ante"),
    ("modern", "ante = 20\n", "ante = 0\n", "stakes[0].ante"),
    ("modern", "ante = 20\n", "ante = 0.5\n", "stakes[0].ante"),
    ("modern", "ante = 20\n", "", "stakes[0].ante"),
    ("modern", "ante = 20\n", "ante = 20\nblind = 1\n", "stakes[0].blind"),
    ("modern", "buy_in_max = 8000\n", "buy_in_max = 8001\n", "stakes[0].buy_in_max"),
    ("modern", "buy_in_min = 2000\n", "buy_in_min = 1999\n", "stakes[0].buy_in_min"),
    ("interpoker", "buy_in_min = 1000\n", "buy_in_min = 999\n", "stakes[0].buy_in_min"),
    ("club", "buy_in_max = 200\n", "buy_in_max = 300\n", "stakes[0].buy_in_max"),
    ("triopoker", "burn_cards = true", "burn_cards = false", "short_deck"),
    ("modern", 'short_deck = "community"', 'short_deck = "tda"', "short_deck"),
    ("razz", "_pair = false", "_pair = true", "fourth_street_pair"),
    ("eight-or-better", "_pair = false", "_pair = true", "fourth_street_pair"),
    ("razz", "wild_deuces = false", "wild_deuces = true", "wild_deuces"),
    ("club", '_rule = "forced"', '_rule = "none"', "stakes[0].bring_in"),
    ("modern", "bring_in = 50\n", "bring_in = 0\n", "stakes[0].bring_in"),
    ("modern", "raise_cap = 3", "raise_cap = 3.5", "raise_cap"),
    ("modern", "raise_cap = 3", "raise_cap = -1", "raise_cap"),
    ("modern", "raise_cap = 3", "raise_cap = true", "raise_cap"),
    ("modern", "raise_cap = 3", "", "raise_cap"),
    ("modern", "raise_cap = 3", "raise_cap = 3\ncolour = 1", "colour"),
    ("modern", '"beaten_may_muck"', '"nobody"', "showdown"),
    ("modern", "burn_cards = false", 'burn_cards = "no"', "burn_cards"),
    ("modern", "act_s = 15", "act_s = 0", "clock.act_s"),
    ("modern", "act_s = 15", "act_s = 15\nticks = 1", "clock.ticks"),
    ("modern", "act_s = 15\n", "act_s = 3601\n", "clock.act_s"),
    ("modern", "accrual_s = 5", "accrual_s = 0", "clock.time_bank_accrual_hands"),
    ("modern", "accrual_hands = 10", "accrual_hands = 0", "clock.time_bank_accrual_hands"),
    ("modern", "accrual_hands = 10", "accrual_hands = 1001", "clock.time_bank_accrual_hands"),
    ("modern", "time_bank_accrual_hands = 10\n", "", "clock.time_bank_accrual_hands"),
    ("modern", "time_bank_s = 60", "time_bank_s = 0", "clock.time_bank_accrual_s"),
    ("modern", "reconnect_s = 0", "reconnect_s = 20", "clock.reconnect_s"),
    ("modern", "_per_day = 0", "_per_day = 1", "protection_per_day"),
    ("triopoker", "_per_day = 4", "_per_day = 1001", "protection_per_day"),
    ("triopoker", "protection_per_day = 4\n", "", "protection_per_day"),
    ("modern", '[[stakes]]\nname = "2/4"', '[[stakes]]\nname = "1/2"', "stakes[1].name"),
    ("modern", "[sources]", "[sources]\ncolour = 'blue'", "sources.colour"),
    ("modern", 'game = "razz"', 'game = "holdem"', "variants.razz.game"),
]
"""(shipped house, line of its file, what stands there instead, the field at fault)."""


@pytest.mark.parametrize(("house", "old", "new", "field"), CONTRADICTIONS)
def test_a_contradiction_is_refused_with_its_field(
    house: str, old: str, new: str, field: str
) -> None:
    assert field in faults(toml(house, (old, new)))


@pytest.mark.parametrize("house", ["triopoker", "eight-or-better"])
def test_where_nobody_is_protected_any_more_there_is_no_number_a_day(house: str) -> None:
    assert shipped(house).protection_per_day
    assert not shipped(house).with_house(time_out="check_or_fold").protection_per_day


def test_suits_cannot_decide_odd_chips_where_deuces_are_wild() -> None:
    changes = [("wild_deuces = false", "wild_deuces = true")]
    changes.append(('odd_chip_high = "position"', 'odd_chip_high = "suit_high"'))
    assert "odd_chip_high" in faults(toml("club", *changes))


def test_all_faults_are_reported_at_once() -> None:
    found = faults(
        toml(
            "triopoker",
            ("burn_cards = true", "burn_cards = false"),
            ("raise_cap = 3", "raise_cap = 'three'"),
            ("big_bet = 20\n", "big_bet = 21\n"),
            ("ante = 12\n", "ante = 12.5\n"),
            ('game = "high"\n', ""),
        )
    )
    assert set(found) == {
        "short_deck",
        "raise_cap",
        "stakes[0].big_bet",
        "stakes[1].ante",
        "game",
    }


def test_the_faults_of_variants_are_reported_with_those_of_their_house() -> None:
    found = faults(
        toml(
            "club",
            ("raise_cap = 3", "raise_cap = 3.5"),
            ("big_bet = 10\n", "big_bet = 11\n"),
            ("fourth_street_pair = false\n\n[variants.razz]", "name = 'x'\n\n[variants.razz]"),
        )
    )
    assert set(found) == {
        "raise_cap",
        "stakes[0].big_bet",
        "variants.hi-lo.fourth_street_pair",
        "variants.hi-lo.name",
    }


def test_a_variant_is_judged_with_its_house_as_a_whole() -> None:
    burnless = "[variants.burnless]\nburn_cards = false\n"
    assert set(faults(toml("triopoker") + burnless)) == {"variants.burnless.short_deck"}
    page = parse_page(toml("triopoker") + burnless + "short_deck = 'community'\n")
    assert page.variants["burnless"].short_deck == "community"
    assert page.variants["burnless"].name == "triopoker/burnless"


def test_what_is_not_toml_is_refused_with_the_place() -> None:
    assert "line 1" in faults("game = = high")["file"]
    assert "nest" in faults(f"game = {'[' * 3000}")["file"]


def test_a_house_rule_laid_over_a_rulebook_is_checked_too() -> None:
    assert shipped("club").with_house(first_to_act_tie="suit").first_to_act_tie == "suit"
    with pytest.raises(RulebookError):
        shipped("club").with_house(game="razz")
    with pytest.raises(RulebookError):
        shipped("club").with_house(colour="blue")


def test_a_private_round_over_a_rulebook_takes_the_bring_in_off_its_stakes() -> None:
    private = shipped("club").with_house(bring_in_rule="none")
    assert [stake.bring_in for stake in private.stakes] == [0]


def test_the_stake_of_a_table_is_checked_the_same_way() -> None:
    rulebook = shipped("modern")
    stake = rulebook.stake("1/2")
    assert check_stake(rulebook, stake) == []
    wrong = replace(stake, ante=100, bring_in=101, big_bet=150)
    assert {fault.field for fault in check_stake(rulebook, wrong)} == {
        "stake.ante",
        "stake.bring_in",
        "stake.big_bet",
    }
    assert check_stake(shipped("club/private-round"), Stake("x", 1, 2, 5, 10, 200, 200))


def test_a_page_keeps_title_sources_and_variants() -> None:
    page = parse_page(toml("club"))
    assert page.rulebook == shipped("club")
    assert set(page.variants) == {
        "hi-lo",
        "razz",
        "wild-deuces",
        "private-round",
        "suit-opens",
    }


def test_an_unknown_name_is_a_key_error() -> None:
    for name in ("nowhere", "club/nowhere"):
        with pytest.raises(KeyError):
            shipped(name)
