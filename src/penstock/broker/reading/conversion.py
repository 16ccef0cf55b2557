"""Stored batches of several encodings, handed out in one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock import records
from penstock.limits import CONVERTED_AT_ONCE_BYTES, INFLATED_BATCH_BYTES
from penstock.log import CorruptBatchError
from penstock.log.header import Magic, build_header, stamp, walk

if TYPE_CHECKING:
    from penstock.log import Log
    from penstock.session import Buffer

_LOOK_BACK_BYTES: Final = 1 << 20


async def convert(log: Log, stored: memoryview, target: Magic) -> list[Buffer]:
    """Return the batches of `stored` in the encoding of `target`, in order, offsets kept.

    For Kafka and Iggy a chunked message is one record at the offset of its last chunk. Where
    `stored` says nothing to the reader, there is one batch without records in its place, so that
    the reader moves on. The last batches are left out where all together take too much memory.

    Raises MalformedBatchError for a body that its own protocol could not read either.
    """
    await records.prepare()
    pieces: list[Buffer] = [stored]
    if target != Magic.PULSAR:
        pieces = await _whole_messages(log, stored)
    if sum(map(len, pieces)) > CONVERTED_AT_ONCE_BYTES:
        converted = await asyncio.to_thread(_convert, pieces, target)
    else:
        converted = _convert(pieces, target)
    return converted or [_gap(stored, target)]


def _convert(pieces: list[Buffer], target: Magic) -> list[Buffer]:
    converted: list[Buffer] = []
    size = 0
    for piece in pieces:
        for part in records.convert(piece, target):
            converted.append(part)
            size += len(part)
            if size > INFLATED_BATCH_BYTES:
                return converted
    return converted


def _gap(stored: memoryview, target: Magic) -> bytearray:
    """Return a batch without records, as compaction leaves them in Kafka, that spans `stored`."""
    headers = [header for _, header in walk(stored)]
    first, last = headers[0], headers[-1]
    gap = build_header(
        target,
        b"",
        record_count=0,
        base_timestamp=first.base_timestamp,
        max_timestamp=last.max_timestamp,
        last_offset_delta=last.last_offset - first.base_offset,
    )
    stamp(gap, first.base_offset, first.leader_epoch)
    return gap


async def _whole_messages(log: Log, stored: memoryview) -> list[Buffer]:
    """Return `stored` in pieces, chunked messages whole."""
    pieces: list[Buffer] = []
    joining = records.join_in_steps(stored)
    run: Buffer | None = None
    while True:
        try:
            step = joining.send(run)
        except StopIteration:
            return pieces
        run = None
        if isinstance(step, records.Wanted):
            run = await _sound_run(log, step.start, step.end)
        else:
            pieces.append(step)


async def _sound_run(log: Log, start: int, end: int) -> Buffer | None:
    """Return the first stored batches from `start` on, below `end`, that are not damaged."""
    start = max(start, log.start_offset)
    while start < end:
        try:
            return (await log.read(start, _LOOK_BACK_BYTES)).data
        except CorruptBatchError as damage:
            start = damage.next_offset
    return None
