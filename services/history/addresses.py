"""E-mail addresses that a mail may go to."""

import re
from typing import Final

from services.runtime.errors import InvalidArgument

ADDRESS_CHARACTERS_MAX: Final = 254
LOCAL_PART_CHARACTERS_MAX: Final = 64

_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)


def is_address(value: str) -> bool:
    """Whether `value` is one plain address (RFC 5321 dot-string @ domain, ASCII): nothing that a
    header or a second recipient could be smuggled in with.
    """
    return (
        len(value) <= ADDRESS_CHARACTERS_MAX
        and _ADDRESS.fullmatch(value) is not None
        and len(value.rpartition("@")[0]) <= LOCAL_PART_CHARACTERS_MAX
    )


def check_address(value: str, field: str = "address") -> str:
    """`value` itself, or InvalidArgument naming `field`, without the value."""
    if not is_address(value):
        raise InvalidArgument.of_field(field, "must be one plain e-mail address", "BAD_ADDRESS")
    return value
