"""What a real client publishes comes back as it was."""

from __future__ import annotations

import contextlib
import random
import threading
import time

import pulsar
import pulsar.schema
import pytest

from patience import PATIENCE_SECONDS, wait_until
from pulsar_messages import RECEIVE_MS, numbered, payloads, publish, receive

CODECS = [
    pulsar.CompressionType.NONE,
    pulsar.CompressionType.LZ4,
    pulsar.CompressionType.ZLib,
    pulsar.CompressionType.ZSTD,
    pulsar.CompressionType.SNAPPY,
]


def subscribed(client: pulsar.Client, topic: str, **options: object) -> pulsar.Consumer:
    options.setdefault("initial_position", pulsar.InitialPosition.Earliest)
    return client.subscribe(topic, "sub", **options)


@pytest.mark.parametrize("batching", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_every_codec_single_and_batched(
    client: pulsar.Client, topic: str, codec: pulsar.CompressionType, batching: bool
) -> None:
    producer = client.create_producer(topic, compression_type=codec, batching_enabled=batching)
    sent = [payload * 20 for payload in numbered(100)]
    ids = publish(producer, sent)
    received = receive(subscribed(client, topic), 100)
    assert payloads(received) == sent
    assert [str(m.message_id()) for m in received] == [str(i) for i in ids]
    # An entry's id is the offset of its first message, whatever the batches were.
    assert [i.entry_id() + max(i.batch_index(), 0) for i in ids] == list(range(100))


def test_a_batch_of_one_is_a_batch(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=True)
    assert producer.send(b"one").batch_index() == 0
    message = subscribed(client, topic).receive(RECEIVE_MS)
    assert (message.data(), message.message_id().batch_index()) == (b"one", 0)


@pytest.mark.parametrize("batching", [False, True])
def test_keys_properties_and_event_time(client: pulsar.Client, topic: str, batching: bool) -> None:
    producer = client.create_producer(topic, producer_name="me", batching_enabled=batching)
    before = int(time.time() * 1000)
    producer.send(
        b"content",
        properties={"a": "1", "b": "ü"},
        partition_key="key",
        ordering_key="order",
        event_timestamp=1_357_000_000_123,
    )
    message = subscribed(client, topic).receive(RECEIVE_MS)
    assert message.data() == b"content"
    assert message.properties() == {"a": "1", "b": "ü"}
    assert (message.partition_key(), message.ordering_key()) == ("key", "order")
    assert message.event_timestamp() == 1_357_000_000_123
    assert before <= message.publish_timestamp() <= int(time.time() * 1000)
    assert message.producer_name() == "me"
    assert message.topic_name() == f"persistent://public/default/{topic}"


class Order(pulsar.schema.Record):  # type: ignore[misc]  # the client has no types
    number = pulsar.schema.Integer()
    text = pulsar.schema.String()


def test_producers_and_consumers_share_a_schema(client: pulsar.Client, topic: str) -> None:
    schema = pulsar.schema.JsonSchema(Order)
    producer = client.create_producer(topic, schema=schema)
    consumer = client.subscribe(
        topic, "sub", schema=schema, initial_position=pulsar.InitialPosition.Earliest
    )
    producer.send(Order(number=7, text="ü"))
    message = consumer.receive(RECEIVE_MS)
    assert (message.value().number, message.value().text) == (7, "ü")
    assert message.schema_version() == "\0" * 8
    began = time.monotonic()
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=pulsar.schema.StringSchema())
    with pytest.raises(pulsar.IncompatibleSchema):
        client.subscribe(topic, "other", schema=pulsar.schema.StringSchema())
    assert time.monotonic() - began < 25, "a client gives up after 30 s"


def test_strings_have_a_schema(client: pulsar.Client, topic: str) -> None:
    schema = pulsar.schema.StringSchema()
    consumer = client.subscribe(topic, "sub", schema=schema)
    client.create_producer(topic, schema=schema).send("ü")
    assert consumer.receive(RECEIVE_MS).value() == "ü"


def test_empty_and_null_payloads_differ(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"")
    producer.send(None)
    empty, null = receive(subscribed(client, topic), 2)
    assert (empty.data(), empty.has_null_value()) == (b"", False)
    assert (null.data(), null.has_null_value()) == (b"", True)


