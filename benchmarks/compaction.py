"""How fast a log is compacted, by the CPU of a thread.

Usage: python benchmarks/compaction.py [DIRECTORY], on the disk to be measured.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from penstock.allocator import keep_freed_memory
from penstock.broker.compaction.cleaner import Cleaner, Job, Throttle
from penstock.broker.compaction.process import RemoteCleaner
from penstock.broker.transactions.aborted_range import AbortedRange
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.limits import COMPACTION_PROCESS_BYTES
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import Magic, read_header
from penstock.log.rewriting import SegmentRewriting
from penstock.records import Encoding, convert

LOG_BYTES = 256 << 20
SMALL_LOG_BYTES = 32 << 20
KEYS = 20_000
UNLIMITED = 1 << 40


class Bench:
    def __init__(self, folder: Path) -> None:
        keep_freed_memory(int(COMPACTION_PROCESS_BYTES))  # As the process that compacts does.
        self.folder = folder
        self.flusher = Flusher()
        self.config = LogConfig(segment_bytes=16 << 20)

    def open(self, name: str) -> LocalLog:
        return LocalLog.open(self.folder / name, self.config, RealFileSystem(), self.flusher)

    async def filled(
        self, value_bytes: int, batch_records: int, log_bytes: int = LOG_BYTES
    ) -> LocalLog:
        """Return a log of Kafka batches, whose keys come again."""
        chance = random.Random(value_bytes)
        batches = [
            encoded(value_bytes, [b"key %d" % chance.randrange(KEYS) for _ in range(batch_records)])
            for _ in range(64)
        ]
        count = log_bytes // (value_bytes * batch_records)
        return await self.log_of(
            f"log-{value_bytes}", (chance.choice(batches) for _ in range(count))
        )

    async def every_other(
        self, encoding: Encoding, value_bytes: int, batch_records: int
    ) -> LocalLog:
        """Return a log of small messages, of which every other one is overwritten."""
        numbers = itertools.count()
        keys = (b"%d" % number if number % 2 else b"again" for number in numbers)
        batches = (
            b"".join(convert(encoded(value_bytes, islice(keys, batch_records)), encoding))
            for _ in range(SMALL_LOG_BYTES // ((value_bytes + 20) * batch_records + 100))
        )
        return await self.log_of(f"log-{encoding}-{batch_records}", batches)

    async def log_of(self, name: str, batches: Iterable[bytes]) -> LocalLog:
        log = self.open(name)
        for number, each in enumerate(batches):
            batch = bytearray(each)
            offset = log.append([batch], read_header(batch))
            if number % 64 == 0:
                await log.written(offset)
        await log.finish()
        return log

    def job(self, log: LocalLog) -> Job:
        """Return what there is to do, whenever it is wanted: what was written of it is removed."""
        sources = log._segments[:-1]
        found = [
            SegmentRewriting(log.directory, RealFileSystem(), self.config, [each], 0)
            for each in sources
        ]
        return Job(found, 0, 1, 0, False, (), AbortedRange((), found[-1].end))

    async def speed(self, name: str, log: LocalLog) -> float:
        """Return MB a second of the thread's CPU, each byte counted once."""

        def cleaned() -> float:
            began = time.thread_time()
            job = self.job(log)
            clean(job, Cleaner(job, Throttle(UNLIMITED)))
            return time.thread_time() - began

        seconds = [await asyncio.to_thread(cleaned) for _ in range(3)]
        size = sum(each.source_bytes for each in self.job(log).rewritings)
        rate = size / min(seconds) / 1e6
        print(f"{name:52}{rate:8.0f} MB/s of a core")
        return rate


def encoded(value_bytes: int, keys: Iterable[bytes]) -> bytes:
    return encode_batch([Record(os.urandom(value_bytes), key, (), 1) for key in keys])


def clean(job: Job, cleaner: Cleaner | RemoteCleaner) -> None:
    try:
        cleaner.map_keys()
        for rewriting in job.rewritings:
            cleaner.clean(rewriting)
    finally:
        for rewriting in job.rewritings:
            rewriting.discard()


async def main(folder: Path) -> None:
    bench = Bench(folder)
    large = await bench.filled(1_000, 64)
    await bench.speed("values of 1,000 bytes", large)
    small = await bench.filled(100, 400)
    await bench.speed("values of 100 bytes", small)
    for encoding in Magic:
        for value_bytes, batch_records in ((100, 1_000), (100, 1), (10, 10)):
            log = await bench.every_other(encoding, value_bytes, batch_records)
            kind = f"{batch_records} of {value_bytes} bytes, every other one goes"
            await bench.speed(f"{encoding.name.title()}, {kind}", log)
            log.abandon()
            shutil.rmtree(log.directory)
    for log in (large, small):
        log.abandon()
    bench.flusher.close()


if __name__ == "__main__":
    made = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    try:
        asyncio.run(main(made))
    finally:
        shutil.rmtree(made)
