"""Goal: what is large is compacted in a process of its own, and whenever that dies the log is as it
was.

Method: a broker that takes every log for a large one.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.compaction import process
from penstock.broker.compaction.cleaner import Job
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.aborted_range import AbortedRange
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import read_header
from penstock.log.rewriting import SegmentRewriting
from penstock.records import decode
from penstock.records.compaction import cleaning
from running import running
from stored_batches import TIME, Record, kafka_batch

NODE = BrokerSettings(log=LogConfig(segment_bytes=4_000), compaction_check_ms=86_400_000)
SLOW = replace(NODE, compaction_bytes_per_second=10_000)
"""So slow that a pass takes minutes."""
PATIENCE_SECONDS = 60
Messages = list[tuple[int, bytes | None, bytes | None]]


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "COMPACTED_IN_THREAD_BYTES", 0)


@asynccontextmanager
async def compacted_topic(
    folder: Path, settings: BrokerSettings, batches: int
) -> AsyncIterator[tuple[Broker, Partition]]:
    async with running(folder, settings) as broker:
        broker.compaction.now_ms = lambda: TIME // 1000 + 60_000
        config = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0"}
        topic = await broker.topics.create(TopicName("public", "default", "t"), 1, config=config)
        (partition,) = topic.partitions
        await partition.opened()
        for number in range(batches):
            batch = bytearray(kafka_batch([Record(b"%d" % number * 50, b"k%d" % (number % 7))]))
            offset = partition.append([batch], read_header(batch))
        await partition.durable(offset)
        yield broker, partition


async def content(partition: Partition) -> Messages:
    found: Messages = []
    offset, log = 0, log_of(partition)
    while offset < partition.end_offset:
        batches = await log.read(offset, 100_000)
        columns = decode(batches.data)
        offset = batches.next_offset
        found += [
            (int(columns.offsets[row]), columns.key(row), columns.value(row))
            for row in range(len(columns))
        ]
    return found


def last_of_keys(messages: Messages) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in messages}


def leftovers(partition: Partition) -> list[str]:
    return [each.name for each in log_of(partition).directory.iterdir() if "-" in each.name]


async def started(broker: Broker) -> int:
    """Return the number of the process once it is there."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (number := broker.compaction._process.number) is None:
            await asyncio.sleep(0.01)
    return number


def is_there(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_compacts_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int | None] = []
    call = process.CleaningProcess.call

    def noted(self: process.CleaningProcess, method: str, *arguments: object) -> object:
        answer = call(self, method, *arguments)
        numbers.append(self.number)
        return answer

    monkeypatch.setattr(process.CleaningProcess, "call", noted)
    async with compacted_topic(tmp_path, NODE, 300) as (broker, partition):
        before = await content(partition)
        await broker.compaction.check()
        after = await content(partition)
        assert last_of_keys(after) == last_of_keys(before)
        assert len(after) < len(before) / 2
        assert partition.compaction.known.cleaned_to == log_of(partition).full_segment_ends[-1]
        assert leftovers(partition) == []
        (number,) = set(numbers)
        assert number is not None
        assert not is_there(number)
        assert not broker.compaction._process.is_running
    async with running(tmp_path, NODE) as broker:
        (partition,) = broker.topics.all()[0].partitions
        await partition.opened()
        assert await content(partition) == after


async def test_a_process_that_dies_leaves_the_log_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with compacted_topic(tmp_path, SLOW, 600) as (broker, partition):
        before = await content(partition)
        checking = asyncio.ensure_future(broker.compaction.check())
        os.kill(await started(broker), signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await checking
        assert "the process that compacts has died" in caplog.text
        assert await content(partition) == before
        assert leftovers(partition) == []


async def test_a_broker_that_closes_does_not_wait_for_it(tmp_path: Path) -> None:
    async with compacted_topic(tmp_path, SLOW, 600) as (broker, partition):
        checking = asyncio.ensure_future(broker.compaction.check())
        number = await started(broker)
    with pytest.raises(process.StoppedError):
        await checking
    assert not is_there(number)
    assert leftovers(partition) == []


def worker(parent: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock.broker.compaction.worker", str(parent)]
    root = str(Path(process.__file__).parents[3])
    return subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root})


