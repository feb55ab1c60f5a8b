"""The dashboards live in a terminal, a tab each: what `doorcard top` shows."""

import asyncio
import time
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ItemGrid
from textual.widgets import Footer, Header, Static, TabbedContent, TabPane

from services.local.dashboards import DASHBOARDS
from services.local.drawn import Drawn, drawn, said, span
from services.local.panels import Dashboard, Panel
from services.local.prometheus import Prometheus, PrometheusError

BARS: Final = "▁▂▃▄▅▆▇█"
CURVE_WIDTH: Final = 24
NAME_WIDTH: Final = 26
LINES_MAX: Final = 8
"""Series of one panel that are shown, those with the largest last values."""
NOTHING: Final = Text("no data yet", style="dim")


def bars(values: list[float], width: int = CURVE_WIDTH) -> str:
    """The last values as a row of bars between 0 and their largest."""
    shown = values[-width:]
    largest = max(shown, default=0.0)
    if largest <= 0:
        return BARS[0] * len(shown)
    top = len(BARS) - 1
    return "".join(BARS[max(0, min(top, round(top * value / largest)))] for value in shown)


def lines(each: Drawn) -> Text:
    """A panel's text: a line for each series with its name, its curve and its last value."""
    if not each.series:
        return NOTHING
    latest = sorted(each.series, key=lambda pair: -abs(pair[1].points[-1][1]))[:LINES_MAX]
    width = min(NAME_WIDTH, max(len(name) for name, _ in latest))
    text = Text(no_wrap=True, overflow="ellipsis")
    for name, series in latest:
        values = [value for _, value in series.points]
        style = "red" if each.panel.beyond(values[-1]) else "cyan"
        text.append(f"{name[:width]:<{width}} ")
        text.append(f"{bars(values):>{CURVE_WIDTH}} ", style=style)
        text.append(f"{said(values[-1], each.panel.unit):>10}\n", style="bold")
    return text


class PanelBox(Static):
    """One panel in a box."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(NOTHING, classes="panel")
        self.border_title = panel.title
        if panel.line is not None:
            self.border_subtitle = f"line at {said(panel.line, panel.unit)}"
        self.tooltip = panel.text


class Top(App[None]):
    """The dashboards as tabs; the open one is asked for again and again."""

    TITLE = "Doorcard"
    CSS = """
    ItemGrid { grid-gutter: 0 1; height: auto; overflow-y: auto; }
    .panel { border: round $primary-darken-1; padding: 0 1; height: auto; min-height: 5; }
    TabPane { padding: 0 1; overflow-y: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        *(
            Binding(str(number), f"open('{board.uid}')", board.title.removeprefix("Doorcard: "))
            for number, board in enumerate(DASHBOARDS, 1)
        ),
    ]

    def __init__(self, source: Prometheus, length_s: float, every_s: float) -> None:
        super().__init__()
        self._source = source
        self._length_s = length_s
        self._every_s = every_s

    def compose(self) -> ComposeResult:
        """The page's parts."""
        yield Header(show_clock=True)
        with TabbedContent():
            for board in DASHBOARDS:
                title = board.title.removeprefix("Doorcard: ")
                with TabPane(title.capitalize(), id=board.uid), ItemGrid(min_column_width=66):
                    for panel in board.panels:
                        yield PanelBox(panel)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        self.run_worker(self._look_for_ever(), exclusive=True)

    def on_tabbed_content_tab_activated(self) -> None:
        """Another tab: look at once."""
        self.run_worker(self._look_for_ever(), exclusive=True)

    def action_open(self, uid: str) -> None:
        """Open a tab."""
        self.query_one(TabbedContent).active = uid

    async def _look_for_ever(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self._every_s)

    async def look(self) -> None:
        """Ask for the open tab's panels and show them."""
        uid = self.query_one(TabbedContent).active or DASHBOARDS[0].uid
        board = next(each for each in DASHBOARDS if each.uid == uid)
        try:
            panels = await asyncio.to_thread(self._ask, board)
        except PrometheusError as error:
            self.sub_title = str(error)
            return
        self.sub_title = f"{self._source.url}, the last {self._length_s / 60:g} minutes"
        boxes = self.query_one(f"#{uid}").query(PanelBox)
        for box, each in zip(boxes, panels, strict=True):
            box.update(lines(each))

    def _ask(self, board: Dashboard) -> list[Drawn]:
        when = span(self._source, time.time(), self._length_s, CURVE_WIDTH)
        return drawn(self._source, board, when)
