"""The inner loops of hand ranking, compiled. `services.game.ranking.kernel` calls them."""

import ctypes
from pathlib import Path
from typing import Final

_library: Final = ctypes.CDLL(str(Path(__file__).with_name("rank.so")))


class BySum(ctypes.Structure):
    """`struct by_sum` of rank.c: addresses of tables, and what is done with a sum."""

    _fields_ = (
        ("keys", ctypes.c_void_p),
        ("held", ctypes.c_void_p),
        ("classes", ctypes.c_void_p),
        ("flushes", ctypes.c_void_p),
        ("entries", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("face_mask", ctypes.c_uint64),
        ("flush_bits", ctypes.c_uint64),
    )


_HANDS: Final = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)

by_sum: Final = _library.doorcard_by_sum
by_sum.argtypes = (*_HANDS, ctypes.POINTER(BySum), ctypes.c_void_p)

by_union: Final = _library.doorcard_by_union
by_union.argtypes = (*_HANDS, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
