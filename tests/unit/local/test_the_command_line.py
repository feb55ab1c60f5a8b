"""What holds for every `doorcard` command."""

import pytest
from typer.testing import CliRunner

from services.local.__main__ import app


@pytest.mark.parametrize(
    "arguments", [["equity", "AsKd", "--game", "chess"], ["ledger", "rake", "--by", "chess"]]
)
def test_a_choice_that_is_none_is_refused_in_words_for_people(arguments: list[str]) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert result.exit_code == 2
    assert "'chess' is not one of" in result.output
    assert "Value error" not in result.output
