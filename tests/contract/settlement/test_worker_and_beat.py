"""The two processes against a real broker: started, killed, doubled, starved, stopped."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from services.settlement import triggers
from services.settlement.beat import BACKLOG_PERIODS
from tests import hand_records as hands
from tests import valkey
from tests.contract.settlement.conftest import ask
from tests.contract.settlement.fakes import FakeRoom
from tests.contract.settlement.processes import DEADLINE_S, Start, drained, wait_until

MAILED = re.compile(r"\b[2-9TJQKA][cdhs]\b|example\.net")


def test_beat_and_worker_drain_every_shard_and_stop_in_order(
    fake_room: FakeRoom, start: Start
) -> None:
    worker, beat = start("worker"), start("beat")
    for shard in (0, 1):
        for _ in range(3):
            fake_room.tables.write(shard)
        wait_until(drained(fake_room, shard, 3), "the shard is drained")
        assert len(fake_room.history.hands[shard]) == 3
    counted = worker.metrics()
    assert counted["doorcard_settled_entries_total hand"] == 6
    assert counted["doorcard_archived_hands_total"] == 6
    assert counted["process_open_fds"] > 0
    wait_until(
        lambda: beat.metrics().get(f"doorcard_triggers_total sent {triggers.DRAIN}", 0) >= 2,
        "beat has counted its triggers",
    )
    assert (worker.stop(), beat.stop()) == (0, 0)


def test_killed_children_workers_and_beats_lose_and_double_nothing(
    fake_room: FakeRoom, start: Start
) -> None:
    start("beat")
    second_beat = start("beat")
    worker = start("worker", drain_batch="1")
    written = []
    for _ in range(3):
        written += [fake_room.tables.write(0).ledger.entry_id for _ in range(10)]
        for child in worker.children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
    wait_until(drained(fake_room, 0, 30), "new children drained it")
    written += [fake_room.tables.write(0).ledger.entry_id for _ in range(30)]
    second_beat.kill()
    worker.kill()
    start("worker", drain_batch="7")
    wait_until(drained(fake_room, 0, 60), "a new worker drained it")
    assert fake_room.wallet.applied[0] == written
    assert len(set(fake_room.history.hands[0])) == len(fake_room.history.hands[0]) == 60


def test_a_flushed_broker_costs_a_trigger_at_most(
    fake_room: FakeRoom, start: Start, broker: valkey.Valkey
) -> None:
    start("worker")
    start("beat")
    fake_room.tables.write(0)
    wait_until(drained(fake_room, 0, 1), "the shard is drained")
    broker.flush()
    fake_room.tables.write(0)
    wait_until(drained(fake_room, 0, 2), "the shard is drained again")


def test_while_no_worker_takes_them_triggers_stay_few(
    fake_room: FakeRoom, start: Start, broker: valkey.Valkey
) -> None:
    beat = start("beat", drain_every_seconds="0.02")
    dropped = f"doorcard_triggers_total dropped {triggers.DRAIN}"
    wait_until(lambda: beat.metrics().get(dropped, 0) > 50, "beat drops triggers")
    waiting = broker.client().llen(triggers.QUEUES[triggers.DRAIN])
    # Beat looks twice a second: what it sends between two looks comes on top.
    sent_between_looks = 2 * 0.5 / 0.02
    assert waiting <= BACKLOG_PERIODS * fake_room.wallet.shards + sent_between_looks
    fake_room.tables.write(0)
    start("worker")
    wait_until(drained(fake_room, 0, 1), "a worker that comes late drains it")


def test_a_mail_server_that_hangs_keeps_no_hand_waiting_and_logs_tell_no_secret(
    fake_room: FakeRoom, start: Start
) -> None:

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        worker = start("worker", smtp_address=address, smtp_timeout_seconds="9")
        start("beat")
        for player_id in hands.NAMES.values():
            ask(fake_room, player_id)
        silent.settimeout(DEADLINE_S)
        connection, _ = silent.accept()  # a child waits for the greeting now
        with connection:
            fake_room.tables.write(1)
            wait_until(drained(fake_room, 1, 1), "hands are drained all the same")
        wait_until(lambda: len(fake_room.history.completed) > 0, "the mail is given up")
        hung, _ = silent.accept()  # the next mail's child, which SIGTERM does not wait for
        with hung:
            stopped_s = time.monotonic()
            assert worker.stop() == 0
            assert time.monotonic() - stopped_s < 8
    log = worker.log_file.read_text()
    assert "mail_not_sent" in log
    assert not MAILED.search(log)


@pytest.mark.parametrize("arguments", [[], ["both"], ["worker", "beat"]])
def test_anything_but_one_of_two_words_is_refused(arguments: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "services.settlement", *arguments], capture_output=True, check=False
    )
    assert ended.returncode == 2
    assert b"usage" in ended.stderr


def test_a_bad_setting_is_named_and_its_secret_is_not() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "services.settlement", "worker"],
        env={**os.environ, "DOORCARD_BROKER_URL": "amqp://me:hidden@broker"},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 2
    assert b"DOORCARD_BROKER_URL" in ended.stderr
    assert b"hidden" not in ended.stderr
