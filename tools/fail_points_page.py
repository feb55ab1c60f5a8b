"""docs/FAIL-POINTS.md, from the table of the fail points."""

from typing import Final

from services.runtime.failpoints import POINTS, VARIABLE

HEAD: Final = f"""# Fail points

Generated from `services/runtime/failpoints.py` by `make pages`; a test compares. At each of these
places a test can kill or halt the process that comes by. They do nothing unless `{VARIABLE}` names
a folder when the process starts, which no room but those of the tests does; there a file of a
point's name arms it, once, for whichever process is first. The file says what the process does to
itself: SIGKILL if it is empty, else the signal it names (SIGSTOP halts it until SIGCONT), and with
a second word, `group`, to its whole process group.

Every point is armed by a case in `tests/chaos`.

| point | who is where |
|---|---|
"""


def text() -> str:
    """The page."""
    return HEAD + "".join(f"| `{name}` | {where} |\n" for name, where in POINTS.items())
