"""What holds for every `doorcard` command."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from services.local.__main__ import app
from services.local.paper import WHOLE, listing, paper
from services.runtime.roles import Role


def commands(each: Any, path: str = "doorcard") -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    inner = getattr(each, "commands", None)
    if inner is None:
        yield path, each
        return
    for name, one in inner.items():
        yield from commands(one, f"{path} {name}")


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_gives_json_and_says_its_exit_status(name: str) -> None:
    options = [option for each in COMMANDS[name].params for option in each.opts]
    assert "--json" in options
    assert re.search(r"\b[Ss]tatus\b[^.]*\d", COMMANDS[name].help)


@pytest.mark.parametrize(
    "arguments", [["equity", "AsKd", "--game", "chess"], ["ledger", "rake", "--by", "chess"]]
)
def test_a_choice_that_is_none_is_refused_in_words_for_people(arguments: list[str]) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert result.exit_code == 2
    assert "'chess' is not one of" in result.output
    assert "Value error" not in result.output


def test_no_gateways_at_all_are_said_by_leaving_the_option_out() -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["load", "--gateways", "0"])
    assert result.exit_code == 2
    assert "should be greater than or equal to 1" in result.output


def test_a_token_as_json_says_what_it_is_for(tmp_path: Path) -> None:
    runner = CliRunner(env={"DOORCARD_HOME": str(tmp_path)})
    result = runner.invoke(app, ["token", "olga", "--role", "operator", "--hours", "1", "--json"])
    entry = json.loads(result.stdout)
    assert entry.pop("token").count(".") == 2
    assert entry == {
        "subject": "olga",
        "roles": [Role.OPERATOR],
        "holds_s": 3600.0,
        "act_for": [],
    }


def test_secrets_are_named_as_json_and_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    out = tmp_path / "secrets"
    result = CliRunner().invoke(app, ["secrets", "--out", str(out), "--json"])
    assert result.exit_code == 0
    entry = json.loads(result.stdout)
    assert entry["out"] == str(out)
    assert all((out / name).is_file() for name in entry["files"])
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = CliRunner().invoke(app, ["secrets", "--out", str(blocked / "in-it")])
    assert result.exit_code == 2
    assert result.output.startswith(f"out: {blocked}")


def test_what_is_no_terminal_gets_every_line_whole_and_a_narrow_one_every_letter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = listing("entry", "table")
    shown.add_row("e" * 100, "t" * 100)
    for name in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    paper().print(shown)
    assert capsys.readouterr().out.splitlines()[1].split() == ["e" * 100, "t" * 100]
    monkeypatch.setenv("COLUMNS", "60")
    paper().print(shown)
    _, *lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 60
    told = "".join(lines)
    assert (told.count("e"), told.count("t")) == (100, 100)
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    assert paper().width < WHOLE
