"""Goal: a segment to which only Kafka's clients wrote is a segment of Apache Kafka.

Kafka's own kafka-dump-log reads it, its offset index and its time index, before and after it was
compacted, and finds every index entry to name the batch that Kafka would name.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from log_batches import append, write_now
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import read_header
from penstock.records.compaction.aborted import Transactions
from penstock.records.compaction.choosing import Rules
from penstock.records.compaction.cleaning import Inflating, Pass, remember
from penstock.records.compaction.offset_map import OffsetMap
from stored_batches import TIME, Record, kafka_batch
from versus.peers import maven
from versus.peers.kafka import ARTIFACTS, VERSION
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_200)]

TOOLS = f"org.apache.kafka:kafka-tools:{VERSION}"
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
CONFIG = LogConfig(segment_bytes=40_000)
RUN_SECONDS = 120
MISMATCH = re.compile(
    r"Found|Index offset|out of order|CorruptIndexException|mismatch", re.IGNORECASE
)


@pytest.fixture(scope="module")
def class_path() -> str:
    try:
        return maven.class_path(maven.fetch(LIBRARIES, "kafka-tools", [*ARTIFACTS, TOOLS]))
    except NotAvailableError as reason:
        pytest.skip(f"Kafka is not at hand: {reason}")


def dump(class_path: str, files: list[Path], *options: str) -> str:
    names = ",".join(map(str, files))
    command = ["java", "-cp", class_path, "org.apache.kafka.tools.DumpLogSegments"]
    ended = subprocess.run(
        [*command, "--files", names, *options],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout


def check(class_path: str, directory: Path) -> list[str]:
    """Have Kafka look at all files of a log; return its lines about batches."""
    logs = sorted(directory.glob("*.log"))
    indexes = sorted(directory.glob("*.index"))
    times = sorted(directory.glob("*.timeindex"))
    assert len(logs) == len(indexes) == len(times) > 1
    assert any(path.stat().st_size > 8 for path in indexes)
    sane = dump(class_path, indexes + times, "--index-sanity-check")
    assert sane.count("passed sanity check.") == len(indexes + times)
    for files in (indexes, times):
        assert not MISMATCH.search(dump(class_path, files, "--verify-index-only"))
    said = dump(class_path, logs, "--deep-iteration")
    assert "isvalid: false" not in said
    return [line for line in said.splitlines() if "baseOffset:" in line]


async def compact(log: LocalLog) -> None:
    for start, end in zip([0, *log.full_segment_ends], log.full_segment_ends, strict=False):
        rewriting = await log.rewriting(start, end)
        assert rewriting is not None
        chunks = [bytes(chunk) for chunk in rewriting.batches(1 << 20)]
        offsets = OffsetMap(1 << 20)
        for chunk in chunks:
            remember(memoryview(chunk), offsets, Transactions(), Inflating())
        rules = Rules(TIME // 1000, 1_000, False, [])
        cleaning = Pass(offsets, Transactions(), rules, Inflating())
        for chunk in chunks:
            for left in cleaning.clean(memoryview(chunk)):
                rewriting.write(*left)
        if (rest := cleaning.end()) is not None:
            rewriting.write(*rest)
        rewriting.seal()
        assert await log.replace(rewriting)


def fill(log: LocalLog) -> None:
    """Write batches of all codecs, with keys that come again, tombstones and headers."""
    for number in range(600):
        records = [
            Record(
                None if (number + index) % 50 == 0 else b"value %d" % number * (1 + number % 40),
                b"key %d" % (number * index % 97),
                ((b"header", b"content"),),
                TIME + 1_000_000 * (number - number % 7 * 3),
            )
            for index in range(1 + number % 5)
        ]
        batch = kafka_batch(records, codec=number % 5)
        append(log, [bytearray(batch)])
        write_now(log)
        assert read_header(batch).record_count == len(records)


async def test_kafka_reads_segments_and_indexes(class_path: str, tmp_path: Path) -> None:
    flusher = Flusher()
    directory = tmp_path / "topic-0"
    log = LocalLog.open(directory, CONFIG, RealFileSystem(), flusher)
    fill(log)
    await log.finish()
    before = await asyncio.to_thread(check, class_path, directory)
    assert len(before) == 600
    await compact(log)
    await log.finish()
    after = await asyncio.to_thread(check, class_path, directory)
    assert any(" count: 0 " in line for line in after)
    assert any("deleteHorizonMs: OptionalLong[" in line for line in after)
    offsets = [re.findall(r"(?:base|last)Offset: (\d+)", line) for line in after]
    assert [int(last) + 1 for _, last in offsets[:-1]] == [int(base) for base, _ in offsets[1:]]
    log.close()
    flusher.close()
