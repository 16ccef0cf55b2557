"""One real client that writes or reads many messages, in a process of its own.

    python client_load.py write kafka 127.0.0.1:9092 topic 100000 1000

Prints the seconds from the first message to the last one acknowledged or read; starting the client
does not count.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

TIMEOUT_SECONDS = 60
IGGY_BATCH = 1_000
IGGY_POLL = 5_000


def values(count: int, size: int) -> Iterator[bytes]:
    """Values that do not compress, made cheaply: slices of one random block."""
    block = random.Random(count).randbytes(1 << 20) + bytes(size)
    step = 4_093
    for number in range(count):
        start = number * step % (1 << 20)
        yield block[start : start + size]


def write_kafka(address: str, topic: str, count: int, size: int) -> float:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 100_000,
        }
    )
    began = time.perf_counter()
    for value in values(count, size):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    return time.perf_counter() - began


def read_kafka(address: str, topic: str, count: int, size: int) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    began = time.perf_counter()
    left = count
    while left > 0:
        for message in consumer.consume(min(10_000, left), timeout=TIMEOUT_SECONDS):
            assert message.error() is None, message.error()
            assert len(message.value()) == size
            left -= 1
    return time.perf_counter() - began


def write_pulsar(address: str, topic: str, count: int, size: int) -> float:
    import pulsar

    left = threading.Semaphore(0)

    def delivered(result: Any, _place: Any) -> None:
        assert result == pulsar.Result.Ok, result
        left.release()

    producer = _pulsar(address).create_producer(
        f"{topic}-partition-0",
        block_if_queue_full=True,
        max_pending_messages=10_000,
        batching_enabled=True,
        batching_max_messages=5_000,
        batching_max_allowed_size_in_bytes=1 << 20,
        batching_max_publish_delay_ms=5,
    )
    began = time.perf_counter()
    for value in values(count, size):
        producer.send_async(value, delivered)
    producer.flush()
    for _ in range(count):
        left.acquire()
    return time.perf_counter() - began


def read_pulsar(address: str, topic: str, count: int, size: int) -> float:
    import pulsar

    reader = _pulsar(address).create_reader(
        f"{topic}-partition-0", pulsar.MessageId.earliest, receiver_queue_size=10_000
    )
    began = time.perf_counter()
    for _ in range(count):
        assert len(reader.read_next(TIMEOUT_SECONDS * 1000).data()) == size
    return time.perf_counter() - began


def _pulsar(address: str) -> Any:
    import pulsar

    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(f"pulsar://{address}", logger=logger)


def write_iggy(address: str, topic: str, count: int, size: int) -> float:
    return asyncio.run(_write_iggy(address, topic, count, size))


async def _write_iggy(address: str, topic: str, count: int, size: int) -> float:
    from apache_iggy import Partitioning, SendMessage

    client = await _iggy(address)
    began = time.perf_counter()
    batch = []
    for value in values(count, size):
        batch.append(SendMessage(value))
        if len(batch) == IGGY_BATCH:
            await client.send_messages("default", topic, Partitioning.partition_id(0), batch)
            batch = []
    if batch:
        await client.send_messages("default", topic, Partitioning.partition_id(0), batch)
    return time.perf_counter() - began


def read_iggy(address: str, topic: str, count: int, size: int) -> float:
    return asyncio.run(_read_iggy(address, topic, count, size))


async def _read_iggy(address: str, topic: str, count: int, size: int) -> float:
    from apache_iggy import Consumer, PollingStrategy

    client = await _iggy(address)
    began = time.perf_counter()
    position = 0
    while position < count:
        messages = await client.poll_messages(
            "default",
            topic,
            consumer=Consumer.Single("bench"),
            polling_strategy=PollingStrategy.Offset(position),
            count=IGGY_POLL,
            auto_commit=False,
            partition_id=0,
        )
        assert messages
        assert all(len(message.payload()) == size for message in messages)
        position = messages[-1].offset() + 1
    return time.perf_counter() - began


async def _iggy(address: str) -> Any:
    from apache_iggy import IggyClient

    client = IggyClient.from_connection_string(f"iggy://iggy:iggy@{address}")
    await client.connect()
    return client


def main() -> None:
    verb, protocol, address, topic, count, size = sys.argv[1:]
    print(globals()[f"{verb}_{protocol}"](address, topic, int(count), int(size)), flush=True)
    # Without the clients' own ends, some of which take long or fail.
    os._exit(0)


if __name__ == "__main__":
    main()
