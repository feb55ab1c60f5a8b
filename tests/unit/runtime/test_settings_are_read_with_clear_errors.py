"""Settings come from DOORCARD_* variables; a bad one is named, with its value and what is wrong."""

from pathlib import Path

import pytest
from pydantic import Field, SecretStr

from services.runtime.settings import ServiceSettings, load


class LedgerSettings(ServiceSettings):
    service: str = "wallet"
    database_url: str = "postgresql://localhost/wallet"
    signing_secret: SecretStr = SecretStr("x" * 16)
    shards: int = 8


def test_defaults_come_from_the_one_table_of_ports() -> None:
    settings = load(LedgerSettings)
    assert settings.listen == "127.0.0.1:7103"
    assert settings.metrics_listen == "127.0.0.1:9103"
    assert settings.table_addresses == ("127.0.0.1:7110", "127.0.0.1:7111")


def test_a_second_table_replica_gets_ports_of_its_own() -> None:
    assert ServiceSettings(service="table-2").listen == "127.0.0.1:7111"


def test_addresses_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOORCARD_TABLE_ADDRESSES", "10.0.0.1:7110, 10.0.0.2:7110")
    assert load(ServiceSettings).table_addresses == ("10.0.0.1:7110", "10.0.0.2:7110")


def test_every_bad_variable_has_a_line_and_the_exit_status_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOORCARD_LISTEN", "7103")
    monkeypatch.setenv("DOORCARD_SHARDS", "many")
    monkeypatch.setenv("DOORCARD_TLS_CERT", "/nowhere/cert.pem")
    with pytest.raises(SystemExit) as ended:
        load(LedgerSettings)
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "DOORCARD_LISTEN='7103'",
        "DOORCARD_TLS_KEY",
        "DOORCARD_SHARDS='many'",
    ]
    assert lines[0].endswith("must be host:port, not '7103'")


def test_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Strict(ServiceSettings):
        broker_url: int = 0
        signing_secret: SecretStr = Field(default=SecretStr("x" * 16), min_length=16)

    monkeypatch.setenv("DOORCARD_BROKER_URL", "redis://user:hunter2@10.0.0.1/0")
    monkeypatch.setenv("DOORCARD_SIGNING_SECRET", "too-short")
    with pytest.raises(SystemExit):
        load(Strict)
    shown = capsys.readouterr().err
    assert "hunter2" not in shown
    assert "redis://***@10.0.0.1/0" in shown
    assert "too-short" not in shown
    assert "DOORCARD_SIGNING_SECRET='***'" in shown


@pytest.mark.parametrize(
    "fields",
    [
        {"listen": "host:99999"},
        {"listen": "::1:80"},
        {"tls_key": "key.pem"},
        {"require_client_cert": True},
        {"drain_seconds": -1},
        {"default_deadline_seconds": 0},
        {"service": "Not A Name"},
        {"log_level": "chatty"},
    ],
)
def test_a_value_that_cannot_be_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ServiceSettings(**fields)  # type: ignore[arg-type]


def test_a_mounted_secret_is_read_like_a_variable_which_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "doorcard_audience").write_text("from-a-file\n")
    monkeypatch.setenv("DOORCARD_SECRETS_DIR", str(tmp_path))
    assert load(ServiceSettings).audience == "from-a-file"
    monkeypatch.setenv("DOORCARD_AUDIENCE", "from-the-environment")
    assert load(ServiceSettings).audience == "from-the-environment"


def test_a_folder_of_secrets_must_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOORCARD_SECRETS_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match="2"):
        load(ServiceSettings)
    assert "DOORCARD_SECRETS_DIR" in capsys.readouterr().err
