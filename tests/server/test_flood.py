"""Goal: a flood of sockets does not keep a broker with few files from its logs and its clients."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker_process import BrokerProcess, environment
from patience import PATIENCE_SECONDS

FILES = 240
TOPICS = 20


class BrokerWithFewFiles(BrokerProcess):
    """One that may open `FILES` files, of which half are for connections."""

    def _launch(self, log: IO[str]) -> subprocess.Popen[str]:
        command = ["sh", "-c", f'ulimit -n {FILES}; exec "$0" "$@"', sys.executable, "-m"]
        return subprocess.Popen(
            [*command, "penstock", *self._arguments()],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(),
        )


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerWithFewFiles]:
    broker = BrokerWithFewFiles(tmp_path)
    broker.start()
    yield broker
    broker.end()


def flood(sockets: ExitStack, address: str, source: str) -> None:
    host, port = address.split(":")
    for _ in range(FILES):
        made = socket.create_connection((host, int(port)), source_address=(source, 0))
        sockets.enter_context(made)


def make_and_write(admin: AdminClient, producer: Producer, names: list[str]) -> None:
    for future in admin.create_topics([NewTopic(name, 1) for name in names]).values():
        future.result(PATIENCE_SECONDS)
    for name in names:
        producer.produce(name, b"written")
    assert producer.flush(PATIENCE_SECONDS) == 0


def test_logs_have_their_files_whoever_connects(broker: BrokerWithFewFiles) -> None:
    config = {"bootstrap.servers": broker.kafka}
    admin, producer = AdminClient(config), Producer(config)
    make_and_write(admin, producer, ["before"])
    with ExitStack() as sockets:
        for number in range(2, 6):
            flood(sockets, broker.kafka, f"127.0.0.{number}")
        make_and_write(admin, producer, [f"t{number}" for number in range(TOPICS)])
    broker.stop()
    assert "as many connections as it may have" in broker.log
    assert "Too many open files" not in broker.log


def test_one_address_leaves_room_for_others(broker: BrokerWithFewFiles) -> None:
    with ExitStack() as sockets:
        flood(sockets, broker.kafka, "127.0.0.2")
        config = {"bootstrap.servers": broker.kafka}
        make_and_write(AdminClient(config), Producer(config), ["during"])
    broker.stop()
    log = broker.log
    assert "127.0.0.2 has as many connections as one address may have" in log
    refused = log.count("has as many connections as one address may have")
    assert refused < FILES // 4, "lines are left out"
    assert "more lines like this were left out" in log
