"""Another one in the same state, where `copy` would not do: it cannot read compiled classes."""

from collections.abc import Iterable


def copy_fields(mine: object, other: object, names: Iterable[str]) -> None:
    """Gives `other` the fields of `mine`; its lists, and lists in them, become lists of its own.

    Everything else is shared: it never changes.
    """
    for name in names:
        setattr(other, name, _own(getattr(mine, name)))


def _own(value: object) -> object:
    return [_own(item) for item in value] if isinstance(value, list) else value
