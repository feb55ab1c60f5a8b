"""The Dockerfile as instructions."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; text: what follows its name, continued lines joined."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Of the shell or of the JSON form."""
        if self.text.startswith("["):
            return [str(word) for word in json.loads(self.text)]
        return shlex.split(self.text)


def instructions(path: Path = ROOT / "Dockerfile") -> list[Instruction]:
    """All of them, in order."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [Instruction(name, text.strip()) for name, _, text in found]


def stage(name: str) -> list[Instruction]:
    """The instructions of a stage, without its FROM."""
    found: list[Instruction] = []
    inside = False
    for each in instructions():
        if each.name == "FROM":
            inside = each.words[-1] == name
        elif inside:
            found.append(each)
    return found
