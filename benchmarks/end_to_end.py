"""How long a message takes from its producer to a consumer that waits for it, at a steady rate.

Producer and consumer are real clients in this process; the time is that between the call that sends
a message and the one that returns it. Nobody sees what is not flushed, so before each of them the
floor is measured on the same file system: a write and a flush each time, at the same rate.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pulsar
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

import saved
from penstock.clients.kafka.client import KafkaClient
from penstock.demo.processes import running_broker

TIMEOUT_SECONDS = 60
STAMP = struct.Struct("d")
WARM_UP_SECONDS = 1.0
"""librdkafka's consumer begins half a second late, and then catches up."""
FLOOR = "one write and flush"

Send = Callable[[bytes], None]
Receive = Callable[[], bytes]


@contextmanager
def kafka(address: str, acks: str) -> Iterator[tuple[Send, Receive]]:
    topic = f"to-kafka-{acks}"
    with KafkaClient(address) as client:
        client.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": acks})
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def send(value: bytes) -> None:
        producer.produce(topic, value)
        producer.poll(0)

    def receive() -> bytes:
        message = consumer.poll(TIMEOUT_SECONDS)
        assert message is not None
        assert message.error() is None, message.error()
        value: bytes = message.value()
        return value

    yield send, receive
    producer.flush(TIMEOUT_SECONDS)
    consumer.close()


@contextmanager
def pulsar_clients(address: str) -> Iterator[tuple[Send, Receive]]:
    logger = logging.getLogger("pulsar")
    logger.setLevel(logging.ERROR)
    client = pulsar.Client(f"pulsar://{address}", logger=logger)
    consumer = client.subscribe("to-pulsar", "bench")
    producer = client.create_producer("to-pulsar", batching_enabled=False, block_if_queue_full=True)

    def receive() -> bytes:
        message = consumer.receive(TIMEOUT_SECONDS * 1000)
        consumer.acknowledge(message)
        value: bytes = message.data()
        return value

    yield lambda value: producer.send_async(value, lambda *_: None), receive
    producer.flush()
    client.close()


def floor(path: Path, rate: int, seconds: float, size: int) -> list[float]:
    """Append to a file and flush it at a rate; return the seconds of each write with its flush."""
    taken: list[float] = []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        began = time.perf_counter()
        for number in range(int(rate * seconds)):
            time.sleep(max(0.0, began + number / rate - time.perf_counter()))
            start = time.perf_counter()
            os.write(descriptor, bytes(size))
            os.fdatasync(descriptor)
            taken.append(time.perf_counter() - start)
    finally:
        os.close(descriptor)
    return taken


def latencies(send: Send, receive: Receive, rate: int, seconds: float, size: int) -> list[float]:
    """Send at a rate, receive beside it; return the seconds of each message after the warm-up."""
    count = int(rate * (seconds + WARM_UP_SECONDS))
    taken: list[float] = []

    def receive_all() -> None:
        for _ in range(count):
            (sent,) = STAMP.unpack_from(receive())
            taken.append(time.perf_counter() - sent)

    receiver = threading.Thread(target=receive_all)
    receiver.start()
    began = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        send(STAMP.pack(time.perf_counter()).ljust(size, b"."))
    receiver.join(TIMEOUT_SECONDS)
    assert len(taken) == count, f"{len(taken)} of {count} came"
    return taken[int(rate * WARM_UP_SECONDS) :]


def measured(folder: Path, arguments: argparse.Namespace) -> dict[str, float]:
    numbers: dict[str, float] = {}
    floors: list[float] = []
    load = (arguments.rate, arguments.seconds, arguments.bytes)
    with running_broker(folder) as addresses:
        for title, clients in (
            ("kafka acks=all", kafka(addresses["kafka"], "all")),
            ("kafka acks=1", kafka(addresses["kafka"], "1")),
            ("pulsar", pulsar_clients(addresses["pulsar"])),
        ):
            floors += floor(folder / "floor", *load)
            with clients as (send, receive):
                numbers |= quantiles(title, latencies(send, receive, *load))
    return numbers | quantiles(FLOOR, floors)


def quantiles(title: str, taken: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(taken, n=100)
    return {f"{title}, p50 ms": cuts[49] * 1000, f"{title}, p99 ms": cuts[98] * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000, help="messages a second")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--bytes", type=int, default=1_000, help="size of a message's value")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        numbers = measured(Path(name), arguments)
    print(f"{'':40}{'':10}{'times the floor':>17}")
    for title, number in numbers.items():
        least = numbers[f"{FLOOR},{title.rpartition(',')[2]}"]
        print(f"{title:40}{number:10.2f}{number / least:17.1f}")
    saved.compare("end-to-end", numbers, save=arguments.save)


if __name__ == "__main__":
    main()
