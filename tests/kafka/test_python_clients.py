"""Goal: kafka-python 3.0 and aiokafka work unchanged. Method: a broker as users run it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
DEADLINE_SECONDS = PATIENCE_SECONDS
VALUES = [b"value-%d" % number for number in range(200)]


def poll(consumer: KafkaConsumer, count: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count}"
        for batch in consumer.poll(timeout_ms=500).values():
            records += batch
    return records


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_python_with_every_codec(shared_server: BrokerProcess, codec: str | None) -> None:
    topic = f"kafka-python-{codec}"
    producer = KafkaProducer(bootstrap_servers=shared_server.kafka, compression_type=codec)
    sent = [producer.send(topic, value, key=b"k", headers=[("h", b"v")]) for value in VALUES]
    assert [each.get(DEADLINE_SECONDS).offset for each in sent] == list(range(len(VALUES)))
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=shared_server.kafka,
        group_id=f"group-{topic}",
        auto_offset_reset="earliest",
    )
    records = poll(consumer, len(VALUES))
    assert [record.value for record in records] == VALUES
    assert (records[0].key, records[0].headers) == (b"k", [("h", b"v")])
    consumer.commit()
    assert consumer.committed(TopicPartition(topic, 0)) == len(VALUES)
    consumer.close()


def test_kafka_python_groups_share(shared_server: BrokerProcess) -> None:
    admin = KafkaAdminClient(bootstrap_servers=shared_server.kafka)
    admin.create_topics([NewTopic("kafka-python-shared", 4, 1)])
    options = {
        "bootstrap_servers": shared_server.kafka,
        "group_id": "kafka-python-sharing",
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 6000,
    }
    consumers = [KafkaConsumer("kafka-python-shared", **options) for _ in range(2)]
    deadline = time.monotonic() + DEADLINE_SECONDS
    while [len(each.assignment()) for each in consumers] != [2, 2]:
        assert time.monotonic() < deadline
        for each in consumers:
            each.poll(timeout_ms=100)
    for each in consumers:
        each.close()
    admin.close()


def test_kafka_python_administers(shared_server: BrokerProcess) -> None:
    admin = KafkaAdminClient(bootstrap_servers=shared_server.kafka)
    admin.create_topics([NewTopic("kafka-python-admin", 2, 1)])
    assert "kafka-python-admin" in admin.list_topics()
    (described,) = admin.describe_topics(["kafka-python-admin"])
    assert len(described["partitions"]) == 2
    assert admin.describe_cluster()["controller_id"] == 0
    assert admin.list_groups() is not None
    admin.delete_topics(["kafka-python-admin"])
    assert "kafka-python-admin" not in admin.list_topics()
    admin.close()


@pytest.mark.parametrize("codec", CODECS)
async def test_aiokafka_with_every_codec(shared_server: BrokerProcess, codec: str | None) -> None:
    topic = f"aiokafka-{codec}"
    idempotent = codec == "lz4"
    async with AIOKafkaProducer(
        bootstrap_servers=shared_server.kafka,
        compression_type=codec,
        enable_idempotence=idempotent,
    ) as producer:
        for value in VALUES:
            await producer.send(topic, value, key=b"k", headers=[("h", b"v")])
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=shared_server.kafka,
        group_id=f"group-{topic}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer, asyncio.timeout(DEADLINE_SECONDS):
        records = [await consumer.getone() for _ in VALUES]
        assert [record.value for record in records] == VALUES
        assert (records[0].key, records[0].headers) == (b"k", (("h", b"v"),))
        await consumer.commit()
        assert await consumer.committed(AioTopicPartition(topic, 0)) == len(VALUES)


async def test_aiokafka_administers(shared_server: BrokerProcess) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=shared_server.kafka)
    await admin.start()
    try:
        await admin.create_topics([AioNewTopic("aiokafka-admin", 2, 1)])
        assert "aiokafka-admin" in await admin.list_topics()
        await admin.delete_topics(["aiokafka-admin"])
        assert "aiokafka-admin" not in await admin.list_topics()
        assert await admin.list_consumer_groups() is not None
    finally:
        await admin.close()