def test_a_large_message_is_cut_into_chunks_and_put_together(
    client: pulsar.Client, topic: str
) -> None:
    producer = client.create_producer(topic, chunking_enabled=True)
    consumer = subscribed(client, topic)
    large = random.Random(1).randbytes(12 * 1024 * 1024)
    producer.send(b"before")
    producer.send(large)
    producer.send(b"after")
    received = receive(consumer, 3)
    # The comparison is made apart: a report of twelve megabytes helps nobody.
    same = payloads(received) == [b"before", large, b"after"]
    assert same
    for message in received:
        consumer.acknowledge(message)


def test_chunks_of_one_message_go_to_one_shared_consumer(client: pulsar.Client, topic: str) -> None:
    shared = pulsar.ConsumerType.Shared
    consumers = [client.subscribe(topic, "sub", shared) for _ in range(3)]
    producers = [client.create_producer(topic, chunking_enabled=True) for _ in range(2)]
    large = [bytes([number]) * (11 * 1024 * 1024) for number in range(4)]
    threads = [
        threading.Thread(target=lambda n=n: [producers[n].send(m) for m in large[n::2]])
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    received: list[bytes] = []

    def drain() -> bool:
        for consumer in consumers:
            with contextlib.suppress(pulsar.Timeout):
                message = consumer.receive(50)
                consumer.acknowledge(message)
                received.append(message.data())
        return len(received) == 4

    wait_until(drain)
    for thread in threads:
        thread.join()
    same = sorted(received) == large
    assert same


def test_the_largest_message_is_five_mebibytes(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    just_fits = b"x" * (5 * 1024 * 1024 - 100)
    producer.send(just_fits)
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(b"x" * (5 * 1024 * 1024 + 1))
    assert subscribed(client, topic).receive(RECEIVE_MS).data() == just_fits


def test_generated_producer_names_differ(client: pulsar.Client, topic: str) -> None:
    names = {client.create_producer(topic).producer_name() for _ in range(3)}
    assert len(names) == 3


def test_a_producer_name_is_taken_while_its_producer_lives(
    client: pulsar.Client, topic: str
) -> None:
    producer = client.create_producer(topic, producer_name="unique")
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic, producer_name="unique")
    producer.close()
    client.create_producer(topic, producer_name="unique").send(b"again")


def test_an_exclusive_producer_keeps_others_out(client: pulsar.Client, topic: str) -> None:
    exclusive = pulsar.ProducerAccessMode.Exclusive
    first = client.create_producer(topic, access_mode=exclusive)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer(topic, access_mode=exclusive)
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic)
    first.send(b"mine")
    first.close()
    client.create_producer(topic).send(b"everybody's")


def test_a_fencing_producer_takes_over(client: pulsar.Client, topic: str) -> None:
    first = client.create_producer(topic, access_mode=pulsar.ProducerAccessMode.Exclusive)
    fencing = client.create_producer(
        topic, access_mode=pulsar.ProducerAccessMode.ExclusiveWithFencing
    )
    fencing.send(b"mine now")
    with pytest.raises((pulsar.ProducerFenced, pulsar.AlreadyClosed)):
        first.send(b"still here")


def test_a_waiting_producer_gets_its_turn(client: pulsar.Client, topic: str) -> None:
    first = client.create_producer(topic, access_mode=pulsar.ProducerAccessMode.Exclusive)
    waiting: list[pulsar.Producer] = []

    def wait() -> None:
        mode = pulsar.ProducerAccessMode.WaitForExclusive
        waiting.append(client.create_producer(topic, access_mode=mode))

    thread = threading.Thread(target=wait)
    thread.start()
    first.send(b"first")
    first.close()
    thread.join(PATIENCE_SECONDS)
    waiting[0].send(b"second")
    assert payloads(receive(subscribed(client, topic), 2)) == [b"first", b"second"]


def test_many_sends_in_flight_keep_their_order(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, max_pending_messages=5000)
    ids = publish(producer, numbered(3000))
    assert [message_id.entry_id() for message_id in ids] == list(range(3000))
    assert payloads(receive(subscribed(client, topic), 3000)) == numbered(3000)
