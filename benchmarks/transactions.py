"""What a transaction takes: how many a second one producer commits, for how long it waits for an
end, in milliseconds, and what it costs the broker of CPU, in milliseconds.

librdkafka's producer has one transaction after another: of one message, and of 100 messages of 1 KB
over four partitions. Then what it costs the broker to have one read what is committed, where one of
five transactions aborts, as a part of what it costs to have all read, in turn.
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
from penstock.clients.kafka.client import KafkaClient
from penstock.demo.processes import running_broker
from penstock.log.header import walk

TOPIC: Final = "transactions"
PARTITIONS: Final = 4
VALUE: Final = bytes(1024)
SIZES: Final = (1, 100)
"""Messages of a transaction."""
ANSWER_SECONDS: Final = 60
READ_TOPIC: Final = "read"
READ_SIZES: Final = (1, 10)
READ_TRANSACTIONS: Final = 1500
READ_ROUNDS: Final = 5


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


def written(producer: Producer, topic: str, messages: int) -> None:
    """Write transactions of which one in five aborts."""
    for number in range(READ_TRANSACTIONS):
        producer.begin_transaction()
        for _ in range(messages):
            producer.produce(topic, VALUE, partition=0)
        if number % 5:
            producer.commit_transaction(ANSWER_SECONDS)
        else:
            producer.flush(ANSWER_SECONDS)  # Else it is dropped, and there is nothing to abort.
            producer.abort_transaction(ANSWER_SECONDS)


def read_cost(client: KafkaClient, topic: str, broker: int, seconds: float) -> float:
    """Return how much more CPU of the broker it takes to read what is committed."""
    used = {True: 0.0, False: 0.0}
    reads = dict.fromkeys(used, 0)
    for number in range(2 * READ_ROUNDS):
        committed = number % 2 == 0
        end = time.perf_counter() + seconds / READ_ROUNDS
        before = cpu_seconds(broker)
        while time.perf_counter() < end:
            read_all(client, topic, committed=committed)
            reads[committed] += 1
        used[committed] += cpu_seconds(broker) - before
    return used[True] / reads[True] / (used[False] / reads[False])


def read_all(client: KafkaClient, topic: str, *, committed: bool) -> None:
    """Fetch a topic of one partition from its beginning to its end."""
    offset = 0
    while (fetched := client.fetch(topic, 0, offset, committed=committed)).batches:
        for _, header in walk(fetched.batches):
            offset = header.next_offset


def measure_reads(folder: Path, seconds: float) -> dict[str, float]:
    measured: dict[str, float] = {}
    with running_broker(folder) as addresses, KafkaClient(addresses["kafka"]) as client:
        broker = broker_in(folder)
        address = {"bootstrap.servers": addresses["kafka"], "transactional.id": "benchmark"}
        producer = Producer({**address, "linger.ms": 0})
        producer.init_transactions(ANSWER_SECONDS)
        for messages in READ_SIZES:
            topic = f"{READ_TOPIC}-{messages}"
            client.create_topic(topic, 1)
            written(producer, topic, messages)
            ratio = read_cost(client, topic, broker, seconds)
            measured[f"{messages} messages, committed / all"] = ratio
            print(f"{messages:4} messages, committed / all {ratio:10.3f}", flush=True)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each size")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-transactions-") as folder:
        measured: dict[str, float] = {}
        for measurement in (measure, measure_reads):
            of_its_own = Path(folder, measurement.__name__)
            of_its_own.mkdir()
            measured |= measurement(of_its_own, arguments.seconds)
    saved.compare("transactions", measured, save=arguments.save)


if __name__ == "__main__":
    main()
