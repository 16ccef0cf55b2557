"""Goal: a batch that is damaged or unreadable ends a read, is passed over, or is kept, as asked.

Method: logs in files that a test writes itself, so that no Spark and mostly no broker is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_process import BrokerProcess
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.log.header import HEADER_SIZE, Magic, build_header, stamp
from penstock.log.layout import CLUSTER_ID_FILE
from penstock.pipeline.source.cluster import KafkaCluster
from penstock.pipeline.source.corruption import prepare
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.offsets import OffsetRange, TopicPartition
from penstock.pipeline.source.options import OptionError, SourceOptions, parse
from penstock.pipeline.source.planning import DataFolder, Planner, Task
from penstock.pipeline.source.rows import Rows
from penstock.pipeline.source.tasks import read_task, read_tasks
from spark_topics import create, fill

T0 = TopicPartition("t", 0)
TOPIC_ID = "0f2b6c1e-9a57-4f0e-8a3e-3f1f1d0a7c11"
FIRST = "0" * 20 + ".log"


def good(offset: int) -> bytes:
    batch = encode_batch([Record(b"v%d" % offset), Record(b"w%d" % offset)])
    stamp(batch, offset, 0)
    return bytes(batch)


def damaged(offset: int) -> bytes:
    batch = bytearray(good(offset))
    batch[HEADER_SIZE + 3] ^= 0x40
    return bytes(batch)


def unreadable(offset: int) -> bytes:
    """A batch whose checksum fits, and whose records are none."""
    body = b"\xff" * 40
    header = build_header(Magic.KAFKA, body, record_count=2, base_timestamp=0, max_timestamp=0)
    stamp(header, offset, 0)
    return bytes(header) + body


def values(*offsets: int) -> list[bytes]:
    return [value for each in offsets for value in (b"v%d" % each, b"w%d" % each)]


def options(**given: str) -> SourceOptions:
    base = {"penstock.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "readMode": "log"}
    return parse({**base, **given}, streaming=False)


def log(folder: Path, *batches: bytes, rows: int | None = None) -> Task:
    """Write a data folder with one segment, and return the task that reads all of it."""
    directory = folder / "topics" / "t" / "0"
    directory.mkdir(parents=True, exist_ok=True)
    (folder / CLUSTER_ID_FILE).write_text("cluster")
    (directory / FIRST).write_bytes(b"".join(batches))
    span = OffsetRange(T0, 0, 2 * len(batches) if rows is None else rows)
    return Task(span, DataFolder(folder, "cluster"), Path("topics/t/0"), TOPIC_ID)


def read(task: Task, options: SourceOptions) -> list[bytes]:
    batches = read_task(task, options)
    return [value for batch in batches for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize(
    ("bad", "reason"), [(damaged, "damaged"), (unreadable, "can't be read in")]
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_bad_batch_fails_is_skipped_or_is_kept(
    tmp_path: Path, bad: object, reason: str, place: int
) -> None:
    assert callable(bad)
    batches = [good(0), good(2), good(4)]
    batches[place] = bad(2 * place)
    task = log(tmp_path, *batches)
    expected = values(*(offset for offset in (0, 2, 4) if offset != 2 * place))
    with pytest.raises(SourceError, match=rf"offsets {2 * place}.* of t-0 .*Set onCor"):
        read(task, options())
    assert read(task, options(onCorruption="skip")) == expected
    dead = tmp_path / "dead"
    keeping = options(onCorruption="deadLetter", deadLetterPath=str(dead))
    prepare(keeping)
    for _ in range(2):  # A task that is tried again keeps nothing twice.
        assert read(task, keeping) == expected
    ((letter),) = pq.read_table(dead).to_pylist()
    assert (letter["topic"], letter["topicId"], letter["partition"]) == ("t", TOPIC_ID, 0)
    assert (letter["offset"], letter["nextOffset"]) == (2 * place, 2 * place + 2)
    assert reason in letter["reason"]
    assert letter["data"] == batches[place]
    if bad is damaged:
        assert (letter["segment"], letter["position"]) == (FIRST, sum(map(len, batches[:place])))


@pytest.mark.parametrize("topic", ["t" * 249, "persistent://public/default/t", "stream/t"])
def test_whatever_a_topic_is_called_its_damage_is_kept(tmp_path: Path, topic: str) -> None:
    whole = log(tmp_path, damaged(0), good(2))
    task = replace(whole, range=OffsetRange(TopicPartition(topic, 0), 0, 4))
    keeping = options(onCorruption="deadLetter", deadLetterPath=str(tmp_path / "dead"))
    prepare(keeping)
    assert read(task, keeping) == values(2)
    ((letter),) = letters_in(tmp_path / "dead")
    assert (letter["topic"], letter["offset"]) == (topic, 0)


@given(st.lists(st.sampled_from([good, damaged, unreadable]), max_size=12), st.data())
def test_all_that_can_be_read_is_read_and_all_else_is_named(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[object], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    batches = [kind(2 * index) for index, kind in enumerate(kinds) if callable(kind)]
    whole = log(folder, *batches)
    cuts = data.draw(st.lists(st.integers(0, 2 * len(kinds)), max_size=3))
    keeping = options(onCorruption="deadLetter", deadLetterPath=str(folder / "dead"))
    prepare(keeping)
    found = []
    for start, end in itertools.pairwise(sorted({0, 2 * len(kinds), *cuts})):
        span = OffsetRange(T0, start, end)
        found += read(Task(span, whole.data_folder, whole.folder, whole.topic_id), keeping)
    bad = [2 * index for index, kind in enumerate(kinds) if kind is not good]
    assert found == values(*(2 * i for i, kind in enumerate(kinds) if kind is good))
    letters = sorted(letter["offset"] for letter in letters_in(folder / "dead"))
    # Ranges of damage that touch may be one.
    assert set(letters) <= set(bad)
    assert {2 * i for i, kind in enumerate(kinds) if kind is unreadable} <= set(letters)


def test_damage_in_one_range_of_a_task_is_of_that_range_alone(tmp_path: Path) -> None:
    whole = log(tmp_path, good(0), damaged(2), good(4), good(6))
    tasks = [replace(whole, range=OffsetRange(T0, start, start + 4)) for start in (0, 4)]
    with pytest.raises(SourceError, match=r"offsets 2\.\.3 of t-0"):
        list(read_tasks(tasks, options()))
    keeping = options(onCorruption="deadLetter", deadLetterPath=str(tmp_path / "dead"))
    prepare(keeping)
    found = pa.Table.from_batches(read_tasks(tasks, keeping)).column("value").to_pylist()
    assert found == values(0, 4, 6)
    assert [letter["offset"] for letter in letters_in(tmp_path / "dead")] == [2]


def letters_in(folder: Path) -> Sequence[dict[str, object]]:
    files = sorted(folder.glob("*.parquet"))
    return [letter for file in files for letter in pq.read_table(file).to_pylist()]


def test_what_nothing_sound_follows_is_lost_up_to_the_end(tmp_path: Path) -> None:
    task = log(tmp_path, good(0), damaged(2)[:-5], rows=4)
    assert read(task, options(onCorruption="skip")) == values(0)
    with pytest.raises(SourceError, match=rf"offsets 2\.\.3 of t-0 .*{FIRST} at byte"):
        read(task, options())


def test_a_segment_that_is_missing_is_lost_as_a_whole(tmp_path: Path) -> None:
    task = log(tmp_path, good(0), rows=6)
    folder = tmp_path / "topics" / "t" / "0"
    (folder / f"{4:020}.log").write_bytes(good(4))
    assert read(task, options(onCorruption="skip")) == values(0, 4)


def test_headers_are_read_around_a_bad_batch_too(tmp_path: Path) -> None:
    task = log(tmp_path, good(0), unreadable(2), good(4))
    assert read(task, options(onCorruption="skip", includeHeaders="true")) == values(0, 4)


def test_a_batch_that_does_not_say_where_it_is_costs_no_other() -> None:
    bad = []
    rows = Rows(OffsetRange(T0, 0, 100), ("value",), lambda *_: [], bad.append)
    run = b"".join(unreadable(2 * each) if each % 7 == 3 else good(2 * each) for each in range(20))
    found = [value for batch in rows.of([run]) for value in batch.rows.column("value").to_pylist()]
    assert found == values(*(2 * each for each in range(20) if each % 7 != 3))
    assert [(each.start, each.end) for each in bad] == [(6, 8), (20, 22), (34, 36)]


def test_dead_letters_need_a_folder_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    given = options(onCorruption="deadLetter", deadLetterPath=str(tmp_path / "file"))
    with pytest.raises(OptionError, match=r"deadLetterPath .* can't be a folder"):
        prepare(given)
    task = log(tmp_path, damaged(0))
    with pytest.raises(SourceError, match=r"deadLetterPath .* can't be written to"):
        read(task, given)


@pytest.mark.parametrize("mode", ["wire", "auto", "log"])
def test_a_broker_passes_its_damage_on_whichever_way_it_is_read(
    server: BrokerProcess, mode: str
) -> None:
    topic = create(server.kafka)
    for value in (b"first", b"broken", b"third"):
        fill(server.kafka, topic, [(None, value)])
    (segment,) = server.data_folder.glob("topics/*/0/*.log")
    server.stop()
    segment.write_bytes(segment.read_bytes().replace(b"broken", b"Broken"))
    server.start()
    dead = server.folder / f"dead-{mode}"
    given = {
        "penstock.bootstrap.servers": server.kafka,
        "subscribe": topic,
        "readMode": mode,
        "onCorruption": "deadLetter",
        "deadLetterPath": str(dead),
    }
    keeping = parse(given, streaming=False)
    prepare(keeping)
    with KafkaCluster(keeping) as cluster:
        planner = Planner(keeping, cluster)
        tasks = planner.tasks(*planner.batch())
    assert [value for task in tasks for value in read(task, keeping)] == [b"first", b"third"]
    (letter,) = letters_in(dead)
    assert (letter["offset"], letter["nextOffset"], letter["segment"]) == (1, 2, FIRST)
    assert letter["topicId"] == tasks[0].topic_id
    if mode != "wire":
        assert b"Broken" in letter["data"]  # type: ignore[operator]  # its bytes


def test_what_the_broker_has_in_its_place_is_read_once(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    for value in (b"first", b"broken", b"third"):
        fill(shared_server.kafka, topic, [(None, value)])
    given = {"penstock.bootstrap.servers": shared_server.kafka, "subscribe": topic}
    parsed = parse(given, streaming=False)
    with KafkaCluster(parsed) as cluster:
        planner = Planner(parsed, cluster)
        (task,) = planner.tasks(*planner.batch())
    assert task.data_folder is not None
    assert task.folder is not None
    (segment,) = (task.data_folder.path / task.folder).glob("*.log")
    # As where a stale copy of the broker's disk is mounted.
    copy = tmp_path / task.folder
    copy.mkdir(parents=True)
    (tmp_path / CLUSTER_ID_FILE).write_text(task.data_folder.cluster_id)
    (copy / segment.name).write_bytes(segment.read_bytes().replace(b"broken", b"Broken"))
    stale = replace(task, data_folder=DataFolder(tmp_path, task.data_folder.cluster_id))
    assert read(stale, parsed) == [b"first", b"broken", b"third"]
