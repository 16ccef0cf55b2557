"""A producer's batch made ready for the log, and stored batches cut to what a poll asks for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.iggy.wire.batch import BATCH_HEADER_SIZE, Frame, frames, read_batch_header
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.log.header import Magic, build_header

if TYPE_CHECKING:
    from penstock.broker.partition import Partition
    from penstock.session import Buffer, Buffers


class Checked(NamedTuple):
    """A batch whose checksums hold. Times are microseconds since 1970."""

    batch: memoryview
    frame_checksums: bytes
    latest: int


def check(batch: memoryview, count: int) -> Checked:
    """Verify a producer's batch of `count` messages; raises IggyError."""
    header = read_batch_header(batch)
    if not count == header.message_count > 0:
        raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT, f"{header.message_count}, not {count}")
    checksums = bytearray()
    latest = 0
    for index, frame in enumerate(frames(batch)):
        if frame.offset_delta != index:
            raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT, f"message {index} is out of order")
        if _xxh3(batch[frame.start + 8 : frame.end]) != int.from_bytes(frame.checksum, "little"):
            raise IggyError(ErrorCode.INVALID_MESSAGE_CHECKSUM, f"message {index}")
        checksums += frame.checksum
        latest = max(latest, frame.timestamp_delta)
    if len(checksums) != 8 * count:
        raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT, f"{len(checksums) // 8}, not {count}")
    if _xxh3(header.checksummed() + checksums) != header.batch_checksum:
        raise IggyError(ErrorCode.INVALID_BATCH_CHECKSUM)
    return Checked(batch, bytes(checksums), header.origin_timestamp + latest)


def append(partition: Partition, checked: Checked) -> int:
    """Stamp a checked batch and write it to the log; return its base offset.

    Raises what Partition.append raises.
    """
    batch = checked.batch
    now_us = time.time_ns() // 1000
    header = read_batch_header(batch)._replace(
        partition_id=partition.index,
        # Nothing is awaited between here and the append, so this is the offset it gets.
        base_offset=partition.log.end_offset,
        base_timestamp=now_us,
    )
    checksum = _xxh3(header.checksummed() + checked.frame_checksums)
    batch[:BATCH_HEADER_SIZE] = header._replace(batch_checksum=checksum).encode()
    log_header = build_header(
        Magic.IGGY,
        batch,
        record_count=header.message_count,
        base_timestamp=header.origin_timestamp // 1000,
        # A poll from a time means the server's time, so the time index must not lie before it.
        max_timestamp=max(checked.latest, now_us) // 1000,
    )
    base_offset = partition.append([log_header, batch])
    assert base_offset == header.base_offset
    return base_offset


class Cut(NamedTuple):
    """Part of a batch, ready for a poll's reply."""

    parts: Buffers
    messages: int
    last_offset: int


def cut(batch: memoryview, first_offset: int, count: int) -> Cut:
    """Return up to `count` messages of a stored batch from `first_offset` on.

    A batch that is wanted whole is handed out as it is; another one's frames go behind a new
    header. The last offset is -1 where no message is left.
    """
    header = read_batch_header(batch)
    if first_offset <= header.base_offset and count >= header.message_count:
        last = header.base_offset + _last_delta(batch)
        return Cut([batch], header.message_count, last)
    wanted: list[Frame] = []
    for frame in frames(batch):
        if len(wanted) == count:
            break
        if header.base_offset + frame.offset_delta >= first_offset:
            wanted.append(frame)
    if not wanted:
        return Cut([], 0, -1)
    run = batch[wanted[0].start : wanted[-1].end]
    header = header._replace(batch_length=BATCH_HEADER_SIZE + len(run), message_count=len(wanted))
    checksums = b"".join(frame.checksum for frame in wanted)
    header = header._replace(batch_checksum=_xxh3(header.checksummed() + checksums))
    return Cut([header.encode(), run], len(wanted), header.base_offset + wanted[-1].offset_delta)


def _last_delta(batch: memoryview) -> int:
    last = 0
    for frame in frames(batch):
        last = frame.offset_delta
    return last


def _xxh3(data: Buffer) -> int:
    from penstock.records.xxh3 import xxh3_64  # noqa: PLC0415  # numba loads when it is needed

    return int(xxh3_64(np.frombuffer(data, np.uint8), 0, len(data)))
