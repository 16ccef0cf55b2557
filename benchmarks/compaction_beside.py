"""What compaction costs a producer beside it: how long its messages take to be safe, while another
log is compacted and while none is.

Windows with and without compaction take turns, and are short, so that what else slows the machine
for a while slows both: of forty windows of two seconds the interval was twice as wide. Before each
the disk has written what there was: else a window without compaction waits for what the one before
it left. The times of all windows of a kind are put together, and the ratio of their percentiles is
given; then the median of the ratios of the pairs, which a few windows that something else has
slowed do not decide. Each has the interval in which it lies with 95 %, as drawing from the pairs
again has it.
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
from collections.abc import Callable, Iterator, Sequence
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
"""So few that it is read, and written anew, within some windows."""
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
    times = [each for window in windows for each in window]
    return statistics.quantiles(times, n=100)[percent - 1]


def together(beside: Windows, alone: Windows, percent: int) -> str:
    """Return the ratio of the percentiles of all windows, and where it lies."""

    def ratio(drawn: Sequence[int]) -> float:
        found = (percentile([each[at] for at in drawn], percent) for each in (beside, alone))
        return next(found) / next(found)

    return with_interval(ratio, len(alone))


def by_pairs(beside: Windows, alone: Windows, percent: int) -> str:
    """Return the median of the ratios of two windows that follow one another, and where it lies."""
    pairs = zip(beside, alone, strict=True)
    ratios = [percentile([one], percent) / percentile([other], percent) for one, other in pairs]
    return with_interval(lambda drawn: statistics.median(ratios[at] for at in drawn), len(alone))


def with_interval(ratio: Callable[[Sequence[int]], float], pairs: int) -> str:
    chance = random.Random(1)
    ratios = [ratio(chance.choices(range(pairs), k=pairs)) for _ in range(DRAWN)]
    cuts = statistics.quantiles(ratios, n=40)
    return f"{ratio(range(pairs)):.2f} x ({cuts[0]:.2f} to {cuts[-1]:.2f})"


async def main(folder: Path, windows: int, seconds: float) -> None:
    bench = Bench(folder)
    log = await bench.filled(VALUE_BYTES, BATCH_RECORDS, LOG_BYTES)
    producer = bench.open("producer")
    compaction = Compaction(bench, log)
    compaction.start()
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    for number in range(windows):
        for is_beside in (number % 2 == 0, number % 2 > 0):
            await asyncio.to_thread(os.sync)
            with compaction.going_on() if is_beside else nullcontext():
                found[is_beside].append(await window(producer, seconds))
    compaction.close()
    for percent in PERCENTILES:
        alone, beside = (percentile(found[is_beside], percent) for is_beside in (False, True))
        pairs = found[True], found[False], percent
        print(
            f"p{percent}: alone {alone:.2f} ms, beside compaction {beside:.2f} ms,"
            f" {together(*pairs)}; by pairs {by_pairs(*pairs)}"
        )
    for each in (producer, log):
        each.abandon()
    bench.flusher.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--windows", type=int, default=300, help="of each kind")
    parser.add_argument("--seconds", type=float, default=0.2, help="of each window")
    arguments = parser.parse_args()
    made = Path(tempfile.mkdtemp(dir=arguments.directory))
    try:
        asyncio.run(main(made, arguments.windows, arguments.seconds))
    finally:
        shutil.rmtree(made)
