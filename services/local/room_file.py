"""`room.json` in the data folder: where a running room has everything, for clients, dashboards and
commands. There are no secrets in it.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

NAME: Final = "room.json"


def read(home: Path) -> dict[str, Any]:
    """Of the room that runs in a data folder. Raises FileNotFoundError if none does, ValueError if
    it is no such file.
    """
    content = json.loads((home / NAME).read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{home / NAME} is not an object")
    return content


def find(home: Path) -> dict[str, Any] | None:
    """Of the room that runs in a data folder; None while there is none. Raises ValueError."""
    try:
        return read(home)
    except FileNotFoundError:
        return None


def write(home: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    part = home / f"{NAME}.part"
    part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(part, home / NAME)


def is_there(home: Path) -> bool:
    """Whether a room says that it runs."""
    return (home / NAME).exists()


def remove(home: Path) -> None:
    """The room runs no longer."""
    (home / NAME).unlink(missing_ok=True)
