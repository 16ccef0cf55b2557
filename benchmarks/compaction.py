"""How fast a log is compacted, by the CPU of its thread, and what that costs a producer beside it:
at the broker's own pace, and without any limit.

Runs with and without compaction take turns, so that a busy machine slows all of them.
Usage: python benchmarks/compaction.py [DIRECTORY], on the disk to be measured.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from penstock.broker.compaction.cleaner import Cleaner, Job, StoppedError, Throttle
from penstock.broker.settings import BrokerSettings
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import read_header
from penstock.log.rewriting import SegmentRewriting

LOG_BYTES = 256 << 20
KEYS = 20_000
ROUNDS = 9
ROUND_SECONDS = 5
PAUSE_SECONDS = 0.002
UNLIMITED = 1 << 40


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.flusher = Flusher()
        self.config = LogConfig(segment_bytes=32 << 20)

    def open(self, name: str) -> LocalLog:
        return LocalLog.open(self.folder / name, self.config, RealFileSystem(), self.flusher)

    async def filled(self, value_bytes: int, batch_records: int) -> LocalLog:
        """Return a log of Kafka batches, whose keys come again."""
        log = self.open(f"log-{value_bytes}")
        chance = random.Random(value_bytes)
        batches = [
            encode_batch(
                [
                    Record(os.urandom(value_bytes), b"key %d" % chance.randrange(KEYS), (), 1)
                    for _ in range(batch_records)
                ]
            )
            for _ in range(64)
        ]
        while log.end_offset * value_bytes < LOG_BYTES:
            batch = bytearray(chance.choice(batches))
            offset = log.append([batch], read_header(batch))
            if log.end_offset % 64 == 0:
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
        return Job(found, 0, 1, 0, False, (), ())

    async def speed(self, name: str, log: LocalLog) -> float:
        """Return MB a second of the thread's CPU, each byte counted once."""

        def cleaned() -> float:
            began = time.thread_time()
            clean(self.job(log), Throttle(UNLIMITED))
            return time.thread_time() - began

        seconds = [await asyncio.to_thread(cleaned) for _ in range(3)]
        size = sum(each.source_bytes for each in self.job(log).rewritings)
        rate = size / min(seconds) / 1e6
        print(f"{name:34}{rate:8.0f} MB/s of a core")
        return rate

    async def latencies(self, log: LocalLog) -> list[float]:
        """Send one record after another, and return how long each took to be safe."""
        batch = bytearray(encode_batch([Record(os.urandom(1_000), b"key", (), 1)]))
        found = []
        ends = time.perf_counter() + ROUND_SECONDS
        while (began := time.perf_counter()) < ends:
            await log.flushed(log.append([bytearray(batch)], read_header(batch)))
            found.append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE_SECONDS)
        return found

    async def beside(self, log: LocalLog) -> None:
        producer = self.open("producer")
        paces = {"alone": 0, "at 50 MiB/s": BrokerSettings().compaction_bytes_per_second}
        paces["unlimited"] = UNLIMITED
        p99: dict[str, list[float]] = {name: [] for name in paces}
        for number in range(ROUNDS):
            for name in list(paces)[:: 1 if number % 2 else -1]:
                throttle = Throttle(paces[name] or UNLIMITED)
                thread = threading.Thread(target=self.clean_on, args=(log, throttle))
                if paces[name]:
                    thread.start()
                found = await self.latencies(producer)
                throttle.stop()
                if paces[name]:
                    await asyncio.to_thread(thread.join)
                p99[name].append(statistics.quantiles(found, n=100)[98] * 1000)
        for name, found in p99.items():
            ratios = [each / alone for each, alone in zip(found, p99["alone"], strict=True)]
            print(
                f"a producer's p99, compaction {name:12}{statistics.median(found):8.2f} ms"
                f"{statistics.median(ratios):8.2f} x ({min(ratios):.2f} to {max(ratios):.2f})"
            )
        producer.abandon()

    def clean_on(self, log: LocalLog, throttle: Throttle) -> None:
        """Compact one log again and again until it is stopped."""
        with suppress(StoppedError):
            while True:
                clean(self.job(log), throttle)


def clean(job: Job, throttle: Throttle) -> None:
    cleaner = Cleaner(job, throttle)
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
    await bench.beside(large)
    for log in (large, small):
        log.abandon()
    bench.flusher.close()


if __name__ == "__main__":
    made = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    try:
        asyncio.run(main(made))
    finally:
        shutil.rmtree(made)
