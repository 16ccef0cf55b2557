"""A real client in a process of its own, which prints its history as `histories.py` describes it.

    python crash_client.py write kafka 127.0.0.1:9092 topic 4 prefix
    python crash_client.py read pulsar 127.0.0.1:6650 topic 4
    python crash_client.py follow iggy 127.0.0.1:8090 topic 4

A writer goes on until it is killed, or until SIGTERM, after which it waits for what is still owed;
`read` ends at the end of the topic, and `follow` never does. All of them outlive the broker.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

PAUSE_SECONDS = float(os.environ.get("CRASH_PAUSE_SECONDS", "0.005"))

MESSAGES_BETWEEN_PAUSES = 20
TIMEOUT_SECONDS = 30

_RESULTS = os.dup(1)
os.dup2(2, 1)  # Pulsar's client writes its complaints to standard output.


def values(prefix: str) -> Iterator[str]:
    """Values that no two writers share, for ever, but not as fast as a machine can."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    for number in itertools.count():
        if stopping.is_set():
            return
        if number % MESSAGES_BETWEEN_PAUSES == 0:
            time.sleep(PAUSE_SECONDS)
        tell("invoked", "-", "-", f"{prefix}-{number}")
        yield f"{prefix}-{number}"


def tell(verb: str, partition: object, offset: object, value: str) -> None:
    # One call a line: clients report acknowledgements on threads of their own.
    os.write(_RESULTS, f"{verb} {partition} {offset} {value}\n".encode())


def write_kafka(address: str, topic: str, prefix: str) -> None:
    from confluent_kafka import Producer

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            tell("ok", message.partition(), message.offset(), message.value().decode())

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 2})
    for value in values(prefix):
        producer.produce(topic, value.encode(), key=value.encode(), on_delivery=delivered)
        producer.poll(0)
    producer.flush(TIMEOUT_SECONDS)


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
            tell("read", message.partition(), message.offset(), message.value().decode())
            left -= 1
    consumer.close()


def follow_kafka(address: str, topic: str, partitions: int) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {"group.id": "follow", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": address, "fetch.wait.max.ms": 50, **settings})
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    while True:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            tell("read", message.partition(), message.offset(), message.value().decode())


def write_pulsar(address: str, topic: str, prefix: str) -> None:
    lock = threading.Lock()

    def delivered(value: str, result: Any, place: Any) -> None:
        import pulsar

        if result == pulsar.Result.Ok:
            with lock:
                offset = place.entry_id() + max(0, place.batch_index())
                is_new = place.entry_id() >= 0  # Else it was sent again, and was there already.
                tell("ok", place.partition(), offset if is_new else "-", value)

    client = connect_pulsar(address)
    producer = client.create_producer(
        topic, block_if_queue_full=True, batching_enabled=True, batching_max_publish_delay_ms=2
    )
    for value in values(prefix):
        producer.send_async(
            value.encode(),
            lambda result, place, value=value: delivered(value, result, place),
            partition_key=value,
        )
    producer.flush()
    client.close()


def read_pulsar(address: str, topic: str, partitions: int) -> None:
    import pulsar

    client = connect_pulsar(address)
    for partition in range(partitions):
        reader = client.create_reader(f"{topic}-partition-{partition}", pulsar.MessageId.earliest)
        while reader.has_message_available():
            message = reader.read_next(TIMEOUT_SECONDS * 1000)
            place = message.message_id()
            offset = place.entry_id() + max(0, place.batch_index())
            tell("read", partition, offset, message.data().decode())
    client.close()


def follow_pulsar(address: str, topic: str, partitions: int) -> None:
    import pulsar

    def got(reader: Any, message: Any) -> None:
        place = message.message_id()
        partition = int(reader.topic().rpartition("-")[2])
        offset = place.entry_id() + max(0, place.batch_index())
        tell("read", partition, offset, message.data().decode())

    client = connect_pulsar(address)
    readers = [
        client.create_reader(
            f"{topic}-partition-{partition}", pulsar.MessageId.earliest, reader_listener=got
        )
        for partition in range(partitions)
    ]
    assert readers
    threading.Event().wait()


def connect_pulsar(address: str) -> Any:
    import pulsar

    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(f"pulsar://{address}", logger=logger)


def write_iggy(address: str, topic: str, prefix: str) -> None:
    asyncio.run(_write_iggy(address, topic, prefix))


async def _write_iggy(address: str, topic: str, prefix: str) -> None:
    from apache_iggy import Partitioning, SendMessage

    client = await _iggy(address)
    stream = values(prefix)
    while batch := list(itertools.islice(stream, MESSAGES_BETWEEN_PAUSES)):
        messages = [SendMessage(value) for value in batch]
        try:
            answer = await client.send_messages("default", topic, Partitioning.balanced(), messages)
        except RuntimeError:  # Nobody knows whether it was written.
            client = await _iggy(address)
            continue
        (place,) = answer.confirmations
        for offset, value in enumerate(batch, place.base_offset):
            tell("ok", place.partition_id, offset, value)


def read_iggy(address: str, topic: str, partitions: int) -> None:
    asyncio.run(_read_iggy(address, topic, partitions))


async def _read_iggy(address: str, topic: str, partitions: int) -> None:
    client = await _iggy(address)
    for partition in range(partitions):
        position = 0
        while (after := await _poll_iggy(client, topic, partition, position)) > position:
            position = after


def follow_iggy(address: str, topic: str, partitions: int) -> None:
    asyncio.run(_follow_iggy(address, topic, partitions))


async def _follow_iggy(address: str, topic: str, partitions: int) -> None:
    client = await _iggy(address)
    positions = [0] * partitions
    while True:
        try:
            for partition, position in enumerate(positions):
                positions[partition] = await _poll_iggy(client, topic, partition, position)
        except RuntimeError:
            client = await _iggy(address)
        await asyncio.sleep(PAUSE_SECONDS)


async def _poll_iggy(client: Any, topic: str, partition: int, position: int) -> int:
    """Tell of what there is at a position, and return the next one."""
    from apache_iggy import Consumer, PollingStrategy

    messages = await client.poll_messages(
        "default",
        topic,
        consumer=Consumer.Single("crash"),
        polling_strategy=PollingStrategy.Offset(position),
        count=1000,
        auto_commit=False,
        partition_id=partition,
    )
    for message in messages:
        tell("read", partition, message.offset(), message.payload().decode())
        position = message.offset() + 1
    return position


async def _iggy(address: str) -> Any:
    from apache_iggy import IggyClient

    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        client = IggyClient.from_connection_string(f"iggy://iggy:iggy@{address}")
        try:
            await client.connect()
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return client


def main() -> None:
    verb, protocol, address, topic, partitions, *prefix = sys.argv[1:]
    work = globals()[f"{verb}_{protocol}"]
    work(address, topic, prefix[0] if verb == "write" else int(partitions))


if __name__ == "__main__":
    main()
