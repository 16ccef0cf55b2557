"""Asking the kernel whether part of a file is in memory."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_CACHESTAT: Final = 451
"""The system call of Linux 6.5 and later, on every architecture; no library wraps it yet."""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PROBE_BYTES: Final = 64 << 10
"""How far apart older kernels are asked for a byte."""

_system_call: Final = ctypes.CDLL(None, use_errno=True).syscall


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "written_back", "evicted", "recently_evicted")
    )


def is_cached(descriptor: int, position: int, size: int) -> bool:
    """Whether these bytes of a file can be had without waiting for a disk."""
    counts = _Counts()
    asked = _Range(position, size)
    if _system_call(_CACHESTAT, descriptor, ctypes.byref(asked), ctypes.byref(counts), 0) == 0:
        pages = (position + size - 1) // _PAGE_BYTES - position // _PAGE_BYTES + 1
        return bool(counts.cached >= pages)
    return _is_probably_cached(descriptor, position, size)


def _is_probably_cached(descriptor: int, position: int, size: int) -> bool:
    byte = bytearray(1)
    try:
        for at in (*range(position, position + size, _PROBE_BYTES), position + size - 1):
            os.preadv(descriptor, (byte,), at, os.RWF_NOWAIT)
    except OSError:
        return False
    return True
