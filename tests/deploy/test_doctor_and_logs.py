"""`doorcard doctor` and `doorcard logs`, at a running room and without one."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner

from services.local.__main__ import app
from services.local.checks import State, database, keys, newest_revision, tables_redis
from services.local.embedded import valkey_url
from services.local.logs_command import at_least, of_hand, shown
from services.runtime.listen import split_listen
from tests.deploy.conftest import Played

HAND = "0192f0c1-2d3e-7abc-8def-001122334455"


def invoke(home: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments], env={"DOORCARD_HOME": str(home)})


def lines_of(home: Path, *options: str) -> list[dict[str, Any]]:
    done = invoke(home, "logs", "--json", *options)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.xdist_group("played")
@pytest.mark.timeout(240)
class TestInARunningRoom:
    def test_the_doctor_finds_nothing_wrong(self, played: Played) -> None:
        done = invoke(played.room.home, "doctor", "--json")
        findings = json.loads(done.stdout)
        assert not [each for each in findings if each["state"] == State.WRONG]
        assert done.exit_code == 0
        checks = {each["check"]: each for each in findings}
        assert checks["Redis maxmemory-policy"]["found"] == "noeviction"
        assert checks["Redis appendfsync"]["found"] == "always"
        assert checks["schema wallet"]["found"] == newest_revision("wallet")
        assert checks["schema history"]["found"] == newest_revision("history")
        assert checks["service table-2"]["found"] == "serving"
        assert "clock" in checks

    def test_a_redis_that_may_forget_is_found_and_it_says_what_to_do(self, played: Played) -> None:
        room = played.room
        url = valkey_url(split_listen(room.address("valkey"))[1], room.keys.password("valkey"))
        with redis.Redis.from_url(url) as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
            client.config_set("appendfsync", "everysec")
            try:
                found = {each.check: each for each in tables_redis(url)}
                status = invoke(room.home, "doctor").exit_code
            finally:
                client.config_set("maxmemory-policy", "noeviction")
                client.config_set("appendfsync", "always")
        for setting, right in (("maxmemory-policy", "noeviction"), ("appendfsync", "always")):
            finding = found[f"Redis {setting}"]
            assert finding.state is State.WRONG
            assert f"CONFIG SET {setting} {right}" in finding.do
        assert status == 1

    def test_the_lines_of_a_hand_come_from_every_service_it_went_through(
        self, played: Played
    ) -> None:
        home = played.room.home
        hand = next(line["hand"] for line in lines_of(home) if line["event"] == "hand_archived")
        lines = lines_of(home, "--hand", hand)
        services = {line["service"].removesuffix("-2") for line in lines}
        assert services >= {"table", "shuffler", "settlement-worker"}
        events = [line["event"] for line in lines]
        told = ("hand_started", "hand_ended", "hand_settled", "hand_archived")
        assert [event for event in events if event in told] == list(told)
        assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)

    def test_every_hand_is_told_once_whatever_was_made_anew(self, played: Played) -> None:
        lines = lines_of(played.room.home)
        for event in ("hand_started", "hand_ended", "hand_archived"):
            hands = [each["hand"] for each in lines if each["event"] == event]
            assert len(hands) == len(set(hands)) == played.summary.hands, event

    def test_no_line_holds_a_token_or_an_address(self, played: Played) -> None:
        text = invoke(played.room.home, "logs", "--json").stdout
        assert "eyJ" not in text
        assert "@players.example" not in text
        assert "127.0.0.1" not in text

    def test_nothing_found_is_said_by_the_exit_status(self, played: Played) -> None:
        assert invoke(played.room.home, "logs", "--hand", HAND).exit_code == 1
        assert invoke(played.room.home, "logs", "--level", "loud").exit_code == 2


def test_a_database_that_is_away_is_found() -> None:
    (finding,) = database("wallet", "postgresql://wallet@127.0.0.1:9/wallet")
    assert finding.state is State.WRONG
    assert finding.do


def test_keys_that_others_may_read_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "auth-signing-key.pem").write_text("secret")
    (folder / "auth-signing-key.pem").chmod(0o644)
    (finding,) = keys(tmp_path)
    assert finding.state is State.WRONG
    assert finding.do.startswith("chmod 600")


def test_a_seal_key_file_that_is_broken_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "table-seal.json").write_text("{}")
    (folder / "table-seal.json").chmod(0o600)
    (finding,) = keys(tmp_path)
    assert finding.state is State.WRONG


def test_without_a_room_the_doctor_says_what_it_could_not_see(tmp_path: Path) -> None:
    findings = json.loads(invoke(tmp_path, "doctor", "--json").stdout)
    skipped = {each["check"] for each in findings if each["state"] == State.SKIPPED}
    assert skipped == {"keys", "room"}
    assert invoke(tmp_path, "logs").exit_code == 2


def test_lines_of_a_call_that_names_the_hand_belong_to_it() -> None:
    lines = [
        {"event": "cards_drawn", "hand": HAND, "trace": "t1"},
        {"event": "call_refused", "trace": "t1"},
        {"event": "call_refused", "trace": "t2"},
        {"event": "cards_drawn", "hand": "another", "trace": "t1"},
    ]
    assert list(of_hand(lines, HAND)) == lines[:2]


def test_levels_and_facts_of_a_line() -> None:
    line = {
        "at": "2026-11-30T20:00:01.123456Z",
        "level": "warning",
        "service": "table",
        "event": "tick_failed",
        "table": "t",
        "times": 2,
    }
    assert at_least(line, "warning")
    assert not at_least(line, "error")
    assert shown(line).startswith("20:00:01.123 table")
    assert shown(line).endswith("table=t times=2")
