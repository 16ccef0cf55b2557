"""What one test with a consumer group costs: with a broker inside its process, and with Kafka.

Each round runs both, one after the other. A broker is started for the one test, a message is
written and flushed, a group reads it, and the broker is stopped. Kafka is its JVM from the
published artifacts, with its default settings but for a group that need not wait 3 s for more
members; what a container adds, its image, its layers and its own start, comes on top.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import confluent_kafka

from penstock.testing import Penstock
from versus.peers.kafka import Kafka
from versus.peers.peer import Durability

CACHE = Path("build/versus/peers")
SECONDS = 60


@contextlib.contextmanager
def inside() -> Iterator[str]:
    """A broker in this process."""
    with Penstock() as broker:
        yield broker.kafka


@contextlib.contextmanager
def jvm(kafka: Kafka) -> Iterator[str]:
    """A fresh Kafka, from the formatting of its storage to the end of its process."""
    with tempfile.TemporaryDirectory() as folder:
        launch = kafka.prepare(Path(folder), Durability.WRITTEN)
        address = f"127.0.0.1:{launch.ports['kafka']}"
        environment = {**os.environ, **(launch.environment or {})}
        with subprocess.Popen(
            launch.command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        ) as process:
            try:
                yield address
            finally:
                process.terminate()
                process.wait()


def run_test(address: str) -> None:
    """Write one message and read it as a group."""
    topic = f"test-{uuid.uuid4().hex[:8]}"
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": address, "reconnect.backoff.max.ms": 100, "log_level": 0}
    )
    producer.produce(topic, b"one")
    assert producer.flush(SECONDS) == 0
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    message = consumer.poll(SECONDS)
    assert message is not None
    assert message.value() == b"one"
    consumer.close()


def timed(start: Callable[[], AbstractContextManager[str]]) -> tuple[float, float, float]:
    """Seconds until clients can connect, or nearly, of the first test, and of another one."""
    began = time.perf_counter()
    with start() as address:
        ready = time.perf_counter()
        run_test(address)
        first = time.perf_counter()
        run_test(address)
        second = time.perf_counter()
    stopped = time.perf_counter()
    return first - began, second - first, stopped - second + ready - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    kafka = Kafka()
    kafka.obtain(CACHE)
    brokers = {"Penstock inside": inside, f"Kafka {kafka.version}": partial(jvm, kafka)}
    with inside() as address:  # The imports are paid once a process, and not here.
        run_test(address)
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in brokers}
    for _ in range(arguments.rounds):
        for name, start in brokers.items():
            times[name].append(timed(start))
    print("| | start and first test | another test | |")
    for name, rounds in times.items():
        shown = [
            f"{statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f}) s"
            for each in zip(*rounds, strict=True)
        ]
        print(f"| {name} | {shown[0]} | {shown[1]} | start and stop alone {shown[2]} |")


if __name__ == "__main__":
    main()