def test_a_worker_ends_with_its_broker() -> None:
    orphan, left = worker(1), worker(os.getpid())
    assert left.stdin is not None
    left.stdin.close()
    for each in (orphan, left):
        assert each.wait(PATIENCE_SECONDS) == 0


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told what to keep")
async def test_a_worker_uses_the_memory_of_one_piece_for_the_next(tmp_path: Path) -> None:
    """Its pages are counted while it goes over eight pieces, of which every other message stays."""
    config, flusher = LogConfig(segment_bytes=8 << 20), Flusher()
    log = LocalLog.open(tmp_path, config, RealFileSystem(), flusher)
    numbers = itertools.count()
    while len(log._segments) < 2:
        keys = (b"%d" % number if number % 2 else b"again" for number in numbers)
        batch = bytearray(kafka_batch([Record(bytes(50), key) for key in islice(keys, 1_000)]))
        await log.written(log.append([batch], read_header(batch)))
    rewriting = SegmentRewriting(tmp_path, RealFileSystem(), config, log._segments[:1], 0)
    job = Job([rewriting], 0, 1, 0, False, (), AbortedRange((), rewriting.end))
    plan = rewriting.plan()
    assert plan is not None
    remote = process.CleaningProcess()
    try:
        cleaner = process.RemoteCleaner(remote, job, [plan], 1 << 40)
        before = faults_of(remote.number)
        assert cleaner.map_keys() == rewriting.end
        cleaner.clean(rewriting)
        assert faults_of(remote.number) - before < 4_000
    finally:
        remote.end()
        await log.finish()
        flusher.close()


def faults_of(number: int | None) -> int:
    """Return how many pages a process has been given."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7])


def shows_slices() -> bool:
    release = re.findall(r"\d+", platform.release())[:2]
    attributes = Path("/proc/self/sched")
    return (
        sys.platform == "linux"
        and [int(part) for part in release] >= [6, 12]
        and attributes.exists()
        and "se.slice" in attributes.read_text()
    )


@pytest.mark.skipif(not shows_slices(), reason="Linux before 6.12 has one slice for all")
def test_a_worker_gives_a_core_back_at_once() -> None:
    standing_back = worker(os.getpid())
    attributes = Path(f"/proc/{standing_back.pid}/sched")
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while slice_nanoseconds(attributes) != 100_000:
            assert time.monotonic() < deadline, attributes.read_text()
            time.sleep(0.02)
        assert os.getpriority(os.PRIO_PROCESS, standing_back.pid) == 10
    finally:
        standing_back.kill()
        standing_back.communicate()


def slice_nanoseconds(attributes: Path) -> int | None:
    found = re.search(r"^se\.slice\s*:\s*(\d+)$", attributes.read_text(), re.MULTILINE)
    return None if found is None else int(found[1])


async def of_bombs(broker: Broker, name: str) -> Partition:
    """Return a compacted partition of batches of a KiB that inflate to a MiB."""
    config = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0"}
    topic = await broker.topics.create(TopicName("public", "default", name), 1, config=config)
    (partition,) = topic.partitions
    await partition.opened()
    for _ in range(20):
        batch = bytearray(kafka_batch([Record(bytes(1 << 20), b"key")], codec=1))
        offset = partition.append([batch], read_header(batch))
    await partition.durable(offset)
    return partition


async def test_what_inflates_to_more_than_the_broker_may_hold_goes_to_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "COMPACTED_IN_THREAD_BYTES", 1 << 20)
    monkeypatch.setattr(process, "COMPACTED_IN_THREAD_INFLATED_BYTES", 1 << 19)
    started: list[int] = []
    start = process.CleaningProcess._start

    def noted(self: process.CleaningProcess) -> subprocess.Popen[bytes]:
        started.append(1)
        return start(self)

    monkeypatch.setattr(process.CleaningProcess, "_start", noted)
    async with compacted_topic(tmp_path, NODE, 300) as (broker, small):
        await broker.compaction.check()
        assert small.compaction.known.cleaned_to == log_of(small).full_segment_ends[-1]
        assert started == [], "what is small is done in a thread"
        partition = await of_bombs(broker, "bombs")
        await broker.compaction.check()
        assert partition.compaction.known.cleaned_to == log_of(partition).full_segment_ends[-1]
        assert started == [1]
        assert leftovers(partition) == []


async def test_a_log_that_inflates_to_too_much_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "COMPACTED_IN_THREAD_BYTES", 1 << 20)
    monkeypatch.setattr(cleaning, "COMPACTION_INFLATED_BYTES", 3 << 20)
    async with compacted_topic(tmp_path, NODE, 300) as (broker, small):
        partition = await of_bombs(broker, "bombs")
        await broker.compaction.check()
        assert small.compaction.known.cleaned_to == log_of(small).full_segment_ends[-1]
        assert partition.compaction.known.cleaned_to == 0
        assert "bombs-0 is not compacted for now" in caplog.text
        assert "64 times as much" in caplog.text
        assert len(await content(partition)) == 20
        assert leftovers(partition) == []
