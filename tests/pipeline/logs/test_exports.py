"""Goal: what is exported and imported again is the same to clients of all three protocols.

Method: a broker, topics with all that a log can hold, and the work of Spark in this process.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import confluent_kafka
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from interop_clients import Client, IggyClient, Message, PulsarClient
from interop_clients import KafkaClient as RealKafkaClient
from patience import PATIENCE_SECONDS
from penstock.clients.kafka.client import EARLIEST, LATEST, KafkaClient
from penstock.pipeline.logs.exporting import Exported, Exporting
from penstock.pipeline.logs.importing import Imported, Importing
from penstock.pipeline.logs.manifest import MANIFEST, PLAN, ExportError
from penstock.pipeline.logs.repacking import packed
from penstock.pipeline.logs.restoring import RestoredLog
from penstock.pipeline.source.offsets import TopicPartition
from spark_in_process import InProcess
from spark_topics import Record, create, fill, numbered


def in_process() -> SparkSession:
    return cast("SparkSession", InProcess())


def no_report(done: int, total: int) -> None:
    assert 0 <= done <= total


def export(address: str, folder: Path, *topics: str, mode: str = "auto") -> Exported:
    with Exporting(address, topics, folder, mode) as exporting:
        return exporting.run(in_process, no_report)


def restore(address: str, folder: Path, *topics: str, codec: str = "lz4") -> Imported:
    return Importing(address, folder, topics, codec).run(in_process, no_report)


def delete(address: str, *topics: str) -> None:
    with KafkaClient(address) as client:
        for topic in topics:
            client.delete_topic(topic)


def ends(address: str, topic: str, partitions: int = 1) -> list[tuple[int | None, int | None]]:
    with KafkaClient(address) as client:
        places = [(topic, index) for index in range(partitions)]
        first = client.list_offsets(dict.fromkeys(places, EARLIEST))
        last = client.list_offsets(dict.fromkeys(places, LATEST))
        return [(first[place], last[place]) for place in places]


def rows(folder: Path) -> dict[str, list[Any]]:
    """All rows of an export by partition, their order among them."""
    found: dict[str, list[Any]] = {}
    for file in sorted(folder.glob("topic=*/partition=*/*.parquet")):
        partition = str(file.parent.relative_to(folder))
        found.setdefault(partition, []).extend(pq.ParquetFile(file).read().to_pylist())
    return found


def aborted_and_committed(address: str, topic: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": address, "transactional.id": topic, "linger.ms": 0}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    for name in ("aborted", "committed"):
        producer.begin_transaction()
        producer.produce(topic, name, partition=0)
        producer.flush(PATIENCE_SECONDS)
        if name == "aborted":
            producer.abort_transaction(PATIENCE_SECONDS)
        else:
            producer.commit_transaction(PATIENCE_SECONDS)


ODD: list[Record] = [(None, b"no key"), (b"", b"empty key"), (b"tombstone", None), (b"k", b"")]
TIME_MS = 1_700_000_000_000
HEADERS = [("a", b"1"), ("b", None), ("a", b""), ("", b"\xff")]


@pytest.fixture
def odd_topic(shared_server: BrokerProcess) -> Iterator[str]:
    """Three partitions, one of them empty, one trimmed; gaps, all kinds of keys and headers."""
    address = shared_server.kafka
    topic = create(address, 3)
    fill(address, topic, numbered(0, 20))
    fill(address, topic, ODD, headers=HEADERS)
    aborted_and_committed(address, topic)
    fill(address, topic, numbered(20, 300), **{"compression.type": "zstd"})
    aborted_and_committed(address, topic)
    fill(address, topic, numbered(0, 100), partition=2)
    with KafkaClient(address) as client:
        client.delete_records(topic, {0: 7, 2: 100})
        client.alter_topic_config(topic, {"retention.ms": "7000000", "max.message.bytes": "5000"})
    yield topic
    delete(address, topic)


@pytest.mark.parametrize("mode", ["log", "wire"])
def test_all_of_a_topic_comes_back(
    shared_server: BrokerProcess, odd_topic: str, tmp_path: Path, mode: str
) -> None:
    address = shared_server.kafka
    before = ends(address, odd_topic, 3)
    made = export(address, tmp_path / "first", odd_topic, mode=mode)
    assert made.rows == sum(map(len, rows(tmp_path / "first").values())) == 299
    with KafkaClient(address) as client:
        config = client.own_topic_config(odd_topic)
        client.delete_topic(odd_topic)
        assert restore(address, tmp_path / "first").records == 299
        assert client.own_topic_config(odd_topic) == config
    assert ends(address, odd_topic, 3) == before
    assert before[2] == (100, 100)
    export(address, tmp_path / "second", odd_topic)
    assert rows(tmp_path / "second") == rows(tmp_path / "first")
    # Once more changes nothing.
    assert restore(address, tmp_path / "first").records == 0


def test_an_import_goes_on_where_one_was_ended(
    shared_server: BrokerProcess, odd_topic: str, tmp_path: Path
) -> None:
    address = shared_server.kafka
    before = ends(address, odd_topic, 3)
    export(address, tmp_path / "export", odd_topic)
    delete(address, odd_topic)
    files = sorted((tmp_path / "export").glob("topic=*/partition=0/*.parquet"))
    kept = [(each, each.read_bytes()) for each in files]
    table = pq.ParquetFile(files[0]).read()
    for count in (3, 20, 200):  # As if it had been ended behind so many rows.
        pq.write_table(table.slice(0, count), files[0])
        manifest = tmp_path / "export" / MANIFEST
        text = manifest.read_text()
        stored = json.loads(text)
        manifest.write_text(text)
        ended = table.column("offset")[count - 1].as_py() + 1
        stored["topics"][odd_topic]["edges"][0] = [7, ended]
        short = files[0].with_name(f"{7:020d}-{ended:020d}.parquet")
        files[0].rename(short)
        manifest.write_text(json.dumps(stored))
        restore(address, tmp_path / "export")
        short.unlink()
        manifest.write_text(text)
        for file, content in kept:
            file.write_bytes(content)
    restore(address, tmp_path / "export", codec="none")
    assert ends(address, odd_topic, 3) == before
    export(address, tmp_path / "second", odd_topic)
    assert rows(tmp_path / "second") == rows(tmp_path / "export")


def without_kinds(message: Message) -> Message:
    """Leave out what Pulsar's clients see of raw headers of Iggy alone, and not of Kafka's."""
    headers = tuple(each for each in message.headers if each != ("penstock.iggy.kinds", b"21"))
    return message._replace(headers=headers)


@pytest.fixture
def three_clients(shared_server: BrokerProcess) -> Iterator[tuple[str, list[Client]]]:
    topic = create(shared_server.kafka)
    clients: list[Client] = [
        kind(shared_server, topic) for kind in (RealKafkaClient, PulsarClient, IggyClient)
    ]
    for number, client in enumerate(clients):
        client.write(
            [
                Message(
                    b"%d %d" % (number, each),
                    b"k%d" % each,
                    (("h", b"v"),),
                    TIME_MS + each,
                )
                for each in range(30)
            ]
        )
    yield topic, clients
    delete(shared_server.kafka, topic)


def test_clients_of_all_protocols_see_what_they_saw(
    shared_server: BrokerProcess, three_clients: tuple[str, list[Client]], tmp_path: Path
) -> None:
    address = shared_server.kafka
    topic, clients = three_clients
    seen = [client.read(90) for client in clients]
    for client in clients:
        client.close()
    export(address, tmp_path / "export", topic)
    delete(address, topic)
    restore(address, tmp_path / "export")
    again: list[Client] = [
        kind(shared_server, topic) for kind in (RealKafkaClient, PulsarClient, IggyClient)
    ]
    for client, before in zip(again, seen, strict=True):
        for one, other in zip(client.read(90), before, strict=True):
            assert without_kinds(one) == without_kinds(other)
    for client in again:
        client.close()
    microseconds = [
        each["timestamp"].microsecond % 1000
        for each in rows(tmp_path / "export")[f"topic={topic}/partition=0"]
    ]
    assert any(microseconds)


def test_the_brokers_times_come_back(shared_server: BrokerProcess, tmp_path: Path) -> None:
    address, topic = shared_server.kafka, f"appended-{uuid.uuid4().hex[:8]}"
    with KafkaClient(address) as client:
        client.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})
    for number in range(3):
        fill(address, topic, numbered(number * 5, number * 5 + 5))
    export(address, tmp_path / "first", topic)
    delete(address, topic)
    restore(address, tmp_path / "first")
    export(address, tmp_path / "second", topic)
    (first,), (second,) = (list(rows(tmp_path / name).values()) for name in ("first", "second"))
    assert first == second
    assert {each["timestampType"] for each in first} == {1}
    delete(address, topic)


def test_an_export_goes_on_where_one_was_ended(
    shared_server: BrokerProcess, odd_topic: str, tmp_path: Path
) -> None:
    address, folder = shared_server.kafka, tmp_path / "export"
    export(address, folder, odd_topic)
    whole = rows(folder)
    (folder / MANIFEST).rename(folder / PLAN)
    (folder / "_staging").mkdir(exist_ok=True)
    (folder / "_staging" / "left.parquet").write_bytes(b"half")
    file = next(folder.glob("topic=*/partition=0/*.parquet"))
    file.unlink()
    with pytest.raises(ExportError, match="interrupted: run penstock export again"):
        restore(address, folder)
    with pytest.raises(ExportError, match="name the same topics, or another folder"):
        export(address, folder, create(address))
    # What comes later is none of this export.
    fill(address, odd_topic, numbered(0, 5))
    export(address, folder, odd_topic)
    assert rows(folder) == whole
    assert not (folder / "_staging").exists()
    with pytest.raises(ExportError, match="holds a whole export already"):
        export(address, folder, odd_topic)


def test_a_topic_made_anew_is_no_part_of_an_export_that_goes_on(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    address, folder, topic = shared_server.kafka, tmp_path / "export", create(shared_server.kafka)
    fill(address, topic, numbered(0, 10))
    export(address, folder, topic)
    (folder / MANIFEST).rename(folder / PLAN)
    next(folder.glob("topic=*/partition=0/*.parquet")).unlink()
    delete(address, topic)
    with KafkaClient(address) as client:
        client.create_topic(topic, 1)
    fill(address, topic, numbered(0, 20))
    with pytest.raises(ExportError, match="deleted and made anew"):
        export(address, folder, topic)
    delete(address, topic)


@pytest.fixture
def exported(shared_server: BrokerProcess, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A topic of 20 records that is gone, and its export."""
    address, topic = shared_server.kafka, create(shared_server.kafka)
    fill(address, topic, numbered(0, 20))
    export(address, tmp_path / "export", topic)
    delete(address, topic)
    yield topic, tmp_path / "export"
    with KafkaClient(address) as client:
        assert topic not in {each.name for each in client.topics()}, "something was written"


