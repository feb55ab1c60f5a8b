"""A worker that gets nothing although messages wait ends itself, and only then."""

from typing import Any

import pytest
from redis.exceptions import ConnectionError as Away

from services.settlement.hearing import DEAF_AFTER_S, Hearing

TASK_S = 30.0


class Broker:
    """So many messages wait; None: it does not answer."""

    def __init__(self, waiting: int | None) -> None:
        self.waiting = waiting

    def llen(self, _queue: str) -> int:
        if self.waiting is None:
            raise Away
        return self.waiting


def hears(
    monkeypatch: pytest.MonkeyPatch, waiting: int | None, *, busy: bool, after_s: float
) -> bool:
    now_s = [100.0]
    monkeypatch.setattr("services.settlement.hearing.monotonic_s", lambda: now_s[0])
    broker: Any = Broker(waiting)
    hearing = Hearing(lambda: broker, ["drain"], busy_s=TASK_S, busy=lambda: busy, end=lambda: None)
    now_s[0] += after_s
    return not hearing.deaf()


def test_messages_wait_and_none_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not hears(monkeypatch, 1, busy=False, after_s=DEAF_AFTER_S + 1)


def test_it_came_a_moment_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hears(monkeypatch, 1, busy=False, after_s=DEAF_AFTER_S - 1)


def test_a_task_may_keep_the_children_for_its_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hears(monkeypatch, 1, busy=True, after_s=TASK_S)
    assert not hears(monkeypatch, 1, busy=True, after_s=TASK_S + DEAF_AFTER_S + 1)


@pytest.mark.parametrize("waiting", [0, None])
def test_there_is_nothing_to_hear(monkeypatch: pytest.MonkeyPatch, waiting: int | None) -> None:
    assert hears(monkeypatch, waiting, busy=False, after_s=1000.0)


def test_it_ends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.settlement.hearing.DEAF_AFTER_S", 0.0)
    broker: Any = Broker(1)
    ended: list[bool] = []
    hearing = Hearing(
        lambda: broker, ["drain"], busy_s=0.0, busy=lambda: False, end=lambda: ended.append(True)
    )
    hearing.run()
    assert ended == [True]
