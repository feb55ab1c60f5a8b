"""`doorcard token`: what it prints is believed, with the roles and players it was asked for."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.local.__main__ import app
from services.local.keys import RoomKeys
from services.runtime.auth import KeyFileVerifier
from services.runtime.roles import Role


def test_a_cashiers_token_names_the_players_he_acts_for(tmp_path: Path) -> None:
    result = CliRunner(env={"DOORCARD_HOME": str(tmp_path)}).invoke(
        app, ["token", "cash-desk", "--role", "cashier", "--act-for", "an", "--act-for", "b."]
    )
    assert result.exit_code == 0
    verifier = KeyFileVerifier(tmp_path / "keys" / "auth-keys.json")
    caller = verifier.verify(result.stdout.strip())
    assert caller.roles == {Role.CASHIER}
    assert (caller.subject, caller.act_for) == ("cash-desk", ("an", "b."))
    assert caller.may_act_for("anna")
    assert not caller.may_act_for("carl")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["two words"], "subject 'two words' is not a possible id"),
        (["web", "--role", "service", "--act-for", ""], "an empty act_for prefix"),
    ],
)
def test_a_token_that_nobody_would_believe_is_not_made(
    tmp_path: Path, arguments: list[str], why: str
) -> None:
    RoomKeys(tmp_path / "keys")
    result = CliRunner(env={"DOORCARD_HOME": str(tmp_path)}).invoke(app, ["token", *arguments])
    assert result.exit_code == 2
    assert result.output.startswith(f"no token: {why}")
