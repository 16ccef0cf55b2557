"""Goal: what was acknowledged survives the broker's sudden death, for readers of every protocol.

Method: three real clients write to one topic at the same time, the broker is killed at a moment
that differs from round to round, and is started again over what it left. Then each real client
reads the whole topic: all three must find the same messages at the same places, and every
acknowledged one among them, at the place that its writer was told.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient

CLIENT = Path(__file__).parents[1] / "support" / "crash_client.py"
PROTOCOLS = ("kafka", "pulsar", "iggy")
PARTITIONS = 4
ACKNOWLEDGED_MIN = 100
"""Messages that each client must have written before the broker is killed."""
FIRST_MESSAGES_SECONDS = 30
READ_SECONDS = 180
ABORTED = -6
"""How apache-iggy 0.9 now and then ends when Python ends right after its last answer."""

Place = tuple[str, str]
Messages = dict[str, Place]


@pytest.mark.timeout(600)
def test_what_was_acknowledged_survives_ten_crashes(server: BrokerProcess) -> None:
    crash(server, rounds=10, seed=2013)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_what_was_acknowledged_survives_a_hundred_crashes(server: BrokerProcess) -> None:
    crash(server, rounds=100, seed=time.time_ns())


def crash(server: BrokerProcess, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(rounds):
        topic = f"crash-{number}"
        with KafkaClient(server.kafka) as client:
            client.create_topic(topic, PARTITIONS)
        acknowledged = write_until_killed(server, topic, chance.uniform(0, 0.5))
        server.start()
        found = read_all(server, topic)
        described = f"round {number}, seed {seed}"
        assert found["pulsar"] == found["kafka"], described
        assert found["iggy"] == found["kafka"], described
        for value, place in acknowledged.items():
            assert found["kafka"].get(value) == place, f"{described}: {value} is lost or moved"


def write_until_killed(server: BrokerProcess, topic: str, delay_seconds: float) -> Messages:
    """Let three clients write, kill the broker, and return what they were acknowledged."""
    acknowledged: Messages = {}
    with writing(server, topic) as outputs:
        wait_for_messages(outputs)
        time.sleep(delay_seconds)
        server.kill9()
    for output in outputs:
        acknowledged |= messages(output.read_text())
    return acknowledged


@contextmanager
def writing(server: BrokerProcess, topic: str) -> Iterator[list[Path]]:
    """Run a writer of each protocol; they are killed in the end."""
    outputs = [server.folder / f"{topic}-{protocol}.txt" for protocol in PROTOCOLS]
    with (server.folder / "clients.txt").open("ab") as errors:
        writers = [
            start_client(server, "write", protocol, topic, output.open("wb"), errors)
            for protocol, output in zip(PROTOCOLS, outputs, strict=True)
        ]
    try:
        yield outputs
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def start_client(
    server: BrokerProcess,
    verb: str,
    protocol: str,
    topic: str,
    output: IO[bytes],
    errors: IO[bytes],
) -> subprocess.Popen[bytes]:
    address = getattr(server, protocol).removeprefix("pulsar://")
    words = [verb, protocol, address, topic, str(PARTITIONS), protocol]
    with output:
        return subprocess.Popen([sys.executable, str(CLIENT), *words], stdout=output, stderr=errors)


def wait_for_messages(outputs: list[Path]) -> None:
    deadline = time.monotonic() + FIRST_MESSAGES_SECONDS
    while any(output.read_bytes().count(b"\n") < ACKNOWLEDGED_MIN for output in outputs):
        counts = {output.name: output.read_bytes().count(b"\n") for output in outputs}
        assert time.monotonic() < deadline, f"the clients do not get on: {counts}"
        time.sleep(0.02)


def read_all(server: BrokerProcess, topic: str) -> dict[str, Messages]:
    """What a reader of each protocol finds, all of them reading at the same time."""
    outputs = {each: server.folder / f"{topic}-{each}-read.txt" for each in PROTOCOLS}
    with (server.folder / "clients.txt").open("ab") as errors:
        readers = [
            start_client(server, "read", protocol, topic, output.open("wb"), errors)
            for protocol, output in outputs.items()
        ]
    try:
        assert {reader.wait(READ_SECONDS) for reader in readers} <= {0, ABORTED}
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    found = {protocol: messages(output.read_text()) for protocol, output in outputs.items()}
    for protocol, output in outputs.items():
        lines = output.read_text().count("\n")
        assert lines == len(found[protocol]), f"{protocol} reads a message twice"
    return found


def messages(text: str) -> Messages:
    """The messages of whole lines, by value; the client may have been killed within a line."""
    lines = text.rpartition("\n")[0].splitlines()
    found = (line.split(" ", 2) for line in lines)
    return {value: (partition, offset) for partition, offset, value in found}
