"""Goal: what a task writes is what its rows say, and is visible when the driver decides so.

Method: Arrow batches as Spark hands them to a task, a real broker, and no Spark.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import interop_clients
from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.kafka.coordinator import ProducerState
from penstock.clients.kafka.partitioner import partition_of
from penstock.clients.kafka.transactions import WriterClient
from penstock.pipeline.sink.epochs.attempt import Attempt, check_epoch, errors_in_words, once
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.options import SinkOptions, parse
from penstock.pipeline.sink.writing import write_task
from spark_topics import committed, create, fill

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def options(server: BrokerProcess, **given: str) -> SinkOptions:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return parse({"kafka.bootstrap.servers": server.kafka, **named}, streaming=True)


def rows(**columns: pa.Array) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch(columns)


def new_writer() -> str:
    return f"test-{uuid.uuid4()}"


def commit(server: BrokerProcess, writer: str, epoch: int, *tasks: ProducerState | None) -> bool:
    connection = ClientConnection(server.kafka, "test", 30)
    with errors_in_words(server.kafka), WriterClient(connection, once) as client:
        producers = [each for each in tasks if each is not None]
        return client.commit_epoch(writer, epoch, producers, "").written


def written(
    server: BrokerProcess, batches: Iterator[pa.RecordBatch], **given: str
) -> ProducerState | None:
    """Write as the only task of an epoch, and commit it."""
    writer = new_writer()
    state = write_task(batches, Attempt(writer, 0, 0, 0), options(server, **given))
    assert commit(server, writer, 0, state) is True
    return state


def test_all_columns_arrive_as_they_are(shared_server: BrokerProcess) -> None:
    topic = create(shared_server.kafka, 3)
    at = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    batch = pa.record_batch(
        {
            "key": pa.array(["a", None, "", "kk", None]),
            "value": pa.array([b"1", b"2", None, b"", b"55"]),
            "headers": pa.array(
                [[("h", b"x"), ("h", None)], None, [], [("ä", b"")], [("z", b"zz")]], HEADERS
            ),
            "partition": pa.array([2, 2, 2, 2, None], pa.int32()),
            "timestamp": pa.array([at, None, at, at, at], pa.timestamp("us", tz="UTC")),
            "offset": pa.array([9, 9, 9, 9, 9]),
        }
    )
    # A part of a batch has its values somewhere within Arrow's buffers.
    padded = pa.concat_batches([batch, batch]).slice(5, 5)
    for each in (batch, padded):
        written(shared_server, iter([each]), topic=topic)
    first, again = (
        committed(shared_server.kafka, topic, 2)[:4],
        committed(shared_server.kafka, topic, 2)[4:],
    )
    assert [each[2:] for each in first] == [each[2:] for each in again]
    assert [each[2:] for each in first] == [
        (b"a", b"1", [("h", b"x"), ("h", None)]),
        (None, b"2", []),
        (b"", None, []),
        (b"kk", b"", [("ä", b"")]),
    ]
    assert {each.timestamp_ms for each in first if each.value != b"2"} == {
        round(at.timestamp() * 1000)
    }
    others = [each for part in (0, 1) for each in committed(shared_server.kafka, topic, part)]
    assert [(each.value, each.headers) for each in others] == [(b"55", [("z", b"zz")])] * 2


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_decide_and_batches_are_cut(shared_server: BrokerProcess, codec: str) -> None:
    topic = create(shared_server.kafka, 3)
    keys = [b"k%d" % number for number in range(3_000)]
    values = [b"v%d" % number * 9 for number in range(3_000)]
    batches = [
        pa.record_batch({"value": values[at : at + 1000], "key": keys[at : at + 1000]})
        for at in range(0, 3_000, 1_000)
    ]
    given = {"kafka_compression_type": codec, "kafka_batch_size": "9000", "topic": topic}
    written(shared_server, iter(batches), **given)
    for partition in range(3):
        found = [
            (each.key, each.value) for each in committed(shared_server.kafka, topic, partition)
        ]
        assert found == [
            pair for pair in zip(keys, values, strict=True) if partition_of(pair[0], 3) == partition
        ]


def test_rows_without_a_key_stay_together_and_batches_take_turns(
    shared_server: BrokerProcess,
) -> None:
    topic = create(shared_server.kafka, 2)
    batches = [pa.record_batch({"value": [b"%d" % turn] * 10}) for turn in range(4)]
    written(shared_server, iter(batches), topic=topic)
    for partition in (0, 1):
        found = {each.value for each in committed(shared_server.kafka, topic, partition)}
        assert found == {b"%d" % partition, b"%d" % (partition + 2)}


def test_each_row_names_its_topic(shared_server: BrokerProcess) -> None:
    names = [create(shared_server.kafka) for _ in range(2)]
    new = f"made-{uuid.uuid4().hex}"
    topics = [*names, names[0], new]
    batch = pa.record_batch({"topic": topics, "value": [b"0", b"1", b"2", b"3"]})
    written(shared_server, iter([batch]))
    found = [
        [each.value for each in committed(shared_server.kafka, name)] for name in (*names, new)
    ]
    assert found == [[b"0", b"2"], [b"1"], [b"3"]]


def test_nothing_is_seen_before_all_of_an_epoch_is_decided(shared_server: BrokerProcess) -> None:
    topic, writer = create(shared_server.kafka), new_writer()
    task_options = options(shared_server, topic=topic)

    def attempt(task: int, number: int = 0, epoch: int = 0) -> ProducerState | None:
        batch = pa.record_batch({"value": [b"%d.%d" % (task, number)]})
        return write_task(iter([batch]), Attempt(writer, epoch, task, number), task_options)

    attempt(0)  # is lost, and done again by another executor
    tasks = [attempt(0, 1), attempt(1)]
    nothing = pa.record_batch({"value": pa.array([], pa.binary())})
    empty = write_task(iter([nothing]), Attempt(writer, 0, 2, 0), task_options)
    assert empty is None, "there is no transaction that could be committed"
    assert committed(shared_server.kafka, topic) == []
    assert commit(shared_server, writer, 0, *tasks, empty) is True
    found = [each.value for each in committed(shared_server.kafka, topic)]
    assert found in ([b"0.1", b"1.0"], [b"1.0", b"0.1"])
    again = [attempt(0), attempt(1)]
    assert again == [None, None], "the epoch is written, so the tasks have nothing to do"
    assert commit(shared_server, writer, 0) is False
    assert len(committed(shared_server.kafka, topic)) == 2
    commit(shared_server, writer, 7)
    with pytest.raises(SinkError, match=r"batch 3 of .* batch 7 was: the checkpoint"):
        attempt(0, 0, 3)


def test_a_writer_says_that_it_is_at_work_however_long_its_rows_take(
    shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[str] = []

    def heartbeat(_: WriterClient, writer: str) -> int:
        beats.append(writer)
        return -1

    monkeypatch.setattr(WriterClient, "heartbeat", heartbeat)

    def slow() -> Iterator[pa.RecordBatch]:
        deadline = time.monotonic() + 60
        while len(beats) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield from ()

    given = options(shared_server, topic="t", kafka_transaction_timeout_ms="1000")
    assert write_task(slow(), Attempt("w", 0, 0, 0), given) is None
    assert set(beats) == {"w"}


def test_a_task_that_fails_leaves_nothing_open(shared_server: BrokerProcess) -> None:
    topic, writer = create(shared_server.kafka), new_writer()

    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"1"]})
        raise RuntimeError("upstream")

    with pytest.raises(RuntimeError, match="upstream"):
        write_task(failing(), Attempt(writer, 0, 0, 0), options(shared_server, topic=topic))
    written(shared_server, rows(value=pa.array([b"2"])), topic=topic)
    assert [each.value for each in committed(shared_server.kafka, topic)] == [b"2"]


def refusal(server: BrokerProcess, batches: Iterator[pa.RecordBatch], **given: str) -> str:
    with pytest.raises(SinkError) as error:
        write_task(batches, Attempt(new_writer(), 0, 4, 0), options(server, **given))
    return str(error.value)


def test_rows_that_can_not_be_written_are_named(shared_server: BrokerProcess) -> None:
    topic = create(shared_server.kafka, 2)
    good = pa.record_batch({"value": [b"x"] * 5})
    with KafkaClient(shared_server.kafka) as client:
        client.alter_topic_config(topic, {"max.message.bytes": "2000"})
    large = pa.record_batch({"value": [b"x", b"y" * 3000]})
    found = refusal(shared_server, iter([good, large]), topic=topic)
    assert found.startswith(f"row 6, for {topic}-1: 30")
    assert "max.message.bytes is 2000" in found
    written(shared_server, iter([large]), topic=topic, kafka_compression_type="zstd")
    wrong = pa.record_batch({"value": [b"x"] * 2, "partition": pa.array([1, 2], pa.int32())})
    found = refusal(shared_server, iter([wrong]), topic=topic)
    assert found == ("row 1: column partition is 2, and the topic has 2 partitions, counted from 0")
    null = pa.record_batch({"value": [b"x"] * 2, "topic": [topic, None]})
    found = refusal(shared_server, iter([good.slice(0, 0), null]))
    assert found == "row 1: column topic is null; fill it, or set the option topic"
    nameless = pa.record_batch(
        {"value": [b"x"] * 2, "headers": pa.array([[], [(None, b"")]], HEADERS)}
    )
    found = refusal(shared_server, iter([nameless]), topic=topic)
    assert found == "row 1: a header in column headers has no key"
    binary = pa.record_batch({"value": [b"x"], "key": [b"\xff"]})
    assert "keys of text" in refusal(
        shared_server, iter([binary]), topic=topic, partitioner="pulsar"
    )
    assert "can't be written to: INVALID_TOPIC" in refusal(shared_server, iter([good]), topic="a b")
    found = refusal(
        shared_server, iter([good]), topic=topic, kafka_transaction_timeout_ms="999999999"
    )
    assert "transaction_max_timeout_ms" in found


def test_a_topic_is_made_only_where_the_broker_makes_topics(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, "--auto-create-topics", "no")
    broker.start()
    try:
        found = refusal(broker, rows(value=pa.array([b"x"])), topic="missing")
    finally:
        broker.end()
    assert found.startswith("there is no topic 'missing'")
    assert found.endswith("create it, or correct the option or column topic")


def test_old_epochs_are_refused() -> None:
    check_epoch("w", 3, 2)
    check_epoch("w", 3, 3)
    with pytest.raises(SinkError, match="batch 3 of w is to be written, and batch 4 was"):
        check_epoch("w", 3, 4)


def test_clients_of_all_protocols_see_each_row_once(shared_server: BrokerProcess) -> None:
    topic, writer = create(shared_server.kafka), new_writer()
    task_options = options(shared_server, topic=topic)
    expected: list[bytes] = []
    for epoch in range(2):
        values = [b"%d.%d" % (epoch, row) for row in range(20)]
        batch = pa.record_batch({"key": [b"k"] * 20, "value": values})
        for number in range(3):  # of which the last one is said to have done it
            state = write_task(iter([batch]), Attempt(writer, epoch, 0, number), task_options)
        assert commit(shared_server, writer, epoch, state) is True
        expected += values
    fill(shared_server.kafka, topic, [(b"k", b"last")])
    for of_protocol in (
        interop_clients.KafkaClient,
        interop_clients.PulsarClient,
        interop_clients.IggyClient,
    ):
        client = of_protocol(shared_server, topic)
        try:
            found = client.read(len(expected) + 1)
        finally:
            client.close()
        assert [each.value for each in found] == [*expected, b"last"]
        assert {each.key for each in found} == {b"k"}
