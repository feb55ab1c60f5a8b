"""`doorcard replay`: recorded hands played again under the rules, and compared."""

import json
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from services.game.phh import PhhError, parse_phh
from services.game.replay import Replayed, replay

FILE_BYTES_MAX: Final = 1_000_000


class Exit(IntEnum):
    """Exit status of the command: the worst of its files."""

    RIGHT = 0
    DIFFERENT = 1
    UNREADABLE = 2


def replay_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="PHH files, a hand each.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a hand, one a line.")
    ] = False,
    rulebook: Annotated[
        str, typer.Option(help="Rulebook to go before the file's own and its room's.")
    ] = "",
    lenient_amounts: Annotated[
        bool, typer.Option("--lenient-amounts", help="Take wagers of any amount as recorded.")
    ] = False,
) -> None:
    """Replay recorded hands (PHH) and compare every action, pot and stack with the rules.

    Exit status: 0 all right, 1 a difference, 2 a file cannot be read.
    """
    worst = Exit.RIGHT
    for file in files:
        status, entry = replay_file(file, rulebook=rulebook, lenient_amounts=lenient_amounts)
        worst = max(worst, status)
        if as_json:
            typer.echo(json.dumps(entry))
        elif status is Exit.RIGHT:
            typer.echo(f"OK  {file}")
        else:
            typer.echo(f"{status.name}  {file}: {entry['error']}", err=status is Exit.UNREADABLE)
    raise typer.Exit(worst)


def replay_file(
    file: Path, *, rulebook: str = "", lenient_amounts: bool = False
) -> tuple[Exit, dict[str, Any]]:
    """The status of one file and its JSON object: file, ok, error (null or the first difference),
    pots (amount, eligible, winners), uncalled, rake, payouts and finishing_stacks.

    Players are numbers from 1, lists have an entry for each player in order. Where a hand does not
    play out there are no pots.
    """
    try:
        replayed = replay(
            parse_phh(_text_of(file)), rulebook=rulebook, lenient_amounts=lenient_amounts
        )
    except PhhError as unreadable:
        entry = _entry(file, str(unreadable), Replayed("", 0))
        return Exit.UNREADABLE, {**entry, "field": unreadable.field, "reason": unreadable.reason}
    status = Exit.RIGHT if replayed.ok else Exit.DIFFERENT
    return status, _entry(file, replayed.error or None, replayed)


def _text_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise PhhError("file", f"more than {FILE_BYTES_MAX} bytes")
        return content.decode("utf-8")
    except OSError as error:
        raise PhhError("file", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise PhhError("file", "is not UTF-8 text") from error


def _entry(file: Path, error: str | None, replayed: Replayed) -> dict[str, Any]:
    return {
        "file": str(file),
        "ok": error is None,
        "error": error,
        "pots": [
            {
                "amount": pot.amount,
                "eligible": _players(pot.eligible),
                "winners": _players(pot.winners),
            }
            for pot in replayed.pots
        ],
        "uncalled": list(replayed.uncalled),
        "rake": replayed.rake,
        "payouts": list(replayed.payouts),
        "finishing_stacks": list(replayed.finishing_stacks),
    }


def _players(seats: Sequence[int]) -> list[int]:
    return [seat + 1 for seat in seats]
