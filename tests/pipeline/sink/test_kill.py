"""Goal: each row is written once, whoever is killed in whichever moment.

Method: a stream from topic to topic in a process of its own. While a batch is being written, a
moment that is drawn after the first of its records is in the log, one of these ends by kill -9: the
workers in which tasks run, the broker, the driver with all of its processes. Then it goes on, at
last in the Spark of all tests: that is one more driver, and needs no start.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from pyspark.sql import SparkSession

import spark_copy
import spark_processes
from apache_kafka import ApacheKafka
from apache_pulsar import ApachePulsar
from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS
from penstock.clients.kafka.client import LATEST, KafkaClient
from penstock.pipeline.source.patience import Patience
from source_rows import rows_read
from spark_topics import committed, create, fill, numbered

PARTITIONS = 2
BATCH_ROWS = 400
ROWS = 8_000
"""In each partition, and in each round: more batches than a round may live to see."""
SECONDS = 300
LOCAL = "local[2,4]"
"""Two tasks at once, each of which may fail three times."""


class Target(Protocol):
    """The topic that is written to."""

    servers: str
    topic: str

    def written(self) -> int:
        """How many messages it was sent, committed or not."""

    def values(self) -> list[bytes]:
        """What readers of committed messages see."""

    def kill(self) -> None:
        """End the broker, and start it again."""


class KafkaTarget:
    def __init__(self, server: BrokerProcess | ApacheKafka) -> None:
        self._server = server
        self.servers = server.kafka
        self.topic = create(server.kafka, PARTITIONS)

    def written(self) -> int:
        places = {(self.topic, each): LATEST for each in range(PARTITIONS)}
        with KafkaClient(self.servers) as client:
            # On a busy machine the leadership moves between brokers that are slow to be heard.
            found = Patience(answered=True).ask(lambda: client.list_offsets(places))
        return sum(each or 0 for each in found.values())

    def values(self) -> list[bytes]:
        return [
            each.value or b""
            for partition in range(PARTITIONS)
            for each in committed(self.servers, self.topic, partition)
        ]

    def kill(self) -> None:
        assert isinstance(self._server, BrokerProcess)
        self._server.kill9()
        self._server.start()


class PulsarTarget:
    def __init__(self, broker: ApachePulsar) -> None:
        self._broker = broker
        self.servers = f"pulsar://{broker.address}"
        self.topic = "copied"
        broker.create(self.topic, PARTITIONS)

    def written(self) -> int:
        return self._broker.messages(self.topic)

    def values(self) -> list[bytes]:
        return [row["value"] for row in rows_read(self.servers, self.topic)]

    def kill(self) -> None:
        self._broker.kill()
        self._broker.start()


class Copying:
    """The stream, and the topics that it goes between."""

    def __init__(self, source: str, target: Target, folder: Path, master: str) -> None:
        self._from = source, create(source, PARTITIONS)
        self._target = target
        self._checkpoint = folder / "checkpoint"
        self._master = master
        self._process: subprocess.Popen[bytes] | None = None

    def fill(self, first: int, last: int) -> None:
        for partition in range(PARTITIONS):
            fill(*self._from, numbered(first, last), partition=partition)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def start(self) -> None:
        command = [sys.executable, spark_copy.__file__, *self._arguments(BATCH_ROWS)]
        self._process = subprocess.Popen([*command, self._master], start_new_session=True)

    def finish(self, spark: SparkSession) -> None:
        spark_copy.copy(spark, *self._arguments(1_000_000))

    def _arguments(self, batch_rows: int) -> list[str]:
        places = [*self._from, self._target.servers, self._target.topic]
        return [*places, str(self._checkpoint), str(batch_rows)]

    def within_a_batch(self, draw: random.Random) -> None:
        """Return while a batch is being written, or a moment later."""
        before = self._target.written()
        deadline = time.monotonic() + SECONDS
        while self._target.written() <= before + 1:
            assert self.process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.03)  # Each look is a client of its own.
        time.sleep(draw.random() * 0.2)

    def kill_workers(self) -> None:
        spark_processes.kill_workers(self.process)

    def kill_broker(self) -> None:
        self._target.kill()

    def kill_driver(self) -> None:
        spark_processes.kill_driver(self.process)

    def end(self) -> None:
        """Leave nothing running."""
        if self._process is not None and self._process.poll() is None:
            self.kill_driver()

    def values(self) -> list[bytes]:
        return sorted(self._target.values())


@pytest.fixture
def copying(server: BrokerProcess, tmp_path: Path) -> Iterator[Copying]:
    made = Copying(server.kafka, KafkaTarget(server), tmp_path, LOCAL)
    yield made
    made.end()


def test_every_row_is_written_once_through_kill_9(copying: Copying, spark: SparkSession) -> None:
    rounds(copying, spark, 1, ALL)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_row_is_written_once_through_many_kills(
    copying: Copying, spark: SparkSession
) -> None:
    rounds(copying, spark, 30, ALL)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_row_is_written_once_to_apache_kafka(tmp_path: Path, spark: SparkSession) -> None:
    with ApacheKafka(tmp_path, brokers=2) as cluster:
        copying = Copying(cluster.kafka, KafkaTarget(cluster), tmp_path, LOCAL)
        try:
            rounds(copying, spark, 3, (Copying.kill_workers, Copying.kill_driver))
        finally:
            copying.end()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_row_is_written_once_to_apache_pulsar(
    server: BrokerProcess, tmp_path: Path, spark: SparkSession
) -> None:
    folder = tmp_path / "pulsar"
    folder.mkdir()
    with ApachePulsar(folder, transactions=True) as broker:
        copying = Copying(server.kafka, PulsarTarget(broker), tmp_path, LOCAL)
        try:
            rounds(copying, spark, 3, ALL)
        finally:
            copying.end()


ALL = (Copying.kill_workers, Copying.kill_broker, Copying.kill_driver)


def rounds(
    copying: Copying, spark: SparkSession, count: int, kills: Sequence[Callable[[Copying], None]]
) -> None:
    """Kill those so often, and look at what is there at the end."""
    draw = random.Random(count)
    total = 0
    for number in range(count):
        copying.fill(total, total + ROWS)
        total += ROWS
        copying.start()
        for kill in kills:
            copying.within_a_batch(draw)
            kill(copying)
        assert len(copying.values()) < total * PARTITIONS, f"round {number} ended too soon"
    copying.finish(spark)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(copying.values()) < total * PARTITIONS and time.monotonic() < deadline:
        time.sleep(0.1)  # Apache Kafka ends a transaction behind its answer.
    assert copying.values() == sorted([b"v%d" % row for row in range(total)] * PARTITIONS)
