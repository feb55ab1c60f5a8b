"""`doorcard replay`: recorded hands played again under the rules, compared and explained."""

import asyncio
import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console

from services.game.phh import PhhError, RecordedHand, parse_phh
from services.game.replay import Replayed, explained, replay
from services.game.rooms import room_names
from services.game.rulebook import shipped_names
from services.game.staging import Staging, UnstageableError, stage
from services.game.story import Remark, remark_entry
from services.local.explanation import print_explanation
from services.local.supervisor import StartFailedError
from services.local.through_services import NotInstalledError, play_through_services
from services.local.waiting import progress_bar

FILE_BYTES_MAX: Final = 1_000_000


class Exit(IntEnum):
    """Exit status of the command: the worst of its files."""

    RIGHT = 0
    DIFFERENT = 1
    UNREADABLE = 2


class Options(NamedTuple):
    """How files are to be read."""

    rulebook: str = ""
    """Goes before the file's own and its room's."""
    lenient_amounts: bool = False
    explain: bool = False


PLAIN: Final = Options()


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a file."""

    file: Path
    status: Exit
    replayed: Replayed
    recorded: RecordedHand | None = None
    """None where the file cannot be read."""
    unreadable: PhhError | None = None
    remarks: Sequence[Remark] | None = None
    """With an explanation."""

    @property
    def line(self) -> str:
        """One line for people."""
        if self.status is Exit.RIGHT:
            return f"OK  {self.file}"
        return f"{self.status.name}  {self.file}: {self.unreadable or self.replayed.error}"

    @property
    def entry(self) -> dict[str, Any]:
        """The JSON object: file, ok, error (null or the first difference), pots (amount, eligible,
        winners), uncalled, rake, payouts and finishing_stacks; of an unreadable file field and
        reason, with an explanation the list of its remarks.

        Players are numbers from 1, lists have an entry for each player in order. Where a hand does
        not play out there are no pots.
        """
        entry = _entry(self.file, str(self.unreadable or self.replayed.error), self.replayed)
        if self.unreadable:
            entry |= {"field": self.unreadable.field, "reason": self.unreadable.reason}
        if self.remarks is not None:
            entry["explanation"] = [remark_entry(remark) for remark in self.remarks]
        return entry


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
    explain: Annotated[
        bool, typer.Option("--explain", help="Tell each hand with the rule behind every step.")
    ] = False,
    through_services: Annotated[
        bool,
        typer.Option(
            "--through-services", help="Play the hands in a room of its own, over gRPC, as well."
        ),
    ] = False,
) -> None:
    """Replay recorded hands (PHH) and compare every action, pot and stack with the rules.

    Exit status: 0 all right, 1 a difference, 2 a file cannot be read, there is no such rulebook,
    or the room does not start.
    """
    if rulebook and rulebook not in (*shipped_names(), *room_names()):
        there = ", ".join((*shipped_names(), *room_names()))
        typer.echo(f"--rulebook: there is no rulebook {rulebook!r}, but {there}", err=True)
        raise typer.Exit(Exit.UNREADABLE)
    console = Console()
    worst = Exit.RIGHT
    options = Options(rulebook, lenient_amounts, explain)
    hands: Iterable[Judged] = (judge(file, options) for file in files)
    if through_services:
        try:
            hands = judge_through_services(list(hands), options)
        except (NotInstalledError, StartFailedError) as error:
            typer.echo(f"through the services: {error}", err=True)
            raise typer.Exit(Exit.UNREADABLE) from None
    for judged in hands:
        worst = max(worst, judged.status)
        if as_json:
            typer.echo(json.dumps(judged.entry))
            continue
        if judged.recorded and judged.remarks is not None:
            print_explanation(str(judged.file), judged.recorded, judged.remarks, console)
        typer.echo(judged.line, err=judged.status is Exit.UNREADABLE)
    raise typer.Exit(worst)


def judge(file: Path, options: Options = PLAIN) -> Judged:
    """Replay one file. Where it is explained, stacks at the end may be missing."""
    rulebook, lenient = options.rulebook, options.lenient_amounts
    remarks: Sequence[Remark] | None = None
    try:
        recorded = parse_phh(_text_of(file), to_compare=not options.explain)
        if options.explain:
            replayed, remarks = explained(recorded, rulebook=rulebook, lenient_amounts=lenient)
        else:
            replayed = replay(recorded, rulebook=rulebook, lenient_amounts=lenient)
    except PhhError as unreadable:
        return Judged(file, Exit.UNREADABLE, Replayed("", 0), unreadable=unreadable)
    return Judged(file, _status(replayed), replayed, recorded, remarks=remarks)


def judge_through_services(hands: Sequence[Judged], options: Options) -> list[Judged]:
    """Play the hands that are right in a room as well; what came out there is judged.

    Raises NotInstalledError, StartFailedError.
    """
    judged = list(hands)
    stagings: dict[int, Staging] = {}
    for index, hand in enumerate(judged):
        if hand.recorded is None or hand.status is not Exit.RIGHT:
            continue
        try:
            stagings[index] = stage(
                hand.recorded,
                rulebook=options.rulebook,
                lenient_amounts=options.lenient_amounts,
            )
        except UnstageableError as error:
            judged[index] = _again(hand, Replayed(f"not through the services: {error}", 0))
    if stagings:
        found = _played(list(stagings.values()))
        for index, replayed in zip(stagings, found, strict=True):
            judged[index] = _again(judged[index], replayed)
    return judged


def _played(stagings: Sequence[Staging]) -> list[Replayed]:
    with progress_bar() as progress:
        task = progress.add_task("starting", total=len(stagings))
        return asyncio.run(
            play_through_services(
                stagings,
                on_stage=lambda stage: progress.update(task, description=stage),
                on_played=lambda: progress.advance(task),
            )
        )


def _again(hand: Judged, replayed: Replayed) -> Judged:
    return dataclasses.replace(hand, status=_status(replayed), replayed=replayed)


def _status(replayed: Replayed) -> Exit:
    return Exit.RIGHT if replayed.ok else Exit.DIFFERENT


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


def _entry(file: Path, error: str, replayed: Replayed) -> dict[str, Any]:
    return {
        "file": str(file),
        "ok": not error,
        "error": error or None,
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
