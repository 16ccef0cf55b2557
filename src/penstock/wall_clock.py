"""The time of day, as messages and rows carry it."""

from __future__ import annotations

import time
from typing import Final

_BEGAN_MS: Final = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000


def now_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def now_us() -> int:
    """Return the microseconds since 1970."""
    return time.time_ns() // 1_000


def steady_ms() -> int:
    """Return the milliseconds since 1970 by the clock as the process found it.

    Whoever sets the clock meanwhile makes nothing longer or shorter that is counted by this one,
    also from a time that was stored.
    """
    return _BEGAN_MS + time.monotonic_ns() // 1_000_000
