"""Identifiers: made here, or checked here when they come from outside."""

import os
import re
import time
import uuid
from typing import Final

from services.runtime.clock import NS_PER_MS
from services.runtime.errors import InvalidArgument

ROOM_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "doorcard")

_NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_CANONICAL: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
NAME_RULE: Final = "1 to 64 of A-Z a-z 0-9 . _ : -"


def uuid7() -> str:
    """A new UUIDv7 (RFC 9562): 48 bits of milliseconds, then kernel randomness; sorts by time of
    making.
    """
    value = (time.time_ns() // NS_PER_MS) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    return str(uuid.UUID(int=value))


def uuid5_of(namespace: str, *parts: str | int) -> str:
    """The UUIDv5 of what something is for: the same namespace and parts give the same id for ever.

    Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
    """
    texts = [str(part) for part in parts]
    name = "".join(f"{len(text)}:{text}" for text in texts)
    return str(uuid.uuid5(uuid.uuid5(ROOM_NAMESPACE, namespace), name))


def is_name(value: str) -> bool:
    """Whether `value` has the form of a player id or request id: `NAME_RULE`."""
    return _NAME.fullmatch(value) is not None


def check_request_id(value: str, field: str = "request_id") -> str:
    """`value` itself, or InvalidArgument naming `field`: every mutating call carries one."""
    if not is_name(value):
        raise InvalidArgument.of_field(field, f"must be {NAME_RULE}", "BAD_REQUEST_ID")
    return value


def check_player_id(value: str, field: str = "player_id") -> str:
    """`value` itself, or InvalidArgument naming `field`."""
    if not is_name(value):
        raise InvalidArgument.of_field(field, f"must be {NAME_RULE}", "BAD_PLAYER_ID")
    return value


def check_uuid(value: str, field: str) -> str:
    """The canonical lower-case form of `value`, or InvalidArgument naming `field`."""
    if _CANONICAL.fullmatch(value):
        return value
    if len(value) == 36:
        try:
            return str(uuid.UUID(value))
        except ValueError:
            pass
    raise InvalidArgument.of_field(field, "must be a UUID in its 36-character form", "BAD_UUID")
