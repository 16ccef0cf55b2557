"""Readers, seeking, and where a topic ends, as real clients see it."""

from __future__ import annotations

import time

import pulsar
import pytest

from pulsar_messages import expect_nothing, numbered, payloads, publish, read_all, receive

EARLIEST = pulsar.MessageId.earliest
LATEST = pulsar.MessageId.latest
FROM_START = pulsar.InitialPosition.Earliest


def test_a_reader_from_either_end(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    publish(producer, numbered(5))
    earliest = client.create_reader(topic, EARLIEST)
    latest = client.create_reader(topic, LATEST)
    assert payloads(read_all(earliest)) == numbered(5)
    assert not latest.has_message_available()
    producer.send(b"new")
    assert payloads(read_all(latest)) == [b"new"]
    assert payloads(read_all(earliest)) == [b"new"]


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("inclusive", [False, True])
def test_a_reader_from_a_message(
    client: pulsar.Client, topic: str, batching: bool, inclusive: bool
) -> None:
    producer = client.create_producer(topic, batching_enabled=batching, batching_max_messages=10)
    ids = publish(producer, numbered(100))
    reader = client.create_reader(topic, ids[42], start_message_id_inclusive=inclusive)
    first = 42 if inclusive else 43
    assert payloads(read_all(reader)) == numbered(100 - first, first)


def test_an_empty_topic_has_nothing_available(client: pulsar.Client, topic: str) -> None:
    reader = client.create_reader(topic, EARLIEST)
    assert not reader.has_message_available()
    latest = client.create_reader(topic, LATEST)
    assert not latest.has_message_available()


def test_the_last_message_id(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    empty = consumer.get_last_message_id()
    assert (empty.ledger_id(), empty.entry_id()) == (-1, -1)
    last = client.create_producer(topic).send(b"single")
    assert str(consumer.get_last_message_id()) == str(last)
    batched = client.create_producer(topic, batching_enabled=True)
    last = publish(batched, numbered(7))[-1]
    assert str(consumer.get_last_message_id()) == str(last)
    assert last.batch_index() == 6


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("inclusive", [False, True])
def test_seek_to_a_message(
    client: pulsar.Client, topic: str, batching: bool, inclusive: bool
) -> None:
    consumer = client.subscribe(topic, "sub", start_message_id_inclusive=inclusive)
    producer = client.create_producer(topic, batching_enabled=batching, batching_max_messages=10)
    ids = publish(producer, numbered(100))
    consumer.acknowledge_cumulative(receive(consumer, 100)[-1])
    consumer.seek(ids[50])
    first = 50 if inclusive else 51
    assert payloads(receive(consumer, 100 - first)) == numbered(100 - first, first)
    expect_nothing(consumer)


def test_seek_to_either_end(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    producer = client.create_producer(topic)
    publish(producer, numbered(10))
    receive(consumer, 3)
    consumer.seek(LATEST)
    producer.send(b"new")
    assert payloads(receive(consumer, 1)) == [b"new"]
    consumer.seek(EARLIEST)
    assert payloads(receive(consumer, 11)) == [*numbered(10), b"new"]


def test_seek_to_a_time(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    producer = client.create_producer(topic)
    for payload in numbered(20):
        producer.send(payload)
        time.sleep(0.002)  # Two messages of one millisecond could not be told apart.
    messages = receive(consumer, 20)
    consumer.seek(messages[12].publish_timestamp())
    assert payloads(receive(consumer, 8)) == numbered(8, 12)
    consumer.seek(messages[19].publish_timestamp() + 10_000)
    expect_nothing(consumer)
    consumer.seek(0)
    assert payloads(receive(consumer, 20)) == numbered(20)


def test_seek_forgets_single_acknowledgements(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared)
    publish(client.create_producer(topic), numbered(10))
    for message in receive(consumer, 10)[3:7]:
        consumer.acknowledge(message)
    consumer.seek(EARLIEST)
    assert payloads(receive(consumer, 10)) == numbered(10)


def test_a_reader_seeks_and_keeps_its_place(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    ids = publish(producer, numbered(20))
    reader = client.create_reader(topic, EARLIEST)
    assert payloads(read_all(reader)) == numbered(20)
    for _ in range(3):
        reader.seek(ids[9])
        assert payloads(read_all(reader)) == numbered(10, 10)
    reader.seek(LATEST)
    assert not reader.has_message_available()
    producer.send(b"new")
    assert payloads(read_all(reader)) == [b"new"]


def test_a_reader_of_nothing_but_chunks(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, chunking_enabled=True)
    large = bytes(range(256)) * 4096 * 6
    producer.send(large)
    reader = client.create_reader(topic, EARLIEST)
    assert [message.data() == large for message in read_all(reader)] == [True]


def test_a_table_view_follows_its_topic(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"old", partition_key="a")
    producer.send(b"new", partition_key="a")
    view = client.create_table_view(topic)
    assert view.get("a") == b"new"
    view.close()
