"""The time of day, as messages and rows carry it."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def now_us() -> int:
    """Return the microseconds since 1970."""
    return time.time_ns() // 1_000
