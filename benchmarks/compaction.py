"""How fast a log is compacted, by the CPU of a thread, and what that costs a producer beside it: in
a thread, and in a process as the broker does it; at the broker's own pace, and without any limit.

Runs with and without compaction take turns, so that a busy machine slows all of them.
Usage: python benchmarks/compaction.py [DIRECTORY], on the disk to be measured.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path

from penstock.broker.compaction.cleaner import Cleaner, Job, StoppedError, Throttle
from penstock.broker.compaction.process import CleaningProcess, RemoteCleaner
from penstock.broker.settings import BrokerSettings
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import Magic, read_header
from penstock.log.rewriting import SegmentRewriting
from penstock.records import Encoding, convert

LOG_BYTES = 256 << 20
SMALL_LOG_BYTES = 32 << 20
KEYS = 20_000
ROUNDS = 9
ROUND_SECONDS = 5
PAUSE_SECONDS = 0.002
UNLIMITED = 1 << 40


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.flusher = Flusher()
        self.config = LogConfig(segment_bytes=16 << 20)

    def open(self, name: str) -> LocalLog:
        return LocalLog.open(self.folder / name, self.config, RealFileSystem(), self.flusher)

    async def filled(self, value_bytes: int, batch_records: int) -> LocalLog:
        """Return a log of Kafka batches, whose keys come again."""
        chance = random.Random(value_bytes)
        batches = [
            encoded(value_bytes, [b"key %d" % chance.randrange(KEYS) for _ in range(batch_records)])
            for _ in range(64)
        ]
        count = LOG_BYTES // (value_bytes * batch_records)
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
        return Job(found, 0, 1, 0, False, (), ())

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
        """Print a producer's p99 alone, and beside compaction of each kind."""
        producer = self.open("producer")
        pace = BrokerSettings().compaction_bytes_per_second
        kinds = {
            "in a thread, 50 MiB/s": InThread(self, log, pace),
            "in a process, 50 MiB/s": InProcess(self, log, pace),
            "in a process, unlimited": InProcess(self, log, UNLIMITED),
        }
        p99: dict[str, list[float]] = {"alone": [], **{name: [] for name in kinds}}
        for number in range(ROUNDS):
            for name in list(p99)[:: 1 if number % 2 else -1]:
                with kinds[name].going_on() if name in kinds else nullcontext():
                    found = await self.latencies(producer)
                p99[name].append(statistics.quantiles(found, n=100)[98] * 1000)
        for name, found in p99.items():
            ratios = [each / alone for each, alone in zip(found, p99["alone"], strict=True)]
            print(
                f"a producer's p99, compaction {name:24}{statistics.median(found):8.2f} ms"
                f"{statistics.median(ratios):8.2f} x ({min(ratios):.2f} to {max(ratios):.2f})"
            )
        producer.abandon()


class InThread:
    """Compacts one log again and again."""

    def __init__(self, bench: Bench, log: LocalLog, bytes_per_second: int) -> None:
        self._bench = bench
        self._log = log
        self.bytes_per_second = bytes_per_second

    @contextmanager
    def going_on(self) -> Iterator[None]:
        throttle = Throttle(self.bytes_per_second)
        process = CleaningProcess()
        thread = threading.Thread(target=self._clean_on, args=(throttle, process))
        thread.start()
        try:
            yield
        finally:
            throttle.stop()
            process.kill()
            thread.join()
            process.end()

    def _clean_on(self, throttle: Throttle, process: CleaningProcess) -> None:
        with suppress(StoppedError):
            while True:
                job = self._bench.job(self._log)
                clean(job, self.cleaner(job, throttle, process))

    def cleaner(
        self, job: Job, throttle: Throttle, process: CleaningProcess
    ) -> Cleaner | RemoteCleaner:
        """Return what does one pass."""
        del process
        return Cleaner(job, throttle)


class InProcess(InThread):
    """Has another process do it."""

    def cleaner(
        self, job: Job, throttle: Throttle, process: CleaningProcess
    ) -> Cleaner | RemoteCleaner:
        """Return what does one pass."""
        plans = [plan for each in job.rewritings if (plan := each.plan()) is not None]
        return RemoteCleaner(process, job, plans, throttle.bytes_per_second)


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
