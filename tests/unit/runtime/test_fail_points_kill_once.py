"""Fail points: silent unless armed, taken by one process only, and only once."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from services.runtime import failpoints

REACH = "from services.runtime.failpoints import reach; reach('drain.applied'); print('went on')"


def _run(folder: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != failpoints.VARIABLE}
    if folder is not None:
        environment[failpoints.VARIABLE] = str(folder)
    return subprocess.run(
        [sys.executable, "-c", REACH],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_a_point_that_nobody_armed_does_nothing(tmp_path: Path) -> None:
    assert _run(None).stdout == "went on\n"
    assert _run(tmp_path).stdout == "went on\n"


def test_an_armed_point_kills_the_first_that_comes_by_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "drain.applied").write_text("")
    assert _run(tmp_path).returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())
    assert _run(tmp_path).stdout == "went on\n"


def test_the_file_names_another_signal(tmp_path: Path) -> None:
    (tmp_path / "drain.applied").write_text("SIGTERM\n")
    assert _run(tmp_path).returncode == -signal.SIGTERM


def test_another_points_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "drain.read").write_text("")
    assert _run(tmp_path).stdout == "went on\n"
    assert [each.name for each in tmp_path.iterdir()] == ["drain.read"]


def test_every_point_in_the_code_is_listed_and_every_one_listed_is_in_the_code() -> None:
    services = Path(failpoints.__file__).parent.parent
    reached = [
        name
        for source in sorted(services.rglob("*.py"))
        for name in re.findall(r"failpoints\.reach\(\"([^\"]+)\"\)", source.read_text("utf-8"))
    ]
    assert sorted(reached) == sorted(failpoints.POINTS)


def test_a_second_word_in_the_file_takes_the_whole_group(tmp_path: Path) -> None:
    (tmp_path / "drain.applied").write_text("SIGKILL group")
    environment = {**os.environ, failpoints.VARIABLE: str(tmp_path)}
    parent = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]]);"
        " print('outlived it')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", parent, REACH],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        start_new_session=True,
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "")
