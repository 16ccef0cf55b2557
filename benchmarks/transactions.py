"""What a transaction takes: how many a second one producer commits, for how long it waits for an
end, in milliseconds, and what it costs the broker of CPU, in milliseconds.

librdkafka's producer has one transaction after another: of one message, and of 100 messages of 1 KB
over four partitions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.demo.processes import running_broker

TOPIC: Final = "transactions"
PARTITIONS: Final = 4
VALUE: Final = bytes(1024)
SIZES: Final = (1, 100)
"""Messages of a transaction."""
ANSWER_SECONDS: Final = 60


def one_after_another(producer: Producer, messages: int, seconds: float) -> list[float]:
    """Commit transactions for so long; return how long each took from its first message on."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        producer.begin_transaction()
        for number in range(messages):
            producer.produce(TOPIC, VALUE, partition=number % PARTITIONS)
        producer.commit_transaction(ANSWER_SECONDS)
        took.append(time.perf_counter() - begin)
    return sorted(took)


def measure(folder: Path, seconds: float) -> dict[str, float]:
    measured: dict[str, float] = {}
    with running_broker(folder) as addresses:
        address = {"bootstrap.servers": addresses["kafka"]}
        admin = AdminClient(address)
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(ANSWER_SECONDS)
        broker = broker_in(folder)
        producer = Producer({**address, "transactional.id": "benchmark", "linger.ms": 0})
        producer.init_transactions(ANSWER_SECONDS)
        for messages in SIZES:
            one_after_another(producer, messages, seconds / 4)
            before = cpu_seconds(broker)
            took = one_after_another(producer, messages, seconds)
            cpu = (cpu_seconds(broker) - before) / len(took)
            figures = {
                "a second": len(took) / sum(took),
                "p50 ms": took[len(took) // 2] * 1000,
                "p99 ms": took[len(took) * 99 // 100] * 1000,
                "broker CPU ms": cpu * 1000,
            }
            for name, figure in figures.items():
                measured[f"{messages} messages, {name}"] = figure
                print(f"{messages:4} messages, {name:14} {figure:10.2f}", flush=True)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each size")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-transactions-") as folder:
        measured = measure(Path(folder), arguments.seconds)
    saved.compare("transactions", measured, save=arguments.save)


if __name__ == "__main__":
    main()
