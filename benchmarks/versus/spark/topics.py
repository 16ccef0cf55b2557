"""The rows that both brokers hold, made once and sent to each by the same client."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from versus.spark import orders

PARTITIONS: Final = 4
_BLOCK: Final = 1 << 20
_STRIDE: Final = 4_093
"""A prime, so that values that follow each other share nothing to compress."""


@dataclass(frozen=True)
class Topic:
    """A topic with so many rows at full scale."""

    name: str
    rows: int
    values: Callable[[int], Iterator[bytes]]


def random_values(size: int) -> Callable[[int], Iterator[bytes]]:
    def values(rows: int) -> Iterator[bytes]:
        block = os.urandom(_BLOCK + size)
        for number in range(rows):
            start = number * _STRIDE % _BLOCK
            yield block[start : start + size]

    return values


BYTES_100: Final = Topic("bytes-100", 10_000_000, random_values(100))
BYTES_1000: Final = Topic("bytes-1000", 2_000_000, random_values(1000))
ORDERS: Final = Topic("orders", 10_000_000, orders.as_json)
AVRO_ORDERS: Final = Topic("avro-orders", 10_000_000, orders.as_avro)
SMALL: Final = Topic("small", 30_000, random_values(100))


def fill(address: str, topic: Topic, rows: int) -> None:
    """Make the topic and send it its rows, with the producer's defaults and acks=all."""
    admin = AdminClient({"bootstrap.servers": address})
    for created in admin.create_topics([NewTopic(topic.name, PARTITIONS, 1)]).values():
        created.result(60)
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 20})
    for number, value in enumerate(topic.values(rows)):
        key = b"key-%012d" % number
        while True:
            try:
                producer.produce(topic.name, value, key)
                break
            except BufferError:
                producer.poll(0.05)
    if left := producer.flush(300):
        raise RuntimeError(f"{left} rows of {topic.name} were not acknowledged in 300 s")
