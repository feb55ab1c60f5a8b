"""Every recorded hand plays out as it was recorded: televised ones, those of twelve online rooms,
and the cases made up to examine a rule.
"""

from pathlib import Path

import pytest

from services.local.replay import Exit, judge

HANDS = Path(__file__).parents[1] / "hands"
FILES = sorted(HANDS.glob("*/*.phh"))


@pytest.mark.parametrize("file", FILES, ids=[f"{file.parent.name}/{file.stem}" for file in FILES])
def test_it_plays_out_as_recorded(file: Path) -> None:
    judged = judge(file)
    assert judged.entry["error"] is None
    assert judged.status is Exit.RIGHT


def test_none_of_them_is_missing() -> None:
    folders = [file.parent.name for file in FILES]
    found = {folder: folders.count(folder) for folder in set(folders)}
    assert (found["wsop"], found["online"]) == (22, 233)
    assert found["cases"] >= 14
