"""`python -m bench [NAME...]`: every measurement of this folder, or those of the named modules, as
a table and in build/bench.json.

A module measures by a function `rows` or `<module>_rows` that gives its rows. A budget that is
missed is said in its row and is no failure of the run; a module that cannot measure is one.
"""

import importlib
import json
import pkgutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Column, Table

import bench
from bench.row import Row

RESULTS: Final = Path("build") / "bench.json"
BESIDE: Final = frozenset({"__main__", "row"})


def main(names: Sequence[str]) -> int:
    """The exit status: 1 if a module could not measure."""
    console = Console(stderr=True)
    measured: list[Row] = []
    failed = []
    for name in names or modules():
        try:
            console.print(f"== measuring {name}{_seed_of(name)}", highlight=False)
            for row in rows_of(name):
                measured.append(row)
                console.print(f"   {row['name']}: {row['ratio']:.2f} x", highlight=False)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    Console().print(table_of(measured))
    write(measured, RESULTS)
    for name in failed:
        console.print(f"{name} could not measure", style="bold red")
    return 1 if failed else 0


def modules() -> list[str]:
    """The modules of this folder that measure something; what they share lies in packages."""
    found = [each.name for each in pkgutil.iter_modules(bench.__path__) if not each.ispkg]
    return sorted(name for name in found if name not in BESIDE)


def _seed_of(name: str) -> str:
    seed = getattr(importlib.import_module(f"bench.{name}"), "SEED", None)
    return "" if seed is None else f", seed {seed}"


def rows_of(name: str) -> Iterator[Row]:
    """The rows of a module, as they come. Raises AttributeError if it gives none."""
    module = importlib.import_module(f"bench.{name}")
    give: Callable[[], Iterable[Row]] | None = getattr(module, "rows", None)
    if give is None:
        give = getattr(module, f"{name}_rows")
    yield from give()


def table_of(measured: Iterable[Row]) -> Table:
    """The rows for people."""
    table = Table(Column("name", no_wrap=True), "value", "floor", "unit", "ratio", "budget", "ok")
    for row in measured:
        table.add_row(
            row["name"],
            f"{row['value']:,.2f}",
            f"{row['floor']:,.2f}",
            row["unit"],
            f"{row['ratio']:.2f}",
            row["budget"],
            "ok" if row["ok"] else "[bold red]missed",
        )
    return table


def write(measured: Sequence[Row], path: Path) -> None:
    """The rows for programs: the file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    # Whoever ends it, servers that were started must be stopped.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    sys.exit(main(sys.argv[1:]))
