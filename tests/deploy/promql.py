"""Which metrics a query names, and which there are."""

import re
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from tools.metrics_page import declared

DEPLOY: Final = Path(__file__).parent.parent.parent / "deploy"

_STRING: Final = re.compile(r'"[^"]*"')
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_BRACES: Final = re.compile(r"\{[^}]*\}")
_RANGE: Final = re.compile(r"\[[^\]]*\]")
_NAME: Final = re.compile(r"(?<![\w:.])[a-zA-Z_:][\w:]*(?!\s*\()(?![\w:])")
_WORDS: Final = {
    "and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset", "group_left",
    "group_right", "inf",
}  # fmt: skip
OTHERS: Final = {
    # Made by Prometheus itself or by the Python client.
    "up", "process_start_time_seconds", "process_cpu_seconds_total",
    "process_resident_memory_bytes", "process_open_fds", "process_max_fds",
}  # fmt: skip


def metric_names(query: str) -> set[str]:
    """Names of the series that a query selects by their names."""
    bare = _STRING.sub("", query)
    for pattern in (_GROUPING, _BRACES, _RANGE):
        bare = pattern.sub(" ", bare)
    return {name for name in _NAME.findall(bare) if name not in _WORDS}


@cache
def records() -> frozenset[str]:
    """Names that recording rules give."""
    found = yaml.safe_load((DEPLOY / "prometheus/rules/recording.yml").read_text())
    return frozenset(rule["record"] for group in found["groups"] for rule in group["rules"])


@cache
def known_names() -> frozenset[str]:
    """Every series that there is: declared by the code, recorded, or made by others."""
    names = set(records()) | OTHERS
    for metric in declared():
        ends = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        names |= {metric.shown + end for end in ends}
    return frozenset(names)
