"""The demo's Kafka client: confluent-kafka."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from penstock.demo.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.demo.flights import Event

TIMEOUT_SECONDS: Final = 30
BATCH: Final = 1_000


def write(address: str, topic: str, events: Iterable[Event], report: Callable[[int], None]) -> None:
    """Send all events and return when the broker has confirmed each of them."""
    acknowledged = 0

    def delivered(error: Any, _message: Any) -> None:
        nonlocal acknowledged
        if error is not None:
            raise KafkaException(error)
        acknowledged += 1
        report(acknowledged)

    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for event in events:
        producer.produce(topic, event.value, event.key, on_delivery=delivered)
        producer.poll(0)
    if waiting := producer.flush(TIMEOUT_SECONDS):
        raise TimeoutError(f"Kafka: {waiting} events were not confirmed in {TIMEOUT_SECONDS} s")


def read(address: str, topic: str, report: Callable[[int], None]) -> Digest:
    """Read the topic from its beginning to the end that it has now."""
    digest = Digest()
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "penstock-demo",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
    )
    try:
        remaining = _partitions(consumer, topic)
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in remaining])
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while remaining:
            # This waits for so many messages or so long, whichever comes first.
            messages = consumer.consume(BATCH, timeout=0.1)
            if messages:
                deadline = time.monotonic() + TIMEOUT_SECONDS
            elif time.monotonic() > deadline:
                raise TimeoutError(f"Kafka: nothing came for {TIMEOUT_SECONDS} s at {digest.count}")
            for message in messages:
                _add(message, digest, remaining)
            report(digest.count)
    finally:
        consumer.close()
    return digest


def _add(message: Any, digest: Digest, remaining: dict[int, int]) -> None:
    """Take in one message; a partition that is read up to its end remains no longer."""
    if message.error():
        raise KafkaException(message.error())
    digest.add(message.key(), message.value())
    if message.offset() + 1 >= remaining.get(message.partition(), 0):
        remaining.pop(message.partition(), None)


def _partitions(consumer: Consumer, topic: str) -> dict[int, int]:
    """Return the end of each partition that holds anything."""
    found = consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic].partitions
    ends = {
        index: consumer.get_watermark_offsets(TopicPartition(topic, index), TIMEOUT_SECONDS)[1]
        for index in found
    }
    return {index: end for index, end in ends.items() if end > 0}
