"""docs/SETTINGS.md, from the settings classes of the services."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from services.runtime.settings import ENV_PREFIX, PORTS, ServiceSettings

SERVICES: Final = Path(__file__).parent.parent / "services"

HEAD: Final = f"""# Settings

Generated from the settings classes by `make pages`; a test compares. Each is an environment
variable; a bad value ends the start with exit status 2 and one line that has its name, value and
reason. A variable may also be a file of its name in lower case in the folder
`{ENV_PREFIX}SECRETS_DIR`, as secrets are mounted; the environment wins. Secrets are never shown.

`doorcard up` sets all that its services need. Two more variables are read by the `doorcard`
command: `DOORCARD_HOME`, the data folder (`.room`), and `DOORCARD_PROMETHEUS`, where `doorcard top`
and `doorcard report` find a Prometheus.
"""

COMMON: Final = "Every process"


def text() -> str:
    """The page."""
    parts = [HEAD, f"## {COMMON}\n", _table(ServiceSettings, set())]
    for kind in settings_classes():
        title = kind.__name__.removesuffix("Settings")
        parts.append(f"## {title}\n")
        parts.append(f"`{kind.__module__}.{kind.__name__}`; besides what every process reads.\n")
        parts.append(_table(kind, set(ServiceSettings.model_fields)))
    parts.append("## Default ports\n")
    parts.append("| process | gRPC, or the server's own | metrics |\n|---|---|---|")
    for name, (own, metrics) in PORTS.items():
        parts.append(f"| {name} | {own or '-'} | {metrics or '-'} |")
    return "\n".join(parts) + "\n"


def settings_classes() -> Iterator[type[ServiceSettings]]:
    """Those that a process loads, in the order of their modules."""
    for path in sorted(SERVICES.glob("*/*.py")):
        if "(ServiceSettings)" not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(
            ".".join(path.relative_to(SERVICES.parent).with_suffix("").parts)
        )
        found = [
            each
            for _, each in inspect.getmembers(module, inspect.isclass)
            if issubclass(each, ServiceSettings) and each.__module__ == module.__name__
        ]
        # A class that others of its module extend is theirs, not a process's.
        yield from (each for each in found if not any(each in other.__bases__ for other in found))


def _table(kind: type[ServiceSettings], without: set[str]) -> str:
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in kind.model_fields.items():
        if name in without and name != "service":
            continue
        described = field.description or ServiceSettings.model_fields[name].description
        if not described:
            raise ValueError(f"{kind.__name__}.{name} has no docstring")
        meaning = " ".join(described.split()).replace("|", "\\|")
        bounds = _bounds(field)
        rows.append(
            f"| `{ENV_PREFIX}{name.upper()}` | {_default(field)} | "
            f"{meaning}{f' {bounds}' if bounds else ''} |"
        )
    return "\n".join(rows) + "\n"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    if field.default_factory is not None:
        return "by the machine"
    default: Any = field.default
    if isinstance(default, SecretStr):
        return "a local one" if default.get_secret_value() else "none"
    if default is None or default is PydanticUndefined or default in ("", ()):
        return "none"
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    return f"`{default}`"


def _bounds(field: FieldInfo) -> str:
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    found = [
        f"{words} {getattr(each, sign):g}"
        for each in field.metadata
        for sign, words in signs.items()
        if getattr(each, sign, None) is not None
    ]
    return f"({', '.join(found)})" if found else ""