def refused(address: str, folder: Path, words: str, *topics: str, codec: str = "lz4") -> None:
    with pytest.raises(ExportError, match=words):
        restore(address, folder, *topics, codec=codec)


def test_what_is_no_export_is_refused_before_anything_is_written(
    shared_server: BrokerProcess, exported: tuple[str, Path], tmp_path: Path
) -> None:
    address, (topic, folder) = shared_server.kafka, exported
    refused(address, tmp_path, "holds no export: there is no _penstock-export.json in it")
    refused(address, folder, f"holds no topic 'other', but {topic}", "other")
    refused(
        address, folder, "compression must be one of none, gzip, .* not 'brotli'", codec="brotli"
    )
    refused("127.0.0.1:1", folder, "Connection refused")
    manifest = folder / MANIFEST
    text = manifest.read_text()
    for wrong, words in (
        (text[:50], "is damaged, or nothing of penstock export"),
        (text.replace('"version": 1', '"version": 2'), "is of version 2 of exports"),
        ("[]", "is damaged"),
        (text.replace("20\n", "-20\n"), "do not ascend"),
    ):
        manifest.write_text(wrong)
        refused(address, folder, words)
    manifest.write_text(text)


def test_files_that_are_not_what_they_were_are_named(
    shared_server: BrokerProcess, exported: tuple[str, Path]
) -> None:
    address, (_, folder) = shared_server.kafka, exported
    file = next(folder.glob("topic=*/partition=0/*.parquet"))
    content, table = file.read_bytes(), pq.ParquetFile(file).read()
    order = [0, 1, 3, 2, *range(4, 20)]
    later = table.set_column(2, "offset", pa.array(range(10, 30)))
    numbers = table.set_column(1, "value", pa.array(range(20)))
    for changed, words in (
        (table.drop_columns(["headers"]), "has no column headers"),
        (numbers, "column value of .* is int64, not binary"),
        (table.take(order), "offset 2 follows 3"),
        (pa.concat_tables([table, table]), "offset 0 follows 19"),
        (later, "holds offset 29, which its name excludes"),
    ):
        pq.write_table(changed, file)
        refused(address, folder, words)
    flipped = bytearray(content)
    flipped[len(flipped) // 3] ^= 1
    file.write_bytes(flipped)
    refused(address, folder, "can't be read")
    file.write_bytes(b"PAR1 but not quite")
    refused(address, folder, "can't be read")
    file.unlink()
    refused(address, folder, "is no whole export any more: topic=.* is missing")
    file.write_bytes(content)


def test_topics_that_hold_something_else_are_refused(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    address, topic = shared_server.kafka, create(shared_server.kafka)
    fill(address, topic, numbered(0, 20))
    export(address, tmp_path, topic)
    assert restore(address, tmp_path).records == 0  # the same topic
    fill(address, topic, numbered(20, 21))
    refused(address, tmp_path, "is not empty, and what it holds is not what was exported")
    for partitions, others in ((2, 0), (1, 10)):
        delete(address, topic)
        with KafkaClient(address) as client:
            client.create_topic(topic, partitions)
        if others:
            fill(address, topic, numbered(1, 1 + others))
            refused(address, tmp_path, "is not empty, and what it holds is not what was exported")
        else:
            refused(address, tmp_path, "has 2 partitions, and was exported with 1")
    delete(address, topic)
    with KafkaClient(address) as client:
        client.create_topic(topic, 1, {"retention.ms": "9000000"})
        assert restore(address, tmp_path).records == 20
        assert client.own_topic_config(topic) == {"retention.ms": "9000000"}
    delete(address, topic)


def test_who_writes_while_a_topic_is_imported_is_noticed(
    shared_server: BrokerProcess, exported: tuple[str, Path]
) -> None:
    address, (topic, folder) = shared_server.kafka, exported
    target = TopicPartition(topic, 0)
    with KafkaClient(address) as client:
        client.create_topic(topic, 1, {"penstock.importing": "true"})
        log = RestoredLog(client, target)
        rows_of = pq.ParquetFile(next(folder.glob("topic=*/partition=0/*.parquet"))).read()
        first, second = (
            next(packed(each.to_batches()[0], 0)) for each in (rows_of[:10], rows_of[10:])
        )
        log.append(first)
        # An answer that was lost: it is there, and is not written again.
        log.end = 0
        log.append(first)
        assert (log.end, ends(address, topic)) == (10, [(0, 10)])
        fill(address, topic, numbered(0, 3))
        with pytest.raises(ExportError, match="ends at 13 instead of 10: somebody else writes"):
            log.append(second)
        client.delete_topic(topic)


def test_what_can_not_be_exported_is_said_first(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    address = shared_server.kafka
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    for words, given in {
        "is not empty: name a folder that is new": (address, tmp_path / "used", "t"),
        "no topic named nowhere": (address, tmp_path / "a", "nowhere"),
        "Connection refused": ("127.0.0.1:1", tmp_path / "b", "t"),
        "subscribe names no topic": (address, tmp_path / "c", ""),
    }.items():
        with pytest.raises(ExportError, match=words):
            export(*given)
    with pytest.raises(ExportError, match="readMode must be one of"):
        export(address, tmp_path / "d", "t", mode="tape")
    with Exporting(address, ["t"], tmp_path / "e"), pytest.raises(ExportError, match="another run"):
        export(address, tmp_path / "e", "t")


def test_spark_shares_the_work_out(
    spark: SparkSession, shared_server: BrokerProcess, odd_topic: str, tmp_path: Path
) -> None:
    address = shared_server.kafka
    with Exporting(address, [odd_topic], tmp_path / "first") as exporting:
        assert exporting.run(lambda: spark, no_report).rows == 299
    table = spark.read.parquet(str(tmp_path / "first"))
    assert table.where("partition = 2").count() == 0
    assert table.where(f"topic = '{odd_topic}'").count() == 299
    delete(address, odd_topic)
    importing = Importing(address, tmp_path / "first")
    assert importing.run(lambda: spark, no_report) == Imported(299, 3)
    export(address, tmp_path / "second", odd_topic)
    assert rows(tmp_path / "second") == rows(tmp_path / "first")
    file = next((tmp_path / "first").glob("topic=*/partition=0/*.parquet"))
    file.write_bytes(b"nothing")
    with pytest.raises(ExportError, match="is no whole export any more"):
        importing.run(lambda: spark, no_report)
