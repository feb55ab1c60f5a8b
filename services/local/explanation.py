"""A recorded hand as an adjudicator tells it, for a terminal."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.game.phh import RecordedHand
from services.game.story import Remark, Topic

STREETS: Final = {
    0: "Before the cards",
    3: "Third street",
    4: "Fourth street",
    5: "Fifth street",
    6: "Sixth street",
    7: "Seventh street",
}
_END: Final = "The end"
_ENDING: Final = frozenset(
    {Topic.UNCALLED, Topic.POT, Topic.RAKE, Topic.AWARD, Topic.RESULT, Topic.DIFFERENCE}
)
_STYLES: Final = {
    Topic.CARDS: "cyan",
    Topic.DECISION: "dim",
    Topic.TRIAL: "yellow",
    Topic.TIME_OUT: "yellow",
    Topic.AWARD: "green",
    Topic.DIFFERENCE: "bold red",
}
_RECORDED: Final = (Topic.ACTION, Topic.TIME_OUT, Topic.TRIAL)


def print_explanation(
    title: str, recorded: RecordedHand, remarks: Sequence[Remark], console: Console
) -> None:
    """The remarks street by street: index of the action, what and why, section of the rules."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    table = Table("", "what and why", "docs/rules.md", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[0].justify = "right"
    for heading, headed in groupby(_headed(remarks), key=lambda each: each[0]):
        table.add_row("", Text(heading, style="bold"), "")
        for _, group in groupby((each[1] for each in headed), key=_row_of):
            table.add_row(*_row(list(group), recorded))
    console.print(table)


def _headed(remarks: Iterable[Remark]) -> Iterable[tuple[str, Remark]]:
    """Each remark with the heading it stands under."""
    ending = False
    for remark in remarks:
        ending = ending or remark.topic in _ENDING
        yield _END if ending else STREETS[remark.street], remark


def _row_of(remark: Remark) -> object:
    """Remarks with equal answers share a row: all of a decision."""
    return (remark.after, remark.seat) if remark.topic is Topic.DECISION else id(remark)


def _row(remarks: Sequence[Remark], recorded: RecordedHand) -> tuple[str, Text, Text]:
    first = remarks[0]
    has = first.topic in _RECORDED and first.after < len(recorded.actions)
    text = "; ".join(f"{each.text}{each.code and f' [{each.code}]'}" for each in remarks)
    indent = "  " if first.topic is Topic.DECISION else ""
    sections = ", ".join(dict.fromkeys(each.rule for each in remarks if each.rule))
    return (
        str(first.after) if has else "",
        Text(f"{indent}{text}", style=_STYLES.get(first.topic, "")),
        Text(sections, style="dim"),
    )
