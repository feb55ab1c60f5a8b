"""Random bytes of the kernel, asked for in large pieces: a system call for each few costs more than
what they are for.
"""

import os
import threading
from typing import Final

PIECE_BYTES: Final = 4096


class _Noise:
    def __init__(self) -> None:
        self._piece = b""
        self._used = 0
        self._lock = threading.Lock()
        # A child must not have the bytes that its parent has, or its brothers.
        os.register_at_fork(after_in_child=self._forget)

    def take(self, count: int) -> bytes:
        with self._lock:
            start, self._used = self._used, self._used + count
            if self._used > len(self._piece):
                self._piece, start, self._used = os.urandom(PIECE_BYTES), 0, count
            return self._piece[start : self._used]

    def _forget(self) -> None:
        self._piece, self._used, self._lock = b"", 0, threading.Lock()


_noise: Final = _Noise()


def random_bytes(count: int) -> bytes:
    """So many bytes, `PIECE_BYTES` at most, that were never given before: for nonces and tags. Keys
    come straight from the kernel.
    """
    if not 0 <= count <= PIECE_BYTES:
        raise ValueError(f"0 to {PIECE_BYTES} bytes, not {count}")
    return _noise.take(count)
