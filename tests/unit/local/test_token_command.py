"""`doorcard token`: what it prints is believed, with the roles and players it was asked for."""

from pathlib import Path

from typer.testing import CliRunner

from services.local.__main__ import app
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
