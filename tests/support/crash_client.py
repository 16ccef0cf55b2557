"""A real client in a process of its own that writes until it is killed, or reads what there is.

    python crash_client.py write kafka 127.0.0.1:9092 topic 4 prefix
    python crash_client.py read pulsar 127.0.0.1:6650 topic 4

Both print a line `partition offset value` for every message: a writer when the broker has
acknowledged it, a reader when it has read it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

PAUSE_SECONDS = 0.002
MESSAGES_BETWEEN_PAUSES = 20
TIMEOUT_SECONDS = 30

_RESULTS = os.dup(1)
os.dup2(2, 1)  # Pulsar's client writes its complaints to standard output.


def values(prefix: str) -> Iterator[str]:
    """Values that no two writers share, for ever, but not as fast as a machine can."""
    for number in itertools.count():
        if number % MESSAGES_BETWEEN_PAUSES == 0:
            time.sleep(PAUSE_SECONDS)
        yield f"{prefix}-{number}"


def tell(partition: object, offset: object, value: str) -> None:
    # One call a line: writers are told of acknowledgements on threads of their clients.
    os.write(_RESULTS, f"{partition} {offset} {value}\n".encode())


def write_kafka(address: str, topic: str, prefix: str) -> None:
    from confluent_kafka import Producer

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            tell(message.partition(), message.offset(), message.value().decode())

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 2})
    for value in values(prefix):
        producer.produce(topic, value.encode(), key=value.encode(), on_delivery=delivered)
        producer.poll(0)


def read_kafka(address: str, topic: str, partitions: int) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "crash", "enable.auto.commit": False}
    )
    places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)]
    ends = [consumer.get_watermark_offsets(place, timeout=TIMEOUT_SECONDS)[1] for place in places]
    consumer.assign(places)
    left = sum(ends)
    while left > 0:
        # It waits until it has as many as it is asked for.
        for message in consumer.consume(min(1000, left), timeout=TIMEOUT_SECONDS):
            assert message.error() is None, message.error()
            tell(message.partition(), message.offset(), message.value().decode())
            left -= 1
    consumer.close()


def write_pulsar(address: str, topic: str, prefix: str) -> None:
    lock = threading.Lock()

    def delivered(value: str, result: Any, place: Any) -> None:
        import pulsar

        if result == pulsar.Result.Ok:
            with lock:
                tell(place.partition(), place.entry_id() + max(0, place.batch_index()), value)

    producer = _pulsar(address).create_producer(
        topic, block_if_queue_full=True, batching_enabled=True, batching_max_publish_delay_ms=2
    )
    for value in values(prefix):
        producer.send_async(
            value.encode(),
            lambda result, place, value=value: delivered(value, result, place),
            partition_key=value,
        )


def read_pulsar(address: str, topic: str, partitions: int) -> None:
    import pulsar

    client = _pulsar(address)
    for partition in range(partitions):
        reader = client.create_reader(f"{topic}-partition-{partition}", pulsar.MessageId.earliest)
        while reader.has_message_available():
            message = reader.read_next(TIMEOUT_SECONDS * 1000)
            place = message.message_id()
            offset = place.entry_id() + max(0, place.batch_index())
            tell(partition, offset, message.data().decode())
    client.close()


def _pulsar(address: str) -> Any:
    import pulsar

    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(f"pulsar://{address}", logger=logger)


def write_iggy(address: str, topic: str, prefix: str) -> None:
    asyncio.run(_write_iggy(address, topic, prefix))


async def _write_iggy(address: str, topic: str, prefix: str) -> None:
    from apache_iggy import Partitioning, SendMessage

    client = await _iggy(address)
    stream = values(prefix)
    while True:
        batch = list(itertools.islice(stream, MESSAGES_BETWEEN_PAUSES))
        messages = [SendMessage(value) for value in batch]
        answer = await client.send_messages("default", topic, Partitioning.balanced(), messages)
        (place,) = answer.confirmations
        for offset, value in enumerate(batch, place.base_offset):
            tell(place.partition_id, offset, value)


def read_iggy(address: str, topic: str, partitions: int) -> None:
    asyncio.run(_read_iggy(address, topic, partitions))


async def _read_iggy(address: str, topic: str, partitions: int) -> None:
    from apache_iggy import Consumer, PollingStrategy

    client = await _iggy(address)
    for partition in range(partitions):
        position = 0
        while messages := await client.poll_messages(
            "default",
            topic,
            consumer=Consumer.Single("crash"),
            polling_strategy=PollingStrategy.Offset(position),
            count=1000,
            auto_commit=False,
            partition_id=partition,
        ):
            for message in messages:
                tell(partition, message.offset(), message.payload().decode())
                position = message.offset() + 1


async def _iggy(address: str) -> Any:
    from apache_iggy import IggyClient

    client = IggyClient.from_connection_string(f"iggy://iggy:iggy@{address}")
    await client.connect()
    return client


def main() -> None:
    verb, protocol, address, topic, partitions, *prefix = sys.argv[1:]
    work = globals()[f"{verb}_{protocol}"]
    work(address, topic, prefix[0] if verb == "write" else int(partitions))


if __name__ == "__main__":
    main()
