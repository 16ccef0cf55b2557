"""Going through a log's batches in order, a stretch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from penstock.log.errors import CorruptBatchError
from penstock.log.header import BatchHeader, walk

if TYPE_CHECKING:
    from penstock.log.interface import Log

_READ_BYTES: Final = 1 << 20


async def stored_batches(
    log: Log, start: int, end: int
) -> AsyncGenerator[tuple[BatchHeader, memoryview], None]:
    """Yield batches and their headers, as `Log.batches` says."""
    assert end <= log.written_offset, "what is not written can't be read"
    while start < end:
        try:
            batches = await log.read(start, _READ_BYTES, log.written_offset)
        except CorruptBatchError as damage:
            start = damage.next_offset
            continue
        assert batches.next_offset > start, "a read below the end returns something"
        for position, header in walk(batches.data):
            if header.base_offset >= end:
                return
            yield header, batches.data[position : position + header.size]
        start = batches.next_offset
        await asyncio.sleep(0)  # Others have work too.
