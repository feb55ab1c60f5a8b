"""deploy/grafana/dashboards/*.json, from the panels that the code describes."""

import json
from typing import Any, Final

from services.local.dashboards import DASHBOARDS
from services.local.panels import Curve, Dashboard, Panel, Unit

DATASOURCE: Final = {"type": "prometheus", "uid": "doorcard-prometheus"}
"""As deploy/grafana/provisioning names it."""
UNITS: Final = {
    Unit.COUNT: "short",
    Unit.PER_SECOND: "ops",
    Unit.PER_HOUR: "short",
    Unit.SECONDS: "s",
    Unit.SHARE: "percentunit",
    Unit.BYTES: "bytes",
}
WIDTH: Final = 12
HEIGHT: Final = 8
SCHEMA: Final = 39


def files() -> dict[str, str]:
    """File name -> JSON."""
    return {
        f"{each.uid}.json": json.dumps(_dashboard(each), indent=2, ensure_ascii=False) + "\n"
        for each in DASHBOARDS
    }


def _dashboard(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["doorcard"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": False,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "utc",
        "graphTooltip": 1,
        "links": [
            {
                "type": "dashboards",
                "title": "Doorcard",
                "tags": ["doorcard"],
                "asDropdown": True,
                "includeVars": False,
                "keepTime": True,
            }
        ],
        "panels": [_panel(number, panel) for number, panel in enumerate(dashboard.panels)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    custom: dict[str, Any] = {"lineWidth": 2, "fillOpacity": 8, "showPoints": "never"}
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.line is not None:
        custom["thresholdsStyle"] = {"mode": "line"}
        steps.append({"color": "red", "value": panel.line})
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": DATASOURCE,
        "gridPos": {
            "x": number % 2 * WIDTH,
            "y": number // 2 * HEIGHT,
            "w": WIDTH,
            "h": HEIGHT,
        },
        "fieldConfig": {
            "defaults": {
                "unit": UNITS[panel.unit],
                "min": 0,
                "custom": custom,
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [_target(at, curve) for at, curve in enumerate(panel.curves)],
    }


def _target(number: int, curve: Curve) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + number),
        "datasource": DATASOURCE,
        "expr": curve.at("$__rate_interval"),
        "legendFormat": curve.legend,
    }
