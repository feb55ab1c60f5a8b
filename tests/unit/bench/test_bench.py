"""The bench finds what measures, prints it and writes it down."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench import __main__ as command
from bench.row import Row, at_least, interleaved_rates


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the results go; `bench.quick` measures one row, `bench.broken` fails."""
    results = tmp_path / "build" / "bench.json"
    monkeypatch.setattr(command, "RESULTS", results)

    def rows() -> Iterator[Row]:
        yield at_least("engine_quick", 50, "hands/s", 2, 25, 20)

    def broken_rows() -> list[Row]:
        raise RuntimeError("no floor today")

    for name, give in (("quick", {"rows": rows}), ("broken", {"broken_rows": broken_rows})):
        module = ModuleType(f"bench.{name}")
        module.__dict__.update(give)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return results


def test_rows_are_printed_and_written(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["quick"]) == 0
    assert json.loads(measured.read_text()) == [
        {
            "name": "engine_quick",
            "value": 50,
            "unit": "hands/s",
            "floor": 2,
            "ratio": 25,
            "budget": ">= 20 x",
            "ok": True,
        }
    ]
    assert "engine_quick" in capsys.readouterr().out


def test_one_that_fails_leaves_the_others_and_the_status_says_so(
    measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["broken", "quick"]) == 1
    assert [row["name"] for row in json.loads(measured.read_text())] == ["engine_quick"]
    assert "broken could not measure" in capsys.readouterr().err


def test_every_module_of_the_folder_is_found_but_the_benchs_own() -> None:
    assert "engine" in command.modules()
    assert not {"__main__", "row"} & set(command.modules())


def test_a_missed_budget_is_said() -> None:
    assert not at_least("engine_slow", 1, "hands/s", 1, 19.9, 20)["ok"]


def test_rates_are_medians_of_rounds_in_turn() -> None:
    order = []

    def work(name: str, loops: int) -> int:
        order.append(name)
        sum(range(loops))
        return 1

    _, _, ratio = interleaved_rates(
        lambda: work("ours", 20_000), lambda: work("theirs", 200_000), rounds=5
    )
    assert order == ["ours", "theirs"] * 6
    assert ratio > 1
