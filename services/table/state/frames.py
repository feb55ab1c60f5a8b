"""Encoded frames: bytes of a `PlayResponse` (or `WatchTableResponse`) with one frame in it.

They are made once. For whom a frame is stands behind everything else in it, so that a player can be
named in one that is encoded already.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from services.table.state.views import PUBLIC

Frames = Mapping[str, bytes]
"""Of one version: audience -> encoded frame."""

_FRAME: Final = b"\x0a"
"""Tag of `frames` in the message."""
_PLAYER_IDS: Final = b"\x32"
"""Tag of `player_ids` in a frame."""

_records: Final = msgspec.msgpack.Decoder(dict[str, bytes])
_packed: Final = msgspec.msgpack.Encoder()


def pack(frames: Frames) -> bytes:
    """A version's frames as the store keeps them."""
    return _packed.encode(frames)


def unpack(record: bytes) -> Frames:
    """A version's frames as the store keeps them; private ones name their player, also those of
    earlier releases.
    """
    frames = _records.decode(record)
    for audience, frame in frames.items():
        if frame and audience != PUBLIC and not frame.endswith(_named(audience)):
            frames[audience] = addressed(frame, audience)
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
    # Ids have at most 64 characters, all of them ASCII.
    return b"".join((_PLAYER_IDS, bytes((len(viewer),)), viewer.encode()))


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
