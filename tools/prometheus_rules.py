"""deploy/kubernetes/base/prometheus-rules.yaml: the rules as the Prometheus operator wants them."""

from pathlib import Path
from typing import Any, Final

import yaml

RULES: Final = Path(__file__).parent.parent / "deploy" / "prometheus" / "rules"


def text() -> str:
    """The manifest."""
    groups: list[dict[str, Any]] = []
    for path in sorted(RULES.glob("*.yml")):
        groups += yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    manifest = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "doorcard"},
        "spec": {"groups": groups},
    }
    head = "# Generated from deploy/prometheus/rules by `make pages`.\n"
    return head + yaml.safe_dump(manifest, sort_keys=False, width=100)
