"""Goal: what a client of one protocol sets for a topic holds for, and is seen by, all others."""

from __future__ import annotations

import time
from collections.abc import Iterator

import apache_iggy
import confluent_kafka
import pulsar
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from broker_process import BrokerProcess
from iggy_clients import connected, send
from patience import PATIENCE_SECONDS, wait_until

STREAM = "default"
SOON_SECONDS = 20
"""A client of Pulsar gives up after 30."""


def create(server: BrokerProcess, topic: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    named = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, 1, 1, config=named)])[topic].result(PATIENCE_SECONDS)


def described(server: BrokerProcess, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(PATIENCE_SECONDS)
    return {name: entry.value for name, entry in entries.items() if not entry.is_default}


def end_offset(server: BrokerProcess, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.kafka, "group.id": "ends"})
    try:
        return consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0))[1]
    finally:
        consumer.close()


@pytest.fixture
def pulsar_client(shared_server: BrokerProcess) -> Iterator[pulsar.Client]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(shared_server.pulsar, logger=logger)
    yield client
    client.shutdown()


@pytest.mark.parametrize("batching", [False, True])
def test_a_pulsar_message_that_is_too_large_fails_at_once_and_alone(
    shared_server: BrokerProcess, pulsar_client: pulsar.Client, batching: bool
) -> None:
    topic = f"small-for-pulsar-{batching}"
    create(shared_server, topic, max_message_bytes="1000")
    producer = pulsar_client.create_producer(topic, batching_enabled=batching)
    began = time.monotonic()
    for body in (b"before", bytes(5_000), b"after"):
        if len(body) < 1_000:
            producer.send(body)
        else:
            with pytest.raises(pulsar.ChecksumError):
                producer.send(body)
    assert time.monotonic() - began < SOON_SECONDS
    assert end_offset(shared_server, topic) == 2


def test_pulsar_messages_on_their_way_are_not_failed_by_one_that_is_too_large(
    shared_server: BrokerProcess, pulsar_client: pulsar.Client
) -> None:
    create(shared_server, "small-for-many", max_message_bytes="1000")
    producer = pulsar_client.create_producer("small-for-many", batching_enabled=False)
    results: dict[int, pulsar.Result] = {}
    for number in range(50):
        body = bytes(5_000) if number == 20 else b"small"
        producer.send_async(body, lambda result, _, number=number: results.update({number: result}))
    wait_until(lambda: len(results) == 50)
    assert {number for number, result in results.items() if result != pulsar.Result.Ok} == {20}
    assert end_offset(shared_server, "small-for-many") == 49


def test_a_topic_of_100_bytes_takes_no_5000_from_pulsar(
    shared_server: BrokerProcess, pulsar_client: pulsar.Client
) -> None:
    create(shared_server, "hundred", max_message_bytes="100")
    producer = pulsar_client.create_producer("hundred")
    with pytest.raises(pulsar.ChecksumError):
        producer.send(bytes(5_000))
    assert end_offset(shared_server, "hundred") == 0


async def test_an_iggy_batch_that_is_too_large_is_refused(shared_server: BrokerProcess) -> None:
    create(shared_server, "small-for-iggy", max_message_bytes="1000")
    client = await connected(shared_server.iggy)
    assert await send(client, STREAM, "small-for-iggy", b"before") == 0
    with pytest.raises(RuntimeError, match=r"(?i)too big message payload"):
        await send(client, STREAM, "small-for-iggy", bytes(5_000))
    assert await send(client, STREAM, "small-for-iggy", b"after") == 1


def test_a_kafka_batch_that_is_too_large_is_refused(shared_server: BrokerProcess) -> None:
    create(shared_server, "small-for-kafka", max_message_bytes="1000")
    producer = confluent_kafka.Producer({"bootstrap.servers": shared_server.kafka})
    errors: list[confluent_kafka.KafkaError | None] = []
    for size in (5_000, 5):
        producer.produce(
            "small-for-kafka", bytes(size), on_delivery=lambda error, _: errors.append(error)
        )
        assert producer.flush(PATIENCE_SECONDS) == 0
    assert errors[0] is not None
    assert errors[0].code() == confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE
    assert errors[1] is None


async def test_iggy_sees_what_a_kafka_client_set(shared_server: BrokerProcess) -> None:
    create(
        shared_server,
        "set-by-kafka",
        segment_bytes=str(64 << 20),
        cleanup_policy="compact,delete",
        retention_ms="90000",
        penstock_flush="acknowledged",
        max_message_bytes="1000",
    )
    client = await connected(shared_server.iggy)
    topic = await client.get_topic(STREAM, "set-by-kafka")
    assert topic is not None
    assert topic.options.to_scalar_dict() == {
        "segment_size": 64 << 20,
        "message_expiry": 90_000_000,
        "durability": "persisted",
    }
    assert "topic set-by-kafka: " not in shared_server.log


async def test_kafka_sees_what_an_iggy_client_set(shared_server: BrokerProcess) -> None:
    client = await connected(shared_server.iggy)
    await client.create_stream("configured")
    await client.create_topic(
        "configured",
        "by-iggy",
        1,
        message_expiry=apache_iggy.IggyExpiry.NeverExpire(),
        compression_algorithm="gzip",
        options={"segment_size": "128 MiB", "durability": "persisted"},
    )
    assert described(shared_server, "configured.by-iggy") == {
        "segment.bytes": str(128 << 20),
        "retention.ms": "-1",
        "penstock.flush": "acknowledged",
        "penstock.compression.label": "gzip",
        "penstock.consumer.offset.durability": "replicated",
    }
