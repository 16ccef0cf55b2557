"""What the log costs over the system calls that it can't do without.

Each ratio is of two runs that take turns in one process, so that a busy machine slows both.
Usage: python benchmarks/log_append.py [DIRECTORY], on the disk to be measured.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import HEADER_SIZE, Magic, build_header, read_header

ROUNDS = 7


class Bench:
    def __init__(self, folder: Path, batch_bytes: int, batches: int) -> None:
        self.folder = folder / str(batch_bytes)
        self.folder.mkdir()
        self.batch_bytes = batch_bytes
        self.batches = batches
        self.flusher = Flusher()
        self.body = os.urandom(batch_bytes - HEADER_SIZE)
        self.header = build_header(
            Magic.KAFKA, self.body, record_count=10, base_timestamp=1, max_timestamp=1
        )
        self.numbers = iter(range(1_000))

    def append_to(self, log: LocalLog) -> int:
        return log.append([self.header, self.body], read_header(self.header))

    def new_log(self) -> LocalLog:
        directory = self.folder / str(next(self.numbers))
        return LocalLog.open(directory, LogConfig(), RealFileSystem(), self.flusher)

    def remove(self, log: LocalLog) -> None:
        log.abandon()
        shutil.rmtree(log.directory)

    async def append(self) -> None:
        log = self.new_log()
        for _ in range(self.batches):
            offset = self.append_to(log)
        await log.written(offset)
        self.remove(log)

    async def raw_append(self) -> None:
        with (self.folder / "raw").open("wb", buffering=0) as file:
            for number in range(self.batches):
                os.pwritev(file.fileno(), [self.header, self.body], number * self.batch_bytes)

    async def flush_grouped(self) -> None:
        """64 appenders that each wait for their batch to be safe before the next."""
        log = self.new_log()

        async def appender() -> None:
            for _ in range(self.batches // 64):
                await log.flushed(self.append_to(log))

        await asyncio.gather(*(appender() for _ in range(64)))
        self.remove(log)

    async def raw_flush(self) -> None:
        """The same groups of 64 without a log: write them, flush once."""
        with (self.folder / "raw").open("wb", buffering=0) as file:
            for number in range(self.batches // 64 * 64):
                os.pwritev(file.fileno(), [self.header, self.body], number * self.batch_bytes)
                if number % 64 == 63:
                    os.fdatasync(file.fileno())

    def reader(self, log: LocalLog) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            offset = 0
            while offset < log.end_offset:
                offset = (await log.read(offset, 1 << 20)).next_offset

        return read

    async def raw_read(self) -> None:
        descriptor = os.open(self.folder / "raw", os.O_RDONLY)
        step = (1 << 20) // self.batch_bytes * self.batch_bytes
        for position in range(0, self.batches * self.batch_bytes, step):
            os.pread(descriptor, step, position)
        os.close(descriptor)


async def seconds(job: Callable[[], Awaitable[None]]) -> float:
    start = time.perf_counter()
    await job()
    return time.perf_counter() - start


async def compare(
    name: str,
    bench: Bench,
    ours: Callable[[], Awaitable[None]],
    raw: Callable[[], Awaitable[None]],
) -> None:
    pairs = [(await seconds(ours), await seconds(raw)) for _ in range(ROUNDS)]
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    mine = statistics.median(mine for mine, _ in pairs)
    rate = bench.batches * bench.batch_bytes / mine / 1e6
    each = mine / bench.batches * 1e6
    print(
        f"{name:<24} {bench.batch_bytes:>8} B  {each:>8.1f} µs a batch  {rate:>8.0f} MB/s  "
        f"{ratio:>5.2f} times raw"
    )


async def main(folder: Path) -> None:
    for batch_bytes, batches in ((200, 20_480), (16_384, 2_048), (1 << 20, 64)):
        bench = Bench(folder, batch_bytes, batches)
        await compare("append", bench, bench.append, bench.raw_append)
        await compare("append, flush grouped", bench, bench.flush_grouped, bench.raw_flush)
        log = bench.new_log()
        for _ in range(batches):
            bench.append_to(log)
        await bench.raw_append()
        await compare("read", bench, bench.reader(log), bench.raw_read)
        log.abandon()
        bench.flusher.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        asyncio.run(main(Path(name)))
