"""`doorcard demo`: from nothing to settled hands and mails, and nothing left behind."""

import email
import email.policy
import json
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from tests.integration.rooms import Command, Places, client, command, new_home, until

HANDS = 20
CARD = re.compile(r"(?<![A-Za-z0-9])[2-9TJQKA][cdhs](?![A-Za-z0-9])")
SUIT = re.compile("[♣♦♥♠]")
TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{8,}")
ADDRESS = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9-]+\.[A-Za-z]+")


@dataclass(frozen=True)
class Demo:
    """A demo that is over."""

    home: Path
    status: int
    output: str
    summary: dict[str, Any]
    places: Places
    left_running: list[str]


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    """One demo for the tests of this file."""
    with new_home() as home:
        summary = home / "summary.json"
        arguments = ("--hands", str(HANDS), "--summary", str(summary))
        with command(home, "demo", *arguments) as running:
            places = running.until_up()
            status, output = running.wait(100), running.output()
            figures = json.loads(summary.read_text())
            yield Demo(home, status, output, figures, places, running.left_running())


def test_it_ends_by_itself_and_everything_agrees(demo: Demo) -> None:
    assert demo.status == 0, demo.output
    summary = demo.summary
    assert summary["ok"], summary
    assert summary["hands"] == summary["settled_hands"] >= HANDS
    assert summary["ledger_difference"] == summary["escrow_difference"] == 0
    assert summary["actions"] > summary["hands"]
    assert summary["rake_total"] > 0
    assert set(summary["commits_by_replica"]) == {"table", "table-2"}
    assert all(summary["commits_by_replica"].values()), "a replica committed nothing"
    assert summary["restarts"] == {}, "a process ended in the middle"
    for figure in ("actions_per_second", "action_p50_ms", "action_p99_ms"):
        assert summary[figure] > 0, figure
    assert "conflicts" in summary


def test_every_mail_that_was_asked_for_can_be_read(demo: Demo) -> None:
    files = list((demo.home / "mail").glob("*.eml"))
    assert len(files) == demo.summary["mails_sent"] == demo.summary["mails_asked"] > 0
    for file in files:
        mail = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        assert isinstance(mail, EmailMessage)
        assert not mail.defects
        player = str(mail["To"]).partition("@")[0]
        assert re.fullmatch(r"bot-\d-\d", player), mail["To"]
        assert str(mail["Subject"]).startswith("Hand history: ")
        texts = []
        for kind in ("plain", "html"):
            body = mail.get_body((kind,))
            assert body is not None, f"{file} has no {kind} text"
            texts.append(str(body.get_content()))
        plain, html = texts
        assert player in plain
        assert player in html
        assert "<html" in html
        assert "<html" not in plain


def test_nothing_is_left_running(demo: Demo) -> None:
    assert demo.left_running == []
    assert demo.places.listening() == []
    assert not (demo.home / "room.json").exists()


def test_no_log_holds_a_card_a_token_an_address_or_a_password(demo: Demo) -> None:
    logs = sorted((demo.home / "logs").iterdir())
    assert {"table.log", "shuffler.log", "settlement-worker.log"} <= {log.name for log in logs}
    secrets = [path.read_text() for path in (demo.home / "keys" / "passwords").iterdir()]
    assert secrets
    for log in logs:
        text = log.read_text(encoding="utf-8", errors="replace")
        for pattern in (CARD, SUIT, TOKEN, ADDRESS):
            found = pattern.search(text)
            assert found is None, f"{log.name}: {text[: found.end()].splitlines()[-1]}"
        assert not any(secret in text for secret in secrets), log.name


def test_logs_are_json_lines_of_the_service_that_wrote_them(demo: Demo) -> None:
    for name in ("shuffler", "showdown", "wallet", "history", "table", "table-2"):
        lines = (demo.home / "logs" / f"{name}.log").read_text().splitlines()
        assert lines, name
        for line in lines:
            assert json.loads(line)["service"] == name


def makes_its_database(running: Command) -> bool:
    """For the first time in this data folder."""
    return (running.home / ".postgres.new" / "PG_VERSION").exists()


def starts_its_services(running: Command) -> bool:
    """The databases run, the services do not yet."""
    return "postgres is up" in running.output()


@pytest.mark.parametrize(
    ("moment", "number"),
    [(makes_its_database, signal.SIGINT), (starts_its_services, signal.SIGTERM)],
)
def test_a_signal_while_it_starts_leaves_nothing(
    home: Path, moment: Callable[[Command], bool], number: signal.Signals
) -> None:
    with command(home, "demo", "--hands", "1000") as running:
        running.until(lambda: moment(running))
        running.interrupt(number)
        assert running.wait() == 130, running.output()
        assert running.left_running() == []


async def test_ctrl_c_in_the_middle_of_hands_stops_cleanly(home: Path) -> None:
    summary = home / "summary.json"
    with command(home, "demo", "--hands", "100000", "--summary", str(summary)) as running:
        places = running.until_up()
        async with client(places) as at:
            in_play = await until(at.tables_in_play)
            await at.turn(next(iter(in_play)))
        running.interrupt()
        # Whoever is impatient gets no half-stopped room.
        running.until(lambda: not (home / "room.json").exists())
        running.interrupt()
        assert running.wait() == 130, running.output()
        assert "Traceback" not in running.output()
        assert running.left_running() == []
        assert places.listening() == []
        assert not summary.exists(), "a broken-off demo has no figures"
