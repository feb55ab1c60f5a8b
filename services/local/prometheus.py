"""Asks a Prometheus; starts one for a local room where the program is installed."""

import json
import math
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from services.local import room_file
from services.runtime.settings import LOOPBACK

ASK_TIMEOUT_S: Final = 20.0
READY_S: Final = 30.0
LOOK_S: Final = 0.05
STOP_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024
RETENTION: Final = "2d"

_BRACES: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class PrometheusError(Exception):
    """It did not answer, or not with what was asked for; the text says why."""


@dataclass(frozen=True, slots=True)
class Series:
    """One time series. points: (Unix time, value), in order, NaN left out."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]

    def named(self, legend: str) -> str:
        """The legend with its labels filled in."""
        return _BRACES.sub(lambda found: self.labels.get(found[1], ""), legend).strip(" :") or "all"


class Prometheus:
    """A Prometheus at a base URL. Every method raises PrometheusError."""

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise PrometheusError(f"{url!r} is no http URL")
        self.url: Final = url.rstrip("/")

    def instant(self, query: str) -> list[Series]:
        """A query's value now."""
        return self._series("query", {"query": query})

    def over(self, query: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """A query's values from a Unix time to another."""
        return self._series(
            "query_range",
            {"query": query, "start": str(start_s), "end": str(end_s), "step": str(step_s)},
        )

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            self._get("/-/ready", {})
        except PrometheusError:
            return False
        return True

    def scrape_interval_s(self) -> float:
        """The longest interval at which it scrapes what it scrapes; 15 before it scrapes at all."""
        answer = json.loads(self._get("/api/v1/targets", {"state": "active"}))
        targets = answer.get("data", {}).get("activeTargets", [])
        return max((_seconds(each.get("scrapeInterval", "")) for each in targets), default=15.0)

    def _series(self, kind: str, parameters: Mapping[str, str]) -> list[Series]:
        answer = json.loads(self._get(f"/api/v1/{kind}", parameters))
        result = answer.get("data", {}).get("result", [])
        return [_read(each) for each in result]

    def _get(self, path: str, parameters: Mapping[str, str]) -> bytes:
        url = f"{self.url}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=ASK_TIMEOUT_S) as answer:  # noqa: S310 (http only)
                return bytes(answer.read(ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            said = error.read(2000).decode("utf-8", "replace")
            raise PrometheusError(f"Prometheus refused the query: {said}") from None
        except (OSError, ValueError) as error:
            raise PrometheusError(f"no Prometheus answers at {self.url}: {error}") from None


@contextmanager
def local_prometheus(
    metrics: Mapping[str, str], *, interval_s: float = 1.0, rules: Iterable[Path] = ()
) -> Iterator[Prometheus]:
    """A Prometheus of its own for a local room, stopped and forgotten at the end of the block.

    metrics: process -> URL of its metrics, as `room.json` has them. rules: files of rules. Raises
    PrometheusError where the program is not installed or does not start.
    """
    program = shutil.which("prometheus")
    if program is None:
        raise PrometheusError(
            "the program prometheus is not installed (Debian: apt-get install prometheus); "
            "or name one that runs: --prometheus URL"
        )
    with tempfile.TemporaryDirectory(prefix="doorcard-prometheus-") as name:
        folder = Path(name)
        configuration = _configuration(metrics, interval_s, rules)
        (folder / "prometheus.yml").write_text(json.dumps(configuration), encoding="utf-8")
        address = f"{LOOPBACK}:{_free_port()}"
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 (nothing in it comes from outside)
                [
                    program,
                    f"--config.file={folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--storage.tsdb.retention.time={RETENTION}",
                    f"--web.listen-address={address}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield _started(Prometheus(f"http://{address}"), process, folder / "log")
        finally:
            _stop(process)


def room_metrics(home: Path) -> dict[str, str]:
    """Process -> URL of its metrics, of the room that runs in this data folder.

    Raises PrometheusError if none does.
    """
    try:
        content = room_file.read(home)
    except FileNotFoundError:
        raise PrometheusError(
            f"no room runs in {home}: start one with `doorcard up`, or name a Prometheus"
        ) from None
    return {name: url for name, url in content["metrics"].items() if url}


def _configuration(
    metrics: Mapping[str, str], interval_s: float, rules: Iterable[Path]
) -> dict[str, Any]:
    """JSON is YAML too."""
    interval = f"{int(interval_s * 1000)}ms"
    targets = [
        # Replicas of one service share its job, whatever their own names are.
        {"labels": {"job": re.sub(r"-\d+$", "", name)}, "targets": [urlsplit(url).netloc]}
        for name, url in metrics.items()
    ]
    return {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "evaluation_interval": interval,
        },
        "rule_files": [str(path.absolute()) for path in rules],
        "scrape_configs": [{"job_name": "doorcard", "static_configs": targets}],
    }


def _started(found: Prometheus, process: "subprocess.Popen[bytes]", log: Path) -> Prometheus:
    late_s = time.monotonic() + READY_S
    while not found.ready():
        if process.poll() is not None or time.monotonic() > late_s:
            last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
            raise PrometheusError(f"prometheus did not start: {' '.join(last)}")
        time.sleep(LOOK_S)
    return found


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _read(result: Mapping[str, Any]) -> Series:
    raw = result["values"] if "values" in result else [result["value"]]
    points = ((float(at), float(value)) for at, value in raw)
    return Series(dict(result["metric"]), tuple(each for each in points if math.isfinite(each[1])))


def _seconds(text: str) -> float:
    """Of Prometheus' durations, as "5s" or "1m30s"."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    found = re.findall(r"(\d+)(ms|s|m|h)", text)
    return sum(int(number) * units[unit] for number, unit in found)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])
