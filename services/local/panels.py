"""What a dashboard is made of, for Grafana, for `doorcard report` and `doorcard top`.

`RATE` in a query stands for the window of a rate, which whoever draws it chooses by his own
resolution.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RATE: Final = "RATE"


class Unit(StrEnum):
    """What a panel's numbers are."""

    COUNT = "count"
    PER_SECOND = "per second"
    PER_HOUR = "per hour"
    SECONDS = "seconds"
    SHARE = "share"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Curve:
    """One query. legend: its labels in double braces are replaced by their values."""

    query: str
    legend: str

    def at(self, window: str) -> str:
        """The query with this window, for example "1m", for its rates."""
        return self.query.replace(f"[{RATE}]", f"[{window}]")


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot."""

    title: str
    text: str
    """What one sees in it and when it is bad."""
    unit: Unit
    curves: tuple[Curve, ...]
    line: float | None = None
    """An objective or limit, drawn across."""
    floor: bool = False
    """The line is the least that there should be, not the most."""

    def beyond(self, value: float) -> bool:
        """Whether a value is on the wrong side of the line."""
        if self.line is None:
            return False
        return value < self.line if self.floor else value > self.line


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of panels. uid: fixed, so that links to it last."""

    uid: str
    title: str
    panels: tuple[Panel, ...]


def rate(metric: str, by: str = "", labels: str = "", factor: str = "") -> str:
    """Sum of a counter's rate."""
    grouped = f" by ({by})" if by else ""
    selector = f"{{{labels}}}" if labels else ""
    return f"{factor}sum{grouped} (rate({metric}{selector}[{RATE}]))"


def quantile(share: str, histogram: str, by: str = "", labels: str = "") -> str:
    """A quantile of a histogram."""
    grouped = f"le, {by}" if by else "le"
    selector = f"{{{labels}}}" if labels else ""
    buckets = f"sum by ({grouped}) (rate({histogram}_bucket{selector}[{RATE}]))"
    return f"histogram_quantile({share}, {buckets})"


def ratio(part: str, whole: str) -> str:
    """A share that is 0 where nothing of the part ever happened."""
    return f"({part} or vector(0)) / {whole}"
