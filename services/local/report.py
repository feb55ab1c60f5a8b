"""`doorcard report`: the dashboards as one HTML page that needs nothing else, with plots."""

import html
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from plotly import graph_objects, offline

from services.local.commands import check_writable
from services.local.dashboards import DASHBOARDS
from services.local.drawn import Drawn, Span, drawn, said, span
from services.local.panels import Dashboard, Unit
from services.local.prometheus import (
    Prometheus,
    PrometheusError,
    local_prometheus,
    room_metrics,
)
from services.local.room import home_folder
from services.local.waiting import progress_bar

POINTS: Final = 240
HEIGHT_PX: Final = 290
SERIES_MAX: Final = 30
"""Of one panel; a page with more cannot be read."""
COLOURS: Final = (
    "#2f6fde", "#d9822b", "#2a9d5c", "#c23b5a", "#7b57c2", "#0f9aa8", "#8a6d3b", "#5b6b7b",
    "#b0892c", "#4a8f2f",
)  # fmt: skip
AXES: Final = {Unit.SECONDS: ("", "s"), Unit.SHARE: (".1%", ""), Unit.BYTES: ("", "B")}

PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light; }}
body {{ margin: 0; font: 15px/1.45 system-ui, sans-serif; color: #1d2730; background: #f4f6f8; }}
header {{ background: #14323f; color: #fff; padding: 18px 28px; }}
header h1 {{ margin: 0; font-size: 22px; }} header p {{ margin: 4px 0 0; color: #b8ccd6; }}
nav a {{ color: #cfe6f2; margin-right: 18px; }}
section {{ padding: 6px 28px 14px; }} h2 {{ font-size: 18px; margin: 20px 0 10px; }}
.panels {{ display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(460px, 1fr)); }}
figure {{ margin: 0; padding: 10px; background: #fff;
  border: 1px solid #dde3e8; border-radius: 6px; }}
figcaption b {{ font-size: 15px; }} figcaption span {{ color: #5d6b76; font-size: 13px; }}
.nothing {{ height: {height}px; display: grid; place-items: center; color: #8a97a2; }}
</style>
<script>{plotly}</script></head><body>
<header><h1>{title}</h1><p>{times}</p><nav>{links}</nav></header>
{sections}
</body></html>
"""


def report_command(
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
    prometheus: Annotated[
        str,
        typer.Option(
            envvar="DOORCARD_PROMETHEUS",
            help="Its URL. Without one, the local room is watched for --minutes first.",
        ),
    ] = "",
    minutes: Annotated[float, typer.Option(min=0.1, help="How far back it looks.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was drawn as JSON.")] = False,
) -> None:
    """Draw the dashboards as one HTML page.

    Exit status: 0, 1 when Prometheus does not answer, 2 when the page cannot be written.
    """
    check_writable(out, "out")
    try:
        with watched(prometheus, minutes * 60) as source:
            when = span(source, time.time(), minutes * 60, POINTS)
            pages = _ask(source, when)
    except PrometheusError as error:
        typer.secho(str(error), fg="red", err=True)
        raise typer.Exit(1) from None
    out.write_text(page(pages, when), encoding="utf-8")
    panels = [each for _, panels in pages for each in panels]
    empty = [each.panel.title for each in panels if not each.series]
    if as_json:
        typer.echo(json.dumps({"out": str(out), "panels": len(panels), "empty": empty}))
    else:
        typer.echo(f"{out}: {len(panels)} panels, {len(empty)} without data")


def page(pages: Sequence[tuple[Dashboard, Sequence[Drawn]]], when: Span) -> str:
    """The whole page."""
    ends = datetime.fromtimestamp(when.end_s, UTC)
    starts = datetime.fromtimestamp(when.start_s, UTC)
    names = [(board.uid, board.title.removeprefix("Doorcard: ")) for board, _ in pages]
    return PAGE.format(
        title="Doorcard: report",
        height=HEIGHT_PX,
        times=f"{starts:%Y-%m-%d %H:%M:%S} to {ends:%Y-%m-%d %H:%M:%S} UTC",
        plotly=offline.get_plotlyjs(),
        links=" ".join(f'<a href="#{uid}">{html.escape(name)}</a>' for uid, name in names),
        sections="\n".join(
            f'<section id="{uid}"><h2>{html.escape(name[:1].upper() + name[1:])}</h2>'
            f'<div class="panels">{"".join(map(_figure, panels))}</div></section>'
            for (uid, name), (_, panels) in zip(names, pages, strict=True)
        ),
    )


def _ask(source: Prometheus, when: Span) -> list[tuple[Dashboard, list[Drawn]]]:
    with progress_bar() as progress:
        total = sum(len(board.panels) for board in DASHBOARDS)
        task = progress.add_task("asking Prometheus", total=total)
        return [
            (board, drawn(source, board, when, lambda: progress.advance(task)))
            for board in DASHBOARDS
        ]


@contextmanager
def watched(url: str, watch_s: float) -> Iterator[Prometheus]:
    """The one at the URL, or without one a Prometheus of our own that has watched the local room
    for so long. Raises PrometheusError.
    """
    if url:
        yield Prometheus(url)
        return
    with local_prometheus(room_metrics(home_folder())) as source:
        with progress_bar() as progress:
            task = progress.add_task("watching the room", total=watch_s)
            ends_s = time.monotonic() + watch_s
            while (left_s := ends_s - time.monotonic()) > 0:
                progress.update(task, completed=watch_s - left_s)
                time.sleep(min(0.2, left_s))
        yield source


def _figure(each: Drawn) -> str:
    panel = each.panel
    caption = f"<b>{html.escape(panel.title)}</b><br><span>{html.escape(panel.text)}</span>"
    plot = _plot(each) if each.series else '<div class="nothing">no data</div>'
    return f"<figure><figcaption>{caption}</figcaption>{plot}</figure>"


def _plot(each: Drawn) -> str:
    panel = each.panel
    figure = graph_objects.Figure()
    for number, (name, series) in enumerate(each.series[:SERIES_MAX]):
        times = [datetime.fromtimestamp(at, UTC) for at, _ in series.points]
        values = [value for _, value in series.points]
        figure.add_scatter(
            x=times,
            y=values,
            name=f"{name}  {said(values[-1], panel.unit)}",
            mode="lines" if len(values) > 1 else "markers",
            line={"width": 1.8, "color": COLOURS[number % len(COLOURS)]},
            hovertemplate="%{y:.4g}",
        )
    if panel.line is not None:
        figure.add_hline(y=panel.line, line={"color": "#c0392b", "width": 1.2, "dash": "dash"})
    form, suffix = AXES.get(panel.unit, ("", ""))
    figure.update_layout(
        height=HEIGHT_PX,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        template="plotly_white",
        hovermode="x unified",
        showlegend=True,
        legend={"orientation": "h", "y": -0.18, "font": {"size": 11}},
        yaxis={"tickformat": form, "ticksuffix": suffix, "rangemode": "tozero", "automargin": True},
    )
    config = {"displayModeBar": False, "responsive": True}
    return str(figure.to_html(full_html=False, include_plotlyjs=False, config=config))
