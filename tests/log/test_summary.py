"""Goal: a closed log's folder says how much the log will hold once it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival
from log_batches import DIRECTORY, SMALL, fill, headers_of, open_log
from penstock.log import FileSystem, Flusher, LogConfig, LogSummary, summarise

ONE_SEGMENT = LogConfig(index_interval_bytes=300)


def content(files: FaultyFileSystem) -> dict[str, bytes]:
    names = files.entries(DIRECTORY)
    return {name: bytes(files.content(DIRECTORY / name).live) for name in names}


def as_opened(files: FaultyFileSystem, flusher: Flusher, config: LogConfig) -> LogSummary:
    log = open_log(files, flusher, config)
    found = LogSummary(log.segment_count, log.size_bytes, log.start_offset, log.end_offset)
    log.close()
    return found


@pytest.mark.parametrize("config", [SMALL, ONE_SEGMENT], ids=["segments", "one segment"])
@pytest.mark.parametrize("batches", [0, 1, 12, 100])
@pytest.mark.parametrize("is_crash", [False, True])
async def test_it_is_what_the_open_log_says(
    disk: FaultyFileSystem, flusher: Flusher, config: LogConfig, batches: int, is_crash: bool
) -> None:
    log = open_log(disk, flusher, config)
    fill(log, batches)
    if batches:
        await log.flushed(log.end_offset - 1)
        await log.trim(log.end_offset // 3)
    left = disk.after_crash(Survival.ALL)
    log.close()
    left = left if is_crash else disk
    before = content(left)
    found = summarise(left, DIRECTORY)
    assert content(left) == before
    assert found == as_opened(left, flusher, config)
    assert found.end_offset - found.start_offset >= batches


async def test_a_torn_end_does_not_count(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 12)
    last = max(name for name in disk.entries(DIRECTORY) if name.endswith(".log"))
    whole = disk.entries(DIRECTORY)[last]
    for torn in range(1, whole, 7):
        copy = disk.after_crash(Survival.ALL)
        copy.content(DIRECTORY / last).write(whole - torn, None)
        found = summarise(copy, DIRECTORY)
        assert found == as_opened(copy, flusher, SMALL)
        assert found.end_offset <= headers_of(stored)[-1].base_offset
    log.close()


def test_a_folder_that_is_gone_is_an_error(files: FileSystem, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        summarise(files, tmp_path / "not there")
