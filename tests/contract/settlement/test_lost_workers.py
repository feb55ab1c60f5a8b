"""What becomes of messages whose workers die: done again, parked at last, and tried again."""

import os
import threading
import time
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from typing import Any

import pytest
from celery import Celery
from redis import Redis

from services.settlement import attempts, triggers
from services.settlement.app import make_app
from services.settlement.attempts import DEATHS_MAX, SURELY_OVER_MS, Attempts, Mark, deaths
from services.settlement.broker import connect_broker
from services.settlement.settings import WorkerSettings
from tests import valkey
from tests.contract.settlement.fakes import FakeRoom
from tests.contract.settlement.processes import Process, Start, drained, inode_of, wait_until

WORK = "drain-0"


@pytest.fixture
def client(broker: valkey.Valkey) -> Redis:
    broker.flush()
    return connect_broker(celery_url(broker))


def celery_url(broker: valkey.Valkey) -> str:
    return broker.url.replace("unix://", "redis+socket://")


def app(broker: valkey.Valkey) -> Celery:
    return make_app(WorkerSettings(broker_url=celery_url(broker)))  # type: ignore[arg-type]


def trigger(broker: valkey.Valkey, shard: int = 0) -> None:
    """One, without beat, that does not expire."""
    app(broker).send_task(triggers.DRAIN, args=(shard,), queue=triggers.QUEUES[triggers.DRAIN])


def unfinished(client: Redis) -> tuple[int, int]:
    """Messages that wait, and messages that were given out and are not acknowledged."""
    waiting: Any = client.llen(triggers.QUEUES[triggers.DRAIN])
    out: Any = client.hlen("unacked")
    return waiting, out


class Poison:
    """Reading the outbox of shard 0 kills the child that does it, while it is armed."""

    def __init__(self, room: FakeRoom, worker: Process) -> None:
        self.worker = worker
        self.server = room.address
        self.armed = True
        self.kills = 0
        room.tables.before_read = self.read

    def read(self, shard: int, peer: str) -> None:
        if shard == 0 and self.armed:
            self.worker.kill_child(peer, self.server)
            self.kills += 1


def test_a_child_is_found_by_its_connection_beside_one_that_is_over() -> None:
    with socket() as elsewhere, socket() as server:
        for listening in (elsewhere, server):
            listening.bind(("127.0.0.1", 0))
            listening.listen()
        with near_end() as over:
            over.connect(elsewhere.getsockname())
            near = over.getsockname()
        elsewhere.accept()[0].close()
        with near_end() as child:
            child.bind(near)
            child.connect(server.getsockname())
            found = inode_of(*(f"ipv4:127.0.0.1:{end[1]}" for end in (near, server.getsockname())))
            assert os.readlink(f"/proc/self/fd/{child.fileno()}") == f"socket:[{found}]"


def near_end() -> socket:
    """Of a connection whose port another may have too."""
    end = socket()
    end.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    return end


def test_a_trigger_whose_child_is_killed_is_done_again_by_another(
    fake_room: FakeRoom, start: Start, broker: valkey.Valkey, client: Redis
) -> None:
    poison = Poison(fake_room, start("worker"))
    killed = poison.read

    def once(shard: int, peer: str) -> None:
        killed(shard, peer)
        poison.armed = False

    fake_room.tables.before_read = once
    fake_room.tables.write(0)
    trigger(broker)
    wait_until(drained(fake_room, 0, 1), "the same message was given to another child")
    assert poison.kills == 1
    wait_until(lambda: unfinished(client) == (0, 0), "it is acknowledged at last")
    assert not client.keys("celery-task-meta-*"), "nobody keeps results"


