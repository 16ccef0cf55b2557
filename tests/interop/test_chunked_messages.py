"""A message that Pulsar cut into chunks is one message to the clients of the other protocols."""

from __future__ import annotations

import random
import uuid

import pulsar
from confluent_kafka import Consumer, Producer

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS

LARGE = random.Random(1).randbytes(12_000_000)


def test_a_chunked_message_is_one_kafka_message(shared_server: BrokerProcess) -> None:
    topic = f"chunked-{uuid.uuid4().hex}"
    kafka = Producer({"bootstrap.servers": shared_server.kafka})
    client = pulsar.Client(
        shared_server.pulsar, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    try:
        kafka.produce(topic, b"before")
        kafka.flush(PATIENCE_SECONDS)
        cutting = [
            client.create_producer(topic, chunking_enabled=True, compression_type=codec)
            for codec in (pulsar.CompressionType.NONE, pulsar.CompressionType.LZ4)
        ]
        # Sent side by side, so that the chunks of the two messages may alternate in the log.
        for number, producer in enumerate(cutting):
            producer.send_async(
                LARGE, lambda *_: None, partition_key=str(number), properties={"n": str(number)}
            )
        for producer in cutting:
            producer.flush()
        kafka.produce(topic, b"after")
        kafka.flush(PATIENCE_SECONDS)
    finally:
        client.close()

    messages = read(shared_server, topic, 4)
    assert messages[0].value() == b"before"
    assert messages[-1].value() == b"after"
    large = {message.key(): message for message in messages[1:3]}
    assert set(large) == {b"0", b"1"}
    for key, message in large.items():
        assert message.value() == LARGE
        assert dict(message.headers())["n"] == key
    assert messages[-1].offset() > 4, "the chunks before the last one are a gap"


def read(server: BrokerProcess, topic: str, count: int) -> list:
    consumer = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    messages: list = []
    for _ in range(60):
        messages += consumer.consume(count - len(messages), 1.0)
        if len(messages) == count:
            break
    consumer.close()
    assert len(messages) == count
    assert all(message.error() is None for message in messages)
    return messages
