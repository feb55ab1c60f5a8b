"""Ranking tables in files: shared, checked, made anew when they are not what they should be."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.game.ranking import sevens
from services.showdown.table_files import share_tables, usual_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the table of high hands, and a copy to damage."""
    folder = tmp_path_factory.mktemp("cache") / "doorcard"
    assert share_tables(folder, ["high"]) == {"high"}
    return folder


def table_in(folder: Path) -> Path:
    [file] = folder.iterdir()
    return file


def test_the_file_is_the_table_and_nobody_may_write_it(folder: Path) -> None:
    file = table_in(folder)
    assert file.name == f"high-{sevens.DIGESTS['high'][:16]}.table"
    assert file.read_bytes() == bytes(sevens.table("high"))
    assert file.stat().st_mode & 0o777 == 0o444
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_file_that_is_there_is_mapped_and_not_made_again(folder: Path) -> None:
    before = table_in(folder).stat()
    assert share_tables(folder, ["high"]) == {"high"}
    after = table_in(folder).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-2],
        lambda content: content + b"\0\0",
        lambda content: content[:7_000_000] + bytes([content[7_000_000] ^ 1]) + content[7_000_001:],
    ],
)
def test_a_damaged_file_is_made_anew_beside_what_still_maps_the_old_one(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    file = table_in(folder)
    content = file.read_bytes()
    damaged = file.with_name("damaged")
    damaged.write_bytes(damage(content))
    damaged.replace(file)
    assert share_tables(folder, ["high"]) == {"high"}
    assert file.read_bytes() == content
    assert [*folder.iterdir()] == [file]


def test_where_no_file_can_be_the_tables_stay_in_memory(tmp_path: Path) -> None:
    in_the_way = tmp_path / "doorcard"
    in_the_way.write_text("not a folder")
    assert share_tables(in_the_way, ["high"]) == frozenset()
    assert len(sevens.table("high")) == sevens.ENTRIES


def test_a_process_ranks_from_the_files_of_another_without_numpy(folder: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from services.showdown.table_files import share_tables\n"
        "from services.game.ranking import high\n"
        "shared = share_tables(pathlib.Path(sys.argv[1]), ['high'])\n"
        "royal, pair = high((51, 47, 43, 39, 35, 0, 5)), high((0, 1, 6, 11, 16, 25, 30))\n"
        "right = shared and royal == 7462 > pair\n"
        "sys.exit(not right or 'numpy' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(folder)], check=False, timeout=60)
    assert run.returncode == 0


def test_files_lie_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert usual_folder() == Path("/var/cache/me/doorcard")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert usual_folder() == Path("/home/me/.cache/doorcard")
