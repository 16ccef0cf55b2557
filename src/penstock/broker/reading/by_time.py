"""Finding a batch by the time of its messages."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.log import Log


async def find_time(log: Log, timestamp_ms: int, start: int | None, end: int) -> int | None:
    """Return the base offset of the first batch, from the one at `start` on and below `end`, that
    has a message of this time or later as far as its header says; None where there is none.

    Raises LogReadError.
    """
    if start is None:
        found = await log.find_time(timestamp_ms)
        return None if found is None or found >= end else found
    async with aclosing(log.headers(start, end)) as headers:
        async for header in headers:
            if header.max_timestamp >= timestamp_ms:
                return header.base_offset
    return None
