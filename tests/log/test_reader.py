"""Reading a log's files without its owner, and while the owner writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival
from log_batches import DIRECTORY, SMALL, fill, headers_of, open_log, split
from penstock.log import (
    CorruptBatchError,
    FileSystem,
    Flusher,
    LocalLog,
    OffsetOutOfRangeError,
    read_range,
)


def ranges(
    files: FileSystem, directory: Path, start: int, end: int, size: int = 600
) -> list[bytes]:
    views = list(read_range(directory, start, end, chunk_bytes=size, config=SMALL, files=files))
    assert all(len(view) <= size for view in views)
    return [batch for view in views for batch in split(view)]


async def test_every_range_gives_the_batches_that_hold_it(
    open_anywhere: Callable[[], LocalLog], files: FileSystem
) -> None:
    log = open_anywhere()
    stored = fill(log, 40)
    headers = headers_of(stored)
    for start in range(0, log.end_offset, 3):
        for end in range(start, log.end_offset, 7):
            assert ranges(files, log.directory, start, end) == [
                batch
                for batch, header in zip(stored, headers, strict=True)
                if start < end and header.next_offset > start and header.base_offset < end
            ]
    log.close()


async def test_nothing_is_modified_and_no_file_stays_open(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    fill(log, 40)
    copy = disk.after_crash(Survival.ALL)
    operations: set[str] = set()
    copy.hook = lambda operation, path: operations.add(operation)
    ranges(copy, DIRECTORY, 0, log.end_offset)
    assert operations == {"pread"}
    assert copy.open_files == 0
    log.close()


@pytest.mark.parametrize("torn", [1, 60, 61, 100])
async def test_a_torn_batch_beyond_the_end_is_not_looked_at(
    disk: FaultyFileSystem, flusher: Flusher, torn: int
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 10)
    end = headers_of(stored)[8].next_offset
    copy = disk.after_crash(Survival.ALL)
    last = max(name for name in copy.entries(DIRECTORY) if name.endswith(".log"))
    content = copy.content(DIRECTORY / last)
    content.write(len(content.live) - min(torn, len(stored[9]) - 1), None)
    assert ranges(copy, DIRECTORY, 0, end) == stored[:9]
    log.close()


async def test_what_lacks_at_the_end_is_an_error_up_to_the_end_asked_for(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    fill(log, 10)
    end = log.end_offset
    with pytest.raises(CorruptBatchError) as raised:
        ranges(disk, DIRECTORY, 0, end + 5)
    assert (raised.value.base_offset, raised.value.next_offset) == (end, end + 5)
    log.close()


async def test_what_precedes_the_first_segment_is_out_of_range(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    fill(log, 30)
    disk.unlink(DIRECTORY / f"{0:020d}.log")
    with pytest.raises(OffsetOutOfRangeError):
        ranges(disk, DIRECTORY, 0, 10)
    log.close()


async def test_an_empty_log_has_empty_ranges_only(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher)
    assert ranges(disk, DIRECTORY, 0, 0) == []
    with pytest.raises(OffsetOutOfRangeError):
        ranges(disk, DIRECTORY, 0, 1)
    log.close()


async def test_damage_is_met_after_what_precedes_it(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 30)
    disk.content(DIRECTORY / f"{0:020d}.log").live[sum(map(len, stored[:3])) + 70] ^= 1
    views = read_range(DIRECTORY, 0, log.end_offset, config=SMALL, files=disk)
    assert split(next(views)) == stored[:3]
    with pytest.raises(CorruptBatchError) as raised:
        next(views)
    assert ranges(disk, DIRECTORY, raised.value.next_offset, log.end_offset) == stored[4:]
    log.close()


async def test_without_indexes_the_segments_are_scanned(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 30)
    headers = headers_of(stored)
    log.close()
    for name in disk.entries(DIRECTORY):
        if "index" in name:
            disk.unlink(DIRECTORY / name)
    for number in range(30):
        start, end = headers[number].last_offset, headers[number].next_offset
        assert ranges(disk, DIRECTORY, start, end) == [stored[number]]


async def test_batches_of_all_leader_epochs_are_read(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    stored: list[bytes] = []
    for epoch in (0, 3, 1_000):
        log = open_log(disk, flusher, SMALL, epoch)
        stored += fill(log, 10, first=len(stored))
        log.close()
    assert ranges(disk, DIRECTORY, 0, log.end_offset) == stored
