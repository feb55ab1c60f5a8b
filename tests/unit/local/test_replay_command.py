"""`doorcard replay`: what it prints and how it exits."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from services.local.replay import FILE_BYTES_MAX, replay_command

HANDS = Path(__file__).parents[2] / "hands"
RIGHT = HANDS / "wsop" / "wsop-2023-43-5-10.phh"

app = typer.Typer()
app.command()(replay_command)


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


@pytest.fixture
def different(tmp_path: Path) -> Path:
    file = tmp_path / "different.phh"
    file.write_text(RIGHT.read_text().replace("[2550000, 11150000", "[2550001, 11150000"))
    return file


def test_all_right_is_ok_and_0() -> None:
    assert run(RIGHT) == (0, f"OK  {RIGHT}\n")


def test_a_difference_is_named_and_1(different: Path) -> None:
    status, output = run(RIGHT, different)
    assert status == 1
    assert f"DIFFERENT  {different}: finishing_stacks" in output


def test_a_file_that_cannot_be_read_is_2_with_field_and_reason(
    tmp_path: Path, different: Path
) -> None:
    broken = tmp_path / "broken.phh"
    broken.write_text("variant = 'NT'\nstarting_stacks = [1, 1]")
    status, output = run(broken, different, RIGHT)
    assert status == 2
    assert f"UNREADABLE  {broken}: variant: must be" in output
    assert "OK" in output


@pytest.mark.parametrize("content", [b"\xff\xfe", b"#" * (FILE_BYTES_MAX + 1)])
def test_what_is_no_text_or_too_much_is_unreadable(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "huge.phh"
    file.write_bytes(content)
    assert run(file)[0] == 2


def test_a_file_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    status, output = run(tmp_path / "none.phh")
    assert status == 2
    assert "none.phh: file: No such file" in output
    assert run(tmp_path)[0] == 2


def test_json_has_an_object_a_hand(different: Path) -> None:
    status, output = run("--json", RIGHT, different)
    assert status == 1
    right, wrong = (json.loads(line) for line in output.splitlines())
    assert right == {
        "file": str(RIGHT),
        "ok": True,
        "error": None,
        "pots": [{"amount": 350000, "eligible": [4], "winners": [4]}],
        "uncalled": [0, 0, 0, 150000, 0],
        "rake": 0,
        "payouts": [0, 0, 0, 350000, 0],
        "finishing_stacks": [2550000, 11150000, 4425000, 6925000, 4650000],
    }
    assert not wrong["ok"]
    assert "finishing_stacks" in wrong["error"]
    assert wrong["finishing_stacks"] == right["finishing_stacks"]


def test_json_of_an_unreadable_file_names_field_and_reason(tmp_path: Path) -> None:
    file = tmp_path / "empty.phh"
    file.write_text("")
    status, output = run("--json", file)
    entry = json.loads(output)
    assert (status, entry["ok"], entry["field"], entry["pots"]) == (2, False, "starting_stacks", [])
    assert entry["reason"] == "is missing"


def test_another_rulebook_may_be_asked_for() -> None:
    file = HANDS / "cases" / "pair-sizes-5-10.phh"
    assert run("--rulebook", "triopoker", file)[0] == 0
    assert run("--rulebook", "modern", file)[0] == 1
    status, output = run("--rulebook", "nobody", file)
    assert status == 2
    assert output.startswith("--rulebook: there is no rulebook 'nobody', but club, ")
    assert "rooms/stars" in output
    assert str(file) not in output


def test_amounts_may_be_taken_as_recorded(tmp_path: Path) -> None:
    file = HANDS / "online" / "kingsclub-stud-0001.phh"
    plain = tmp_path / "plain.phh"
    text = file.read_text().replace("room raise rule", "raise")
    plain.write_text(text.replace("kingsclub", "stars"))
    assert run(file)[0] == 0
    assert run(plain)[0] == 1
    assert run("--lenient-amounts", plain)[0] == 0


def test_a_hand_is_explained_with_the_rule_of_every_step() -> None:
    status, output = run("--explain", HANDS / "cases" / "pair-sizes-5-10.phh")
    assert status == 0
    words = " ".join(output.split())
    assert "p3 has the lowest door card" in words
    assert "3 bring-in" in words
    assert "[CAP_REACHED]" in words
    assert "Fourth street" in words
    assert "3 fourth-street pair" in words


def test_an_explanation_goes_into_the_json() -> None:
    status, output = run("--explain", "--json", RIGHT)
    entry = json.loads(output)
    assert (status, entry["ok"], entry["pots"][0]["amount"]) == (0, True, 350000)
    first = entry["explanation"][0]
    assert first.keys() == {"after", "street", "topic", "player", "text", "rule", "code"}
    offered = next(each for each in entry["explanation"] if each["topic"] == "decision")
    assert offered["legal"]["bring_in"] > 0


def test_a_hand_without_its_end_can_be_explained_but_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "open.phh"
    lines = RIGHT.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("finishing")))
    assert run(file)[0] == 2
    assert run("--explain", file)[0] == 0


def test_a_difference_is_explained_where_it_is(different: Path) -> None:
    status, output = run("--explain", different)
    assert status == 1
    assert "finishing_stacks" in output
    assert f"DIFFERENT  {different}" in output
