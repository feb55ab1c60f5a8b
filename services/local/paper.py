"""What commands print their tables and lines on: a terminal is as wide as it is, anything else
takes every line whole. Pages of text (`rules show`, `replay --explain`) are broken everywhere.
"""

import os
from typing import Final

from rich.console import Console
from rich.table import Column, Table

WHOLE: Final = 10_000
"""Columns, more than any table has: what is read from a file or a pipe is not cut."""


def paper(*, stderr: bool = False) -> Console:
    """Stdout or stderr. `COLUMNS` goes before all else."""
    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WHOLE
    return console


def listing(*headers: str) -> Table:
    """A table without lines that cuts no id: what is too wide goes on in the next line."""
    return Table(*(Column(each, overflow="fold") for each in headers), box=None)
