"""How long tests wait, and what they may expect of a timer.

On a machine that others use too anything may take seconds. So a test waits for what is to happen;
its deadline is there for what never does, and far away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_SECONDS = 60
"""How long a test waits for what has to come."""

_EARLY_SECONDS = 0.01
"""How much too early a timer may fire: uvloop counts whole milliseconds from when a pass began."""


def lasted(began: float, seconds: float) -> bool:
    """Whether a timer of so many seconds may have fired that was set at `began` or later.

    `began` is a time of `time.monotonic`.
    """
    return time.monotonic() - began >= seconds - _EARLY_SECONDS


async def until(is_so: Callable[[], object]) -> None:
    """Return when it is so. Raises TimeoutError when it never is."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():
            await asyncio.sleep(0.002)


def wait_until(is_so: Callable[[], object]) -> None:
    """Do as `until` does, in a test that has no loop."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be so"
        time.sleep(0.005)
