"""Stored batches of several encodings, handed out in one.

On the event loop only what is small however it is looked at: stored uncompressed, and of few bytes,
batches and records. All other work runs in threads of its own, a few at a time, where the compiled
functions release the interpreter.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from penstock import records
from penstock.letting_go import letting_go
from penstock.limits import (
    CONVERSION_THREADS,
    CONVERTED_AT_ONCE_BATCHES,
    CONVERTED_AT_ONCE_BYTES,
    CONVERTED_AT_ONCE_RECORDS,
    CONVERTED_TOGETHER_BYTES,
    DECODED_ROWS,
    INFLATED_BATCH_BYTES,
)
from penstock.log import CorruptBatchError
from penstock.log.header import (
    ATTRIBUTE_TRANSACTIONAL,
    Magic,
    build_header,
    read_header,
    set_transaction,
    stamp,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock import memory
    from penstock.log import Log
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

_BASE_OFFSET: Final = attrgetter("base_offset")
_LOOK_BACK_BYTES: Final = 1 << 20
_COPIES: Final = 2
"""Of what is inflated: as it is read, and as it is handed out."""
_ROW_BYTES: Final = 100
"""Of the tables of records and headers, for each record."""
_threads: Final = ThreadPoolExecutor(CONVERSION_THREADS, "conversion")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


async def convert(
    log: Log, stored: memoryview, target: records.Encoding, held: memory.Reading
) -> list[Buffer]:
    """Return the batches of `stored` in the encoding of `target`, in order, offsets kept.

    For Kafka and Iggy a chunked message is one record at the offset of its last chunk. Where
    `stored` says nothing to the reader, there is one batch without records in its place, so that
    the reader moves on. The last batches are left out where all together take too much memory.
    What it takes is reserved by `held` before it begins, which may have to wait for it.

    Raises MalformedBatchError for a body that its own protocol could not read either, and
    MemoryShortError.
    """
    await records.prepare()
    pieces: list[Buffer] = [stored]
    if target != Magic.PULSAR:
        pieces = await _whole_messages(log, stored)
    if is_small(pieces):
        return _convert(pieces, target) or [gap(stored, target)]
    while pieces:
        run = await in_thread(first_run, pieces)
        await held.reserve(run.bytes_taken)
        converted = await held.until_done(_begun(partial(_convert, run.pieces, target)))
        if converted:
            return converted
        held.grow(-run.bytes_taken)
        pieces = run.rest
    return [gap(stored, target)]


async def looked_into(
    batch: Buffer,
    held: memory.Reading,
    work: Callable[_Arguments, _Result],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> _Result:
    """Do some work on what a batch inflates to, once what that takes is reserved by `held`.

    Raises what it raises, and MemoryShortError.
    """
    await held.reserve((await in_thread(first_run, [batch])).bytes_taken)
    return await held.until_done(_begun(partial(work, *arguments, **named)))


class Run(NamedTuple):
    """Batches that are converted together, in pieces, and those that are left.

    `bytes_taken` is about what it takes at most: inflated, joined, and made anew.
    """

    pieces: list[Buffer]
    bytes_taken: int
    rest: list[Buffer]


def first_run(pieces: list[Buffer]) -> Run:
    """Return as many batches as take CONVERTED_TOGETHER_BYTES at most, or the first one."""
    taken = 0
    for index, piece in enumerate(pieces):
        view = memoryview(piece)
        for position, header in walk(piece):
            inflated = records.inflated_bytes(view[position : position + header.size])
            rows = min(_row_count(header), DECODED_ROWS)
            size = _COPIES * min(inflated, INFLATED_BATCH_BYTES) + _ROW_BYTES * rows
            if taken and taken + size > CONVERTED_TOGETHER_BYTES:
                before: list[Buffer] = [view[:position]] if position else []
                return Run(
                    [*pieces[:index], *before], taken, [view[position:], *pieces[index + 1 :]]
                )
            taken += size
    return Run(pieces, taken, [])


def is_small(pieces: list[Buffer]) -> bool:
    """Whether these batches are work for a moment only, which their headers and sizes must say."""
    if sum(map(len, pieces)) > CONVERTED_AT_ONCE_BYTES:
        return False
    batches = found = 0
    for piece in pieces:
        for position, header in walk(piece):
            batches += 1
            found += _row_count(header)
            batch = memoryview(piece)[position : position + header.size]
            if found > CONVERTED_AT_ONCE_RECORDS or batches > CONVERTED_AT_ONCE_BATCHES:
                return False
            if records.is_compressed(batch):
                return False
    return True


def _row_count(header: BatchHeader) -> int:
    """Return how many messages of a batch are read, those that are compacted out among them."""
    return header.record_count if header.native_magic is not None else header.last_offset_delta + 1


async def in_thread(
    work: Callable[_Arguments, _Result],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> _Result:
    """Do some work on batches in one of the few threads for it."""
    return await _begun(partial(work, *arguments, **named))


def _begun(work: Callable[[], _Result]) -> asyncio.Future[_Result]:
    return asyncio.get_running_loop().run_in_executor(_threads, letting_go(work))


async def _work(
    pieces: list[Buffer],
    work: Callable[_Arguments, _Result],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> _Result:
    """Do some work on these batches, beside the loop unless they are small."""
    if is_small(pieces):
        return work(*arguments, **named)
    return await in_thread(work, *arguments, **named)


def _convert(pieces: list[Buffer], target: records.Encoding) -> list[Buffer]:
    converted: list[Buffer] = []
    size = 0
    for piece in pieces:
        origins = _Origins(piece)
        for part in records.convert(piece, target):
            if target == Magic.KAFKA:
                origins.keep_leader_epochs(part)
            if isinstance(target, Magic):
                origins.keep_transactions(part)
            converted.append(part)
            size += len(part)
            if size > INFLATED_BATCH_BYTES:
                return converted
    return converted


class _Origins:
    """The stored batches that converted ones were made of, to take over from them what the
    conversion does not know.
    """

    def __init__(self, stored: Buffer) -> None:
        # Once for all that is made of them: it may be as many batches again.
        self._headers = [header for _, header in walk(stored)]
        self._have_epochs = any(header.leader_epoch for header in self._headers)
        self._have_transactions = any(
            header.attributes & ATTRIBUTE_TRANSACTIONAL for header in self._headers
        )

    def keep_leader_epochs(self, converted: Buffer) -> None:
        """Give converted batches the leader epochs of those that they were made of.

        A Kafka consumer asks each new leader where the epoch of what it read last ended, and reads
        on from there (KIP-320). What was Kafka's own is handed on as it is stored, and has its
        epoch.
        """
        if not self._have_epochs:
            return
        view = memoryview(converted)
        for position, header in walk(converted):
            epoch = self._of(header).leader_epoch
            if header.leader_epoch != epoch:
                stamp(view[position:], header.base_offset, epoch)

    def keep_transactions(self, converted: Buffer) -> None:
        """Give converted batches the transactions of those that they were made of.

        Kafka's clients leave aborted ones out by that, and so does the broker for the others.
        """
        if not self._have_transactions:
            return
        view = memoryview(converted)
        for position, header in walk(converted):
            origin = self._of(header)
            is_part = origin.attributes & ATTRIBUTE_TRANSACTIONAL
            if is_part and not header.attributes & ATTRIBUTE_TRANSACTIONAL:
                batch = view[position : position + header.size]
                set_transaction(batch, origin.producer_id, origin.producer_epoch)

    def _of(self, converted: BatchHeader) -> BatchHeader:
        following = bisect_right(self._headers, converted.base_offset, key=_BASE_OFFSET)
        return self._headers[max(0, following - 1)]


def gap(stored: Buffer, target: records.Encoding) -> bytearray:
    """Return a batch without records, as compaction leaves them in Kafka, that spans `stored`."""
    from penstock.records import batch_headers, columns, field  # noqa: PLC0415  # numpy

    first = read_header(stored)
    last = batch_headers.read_batch_headers(columns.as_bytes(stored))[:, -1]
    gap = build_header(
        target,
        b"",
        record_count=0,
        base_timestamp=first.base_timestamp,
        max_timestamp=int(last[field.MAX_TIMESTAMP]),
        last_offset_delta=int(last[[field.BASE_OFFSET, field.LAST_DELTA]].sum())
        - first.base_offset,
    )
    stamp(gap, first.base_offset, first.leader_epoch)
    return gap


async def _whole_messages(log: Log, stored: memoryview) -> list[Buffer]:
    """Return `stored` in pieces, chunked messages whole."""
    pieces: list[Buffer] = []
    joining = records.join_in_steps(stored)
    wanted = await _work([stored], _collect, joining, None, pieces)
    while wanted is not None:
        run = await _sound_run(log, wanted.start, wanted.end)
        wanted = await in_thread(_collect, joining, run, pieces)
    return pieces


def _collect(
    joining: records.Joining, run: Buffer | None, pieces: list[Buffer]
) -> records.Wanted | None:
    """Add what can be joined to `pieces`; returns what has to be read first, if anything."""
    try:
        step = joining.send(run)
        while not isinstance(step, records.Wanted):
            pieces.append(step)
            step = next(joining)
    except StopIteration:
        return None
    return step


async def _sound_run(log: Log, start: int, end: int) -> Buffer | None:
    """Return the first stored batches from `start` on, below `end`, that are not damaged."""
    start = max(start, log.start_offset)
    while start < end:
        try:
            return (await log.read(start, _LOOK_BACK_BYTES)).data
        except CorruptBatchError as damage:
            start = damage.next_offset
    return None
