"""The supervisor: stages, readiness, restarts, an orderly end, and nothing that outlives it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.local import supervisor as supervision
from services.local.lock import HomeInUseError, home_lock
from services.local.supervisor import Change, Program, StartFailedError, State, Supervisor, by_file

ROOT = Path(__file__).parents[3]

LIVES = """
import os, pathlib, signal, sys, time
from services.runtime.ready import write_ready
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
def note(text):
    with open(folder / "notes", "a") as notes: notes.write(f"{name} {text}\\n")
def stop(*_):
    note("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in sys.argv else stop)
if "parent" in sys.argv and os.fork() == 0:
    (folder / "child").write_text(str(os.getpid()))
    time.sleep(600)
note("started")
if "broken" in sys.argv:
    print("no such thing as luck", flush=True)
    sys.exit(7)
if "mute" not in sys.argv:
    write_ready(folder / f"{name}.ready", name)
while True: signal.pause()
"""


def program(folder: Path, name: str, *how: str, **fields: Any) -> Program:
    return Program(
        name,
        (sys.executable, "-c", LIVES, str(folder), name, *how),
        by_file(folder / f"{name}.ready"),
        env={"PYTHONPATH": str(ROOT)},
        **{"start_s": 20.0, **fields},
    )


def notes(folder: Path) -> list[str]:
    return (folder / "notes").read_text().splitlines()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A dead child nobody has waited for yet is not alive.
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def supervised(folder: Path) -> AsyncIterator[tuple[Supervisor, list[Change]]]:
    changes: list[Change] = []
    async with Supervisor(folder / "logs", on_change=changes.append) as running:
        yield running, changes


async def test_stages_start_in_order_and_stop_the_other_way_round(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (running, changes):
        await running.start(program(tmp_path, "store"))
        assert running.state("store") is State.READY
        await running.start(program(tmp_path, "one"), program(tmp_path, "two"))
        assert running.names() == ["store", "one", "two"]
        pids = [running.pid(name) for name in running.names()]
        assert all(alive(pid) for pid in pids)
    said = notes(tmp_path)
    assert said[0] == "store started"
    assert said[-1] == "store stopped"
    assert sorted(said[1:3]) == ["one started", "two started"]
    assert not any(alive(pid) for pid in pids)
    assert [c.state for c in changes if c.name == "store"] == ["starting", "ready", "stopped"]


async def test_a_killed_process_comes_back_under_the_same_name(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (running, changes):
        await running.start(program(tmp_path, "table"))
        first = running.pid("table")
        os.kill(first, signal.SIGKILL)
        await until(lambda: running.restarts("table") == 1 and running.state("table") == "ready")
        assert running.pid("table") not in (0, first)
    died = next(change for change in changes if change.state is State.WAITING)
    assert died.detail == "was ended by SIGKILL"


async def test_a_process_that_does_not_start_is_reported_with_its_last_words(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path) as (running, _changes):
        with pytest.raises(StartFailedError) as failed:
            await running.start(program(tmp_path, "table", "broken"))
    assert str(failed.value) == "table ended with status 7\nno such thing as luck"


async def test_a_process_that_never_gets_ready_is_killed(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (running, _changes):
        with pytest.raises(StartFailedError, match="did not answer in time"):
            await running.start(program(tmp_path, "table", "mute", start_s=0.5))
        assert running.pid("table") == 0


async def test_one_that_keeps_dying_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "DEATHS_MAX", 2)
    monkeypatch.setattr(supervision, "BACKOFF_FIRST_S", 0.001)
    async with supervised(tmp_path) as (running, _changes):
        await running.start(program(tmp_path, "table"))
        while running.state("table") is not State.GIVEN_UP:
            if running.state("table") is State.READY:
                os.kill(running.pid("table"), signal.SIGKILL)
                await until(lambda: running.state("table") != "ready")
            await asyncio.sleep(0.01)
        assert running.restarts("table") == 2


async def test_a_stubborn_process_and_its_children_are_killed(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (running, _changes):
        await running.start(program(tmp_path, "worker", "stubborn", "parent", stop_s=0.1))
        pids = [running.pid("worker"), int((tmp_path / "child").read_text())]
    await until(lambda: not any(alive(pid) for pid in pids))


async def test_children_of_a_killed_process_do_not_stay_behind(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (running, _changes):
        await running.start(program(tmp_path, "worker", "parent"))
        child = int((tmp_path / "child").read_text())
        os.kill(running.pid("worker"), signal.SIGKILL)
        await until(lambda: not alive(child))


async def test_our_own_settings_do_not_reach_the_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOORCARD_LISTEN", "127.0.0.1:1")
    show = "import os; print({k: v for k, v in os.environ.items() if 'DOORCARD' in k}); exit(1)"
    shown = Program(
        "shown",
        (sys.executable, "-c", show),
        by_file(tmp_path / "none"),
        env={"DOORCARD_SERVICE": "shown"},
    )
    async with supervised(tmp_path) as (running, _changes):
        with pytest.raises(StartFailedError) as failed:
            await running.start(shown)
    assert str(failed.value).endswith("\n{'DOORCARD_SERVICE': 'shown'}")


PARENT = f"""
import asyncio, pathlib, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.contract.local.test_supervised_processes import parent
asyncio.run(parent(pathlib.Path(sys.argv[1])))
"""


async def parent(folder: Path) -> None:
    async with home_lock(folder) as lock, Supervisor(folder / "logs", inherit=[lock]) as running:
        await running.start(program(folder, "one"), program(folder, "two"))
        print(*(running.pid(name) for name in running.names()), flush=True)
        await asyncio.Event().wait()


@pytest.mark.skipif(sys.platform != "linux", reason="the leash is the Linux kernel's")
async def test_nothing_is_left_when_the_supervisor_itself_is_killed(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pids = [int(pid) for pid in (await process.stdout.readline()).split()]
    assert len(pids) == 2
    with pytest.raises(HomeInUseError, match="DOORCARD_HOME names another folder"):
        async with home_lock(tmp_path, wait_s=0):
            pass
    process.kill()
    await process.wait()
    # The next room waits until the last process of this one is gone.
    async with home_lock(tmp_path):
        assert not any(alive(pid) for pid in pids)
    assert {"one stopped", "two stopped"} <= set(notes(tmp_path))