def test_work_that_kills_every_worker_is_parked_and_the_rest_goes_on(
    fake_room: FakeRoom, start: Start, client: Redis
) -> None:
    worker = start("worker")
    poison = Poison(fake_room, worker)
    fake_room.tables.write(0)
    start("beat")
    wait_until(lambda: bool(attempts.parked(client)), "it is parked")
    assert poison.kills == DEATHS_MAX
    (message,) = attempts.parked(client)
    assert (message.work, message.task, message.args) == (WORK, triggers.DRAIN, (0,))
    assert message.message
    resting = f"doorcard_tasks_total resting {triggers.DRAIN}"
    wait_until(lambda: worker.metrics().get(resting, 0) > 3, "its triggers are passed over")
    for _ in range(3):
        fake_room.tables.write(1)
    wait_until(drained(fake_room, 1, 3), "the other shard is drained")
    counted = worker.metrics()
    assert counted["doorcard_parked_messages"] == 1
    assert counted[f"doorcard_messages_parked_total {triggers.DRAIN}"] == 1
    assert poison.kills == DEATHS_MAX, "while it rests nobody dies"
    assert "message_parked" in worker.log_file.read_text()

    assert attempts.retry(client, WORK, operator="olga", reason="a new version")
    wait_until(lambda: attempts.parked(client)[0].times == 2, "one more death parks it again")
    assert poison.kills == DEATHS_MAX + 1

    poison.armed = False
    assert attempts.retry(client, WORK, operator="olga", reason="a newer version")
    wait_until(drained(fake_room, 0, 1), "it is drained")
    wait_until(lambda: not attempts.parked(client), "what succeeded is parked no longer")
    wait_until(lambda: worker.metrics()["doorcard_parked_messages"] == 0, "the metric says so")
    told = [(each["decision"], each["reason"]) for each in attempts.decisions(client)]
    assert told == [("retry", "a newer version"), ("retry", "a new version")]


@pytest.mark.deep
def test_what_is_no_message_of_ours_is_refused_and_harms_nobody(
    fake_room: FakeRoom, start: Start, broker: valkey.Valkey, client: Redis, tmp_path: Path
) -> None:
    worker = start("worker")
    queue = triggers.QUEUES[triggers.DRAIN]
    sender = app(broker)
    sender.conf.update(task_serializer="pickle", accept_content=["pickle", "json"])
    unpickled = tmp_path / "unpickled"
    sender.send_task(triggers.DRAIN, args=(Marker(unpickled),), queue=queue)
    app(broker).send_task("settlement.unheard", queue=queue)
    app(broker).send_task(triggers.DRAIN, args=("../../x",), queue=queue)
    app(broker).send_task(triggers.DRAIN, args=(1, 2, 3), queue=queue)
    fake_room.tables.write(0)
    trigger(broker)
    wait_until(drained(fake_room, 0, 1), "what is well is done")
    wait_until(lambda: unfinished(client) == (0, 0), "nothing of the rest is left")
    assert worker.popen.poll() is None
    assert not unpickled.exists()
    # Not even an envelope: that ends the worker, once, and the next one finds it gone.
    client.lpush(queue, b"rubbish")
    assert worker.popen.wait(20) == 1
    fake_room.tables.write(0)
    trigger(broker)
    start("worker")
    wait_until(drained(fake_room, 0, 2), "what is well is done")


