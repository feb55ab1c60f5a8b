"""Turns among children, beat's schedule, and settings that money needs."""

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from pydantic import ValidationError

from services.settlement import triggers
from services.settlement.app import HARD_LIMIT_S, Works, make_app
from services.settlement.broker import VISIBILITY_S
from services.settlement.per_child import PerChild
from services.settlement.settings import BeatSettings, WorkerSettings
from services.settlement.turns import Turns


def hold(folder: Path, held: Connection) -> None:
    with Turns(folder).turn("mails") as ours:
        held.send(ours)
        held.recv()


def test_a_turn_is_one_child_s_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    here, there = multiprocessing.Pipe()
    turns = Turns(tmp_path)
    child = multiprocessing.get_context("spawn").Process(target=hold, args=(tmp_path, there))
    child.start()
    assert here.recv() is True
    with turns.turn("mails") as ours, turns.turn("drain-1") as other:
        assert (ours, other) == (False, True)
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    with turns.turn("mails") as ours:
        assert ours


def test_each_process_gets_a_thing_of_its_own() -> None:
    made = PerChild(os.getpid)
    assert made() == made() == os.getpid()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(made()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100).decode() == str(child)


def test_every_shard_is_drained_and_reconciled_by_triggers_that_never_expire() -> None:
    schedule = triggers.schedule(BeatSettings(), shards=3)
    drains = [each["args"] for each in schedule.values() if each["task"] == triggers.DRAIN]
    assert drains == [(0,), (1,), (2,)]
    assert sum(each["task"] == triggers.RECONCILE for each in schedule.values()) == 3
    assert sum(each["task"] == triggers.LEDGER for each in schedule.values()) == 1
    for each in schedule.values():
        # By whose clock? A worker that is ahead would do nothing at all.
        assert "expires" not in each["options"]
        assert each["options"]["queue"] == triggers.QUEUES[each["task"]]


def test_a_trigger_is_due_whatever_becomes_of_the_wall_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = triggers.schedule(BeatSettings(), shards=1)["settlement.drain-0"]["schedule"]
    last = every.now()
    assert not every.is_due(last).is_due
    later_s = time.monotonic() + 1.5
    monkeypatch.setattr("services.settlement.triggers.monotonic_s", lambda: later_s)
    monkeypatch.setattr("celery.app.base.datetime", None)
    assert every.is_due(last).is_due


def test_the_broker_is_used_as_money_needs_it() -> None:
    conf = make_app(WorkerSettings()).conf
    assert conf.accept_content == ["json"]
    assert conf.task_serializer == conf.event_serializer == "json"
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.worker_prefetch_multiplier == 1
    assert conf.task_ignore_result
    assert not conf.result_backend
    assert not conf.task_create_missing_queues
    assert not conf.worker_enable_remote_control
    # What is given back at a stop or after a death is done again; what hangs is not for ever.
    assert conf.task_acks_on_timeout
    assert conf.broker_connection_max_retries is None
    assert conf.broker_transport_options["visibility_timeout"] == VISIBILITY_S
    assert VISIBILITY_S > HARD_LIMIT_S >= conf.task_soft_time_limit


@pytest.mark.parametrize("shard", [-1, "1", "../x", True, None, 1.0])
def test_a_trigger_that_names_no_shard_is_refused(tmp_path: Path, shard: object) -> None:
    def never() -> None:
        raise AssertionError("reached")

    works = Works(drain=never, reconciler=never, mails=never, turns=Turns(tmp_path), attempts=never)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shard"):
        works.drain(shard)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "bad",
    [
        {"broker_url": "amqp://here"},
        {"smtp_address": "nowhere"},
        {"smtp_username": "me"},
        {"mail_from": "nobody"},
        {"worker_children": 2},
        {"reservation_age_seconds": 30},
    ],
)
def test_settings_that_would_do_harm_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        WorkerSettings(**bad)  # type: ignore[arg-type]


def test_a_password_goes_over_tls() -> None:
    settings = WorkerSettings(smtp_security="starttls", smtp_username="me", smtp_password="x")  # type: ignore[arg-type]
    assert "x'" not in repr(settings)
