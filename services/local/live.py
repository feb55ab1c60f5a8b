"""The demo's figures while it runs: a live table on a terminal, a line now and then elsewhere."""

import time
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from services.local.bots import Tally
from services.local.summary import percentile_ms

LINE_EVERY_S: Final = 2.0
RATE_WINDOW_S: Final = 2.0


@dataclass(slots=True)
class Figures:
    """What the view shows beside the bots' own tally."""

    hands: int = 0
    hands_wanted: int = 0
    rake: int = 0
    """Minor units."""
    mails: int = 0
    stage: str = ""
    commits_by_replica: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)


class LiveView:
    """Context manager; `show` may be called as often as one likes."""

    def __init__(self, console: Console, tally: Tally, figures: Figures) -> None:
        self._console = console
        self._tally = tally
        self._figures = figures
        self._live = Live(console=console, refresh_per_second=4, transient=False)
        self._line_due_s = 0.0
        self._last_line = ""
        self._marks: list[tuple[float, int]] = [(time.monotonic(), 0)]

    def __enter__(self) -> "LiveView":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.update(self._table(self._rate()))
            self._live.stop()

    def show(self) -> None:
        """Draw the present figures."""
        rate = self._rate()
        if self._console.is_terminal:
            self._live.update(self._table(rate))
        elif time.monotonic() >= self._line_due_s:
            self._line_due_s = time.monotonic() + LINE_EVERY_S
            self._line(rate)

    def _rate(self) -> float:
        """Actions a second over the last moments."""
        now_s = time.monotonic()
        self._marks.append((now_s, self._tally.actions))
        while len(self._marks) > 2 and self._marks[1][0] < now_s - RATE_WINDOW_S:
            self._marks.pop(0)
        (then_s, then), span_s = self._marks[0], now_s - self._marks[0][0]
        return (self._tally.actions - then) / span_s if span_s > 0 and then_s else 0.0

    def _line(self, rate: float) -> None:
        figures = self._figures
        line = (
            f"{figures.stage}: hands {figures.hands}/{figures.hands_wanted}"
            f"  actions {self._tally.actions}"
            f"  {rate:.0f}/s  p99 {percentile_ms(self._tally.latencies_s, 0.99):.1f} ms"
            f"  rake {figures.rake}  mails {figures.mails}/{self._tally.mails_asked}"
        )
        if line != self._last_line:
            self._last_line = line
            self._console.print(line, highlight=False, soft_wrap=True)

    def _table(self, rate: float) -> Table:
        figures, latencies = self._figures, self._tally.latencies_s
        table = Table(title=f"Doorcard demo: {figures.stage}", show_header=False, min_width=56)
        table.add_column(style="bold")
        table.add_column(justify="right")
        table.add_row("hands", f"{figures.hands} of {figures.hands_wanted}")
        table.add_row("actions", f"{self._tally.actions}  ({rate:.0f} a second)")
        table.add_row(
            "latency p50 / p99",
            f"{percentile_ms(latencies, 0.5):.1f} / {percentile_ms(latencies, 0.99):.1f} ms",
        )
        table.add_row("rake", f"{figures.rake} units")
        table.add_row("mails", f"{figures.mails} of {self._tally.mails_asked} asked for")
        for replica, commits in sorted(figures.commits_by_replica.items()):
            table.add_row(f"commits by {replica}", str(commits))
        for process, restarts in sorted(figures.restarts.items()):
            table.add_row(f"{process} restarted", f"{restarts} times", style="yellow")
        return table
