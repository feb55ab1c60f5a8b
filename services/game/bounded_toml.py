"""TOML from strangers: what a rulebook needs of it, refused before it costs more than that.

The parser's time grows with the square of a key's parts, and everything after it with what it
found, so a text is bounded before it is parsed.
"""

import re
import tomllib
from typing import Any, Final

TEXT_BYTES_MAX: Final = 64 * 1024
"""Of a text, in UTF-8."""
LINES_MAX: Final = 4000
LINE_MAX: Final = 4000
"""Characters of a line, which bounds the parts of a key that are longer than `_PART` says."""
KEYS_MAX: Final = 2000
"""Keys that are set, counted as the equals signs of the text."""
DEPTH_MAX: Final = 8
"""Parts of a dotted key: "variants.razz.clock" has three."""

_PART: Final = r"""(?:[A-Za-z0-9_-]{1,64}+|"(?:[^"\\\n]|\\.){0,64}+"|'[^'\n]{0,64}+')"""
_DEEP: Final = re.compile(rf"{_PART}(?:[ \t]{{0,8}}+\.[ \t]{{0,8}}+{_PART}){{{DEPTH_MAX}}}")


class TomlRefusedError(ValueError):
    """A text that is no TOML, or too much of it; says which."""


def load_toml(text: str) -> dict[str, Any]:
    """What a TOML text says. Raises TomlRefusedError.

    Bounds the size of the text, its lines, keys and the parts of a key; not the sizes of values.
    """
    excess = _excess(text)
    if excess:
        raise TomlRefusedError(excess)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlRefusedError(f"not TOML: {error}") from None
    except RecursionError:
        raise TomlRefusedError("nested too deep") from None
    except ValueError:
        # Numbers and dates that Python has no room for.
        raise TomlRefusedError("has a number or a date that is too large") from None


def _excess(text: str) -> str:
    """What there is too much of, or nothing."""
    if len(text) > TEXT_BYTES_MAX or len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        return f"more than {TEXT_BYTES_MAX} bytes"
    lines = text.split("\n")
    if len(lines) > LINES_MAX:
        return f"more than {LINES_MAX} lines"
    if any(len(line) > LINE_MAX for line in lines):
        return f"a line of more than {LINE_MAX} characters"
    if text.count("=") > KEYS_MAX:
        return f"more than {KEYS_MAX} keys"
    if _DEEP.search(text):
        return f"keys nested too deep: at most {DEPTH_MAX} parts with dots between them"
    return ""
