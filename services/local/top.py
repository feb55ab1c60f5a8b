"""`doorcard top`: the dashboards live in the terminal."""

import json
import math
import time
from contextlib import ExitStack
from typing import Annotated, Any, Final

import typer

from services.local.dashboards import DASHBOARDS
from services.local.drawn import drawn, span
from services.local.prometheus import (
    Prometheus,
    PrometheusError,
    local_prometheus,
    room_metrics,
)
from services.local.report import watched
from services.local.room import home_folder

WATCH_S: Final = 10.0
"""How long a Prometheus of our own watches before the one look."""
POINTS: Final = 24


def top_command(
    prometheus: Annotated[
        str,
        typer.Option(
            envvar="DOORCARD_PROMETHEUS",
            help="Its URL. Without one, a Prometheus of our own watches the local room.",
        ),
    ] = "",
    minutes: Annotated[float, typer.Option(min=0.5, help="How far back the curves go.")] = 5.0,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 2.0,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Look once and print the last values; without --prometheus after some seconds.",
        ),
    ] = False,
) -> None:
    """Show the dashboards live in the terminal. Exit status: 0, or 1 when Prometheus does not
    answer.
    """
    try:
        with ExitStack() as stack:
            if as_json:
                source = stack.enter_context(watched(prometheus, WATCH_S))
                typer.echo(json.dumps(look(source, minutes * 60)))
                return
            if prometheus:
                source = Prometheus(prometheus)
                source.scrape_interval_s()
            else:
                source = stack.enter_context(local_prometheus(room_metrics(home_folder())))
            # Every other command would wait for this import too.
            from services.local.top_view import Top  # noqa: PLC0415

            Top(source, minutes * 60, every).run()
    except PrometheusError as error:
        typer.secho(str(error), fg="red", err=True)
        raise typer.Exit(1) from None


def look(source: Prometheus, length_s: float) -> list[dict[str, Any]]:
    """Every panel of every dashboard with the last value of each of its series. Raises
    PrometheusError.
    """
    when = span(source, time.time(), length_s, POINTS)
    return [
        {
            "dashboard": board.uid,
            "panel": each.panel.title,
            "unit": str(each.panel.unit),
            "line": each.panel.line,
            "series": [
                {
                    "name": name,
                    "value": _finite(series.points[-1][1]),
                    "beyond": each.panel.beyond(series.points[-1][1]),
                }
                for name, series in each.series
            ],
        }
        for board in DASHBOARDS
        for each in drawn(source, board, when)
    ]


def _finite(value: float) -> float | None:
    """JSON has no infinity, which a quantile beyond the last bucket is."""
    return value if math.isfinite(value) else None
