"""How many operations opening and reading take, since they are what time is spent on."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, failing
from log_batches import DIRECTORY, fill, headers_of, open_log, read, read_all, split
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import read_header

CONFIG = LogConfig(index_interval_bytes=300)


def count(disk: FaultyFileSystem) -> Counter[str]:
    operations: Counter[str] = Counter()

    def hook(operation: str, path: Path) -> None:
        operations[f"{operation} {path.suffix or path.name}"] += 1

    disk.hook = hook
    return operations


async def test_a_clean_start_reads_one_small_file(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher)
    fill(log, 60)
    log.close()
    operations = count(disk)
    open_log(disk, flusher).close()
    assert operations == {"pread checkpoint": 1}


async def test_a_reader_that_goes_on_needs_no_index(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 100)
    operations = count(disk)
    offset = reads = 0
    while offset < log.end_offset:
        offset = read_header(split(await read(log, offset, 500))[-1]).next_offset
        reads += 1
    assert operations == {"pread .log": reads}
    operations.clear()
    await read(log, headers_of(stored)[50].last_offset, 500)
    first = operations["pread .log"]
    await read(log, headers_of(stored)[50].base_offset, 500)
    assert operations["pread .log"] == first + 1
    log.close()


async def test_the_memory_of_read_ends_is_bounded(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 400)
    for _ in range(2):
        assert await read_all(log, max_bytes=1) == (stored, [])
    assert len(log._contents.look_ups.places) == 256
    log.close()


async def test_a_look_up_reads_an_interval_and_not_the_segment(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    config = LogConfig(index_interval_bytes=4_096)
    log = open_log(disk, flusher, config)
    headers = headers_of(fill(log, 2_000))
    log.close()
    log = open_log(disk, flusher, config)
    operations = count(disk)
    assert await log.batch_at(headers[1_500].base_offset) == headers[1_500]
    assert operations["pread .log"] <= 5
    assert operations["pread .index"] <= 16
    log.close()


async def test_an_index_that_can_not_be_rebuilt_stops_no_reader(
    disk: FaultyFileSystem, flusher: Flusher, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 100)
    log.close()
    log = open_log(disk, flusher, CONFIG)
    disk.content(DIRECTORY / f"{0:020d}.index").write(0, None)
    disk.hook = failing(1, "truncate")
    header = headers_of(stored)[90]
    assert await log.batch_at(header.base_offset) == header
    assert "can't be rebuilt" in caplog.text
    assert await read_all(log) == (stored, [])
    log.abandon()


async def test_a_failed_last_flush_is_told_and_the_files_are_let_go(
    disk: FaultyFileSystem, flusher: Flusher, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher)
    fill(log, 3)
    disk.hook = failing(1, "fdatasync")
    with caplog.at_level(logging.ERROR):
        log.close()
    assert "closed without its last flush" in caplog.text
    assert disk.open_files == 0
    # What the flush was for is looked for on the disk: the cache may hold what never got there.
    assert await read_all(open_log(disk, flusher)) == ([], [])


async def test_folders_are_made_up_to_the_root(tmp_path: Path, flusher: Flusher) -> None:
    log = LocalLog.open(tmp_path / "a" / "b" / "c", CONFIG, RealFileSystem(), flusher)
    stored = fill(log, 3)
    log.close()
    path = tmp_path / "a" / "b" / "c" / f"{0:020d}.log"
    with path.open("ab") as file:
        file.write(b"torn")
    log = LocalLog.open(path.parent, CONFIG, RealFileSystem(), flusher)
    assert log.recovery.truncated_bytes == 4
    assert path.stat().st_size == log.size_bytes
    assert await read_all(log) == (stored, [])
    log.close()


def test_importing_the_log_is_light() -> None:
    code = "import sys, penstock.log; print('numpy' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["False", "False"]
