"""The client in the README, as it stands there, plays a hand in a running room."""

import re
import subprocess
import sys
from pathlib import Path

from tests.integration.rooms import Command

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CLIENT_S = 60.0


def test_it_plays_a_hand(up: Command, tmp_path: Path) -> None:
    found = BLOCK.search(README.read_text(encoding="utf-8"))
    assert found is not None, "the README shows no client"
    program = tmp_path / "client.py"
    program.write_text(found[1], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(program)],
        env=up.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=CLIENT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr, ran.stderr
    assert re.search(r"^(anna|ben)-\S+ wins \d+ with \S+", ran.stdout, re.MULTILINE), ran.stdout
