"""The large ranking tables in files, which all processes of a machine map and so share.

A file is a table and nothing else, named for its order and the first digits of its SHA-256. Other
tables have other names: two versions of the program may use one folder. What a file holds is
checked against the whole digest, which is part of the program, whenever it is mapped; a file that
is missing or damaged is made anew, whole or not at all.
"""

import contextlib
import hashlib
import mmap
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from services.game.ranking import sevens

DIGITS: Final = 16
"""Hexadecimal digits of the digest in a file's name."""


def share_tables(folder: Path, orders: Iterable[str] = tuple(sevens.DIGESTS)) -> frozenset[str]:
    """Let the ranking use tables mapped from `folder`; returns the orders for which it does.

    To be called before the first ranking. The others, where the folder cannot be used, are made in
    memory when they are needed.
    """
    shared = set()
    for order in orders:
        table = _mapped(folder / _name(order), order)
        if table is not None:
            sevens.give(order, table)
            shared.add(order)
    return frozenset(shared)


def usual_folder() -> Path:
    """`doorcard` in the user's cache folder (XDG_CACHE_HOME, else ~/.cache)."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        # Not `Path.home`: a user without a home is no error, his folder just cannot be written.
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "doorcard"


def _name(order: str) -> str:
    return f"{order}-{sevens.DIGESTS[order][:DIGITS]}.table"


def _mapped(path: Path, order: str) -> "memoryview[int] | None":
    table = _checked(path, order)
    if table is None and _written(path, order):
        table = _checked(path, order)
    return table


def _checked(path: Path, order: str) -> "memoryview[int] | None":
    """The table in a file; None when there is none, or one that is not what it should be."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # ValueError: the file is empty.
        return None
    whole = len(mapped) == 2 * sevens.ENTRIES
    if not whole or hashlib.sha256(mapped).hexdigest() != sevens.DIGESTS[order]:
        mapped.close()
        return None
    return memoryview(mapped).cast("H")


def _written(path: Path, order: str) -> bool:
    """Put a new file in the place of whatever is there; False when that is not possible."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
    except OSError:
        return False
    try:
        with os.fdopen(number, "wb") as file:
            file.write(sevens.table(order))
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o444)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        return False
    return True
