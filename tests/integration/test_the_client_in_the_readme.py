"""The clients in the README and the handbook, as they stand there, play in a running room."""

import re
import subprocess
import sys
from pathlib import Path

from tests.integration.rooms import Command

README = Path(__file__).parents[2] / "README.md"
GATEWAY = README.parent / "docs" / "gateway.md"
LIBRARY = README.parent / "docs" / "client.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CLIENT_S = 60.0


def run_as_it_stands(page: Path, up: Command, folder: Path) -> str:
    """Run the first program of a page; what it printed."""
    found = BLOCK.search(page.read_text(encoding="utf-8"))
    assert found is not None, f"{page.name} shows no client"
    program = folder / "client.py"
    program.write_text(found[1], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(program)],
        env=up.environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=CLIENT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.stdout


def test_it_plays_a_hand(up: Command, tmp_path: Path) -> None:
    printed = run_as_it_stands(README, up, tmp_path)
    assert re.search(r"^(anna|ben)-\S+ wins \d+ with \S+", printed, re.MULTILINE), printed


def test_the_gateway_plays_at_two_tables(up: Command, tmp_path: Path) -> None:
    printed = run_as_it_stands(GATEWAY, up, tmp_path)
    assert len(re.findall(r"^web-\S+ wins \d+ with \S+", printed, re.MULTILINE)) >= 2, printed
    assert len(set(re.findall(r"^(web-\S+) has ", printed, re.MULTILINE))) == 2, printed


def test_the_players_of_the_library_play_at_two_tables(up: Command, tmp_path: Path) -> None:
    printed = run_as_it_stands(LIBRARY, up, tmp_path)
    assert len(re.findall(r"^(?:anna|ben)-\S+ played at 2 tables$", printed, re.MULTILINE)) == 2
