"""`doorcard settlement`: what is set aside is listed, tried again or dropped, with a reason."""

import json
from pathlib import Path

import pytest
from redis import Redis
from typer.testing import CliRunner

from services.local.settlement_command import settlement_app
from services.settlement import attempts, triggers
from services.settlement.attempts import DEATHS_MAX, Attempts
from services.settlement.broker import connect_broker
from tests import valkey

WORK = "drain-7"


@pytest.fixture
def url(broker: valkey.Valkey) -> str:
    broker.flush()
    return broker.url.replace("unix://", "redis+socket://")


@pytest.fixture
def client(url: str) -> Redis:
    return connect_broker(url)


def doorcard(url: str, *arguments: str) -> tuple[int, str]:
    env = {"DOORCARD_BROKER_URL": url, "COLUMNS": "200"}
    result = CliRunner(env=env).invoke(settlement_app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def begin(client: Redis) -> attempts.Begun | None:
    return Attempts(lambda: client, "w").begin(WORK, triggers.DRAIN, (7,), "message-1")


def park(client: Redis) -> None:
    for _ in range(DEATHS_MAX):
        assert begin(client)
    assert begin(client) is None


def test_nothing_set_aside_ends_with_status_0(url: str) -> None:
    assert doorcard(url, "list") == (0, "nothing is set aside\n")


def test_what_is_set_aside_is_listed_with_its_last_message(url: str, client: Redis) -> None:
    park(client)
    status, text = doorcard(url, "list")
    assert status == 1
    assert WORK in text
    assert "message-1" in text
    status, text = doorcard(url, "list", "--json")
    (listed,) = json.loads(text)
    assert (listed["work"], listed["task"], listed["args"]) == (WORK, triggers.DRAIN, [7])


def test_a_retry_ends_the_rest_and_keeps_it_listed(url: str, client: Redis) -> None:
    park(client)
    assert doorcard(url, "list", "--decisions") == (1, "nothing was decided\n")
    assert doorcard(url, "retry", WORK)[0] == 2, "a reason is needed"
    assert begin(client) is None
    status, _ = doorcard(url, "retry", WORK, "--reason", "a new version", "--operator", "olga")
    assert status == 0
    assert begin(client) is not None
    assert doorcard(url, "list")[0] == 1
    status, text = doorcard(url, "list", "--decisions")
    assert "retry drain-7: a new version (olga)" in text


def test_a_drop_forgets_it_and_its_deaths(url: str, client: Redis) -> None:
    park(client)
    assert doorcard(url, "drop", WORK, "--reason", "the host had no memory")[0] == 0
    assert doorcard(url, "list")[0] == 0
    for _ in range(DEATHS_MAX):
        assert begin(client)
    assert begin(client) is None


def test_what_is_not_there_ends_with_status_2(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert doorcard(url, "retry", WORK, "--reason", "x") == (2, f"{WORK} is not set aside\n")
    assert doorcard(url, "drop", WORK, "--reason", " ")[0] == 2
    assert doorcard("redis://127.0.0.1:1/0", "list")[0] == 2
    monkeypatch.setenv("DOORCARD_HOME", str(tmp_path / "home"))
    status, text = doorcard("", "list")
    assert (status, "start a room here" in text) == (2, True)
