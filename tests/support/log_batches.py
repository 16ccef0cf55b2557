"""Batches to write to a log, and logs to write them to."""

from __future__ import annotations

import random
from pathlib import Path

from penstock.log import CorruptBatchError, FileSystem, Flusher, LocalLog, Log, LogConfig
from penstock.log.header import BatchHeader, Magic, build_header, read_header, walk

SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=300, checkpoint_bytes=4_000)
"""Limits so low that a few batches reach all of them."""

DIRECTORY = Path("/data/0")


def make_batch(
    count: int = 3,
    size: int = 50,
    timestamp: int = 1_000,
    magic: Magic = Magic.KAFKA,
    seed: int = 0,
) -> list[bytearray | bytes]:
    """Return header and body of a batch of `count` records, with a body of `size` random bytes."""
    body = random.Random(seed).randbytes(size)
    header = build_header(
        magic, body, record_count=count, base_timestamp=timestamp, max_timestamp=timestamp
    )
    return [header, body]


def append(log: Log, parts: list[bytearray | bytes]) -> int:
    return log.append(parts, read_header(parts[0]))


async def read(log: Log, offset: int, max_bytes: int) -> memoryview:
    return (await log.read(offset, max_bytes)).data


def write_now(log: Log) -> None:
    """Have what was appended written in this turn of the loop, where a thread would do it later."""
    if isinstance(log, LocalLog):
        log._appender.hand_over()
        log._appender.writer.write()
        log._commit._take_over()


def fill(log: Log, batches: int, *, first: int = 0, leave_in_line: bool = False) -> list[bytes]:
    """Append batches that differ in size, count and magic; return them as they are stored.

    They are written on return, unless they are to be left in line.
    """
    stored = []
    for number in range(first, first + batches):
        magic = tuple(Magic)[number % 3]
        parts = make_batch(1 + number % 4, number * 7 % 200, 1_000 + number, magic, number)
        append(log, parts)
        stored.append(b"".join(parts))
    if not leave_in_line:
        write_now(log)
    return stored


def open_log(
    files: FileSystem, flusher: Flusher, config: LogConfig = SMALL, leader_epoch: int = 0
) -> LocalLog:
    return LocalLog.open(DIRECTORY, config, files, flusher, leader_epoch)


async def read_all(log: Log, max_bytes: int = 700) -> tuple[list[bytes], list[CorruptBatchError]]:
    """Read from start to end as a consumer does, over damage; return batches and damage met."""
    batches: list[bytes] = []
    damage: list[CorruptBatchError] = []
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            data = await read(log, offset, max_bytes)
        except CorruptBatchError as error:
            damage.append(error)
            offset = next_after(error, offset)
            continue
        batches += split(data)
        assert batches, "a read below the end returns something"
        offset = read_header(batches[-1]).next_offset
    return batches, damage


def next_after(damage: CorruptBatchError, offset: int) -> int:
    """Return where to go on after damage, which is where it was met."""
    assert damage.base_offset <= offset < damage.next_offset
    return damage.next_offset


def split(data: bytes | bytearray | memoryview) -> list[bytes]:
    """Return the batches that `data` consists of."""
    batches = [bytes(data[at : at + header.size]) for at, header in walk(data)]
    assert b"".join(batches) == bytes(data), "only whole batches are handed out"
    return batches


def headers_of(batches: list[bytes]) -> list[BatchHeader]:
    return [read_header(batch) for batch in batches]
