"""`doorcard rules`: what it prints and how it exits."""

import json
from dataclasses import fields
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.game.bounded_toml import TEXT_BYTES_MAX
from services.game.rulebook import Rulebook, shipped, shipped_names
from services.local.rules import SECTIONS, rules_app

TRIOPOKER = (resources.files("services.game") / "rulebooks" / "triopoker.toml").read_text("utf-8")


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(
        rules_app, [str(argument) for argument in arguments]
    )
    return result.exit_code, result.output


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    text = TRIOPOKER
    for old, new in [
        ("burn_cards = true", "burn_cards = false"),
        ("raise_cap = 3", "raise_cap = 3.5"),
        ("ante = 5\n", "ante = 10\n"),
        ("buy_in = ", "bye_in = "),
    ]:
        assert old in text
        text = text.replace(old, new, 1)
    file = tmp_path / "broken.toml"
    file.write_text(text + "[variants.hi-lo]\ngame = 'hi_lo'\n")
    return file


def test_every_rulebook_is_listed_with_its_game_and_document() -> None:
    status, output = run("list")
    assert status == 0
    for name in shipped_names():
        assert any(line.split()[:2] == [name, shipped(name).game] for line in output.splitlines())
    assert "TRIOPOKER.COM: Seven Card Stud" in output
    status, output = run("list", "--json")
    assert status == 0
    assert [entry["name"] for entry in json.loads(output)] == list(shipped_names())


def test_a_page_has_every_setting_with_its_source() -> None:
    status, output = run("show", "triopoker")
    assert status == 0
    rows = [line.split() for line in output.splitlines()]
    for name in (name for names in SECTIONS.values() for name in names):
        assert any(row[:1] == [name] and len(row) > 2 for row in rows), name
    assert "T: one bet and three raises" in output
    assert shipped("triopoker").sha256() in output


def test_the_sections_of_a_page_leave_out_no_setting() -> None:
    names = [name for names in SECTIONS.values() for name in names]
    assert sorted([*names, "name", "stakes"]) == sorted(field.name for field in fields(Rulebook))


def test_a_page_has_published_figures_beside_those_in_force() -> None:
    rows = [line.split() for line in run("show", "triopoker")[1].splitlines()]
    assert ["3/6", "300", "30", "600", "60", "300/600", "from", "3000"] in rows
    assert ["20/40", "-", "200", "-", "400", "2000/4000", "from", "20000"] in rows
    rows = [line.split() for line in run("show", "modern")[1].splitlines()]
    assert ["1/2", "20", "50", "100/200", "2000", "to", "8000"] in rows


def test_a_page_names_the_variants_and_what_they_change() -> None:
    output = run("show", "club")[1]
    assert "Variant razz: game = razz, fourth_street_pair = no" in output
    status, output = run("show", "club/razz")
    assert status == 0
    assert "the variant razz" in output
    assert "C: one bet and three raises" in output


def test_a_page_as_json_reads_back_as_the_same_rulebook() -> None:
    for name in shipped_names():
        status, output = run("show", name, "--json")
        assert status == 0
        page = json.loads(output)
        rulebook = Rulebook.from_mapping(page["settings"])
        assert rulebook == shipped(name)
        assert page["sha256"] == rulebook.sha256()
        assert set(page["sources"]) == set(page["settings"]) - {"name"}


def test_an_operators_own_file_is_shown_like_a_shipped_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TRIOPOKER.replace('raise_cap = "T: one bet and three raises"\n', ""))
    status, output = run("show", file)
    assert status == 0
    assert any(line.split() == ["raise_cap", "3", "not", "given"] for line in output.splitlines())


def test_a_file_that_contradicts_itself_is_not_shown(broken: Path) -> None:
    status, output = run("show", broken)
    assert status == 1
    assert "short_deck" in output


def test_no_such_rulebook_is_status_2() -> None:
    status, output = run("show", "nowhere")
    assert status == 2
    assert output == "nowhere: neither a rulebook that `doorcard rules list` lists, nor a file\n"


def test_rulebooks_that_hold_are_ok_and_0(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TRIOPOKER)
    assert run("check", file, file) == (0, f"OK  {file}\nOK  {file}\n")


def test_every_contradiction_is_reported_at_once_with_file_field_value_and_reason(
    broken: Path, tmp_path: Path
) -> None:
    status, output = run("check", broken)
    assert status == 1
    assert set(output.splitlines()) == {
        f"{broken}: raise_cap = 3.5: fractions of a unit do not exist",
        f"{broken}: buy_in = missing: must be set",
        f"{broken}: bye_in = announced_minimum: no such setting",
        f"{broken}: stakes[0].ante = 10: must be below the small bet of 10",
        f"{broken}: short_deck = reshuffle_burns: there are no burns where burn_cards is false",
        f"{broken}: variants.hi-lo.fourth_street_pair = true: is for stud high only, not hi_lo",
    }
    status, output = run("check", "--json", broken)
    assert status == 1
    entry = json.loads(output)
    assert entry["file"] == str(broken)
    assert entry["ok"] is False
    assert {"field": "buy_in", "value": "missing", "reason": "must be set"} in entry["faults"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"game = = high", "not TOML"),
        (b"#" * (TEXT_BYTES_MAX + 1), "more than"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_2(
    tmp_path: Path, broken: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "unreadable.toml"
    if content is not None:
        file.write_bytes(content)
    status, output = run("check", broken, file)
    assert status == 2
    assert any(line.startswith(f"{file}: ") and reason in line for line in output.split("\n"))
    assert output.count(str(file)) == 1
    assert "raise_cap" in output