class Marker:
    """Writes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._file),)


@pytest.mark.deep
def test_a_worker_takes_no_more_messages_than_it_has_children(
    fake_room: FakeRoom, start: Start, broker: valkey.Valkey, client: Redis
) -> None:
    children, sent = 3, 12
    fake_room.wallet.shards = sent
    go_on = threading.Event()

    def read(_shard: int, _peer: str) -> None:
        go_on.wait(20)

    fake_room.tables.before_read = read
    for shard in range(sent):
        fake_room.tables.write(shard)
        trigger(broker, shard)
    start("worker", worker_children=str(children), rpc_timeout_seconds="10")
    wait_until(lambda: unfinished(client)[1] >= children, "every child is busy")
    # It must not take more in a while, so a while has to pass.
    time.sleep(0.5)
    waiting, out = unfinished(client)
    assert out <= children
    assert waiting == sent - out
    go_on.set()
    wait_until(lambda: all(drained(fake_room, each, 1)() for each in range(sent)), "all is done")


@pytest.mark.deep
def test_a_stop_lets_a_running_task_end_and_gives_back_what_does_not(
    fake_room: FakeRoom, start: Start, broker: valkey.Valkey, client: Redis
) -> None:
    worker = start("worker", soft_shutdown_seconds="1", rpc_timeout_seconds="10")
    reading, go_on, never = threading.Event(), threading.Event(), threading.Event()

    def read(shard: int, _peer: str) -> None:
        reading.set()
        (go_on if shard == 0 else never).wait(20)

    fake_room.tables.before_read = read
    fake_room.tables.write(0)
    trigger(broker, 0)
    assert reading.wait(20)
    threading.Timer(0.3, go_on.set).start()
    assert worker.stop() == 0
    assert drained(fake_room, 0, 1)(), "what ran was done to its end"
    assert unfinished(client) == (0, 0)

    worker = start("worker", soft_shutdown_seconds="0.5", rpc_timeout_seconds="10")
    reading.clear()
    trigger(broker, 1)
    assert reading.wait(20)
    assert worker.stop() == 0
    assert unfinished(client) == (1, 0), "it waits for the next worker"
    never.set()
    start("worker")
    fake_room.tables.write(1)
    wait_until(drained(fake_room, 1, 1), "the next worker does it")


# Counting


def test_only_marks_that_are_surely_over_are_deaths() -> None:
    mine = Mark("here", "message", "2")
    now = 10 * SURELY_OVER_MS
    assert deaths([(Mark("here", "another", "1"), now)], mine, now) == 1, "I have the only turn"
    assert deaths([(Mark("there", "message", "1"), now)], mine, now) == 1, "given out again"
    assert deaths([(Mark("there", "another", "1"), now)], mine, now) == 0, "it may be running"
    assert deaths([(Mark("there", "another", "1"), now - SURELY_OVER_MS - 1)], mine, now) == 1
    assert deaths([(Mark("there", "", "1"), now)], Mark("here", "", "2"), now) == 0


def begin(counts: Attempts, message: str = "m") -> Any:
    return counts.begin(WORK, triggers.DRAIN, (0,), message)


def test_many_workers_that_hang_on_the_same_work_are_no_deaths(client: Redis) -> None:
    workers = [Attempts(lambda: client, f"worker-{n}") for n in range(10)]
    begun = [begin(each, f"m{n}") for n, each in enumerate(workers)]
    assert all(begun)
    for each, one in zip(workers, begun, strict=True):
        each.end(one, well=False)
    assert begin(workers[0])


def test_marks_have_their_age_by_the_broker_s_clock_whatever_the_workers_say(
    client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_ns = time.time_ns
    for n in range(2 * DEATHS_MAX):
        apart_ns = n * 2 * SURELY_OVER_MS * 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda apart_ns=apart_ns: real_ns() + apart_ns)
        assert begin(Attempts(lambda: client, f"worker-{n}"), f"m{n}"), "nobody died"
    seconds, _ = client.time()
    name: Any = f"settlement:unfinished:{WORK}"
    marks: Any = client.zrange(name, 0, -1, withscores=True)
    assert len(marks) == 2 * DEATHS_MAX
    assert all(abs(made_ms / 1000 - seconds) < SURELY_OVER_MS / 1000 for _, made_ms in marks)


def test_success_forgets_deaths_and_an_error_is_none(client: Redis) -> None:
    counts = Attempts(lambda: client, "here")
    for _ in range(DEATHS_MAX - 1):
        assert begin(counts)
    counts.end(begin(counts), well=False)
    assert begin(counts), "an error is no death"
    assert begin(counts) is None, "and takes none back"
    counts = Attempts(lambda: client, "here")
    assert attempts.drop(client, WORK, operator="olga", reason="looked at")
    for _ in range(DEATHS_MAX - 1):
        assert begin(counts)
    counts.end(begin(counts), well=True)
    for _ in range(DEATHS_MAX):
        assert begin(counts)
    assert begin(counts) is None


def test_the_parked_list_has_an_end(client: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "PARKED_MAX", 2)
    counts = Attempts(lambda: client, "here")
    for shard in range(4):
        for _ in range(DEATHS_MAX):
            assert counts.begin(f"drain-{shard}", triggers.DRAIN, (shard,), "m")
        assert counts.begin(f"drain-{shard}", triggers.DRAIN, (shard,), "m") is None
    assert [each.work for each in attempts.parked(client)] == ["drain-0", "drain-1"]
    assert counts.begin("drain-3", triggers.DRAIN, (3,), "m") is None, "it rests all the same"
    monkeypatch.setattr(attempts, "DECISIONS_KEPT", 3)
    for n in range(5):
        assert attempts.retry(client, "drain-0", operator="olga", reason=str(n))
    assert [each["reason"] for each in attempts.decisions(client)] == ["4", "3", "2"]


def test_a_broker_that_is_away_keeps_nothing_waiting(client: Redis) -> None:
    def away() -> Redis:
        raise ConnectionError

    counts = Attempts(away, "here")
    begun = begin(counts)
    assert begun is not None
    counts.end(begun, well=True)
