"""`doorcard rules`: the rulebooks that are there, one as a page, and what is wrong with a file.

Exit status of every command: 0 all right, 1 a rulebook contradicts itself, 2 there is no such
rulebook or the file cannot be read.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from services.game.bounded_toml import TEXT_BYTES_MAX
from services.game.rulebook import (
    Rulebook,
    RulebookError,
    RulebookPage,
    Stake,
    parse_page,
    shipped,
    shipped_names,
    shipped_page,
)
from services.game.settings_read import Fault
from services.local.paper import paper

SECTIONS: Final = {
    "The game": ("game", "wild_deuces"),
    "Opening": (
        "bring_in_rule",
        "bring_in_may_open_full",
        "first_to_act_tie",
        "community_card_opens",
    ),
    "Betting": ("raise_cap", "cap_lifted", "short_all_in_reopens_at", "fourth_street_pair"),
    "Cards": ("burn_cards", "short_deck"),
    "Showdown": (
        "showdown",
        "all_in_face_up",
        "odd_chip_high",
        "odd_chip_low",
        "odd_chip_remainder",
    ),
    "Time": ("clock", "time_out", "protection_per_day"),
    "Money": ("buy_in", "ante_confirmation", "rake_schedule", "rake_on_third_street"),
}
"""The settings of a page in the order of reading; name and stakes stand apart."""


class Exit(IntEnum):
    """Exit status of the commands; of several files the worst."""

    RIGHT = 0
    CONTRADICTS = 1
    UNREADABLE = 2


rules_app = typer.Typer(
    help="The rulebooks: list them, show one with its sources, check a file.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]


@rules_app.command("list")
def list_command(as_json: AsJson = False) -> None:
    """List the rulebooks that come with the room, variants as "club/razz". Exit status: 0."""
    entries = [
        {"name": name, "game": str(rulebook.game), "title": shipped_page(_house(name)).title}
        for name in shipped_names()
        for rulebook in [shipped(name)]
    ]
    if as_json:
        typer.echo(json.dumps(entries))
        return
    table = Table("name", "game", "document", box=None)
    for entry in entries:
        table.add_row(*entry.values())
    paper().print(table)


@rules_app.command("show")
def show_command(
    rulebook: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help='A listed name ("club/razz"), or a file.')
    ],
    as_json: AsJson = False,
) -> None:
    """Print a rulebook as a page: every setting with its source, stakes, variants.

    Exit status: 0 shown, 1 the file contradicts itself, 2 there is no such rulebook.
    """
    try:
        page = page_of(rulebook)
    except RulebookError as error:
        for line in _lines(error):
            typer.echo(line, err=True)
        raise typer.Exit(_status(error.faults)) from None
    if as_json:
        typer.echo(json.dumps(entry_of(page)))
    else:
        print_page(page, Console())


@rules_app.command("check")
def check_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Rulebook files (TOML).")],
    as_json: AsJson = False,
) -> None:
    """Report every contradiction of rulebook files at once: file, field, value and reason.

    Exit status, the worst of the files: 0 they hold, 1 one contradicts itself, 2 one cannot be
    read.
    """
    worst = Exit.RIGHT
    for file in files:
        faults: tuple[Fault, ...] = ()
        lines = [f"OK  {file}"]
        try:
            parse_page(_text_of(file), str(file))
        except RulebookError as error:
            faults, lines = error.faults, list(_lines(error))
        worst = max(worst, _status(faults))
        if as_json:
            found = [asdict(fault) for fault in faults]
            typer.echo(json.dumps({"file": str(file), "ok": not faults, "faults": found}))
        else:
            typer.echo("\n".join(lines))
    raise typer.Exit(worst)


@dataclass(frozen=True, slots=True)
class ShownPage:
    """What a page shows of a rulebook."""

    title: str
    """The house's document."""
    rulebook: Rulebook
    """Its settings, those of a variant included."""
    sources: Mapping[str, str]
    """Where each setting comes from; one that a file does not name is missing."""
    variants: Mapping[str, Rulebook]
    """The house's other games, by name."""


def page_of(name: str) -> ShownPage:
    """The page of a listed name, or of a file. Raises RulebookError, also where there is none."""
    if name in shipped_names():
        return _shown(shipped_page(_house(name)), name.partition("/")[2])
    file = Path(name)
    if not file.exists():
        reason = "neither a rulebook that `doorcard rules list` lists, nor a file"
        raise RulebookError(name, [Fault("file", name, reason)])
    return _shown(parse_page(_text_of(file), name))


