"""Random bytes of the kernel, asked for in large pieces: a system call for each few costs more than
what they are for.
"""

import io
import os
from typing import Final

PIECE_BYTES: Final = 4096


class _Noise:
    def __init__(self) -> None:
        self._piece = io.BytesIO()
        # A child must not have the bytes that its parent has, or its brothers.
        os.register_at_fork(after_in_child=self._forget)

    def take(self, count: int) -> bytes:
        # Without a lock: what one thread has read of a piece, no other reads again.
        taken = self._piece.read(count)
        if len(taken) < count:
            piece = io.BytesIO(os.urandom(PIECE_BYTES))
            taken, self._piece = piece.read(count), piece
        return taken

    def _forget(self) -> None:
        self._piece = io.BytesIO()


_noise: Final = _Noise()


def random_bytes(count: int) -> bytes:
    """So many bytes, `PIECE_BYTES` at most, that were never given before: for nonces and tags. Keys
    come straight from the kernel.
    """
    if not 0 <= count <= PIECE_BYTES:
        raise ValueError(f"0 to {PIECE_BYTES} bytes, not {count}")
    return _noise.take(count)
