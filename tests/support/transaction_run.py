"""Transactional producers and their readers over one topic, whatever happens to the broker."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

import crash_client
from broker_process import BrokerProcess
from histories import Event, parse
from penstock.clients.kafka.client import KafkaClient
from transaction_histories import TransactionHistory

CLIENT = Path(__file__).parent / "transaction_client.py"
PULSAR_CLIENT = Path(__file__).parent / "pulsar_transaction_client.py"
TOPIC = "accounts"
PARTITIONS = 3
KAFKA_WRITERS = ("a", "b", "c")
PULSAR_WRITERS = ("p",)
WRITERS = KAFKA_WRITERS + PULSAR_WRITERS
READERS = ("kafka", "pulsar", "iggy")
PATIENCE_SECONDS = 120


class TransactionRun:
    """Writers and one follower; see transaction_client.py and pulsar_transaction_client.py."""

    def __init__(self, server: BrokerProcess) -> None:
        self._server = server
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        with KafkaClient(server.kafka) as client:
            client.create_topic(TOPIC, PARTITIONS)

    @contextlib.contextmanager
    def clients(self) -> Iterator[None]:
        """Run all clients, and leave none."""
        for name in KAFKA_WRITERS:
            self._start(CLIENT, name, "write", self._server.kafka, TOPIC, str(PARTITIONS), name)
        for name in PULSAR_WRITERS:
            self._start_pulsar(name, "write", name)
        self._start(CLIENT, "follower", "follow", self._server.kafka, TOPIC, str(PARTITIONS))
        try:
            yield
        finally:
            for client in self._clients.values():
                client.kill()
                client.wait()

    def wait_for_commits(self, count: int) -> None:
        """Return when each writer has committed so many more transactions."""
        wanted = {name: self._commits(name) + count for name in WRITERS}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(self._commits(name) < least for name, least in wanted.items()):
            counts = {name: self._commits(name) for name in WRITERS}
            assert time.monotonic() < deadline, f"the writers do not get on: {counts}"
            time.sleep(0.01)

    def stop_writers(self) -> None:
        """Have writers end after their transactions."""
        for name in WRITERS:
            self._clients[name].terminate()
        for name in WRITERS:
            assert self._clients[name].wait(PATIENCE_SECONDS) == 0

    def history(self) -> TransactionHistory:
        """Read the whole topic through each protocol, and what the writers have committed."""
        names = [f"read-{protocol}" for protocol in READERS]
        for protocol, name in zip(READERS, names, strict=True):
            address = getattr(self._server, protocol).removeprefix("pulsar://")
            if protocol == "kafka":
                self._start(CLIENT, name, "read", address, TOPIC, str(PARTITIONS))
            else:
                client = Path(crash_client.__file__)
                self._start(client, name, "read", protocol, address, TOPIC, str(PARTITIONS))
        for name in names:
            self._clients[name].wait(PATIENCE_SECONDS)
        return TransactionHistory(
            writers={name: self._events(name) for name in WRITERS},
            followers={"follower": self._events("follower")},
            truths={each: self._events(f"read-{each}") for each in READERS},
            offsets={name: self._offset(name) for name in KAFKA_WRITERS},
            left={name: self._left(name) for name in PULSAR_WRITERS},
        )

    def _offset(self, group: str) -> int:
        consumer = Consumer({"bootstrap.servers": self._server.kafka, "group.id": group})
        (place,) = consumer.committed([TopicPartition(TOPIC, 0)], PATIENCE_SECONDS)
        consumer.close()
        return max(0, place.offset)

    def _left(self, writer: str) -> set[int]:
        name = f"left-{writer}"
        self._start_pulsar(name, "left", writer)
        assert self._clients[name].wait(PATIENCE_SECONDS) == 0
        return set(map(int, self._file(name).read_text().split()))

    def _start_pulsar(self, name: str, verb: str, writer: str) -> None:
        address = self._server.pulsar.removeprefix("pulsar://")
        self._start(PULSAR_CLIENT, name, verb, address, TOPIC, str(PARTITIONS), writer)

    def _start(self, client: Path, name: str, *words: str) -> None:
        errors_file = self._server.folder / "clients.txt"
        with self._file(name).open("wb") as output, errors_file.open("ab") as errors:
            self._clients[name] = subprocess.Popen(
                [sys.executable, str(client), *words], stdout=output, stderr=errors
            )

    def _file(self, name: str) -> Path:
        return self._server.folder / f"{name}.txt"

    def _events(self, name: str) -> list[Event]:
        return parse(self._file(name).read_text())

    def _commits(self, name: str) -> int:
        return self._file(name).read_bytes().count(b"committed ")
