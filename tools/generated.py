"""Everything that is generated from the code and committed, path -> text."""

from pathlib import Path
from typing import Final, TypeAlias

from tools import (
    api_page,
    commands_page,
    errors_page,
    fail_points_page,
    grafana,
    metrics_page,
    prometheus_rules,
    settings_page,
)

Generated: TypeAlias = dict[Path, str]

ROOT: Final = Path(__file__).parent.parent


def everything() -> Generated:
    """All generated files with their present content."""
    return {
        ROOT / "docs/API.md": api_page.text(),
        ROOT / "docs/COMMANDS.md": commands_page.text(),
        ROOT / "docs/ERRORS.md": errors_page.text(),
        ROOT / "docs/FAIL-POINTS.md": fail_points_page.text(),
        ROOT / "docs/METRICS.md": metrics_page.text(),
        ROOT / "docs/SETTINGS.md": settings_page.text(),
        ROOT / "deploy/kubernetes/base/prometheus-rules.yaml": prometheus_rules.text(),
        **{
            ROOT / "deploy/grafana/dashboards" / name: text
            for name, text in grafana.files().items()
        },
    }
