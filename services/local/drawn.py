"""A dashboard's panels with their series, asked from a Prometheus."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from services.local.panels import Dashboard, Panel, Unit
from services.local.prometheus import Prometheus, Series

SCRAPES_PER_RATE: Final = 4
"""A rate needs two scrapes in its window; four survive a lost one."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A panel and what it shows: (name, series), in the order of its curves."""

    panel: Panel
    series: tuple[tuple[str, Series], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """What is drawn, Unix times. window: of rates, as "20s"."""

    start_s: float
    end_s: float
    step_s: float
    window: str


def span(prometheus: Prometheus, end_s: float, length_s: float, points: int) -> Span:
    """A span that ends then, with about so many points."""
    scraped_s = prometheus.scrape_interval_s()
    step_s = max(scraped_s, length_s / points)
    window_s = max(SCRAPES_PER_RATE * scraped_s, step_s)
    return Span(end_s - length_s, end_s, step_s, f"{int(window_s * 1000)}ms")


def drawn(
    prometheus: Prometheus,
    dashboard: Dashboard,
    when: Span,
    asked: Callable[[], None] = lambda: None,
) -> list[Drawn]:
    """Every panel with its series. asked: called after each panel. Raises PrometheusError."""
    found = []
    for panel in dashboard.panels:
        series = [
            (each.named(curve.legend), each)
            for curve in panel.curves
            for each in prometheus.over(
                curve.at(when.window), when.start_s, when.end_s, when.step_s
            )
            if each.points
        ]
        found.append(Drawn(panel, tuple(series)))
        asked()
    return found


def said(value: float, unit: Unit) -> str:
    """A value for a reader: "12.3 ms", "98.76 %", "1.2 MiB", "1,234"."""
    if unit is Unit.SECONDS:
        return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)))
    if unit is Unit.BYTES:
        return _scaled(value, (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0)))
    if unit is Unit.SHARE:
        return f"{value * 100:.2f} %"
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text}/s" if unit is Unit.PER_SECOND else text


def _scaled(value: float, scales: Iterable[tuple[str, float]]) -> str:
    scales = tuple(scales)
    name, size = next(
        (each for each in scales if abs(value) >= each[1]), scales[-1] if value else scales[0]
    )
    return f"{value / size:.3g} {name}"
