"""docs/COMMANDS.md, from the `doorcard` command itself."""

from collections.abc import Iterator
from typing import Any, Final

import typer.main

from services.local.__main__ import app

HEAD: Final = """# Commands

Generated from the command itself by `make pages`; a test compares. Exit status 0 is well, 1 found
something or could not do it, 2 was asked wrongly, 130 was interrupted; where a command says more,
it says so. `doorcard --install-completion` completes commands and options in your shell.
"""


def text() -> str:
    """The page."""
    return "\n".join([HEAD, *_parts(command(), "doorcard")]) + "\n"


def command() -> Any:
    """The command as click sees it."""
    return typer.main.get_command(app)


def _parts(each: Any, path: str) -> Iterator[str]:
    if path != "doorcard":
        yield f"## {path}\n\n{' '.join((each.help or '').split())}\n"
        parameters = [one for one in each.params if one.name != "help"]
        if parameters:
            yield "| | default | |\n|---|---|---|"
            yield from map(_row, parameters)
            yield ""
    for name, inner in sorted(getattr(each, "commands", {}).items()):
        yield from _parts(inner, f"{path} {name}")


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        names = ", ".join(f"`{option}`" for option in parameter.opts)
    default = parameter.default
    shown = "" if default in (None, "", False, ()) or callable(default) else f"`{default}`"
    said = " ".join((getattr(parameter, "help", "") or "").split()).replace("|", "\\|")
    return f"| {names} | {shown} | {said} |"
