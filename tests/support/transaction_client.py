"""A transactional producer, or a reader of what is committed, in a process of its own.

    python transaction_client.py write 127.0.0.1:9092 topic 4 name
    python transaction_client.py follow 127.0.0.1:9092 topic 4
    python transaction_client.py read 127.0.0.1:9092 topic 4

What it prints is a history as `transaction_histories.py` describes it. A writer goes on until
SIGTERM; with each transaction it commits its number as an offset of the group of its own name. Its
last one is aborted. All of them outlive the broker.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

PAUSE_SECONDS = 0.002
RETRY_SECONDS = 0.05
ANSWER_SECONDS = 30
TRANSACTION_TIMEOUT_MS = 20_000
QUICK = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    # Else librdkafka 2.12 may send offsets to a broker that it has forgotten, and waits for ever.
    "metadata.recovery.strategy": "none",
}


def tell(verb: str, partition: object, offset: object, value: str) -> None:
    os.write(1, f"{verb} {partition} {offset} {value}\n".encode())


class Writer:
    """One transaction after another, committed or aborted as chance has it."""

    def __init__(self, address: str, topic: str, partitions: int, name: str) -> None:
        self._address = address
        self._topic = topic
        self._partitions = partitions
        self._name = name
        self._chance = random.Random(name)
        # Only for the name of the group: it reads nothing.
        self._consumer = Consumer({"bootstrap.servers": address, "group.id": name, **QUICK})
        self._producer = self._begun()

    def run(self) -> None:
        stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        for number in itertools.count(1):
            is_last = stopping.is_set()
            try:
                # Behind an aborted one it shows in the group's offset if that did not wait for it.
                self._transaction(number, is_aborted=is_last)
            except KafkaException as refusal:
                self._recover(refusal.args[0])
            else:
                if is_last:
                    return
            time.sleep(PAUSE_SECONDS)

    def _transaction(self, number: int, *, is_aborted: bool) -> None:
        name = f"{self._name}/{number}"
        self._producer.begin_transaction()
        for message in range(self._chance.randint(1, 6)):
            value = f"{name}/{message}"
            tell("invoked", "-", "-", value)
            self._producer.produce(
                self._topic, value.encode(), partition=self._chance.randrange(self._partitions)
            )
        place = TopicPartition(self._topic, 0, number)
        self._producer.send_offsets_to_transaction(
            [place], self._consumer.consumer_group_metadata(), ANSWER_SECONDS
        )
        if is_aborted or self._chance.random() < 0.25:
            self._producer.flush(ANSWER_SECONDS)
            self._producer.abort_transaction(ANSWER_SECONDS)
            tell("aborted", "-", "-", name)
        else:
            tell("committing", "-", "-", name)
            self._producer.commit_transaction(ANSWER_SECONDS)
            tell("committed", "-", "-", name)

    def _recover(self, error: KafkaError) -> None:
        """What has become of it is for the readers to find out."""
        sys.stderr.write(f"{self._name}: {error}\n")
        if not error.fatal() and error.txn_requires_abort():
            try:
                self._producer.abort_transaction(ANSWER_SECONDS)
            except KafkaException:
                self._producer = self._begun()
        else:
            self._producer = self._begun()

    def _begun(self) -> Producer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self._address,
            "transactional.id": self._name,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 0,
            **QUICK,
        }
        while True:
            producer = Producer(settings)
            try:
                producer.init_transactions(ANSWER_SECONDS)
            except KafkaException:
                time.sleep(RETRY_SECONDS)
            else:
                return producer


def read(address: str, topic: str, partitions: int, *, goes_on: bool) -> None:
    """Read all that is committed from the beginning, to the end or for ever."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": not goes_on,
            "fetch.wait.max.ms": 50,
            **QUICK,
        }
    )
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    ended = 0
    while goes_on or ended < partitions:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is None:
            tell("read", message.partition(), message.offset(), message.value().decode())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended += 1
    consumer.close()


def main() -> None:
    verb, address, topic, partitions, *name = sys.argv[1:]
    if verb == "write":
        Writer(address, topic, int(partitions), name[0]).run()
    else:
        read(address, topic, int(partitions), goes_on=verb == "follow")


if __name__ == "__main__":
    main()
