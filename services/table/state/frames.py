"""Encoded frames: bytes of a `PlayResponse` (or `WatchTableResponse`) with one frame in it.

What a version changed is encoded once, as events without anything around them: so the store keeps
them. What is the same for all of a version, and known to whoever asks for it, is put around them
here without decoding. For whom a frame is stands behind everything else in it, so that a player can
be named in one that is encoded already.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from services.runtime.clock import timestamp
from services.table.state.views import PUBLIC

Frames = Mapping[str, bytes]
"""Of one version: audience -> encoded frame."""

TEXTS_KEPT_MAX: Final = 16_384
"""Encoded ids of tables and players, some hundred bytes each."""
_FRAME: Final = b"\x0a"
"""Tag of `frames` in the message."""
_TABLE_ID: Final = b"\x0a"
"""Tag of `table_id` in a frame."""
_UPDATE: Final = b"\x1a"
"""Tag of `update` in a frame."""
_VERSION: Final = b"\x08"
"""Tag of `version` in an update."""
_AT: Final = b"\x12"
"""Tag of `at` in an update."""
_PLAYER_IDS: Final = b"\x32"
"""Tag of `player_ids` in a frame."""


class Changed(msgspec.Struct, array_like=True, frozen=True):
    """What a version changed, as the store keeps it."""

    at_ms: int
    """When, Redis time."""
    events: Mapping[str, bytes]
    """Audience -> its events, encoded (`views.events`)."""


_records: Final = msgspec.msgpack.Decoder(Changed | dict[str, bytes])
_packed: Final = msgspec.msgpack.Encoder()


def pack(changed: Changed) -> bytes:
    """The record of a version, for the store."""
    return _packed.encode(changed)


def unpack(record: bytes, table_id: str, version: int) -> Frames:
    """The frames of a version out of its record; of earlier releases too, whose records hold the
    frames themselves, of which those of players may not name them.
    """
    kept = _records.decode(record)
    if isinstance(kept, Changed):
        return framed(kept, table_id, version)
    for audience, frame in kept.items():
        if frame and audience != PUBLIC and not frame.endswith(_named(audience)):
            kept[audience] = addressed(frame, audience)
    return kept


def framed(changed: Changed, table_id: str, version: int) -> Frames:
    """The frames of a version: everybody's, and each player's own, which names him. Who only has to
    be told apart (`views.events`) has an empty one.
    """
    # Fields that come one after another are one message: what all have, then the events.
    before = _text(_TABLE_ID, table_id)
    at = timestamp(changed.at_ms).SerializeToString()
    start = b"".join((_VERSION, _varint(version), _AT, bytes((len(at),)), at))
    frames = {}
    for audience, events in changed.events.items():
        if audience == PUBLIC:
            named = b""
        elif events:
            named = _named(audience)
        else:
            frames[audience] = b""
            continue
        size = _varint(len(start) + len(events))
        rest = len(before) + len(_UPDATE) + len(size) + len(start) + len(events) + len(named)
        frames[audience] = b"".join(
            (_FRAME, _varint(rest), before, _UPDATE, size, start, events, named)
        )
    return frames


def addressed(frame: bytes, viewer: str) -> bytes:
    """A frame that names nobody, for this viewer of a gateway's stream alone."""
    if not frame:
        return frame
    at = 1
    while frame[at] & 0x80:
        at += 1
    name = _named(viewer)
    content = frame[at + 1 :]
    return b"".join((_FRAME, _varint(len(content) + len(name)), content, name))


def _named(viewer: str) -> bytes:
    return _text(_PLAYER_IDS, viewer)


@lru_cache(maxsize=TEXTS_KEPT_MAX)
def _text(tag: bytes, name: str) -> bytes:
    # Ids have at most 64 characters, all of them ASCII.
    return b"".join((tag, bytes((len(name),)), name.encode()))


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
