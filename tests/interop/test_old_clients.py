"""Clients of 2012 to 2019 write what today's read, and read what today's and other protocols write.

They come from their registries, and run in interpreters of their time where those are at hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker_process import BrokerProcess
from old_clients import OldClient, kafka_python, of_java, of_node
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

CLIENTS: Final[dict[str, Callable[[], OldClient]]] = {
    "kafka-python 0.9.5": lambda: kafka_python("0.9.5", "2.7"),
    "kafka-python 1.4 for 0.8.2": lambda: kafka_python("1.4.7", "3.6", "0.8.2"),
    "kafka-python 1.4 for 0.9": lambda: kafka_python("1.4.7", "3.6", "0.9"),
    "kafka-python 1.4 for 0.10": lambda: kafka_python("1.4.7", "3.6", "0.10"),
    "kafka-python 1.4": lambda: kafka_python("1.4.7", "3.6", "any"),
    "no-kafka": lambda: of_node("no-kafka", "3.4.4"),
    "kafka-node": lambda: of_node("kafka-node", "5.0.0"),
    "Kafka 0.8.2": of_java,
}
WITH_SNAPPY: Final = {"no-kafka", "Kafka 0.8.2"}
WITHOUT_ZSTD: Final = {"kafka-python 1.4"}
COUNT: Final = 300
EXPECTED: Final = [*((n, None, f"value {n}") for n in range(COUNT)), (COUNT, "key", "with a key")]
SMALL_BYTES, LARGE_BYTES = 2048, 1 << 20
READ_SECONDS = 30


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(name: str) -> OldClient:
    try:
        return CLIENTS[name]()
    except NotAvailableError as reason:
        pytest.skip(f"{name} is not at hand: {reason}")


@pytest.fixture
def topic() -> str:
    """A topic that is this test's own."""
    return f"events-{uuid4().hex}"


def read_now(server: BrokerProcess, topic: str) -> list[tuple[int, str | None, str]]:
    """Offset, key and value of all messages, as a client of today reads them."""
    consumer = Consumer({"bootstrap.servers": server.kafka, "group.id": "now"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[int, str | None, str]] = []
    deadline = time.monotonic() + READ_SECONDS
    while len(found) < COUNT + 1 and time.monotonic() < deadline:
        for message in consumer.consume(COUNT, 0.5):
            assert message.error() is None
            key, value = message.key(), message.value()
            assert value is not None
            found.append((message.offset(), None if key is None else key.decode(), value.decode()))
    consumer.close()
    return found


def write_now(server: BrokerProcess, topic: str, codec: str) -> None:
    settings = {"bootstrap.servers": server.kafka, "compression.type": codec, "linger.ms": 50}
    producer = Producer(settings)
    for n in range(COUNT):
        producer.produce(topic, f"value {n}", partition=0, headers={"name": b"value"})
    producer.produce(topic, "with a key", "key", partition=0)
    assert producer.flush(READ_SECONDS) == 0


@pytest.mark.parametrize(
    ("codec", "acks"), [("none", 0), ("none", 1), ("none", -1), ("gzip", -1), ("snappy", 1)]
)
def test_what_they_write_is_read_by_todays_and_by_themselves(
    shared_server: BrokerProcess, client: OldClient, name: str, topic: str, codec: str, acks: int
) -> None:
    if codec == "snappy" and name not in WITH_SNAPPY:
        pytest.skip("it needs a library of its own for that")
    client.produce(shared_server.kafka, topic, COUNT, codec, acks)
    assert read_now(shared_server, topic) == EXPECTED
    for max_bytes in (SMALL_BYTES, LARGE_BYTES):
        group = f"{topic}-{max_bytes}"
        assert client.consume(shared_server.kafka, topic, COUNT + 1, group, max_bytes) == EXPECTED


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_they_read_what_todays_write(
    shared_server: BrokerProcess, client: OldClient, name: str, topic: str, codec: str
) -> None:
    if codec == "zstd" and name in WITHOUT_ZSTD:
        pytest.skip("it reads batches as they are, and is older than zstd in them")
    write_now(shared_server, topic, codec)
    for max_bytes in (SMALL_BYTES, LARGE_BYTES):
        group = f"{topic}-{max_bytes}"
        assert client.consume(shared_server.kafka, topic, COUNT + 1, group, max_bytes) == EXPECTED


def test_what_one_writes_the_others_read(shared_server: BrokerProcess, topic: str) -> None:
    """All that are at hand, one behind the other in one topic."""
    at_hand = []
    for name, found in CLIENTS.items():
        try:
            at_hand.append((name, found()))
        except NotAvailableError:
            continue
    for _, writer in at_hand:
        writer.produce(shared_server.kafka, topic, COUNT, "gzip", -1)
    count = (COUNT + 1) * len(at_hand)
    expected = [(key, value) for _ in at_hand for _, key, value in EXPECTED]
    for name, reader in at_hand:
        group = f"{topic}-{name.replace(' ', '-')}"
        read = reader.consume(shared_server.kafka, topic, count, group, LARGE_BYTES)
        assert [offset for offset, _, _ in read] == list(range(count)), name
        assert [(key, value) for _, key, value in read] == expected, name
