"""Settings read into dataclasses: each function returns what could be read, and the faults of the
rest. A fault shows no more of a value than a reader needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

SHOWN_MAX: Final = 80
"""Characters of a value, or of a name that is no setting's, in a fault."""
SHORT_TEXT_MAX: Final = 64
_SHOWN_BITS: Final = 64
"""Longer numbers are not written out: that takes time, and Python has a limit for it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one setting."""

    field: str
    """Name of the field; "stakes[2].ante" within a list."""
    value: str
    """What stands there, cut where it is long."""
    reason: str
    """Why it cannot."""

    def __str__(self) -> str:
        return f"{self.field} = {self.value}: {self.reason}"


def read_table(
    kind: type[Any],
    table: Mapping[str, Any],
    prefix: str,
    most: Mapping[str, int],
    without: tuple[str, ...] = (),
) -> tuple[dict[str, Any], list[Fault]]:
    """The fields of a dataclass from a table.

    prefix: of their names in faults. most: the largest whole number of every field that is one.
    without: fields that are read elsewhere.
    """
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    known = {field.name: field for field in fields(kind)}
    for name, field in known.items():
        if name in without:
            continue
        optional = field.type == int | None
        if table.get(name) is None:
            if not optional:
                faults.append(Fault(prefix + name, "missing", "must be set"))
            continue
        value = table[name]
        read: Any = int if optional else field.type
        reason = _misfit(read, value, most.get(name, 0))
        if reason:
            faults.append(Fault(prefix + name, shown(value), reason))
        else:
            values[name] = read(value)
    faults += [
        Fault(prefix + shown(name), shown(table[name]), "no such setting")
        for name in table
        if name not in known
    ]
    return values, faults


def unread(field: str, mapping: Mapping[str, Any], reason: str) -> Fault:
    """The fault of a field that is missing, or of another kind."""
    if mapping.get(field) is None:
        return Fault(field, "missing", "must be set")
    return Fault(field, shown(mapping[field]), reason)


def shown(value: Any) -> str:
    """A value as a fault shows it, whatever it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        return f"a table of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = str(value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"


def _misfit(kind: Any, value: Any, most: int) -> str:
    """Why a value cannot be of that kind, or nothing."""
    if kind is bool:
        return "" if isinstance(value, bool) else "must be true or false"
    if kind is str:
        fits = isinstance(value, str) and len(value) <= SHORT_TEXT_MAX
        return "" if fits else "must be a short text"
    if kind is int:
        if isinstance(value, float):
            return "fractions of a unit do not exist"
        if not isinstance(value, int) or isinstance(value, bool):
            return "must be a whole number"
        return "" if 0 <= value <= most else f"must be from 0 to {most}"
    allowed = [str(item) for item in kind]
    return "" if isinstance(value, str) and value in allowed else "must be " + " or ".join(allowed)