def entry_of(page: ShownPage) -> dict[str, Any]:
    """A page as JSON: title, sha256, settings, sources, and the settings that each variant changes.

    A stake has `published_ante` and `published_bring_in` where the document prints them.
    """
    return {
        "title": page.title,
        "sha256": page.rulebook.sha256(),
        "settings": page.rulebook.to_mapping(),
        "sources": dict(page.sources),
        "variants": {
            name: changes(page.rulebook, variant) for name, variant in page.variants.items()
        },
    }


def changes(house: Rulebook, variant: Rulebook) -> dict[str, Any]:
    """The settings that a variant changes, its name left out."""
    before = house.to_mapping()
    return {
        field: value
        for field, value in variant.to_mapping().items()
        if value != before[field] and field != "name"
    }


def print_page(page: ShownPage, console: Console) -> None:
    """A page for people; amounts are whole minor units."""
    settings = page.rulebook.to_mapping()
    console.print(f"[bold]{page.rulebook.name}[/]: {page.title}", highlight=False)
    table = Table("setting", "value", "source", box=box.SIMPLE_HEAD)
    for section, names in SECTIONS.items():
        table.add_row(f"[bold]{section}")
        for name in names:
            table.add_row(name, _value(settings[name]), page.sources.get(name, "not given"))
    console.print(table)
    console.print(_stakes(page.rulebook))
    console.print(f"Stakes: {page.sources.get('stakes', 'source not given')}", highlight=False)
    for name, variant in page.variants.items():
        changed = ", ".join(
            f"{field} = {_value(value)}" for field, value in changes(page.rulebook, variant).items()
        )
        console.print(f"Variant [bold]{name}[/]: {changed}", highlight=False)
    console.print(f"SHA-256 {page.rulebook.sha256()}", highlight=False)


def _shown(page: RulebookPage, variant: str = "") -> ShownPage:
    if not variant:
        return ShownPage(page.title, page.rulebook, page.sources, page.variants)
    rulebook = page.variants[variant]
    changed = changes(page.rulebook, rulebook)
    sources = {
        field: f"the variant {variant}" if field in changed else source
        for field, source in page.sources.items()
    }
    return ShownPage(page.title, rulebook, sources, {})


def _stakes(rulebook: Rulebook) -> Table:
    """The stakes; where a document prints figures, both those and the ones in force."""
    table = Table(title="Stakes, in minor units", title_justify="left", box=box.SIMPLE_HEAD)
    table.padding = (0, 1, 0, 0)
    printed = any(stake.published_ante is not None for stake in rulebook.stakes)
    amounts = ("ante", "bring-in")
    columns = [f"{name}\n{kind}" for name in amounts for kind in ("published", "in force")]
    table.add_column("stake", no_wrap=True)
    for column in (*(columns if printed else amounts), "bets", "buy-in"):
        table.add_column(column, justify="right", no_wrap=True)
    for stake in rulebook.stakes:
        row = [
            *([_published(stake.published_ante)] if printed else []),
            str(stake.ante),
            *([_published(stake.published_bring_in)] if printed else []),
            str(stake.bring_in),
        ]
        table.add_row(stake.name, *row, f"{stake.small_bet}/{stake.big_bet}", _buy_in(stake))
    return table


def _buy_in(stake: Stake) -> str:
    if not stake.buy_in_max:
        return f"from {stake.buy_in_min}"
    if stake.buy_in_max == stake.buy_in_min:
        return str(stake.buy_in_min)
    return f"{stake.buy_in_min} to {stake.buy_in_max}"


def _published(amount: int | None) -> str:
    return "-" if amount is None else str(amount)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {amount}" for name, amount in value.items())
    if isinstance(value, list):
        return "; ".join(_value(item) for item in value)
    return str(value) or "none"


def _house(name: str) -> str:
    return name.partition("/")[0]


def _lines(error: RulebookError) -> Iterator[str]:
    for fault in error.faults:
        # A file that cannot be read has no field to name beside itself.
        yield f"{error.source}: {fault.reason if fault.field == 'file' else fault}"


def _status(faults: tuple[Fault, ...]) -> Exit:
    if any(fault.field == "file" for fault in faults):
        return Exit.UNREADABLE
    return Exit.CONTRADICTS if faults else Exit.RIGHT


def _text_of(file: Path) -> str:
    """Raises RulebookError with a fault of the field "file" where there is no text to read."""
    try:
        with file.open("rb") as opened:
            content = opened.read(TEXT_BYTES_MAX + 1)
        if len(content) <= TEXT_BYTES_MAX:
            return content.decode("utf-8")
        reason = f"more than {TEXT_BYTES_MAX} bytes"
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "is not UTF-8 text"
    raise RulebookError(str(file), [Fault("file", file.name, reason)])
