"""Goal: the real client of each protocol reads a compacted topic as one that has gaps, and nothing
wrong with it: the last message of each key, whoever wrote it, at the offset that it had.

Method: each reader is a fresh client that begins at the beginning.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pulsar
import pytest

from broker_process import BrokerProcess
from compacted_topics import (
    Read,
    compact,
    consume_by_pulsar,
    of_pulsar,
    read_by_iggy,
    read_by_kafka,
    read_by_pulsar,
    read_by_spark,
    read_compacted,
    table_of_pulsar,
)
from interop_clients import (
    CODECS,
    IggyClient,
    KafkaClient,
    Message,
    PulsarClient,
    create_topic,
)
from patience import PATIENCE_SECONDS
from penstock.log.header import ATTRIBUTE_CONTROL, walk
from pulsar_java import class_path

pytestmark = pytest.mark.timeout(300)

JAVA = Path(__file__).parents[1] / "support" / "PulsarCompacted.java"


def last_of_keys(found: list[Read]) -> list[Read]:
    return sorted({each.key: each for each in found}.values())


def check_all_readers(broker: BrokerProcess, topic: str, expected: list[Read]) -> None:
    """Assert that fresh clients of all kinds find these, which all have values."""
    assert read_by_kafka(broker, topic) == expected
    assert read_by_kafka(broker, topic, "read_committed") == expected
    assert read_compacted(broker, topic) == expected
    assert read_by_pulsar(broker, topic) == expected
    assert table_of_pulsar(broker, topic) == {each.key: each.value for each in expected}
    assert read_by_iggy(broker, topic) == expected
    for mode in ("log", "wire"):
        assert read_by_spark(broker, topic, mode) == expected, mode


def check_acknowledging(broker: BrokerProcess, topic: str, expected: list[Read]) -> None:
    """Assert that who acknowledges all that is there gets what comes next, and nothing again."""
    last = expected[-1].offset
    assert consume_by_pulsar(broker, topic, "shared", last) == expected
    writer = KafkaClient(broker, topic)
    writer.write([Message(b"next", b"a key of its own")])
    writer.close()
    found = consume_by_pulsar(broker, topic, "shared", last + 1)
    assert [each.value for each in found] == [b"next"]


def test_every_client_reads_what_is_left_of_what_all_of_them_wrote(
    shared_server: BrokerProcess,
) -> None:
    topic = "compacted-by-all"
    create_topic(shared_server, topic)
    writers = [make(shared_server, topic) for make in (KafkaClient, PulsarClient, IggyClient)]
    for number in range(9):
        keys = range(number, 12) if number % 2 else range(number % 3, 12, 2)
        writers[number % 3].write([Message(b"%d:%d" % (number, k), b"key %d" % k) for k in keys])
    for writer in writers:
        writer.close()
    before = read_by_kafka(shared_server, topic)
    expected = last_of_keys(before)
    assert len(expected) == 12 < len(before) // 3
    compact(shared_server, topic)
    check_all_readers(shared_server, topic, expected)
    check_acknowledging(shared_server, topic, expected)


def every_other(number: int) -> list[Message]:
    """Many messages, of which every other one is there again in the next round."""
    return [
        Message(b"%d:%d" % (number, key) * 20, b"key %d" % key)
        for key in range(number % 2, 300, 2 - number % 2)
    ]


WRITERS = {
    **{
        f"kafka {codec}": lambda broker, topic, codec=codec: KafkaClient(broker, topic, codec)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    },
    **{
        f"pulsar {codec}": lambda broker, topic, codec=codec: PulsarClient(broker, topic, codec)
        for codec in CODECS
    },
    "pulsar alone": lambda broker, topic: PulsarClient(broker, topic, batching=False),
    "iggy": IggyClient,
}


@pytest.mark.soak
@pytest.mark.parametrize("name", WRITERS)
def test_batches_of_each_encoding(shared_server: BrokerProcess, name: str) -> None:
    topic = f"compacted-{name}".replace(" ", "-").replace("CompressionType.", "")
    create_topic(shared_server, topic)
    writer = WRITERS[name](shared_server, topic)
    for number in range(4):
        writer.write(every_other(number))
    writer.close()
    before = read_by_kafka(shared_server, topic)
    expected = last_of_keys(before)
    compact(shared_server, topic)
    check_all_readers(shared_server, topic, expected)
    check_acknowledging(shared_server, topic, expected)


def write_tombstone(broker: BrokerProcess, topic: str, key: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.kafka})
    producer.produce(topic, None, key)
    assert producer.flush(PATIENCE_SECONDS) == 0


def write_empty(broker: BrokerProcess, topic: str, key: str) -> None:
    client = pulsar.Client(broker.pulsar)
    client.create_producer(of_pulsar(topic)).send(b"", partition_key=key)
    client.close()


@pytest.mark.soak
@pytest.mark.parametrize("delete", [write_tombstone, write_empty])
def test_a_key_without_a_value_goes_and_readers_hear_of_it_before(
    shared_server: BrokerProcess, delete: Callable[[BrokerProcess, str, str], None]
) -> None:
    topic = f"compacted-{delete.__name__}".replace("_", "-")
    create_topic(shared_server, topic)
    writers = [make(shared_server, topic) for make in (KafkaClient, PulsarClient, IggyClient)]
    for writer in writers:
        writer.write([Message(b"v%d" % key, b"key %d" % key) for key in range(6)])
        writer.close()
    delete(shared_server, topic, "key 2")
    delete(shared_server, topic, "key 5")
    before = read_by_kafka(shared_server, topic)
    compact(shared_server, topic, delete_retention_ms="0")
    expected = last_of_keys(before)
    for found in (read_by_kafka(shared_server, topic), read_by_spark(shared_server, topic, "log")):
        assert found == expected
        assert [each.key for each in found if not each.value] == [b"key 2", b"key 5"]
    for read in (read_compacted, read_by_iggy):
        assert [each._replace(value=each.value or None) for each in read(shared_server, topic)] == [
            each._replace(value=each.value or None) for each in expected
        ]
    writer = KafkaClient(shared_server, topic)
    writer.write([Message(b"more", b"key 6")])  # Else there is nothing to compact.
    writer.close()
    more = Read(expected[-1].offset + 1, b"key 6", b"more")
    compact(shared_server, topic)
    check_all_readers(shared_server, topic, [*(each for each in expected if each.value), more])


def control_batches(broker: BrokerProcess) -> int:
    """Return how many markers the files of a broker have that has one topic."""
    count = 0
    for path in broker.data_folder.rglob("*.log"):
        headers = [header for _, header in walk(path.read_bytes())]
        count += sum(1 for header in headers if header.attributes & ATTRIBUTE_CONTROL)
    return count


@pytest.mark.soak
def test_what_was_aborted_goes_and_the_markers_that_nobody_needs(server: BrokerProcess) -> None:
    topic = "compacted"
    create_topic(server, topic)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": server.kafka, "transactional.id": "t", "linger.ms": 0}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    for number in range(8):
        producer.begin_transaction()
        for key in range(4):
            producer.produce(topic, f"{number}", f"key {key + number}")
        producer.flush(PATIENCE_SECONDS)
        if number % 2:
            producer.abort_transaction(PATIENCE_SECONDS)
        else:
            producer.commit_transaction(PATIENCE_SECONDS)
    assert control_batches(server) == 8
    expected = last_of_keys(read_by_kafka(server, topic, "read_committed"))
    compact(server, topic, delete_retention_ms="0")
    check_all_readers(server, topic, expected)
    others = KafkaClient(server, topic)
    others.write([Message(b"other", each.key) for each in expected])
    others.close()
    for _ in range(3):  # All data goes, then the markers, the first of which are due by then.
        compact(server, topic)
        others = KafkaClient(server, topic)
        others.write([Message(b"last", each.key) for each in expected])
        others.close()
    # Those of what was aborted: clients would leave out what the producer writes next.
    assert control_batches(server) == 4
    assert [each.value for each in read_by_kafka(server, topic)[-len(expected) :]] == [
        b"last" for _ in expected
    ]
    producer.begin_transaction()
    producer.produce(topic, "next", "key")
    producer.commit_transaction(PATIENCE_SECONDS)
    assert read_by_kafka(server, topic, "read_committed")[-1].value == b"next"


@pytest.mark.soak
def test_the_java_client_of_pulsar(shared_server: BrokerProcess, tmp_path: Path) -> None:
    topic = "compacted-java"
    create_topic(shared_server, topic)
    for make in (PulsarClient, KafkaClient, IggyClient, PulsarClient):
        writer = make(shared_server, topic)
        for number in range(3):
            writer.write(every_other(number)[:40])
        writer.close()
    expected = last_of_keys(read_by_kafka(shared_server, topic))
    compact(shared_server, topic)
    command = ["java", "-cp", class_path(), str(JAVA), shared_server.pulsar, of_pulsar(topic)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, list[str]] = {"table": [], "reader": [], "shared": [], "again": []}
    for line in ran.stdout.splitlines():
        word, _, said = line.partition(" ")
        found[word].append(said)
    pairs = [f"{each.key.decode()}={(each.value or b'').decode()}" for each in expected]
    assert found["table"] == sorted(pairs)
    assert found["reader"] == found["shared"] == pairs
    assert found["again"] == ["next=next"]
