"""Sizes of the pages of lists."""

from services.runtime.errors import InvalidArgument


def page_size(asked: int, default: int, most: int, reason: str = "INVALID_FIELD") -> int:
    """How many to a page; 0 asks for the default. Raises InvalidArgument, for that reason."""
    if not 0 <= asked <= most:
        raise InvalidArgument.of_field("page_size", f"must be 0 to {most}", reason)
    return asked or default
