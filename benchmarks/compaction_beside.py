"""What compaction costs a producer beside it: how long its messages take to be safe, while another
log is compacted and while none is.

Windows with and without compaction take turns, so that a busy machine slows both; the times of all
windows of a kind are put together. The ratio of their percentiles is given with the interval in
which it lies with 95 %, as drawing from the pairs of windows again has it.
Usage: python benchmarks/compaction_beside.py [DIRECTORY], on the disk to be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from compaction import Bench, clean
from penstock.broker.compaction.cleaner import StoppedError
from penstock.broker.compaction.process import CleaningProcess, RemoteCleaner
from penstock.broker.settings import BrokerSettings
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.log import LocalLog
from penstock.log.header import read_header

VALUE_BYTES: Final = 1_000
BATCH_RECORDS: Final = 64
LOG_BYTES: Final = 64 << 20
"""So few that it is read, and written anew, within a window."""
PAUSE_SECONDS: Final = 0.002
PERCENTILES: Final = (50, 99)
DRAWN: Final = 1000

Windows = Sequence[Sequence[float]]
"""Of each window the times that messages took, in milliseconds."""


class Compaction:
    """Compacts one log again and again in a process, as the broker does, when it is let."""

    def __init__(self, bench: Bench, log: LocalLog) -> None:
        self._bench = bench
        self._log = log
        self._process = CleaningProcess()
        self._stopped = False
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._clean_on)

    def start(self) -> None:
        """Return when it is at work, and stopped."""
        self._thread.start()
        self._begun.wait()
        self._signal(signal.SIGSTOP)

    def close(self) -> None:
        self._stopped = True
        self._process.kill()
        self._thread.join()
        self._process.end()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def _signal(self, number: int) -> None:
        process = self._process.number
        assert process is not None, "it runs until it is closed"
        os.kill(process, number)

    def _clean_on(self) -> None:
        pace = BrokerSettings().compaction_bytes_per_second
        with suppress(StoppedError):
            while not self._stopped:
                job = self._bench.job(self._log)
                plans = [plan for each in job.rewritings if (plan := each.plan()) is not None]
                cleaner = RemoteCleaner(self._process, job, plans, pace)
                self._begun.set()
                clean(job, cleaner)


async def window(log: LocalLog, seconds: float) -> list[float]:
    """Send one record after another, and return how many milliseconds each took to be safe."""
    batch = encode_batch([Record(os.urandom(VALUE_BYTES), b"key", (), 1)])
    found = []
    ends = time.perf_counter() + seconds
    while (began := time.perf_counter()) < ends:
        await log.flushed(log.append([bytearray(batch)], read_header(batch)))
        found.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(PAUSE_SECONDS)
    return found


def percentile(windows: Windows, percent: int) -> float:
    together = [each for window in windows for each in window]
    return statistics.quantiles(together, n=100)[percent - 1]


def interval(beside: Windows, alone: Windows, percent: int) -> tuple[float, float]:
    """Return where the ratio of two percentiles lies."""
    chance = random.Random(1)
    ratios = []
    for _ in range(DRAWN):
        drawn = chance.choices(range(len(alone)), k=len(alone))
        found = (percentile([each[at] for at in drawn], percent) for each in (beside, alone))
        ratios.append(next(found) / next(found))
    cuts = statistics.quantiles(ratios, n=40)
    return cuts[0], cuts[-1]


async def main(folder: Path, windows: int, seconds: float) -> None:
    bench = Bench(folder)
    log = await bench.filled(VALUE_BYTES, BATCH_RECORDS, LOG_BYTES)
    producer = bench.open("producer")
    compaction = Compaction(bench, log)
    compaction.start()
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    for number in range(windows):
        for is_beside in (number % 2 == 0, number % 2 > 0):
            with compaction.going_on() if is_beside else nullcontext():
                found[is_beside].append(await window(producer, seconds))
    compaction.close()
    for percent in PERCENTILES:
        alone, beside = (percentile(found[is_beside], percent) for is_beside in (False, True))
        low, high = interval(found[True], found[False], percent)
        print(
            f"p{percent}: alone {alone:.2f} ms, beside compaction {beside:.2f} ms,"
            f" {beside / alone:.2f} x ({low:.2f} to {high:.2f})"
        )
    for each in (producer, log):
        each.abandon()
    bench.flusher.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--windows", type=int, default=30, help="of each kind")
    parser.add_argument("--seconds", type=float, default=5, help="of each window")
    arguments = parser.parse_args()
    made = Path(tempfile.mkdtemp(dir=arguments.directory))
    try:
        asyncio.run(main(made, arguments.windows, arguments.seconds))
    finally:
        shutil.rmtree(made)
