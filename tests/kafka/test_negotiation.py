"""Goal: no client of today is misled by versions from before batches: it sends and reads batches,
compressed as it was told (KAFKA-18659).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from patience import PATIENCE_SECONDS
from penstock.kafka import session
from penstock.kafka.wire import decode_request
from penstock.log.header import ATTRIBUTE_COMPRESSION, read_header
from penstock.testing import Penstock

GZIP = 1
FIRST_WITH_BATCHES = {"Produce": 3, "Fetch": 4}
TOPIC = "events"
VALUE = b"the same again " * 100
WAIT_SECONDS = PATIENCE_SECONDS
READING = {"group_id": "readers", "auto_offset_reset": "earliest"}


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The requests of all clients."""
    received: list[bytes] = []
    receive = session.KafkaSession.receive

    def keep(self: session.KafkaSession, frame: memoryview) -> Any:
        received.append(bytes(frame))
        return receive(self, frame)

    monkeypatch.setattr(session.KafkaSession, "receive", keep)
    return received


@pytest.fixture
def broker(frames: list[bytes]) -> Iterator[Penstock]:
    with Penstock() as broker:
        yield broker
    _check(frames)


def _check(frames: list[bytes]) -> None:
    seen = set()
    for header, request in map(decode_request, frames):
        name = header.api.name
        if name in FIRST_WITH_BATCHES:
            assert header.version >= FIRST_WITH_BATCHES[name]
            seen.add(name)
        if name == "Produce":
            records = request.topic_data[0].partition_data[0].records
            assert read_header(records).attributes & ATTRIBUTE_COMPRESSION == GZIP
    assert seen == set(FIRST_WITH_BATCHES)


def test_librdkafka(broker: Penstock) -> None:
    producer = Producer({"bootstrap.servers": broker.kafka, "compression.type": "gzip"})
    producer.produce(TOPIC, VALUE)
    assert producer.flush(WAIT_SECONDS) == 0
    reading = {name.replace("_", "."): value for name, value in READING.items()}
    consumer = Consumer({"bootstrap.servers": broker.kafka, **reading})
    consumer.subscribe([TOPIC])
    (message,) = consumer.consume(1, WAIT_SECONDS)
    assert message.value() == VALUE
    consumer.close()


def test_kafka_python(broker: Penstock) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.kafka, compression_type="gzip")
    producer.send(TOPIC, VALUE).get(WAIT_SECONDS)
    producer.close()
    consumer = KafkaConsumer(TOPIC, bootstrap_servers=broker.kafka, **READING)
    assert next(consumer).value == VALUE
    consumer.close()


async def test_aiokafka(broker: Penstock) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker.kafka, compression_type="gzip")
    await producer.start()
    await producer.send_and_wait(TOPIC, VALUE)
    await producer.stop()
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=broker.kafka, **READING)
    await consumer.start()
    assert (await consumer.getone()).value == VALUE
    await consumer.stop()
