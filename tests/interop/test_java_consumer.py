"""Goal: Kafka's own Java consumer goes on after a restart or a crash of the broker: `commitSync`
succeeds in the old generation, nobody rebalances, and nothing is read twice or left out.

Kafka's client comes from Maven Central, through the ordinary Maven client; `JavaMember.java` is the
member of the group.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from versus.peers import maven
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ARTIFACTS = ["org.apache.kafka:kafka-clients:4.3.0", "org.slf4j:slf4j-simple:1.7.36"]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
MEMBER = Path(__file__).parents[1] / "support" / "JavaMember.java"
PARTITIONS = 4
DEADLINE_SECONDS = 120
ENDS: dict[str, Callable[[BrokerProcess], object]] = {
    "SIGTERM": BrokerProcess.stop,
    "kill -9": BrokerProcess.kill9,
}


class JavaMember:
    """A Java consumer in a process of its own; what it printed is `lines`."""

    def __init__(self, command: list[str], output: Path) -> None:
        self._output = output
        with output.open("wb") as lines, output.with_suffix(".err").open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=lines, stderr=errors, text=True
            )

    @property
    def lines(self) -> list[str]:
        return self._output.read_text().rpartition("\n")[0].splitlines()

    @property
    def reads(self) -> list[str]:
        return [line for line in self.lines if line.startswith("read ")]

    @property
    def rebalances(self) -> list[str]:
        return [
            line for line in self.lines if line.split(" ")[0] in {"assigned", "revoked", "lost"}
        ]

    def ask(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        assert self._process.wait(DEADLINE_SECONDS) == 0, self._errors()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _errors(self) -> str:
        return self._output.with_suffix(".err").read_text()[-2000:]


Members = Callable[[BrokerProcess, str, int], list[JavaMember]]


@pytest.fixture(scope="module")
def class_path() -> str:
    try:
        return maven.class_path(maven.fetch(LIBRARIES, "kafka-clients", ARTIFACTS))
    except NotAvailableError as reason:
        pytest.skip(f"Kafka's Java client is not at hand: {reason}")


@pytest.fixture
def members(class_path: str, tmp_path: Path) -> Iterator[Members]:
    """Start so many members of one group, in a protocol of groups."""
    with contextlib.ExitStack() as ends:

        def start(server: BrokerProcess, protocol: str, count: int) -> list[JavaMember]:
            words = [server.kafka, "group", "events", protocol]
            command = ["java", "-cp", class_path, str(MEMBER), *words]
            made = [JavaMember(command, tmp_path / f"member-{n}.txt") for n in range(count)]
            for member in made:
                ends.callback(member.end)
            return made

        yield start


def produce(server: BrokerProcess, values: range) -> None:
    producer = Producer({"bootstrap.servers": server.kafka})
    for value in values:
        producer.produce("events", str(value).encode(), partition=value % PARTITIONS)
    assert producer.flush(DEADLINE_SECONDS) == 0


def until(is_so: Callable[[], bool], members: list[JavaMember]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, [member.lines[-20:] for member in members]
        time.sleep(0.05)


def read_in_all(members: list[JavaMember]) -> int:
    return sum(len(member.reads) for member in members)


def committed(server: BrokerProcess) -> list[int]:
    consumer = Consumer({"bootstrap.servers": server.kafka, "group.id": "group"})
    places = [TopicPartition("events", partition) for partition in range(PARTITIONS)]
    offsets = [place.offset for place in consumer.committed(places, timeout=30)]
    consumer.close()
    return offsets


@pytest.mark.parametrize("end", ENDS)
def test_java_members_commit_in_their_old_generation(
    server: BrokerProcess, members: Members, end: str
) -> None:
    with KafkaClient(server.kafka) as client:
        client.create_topic("events", PARTITIONS)
    both = members(server, "classic", 2)
    until(lambda: all(m.rebalances[-1:] == ["assigned 2"] for m in both), both)
    produce(server, range(400))
    until(lambda: read_in_all(both) == 400, both)
    before = [member.rebalances for member in both]
    for times in (1, 2):
        ENDS[end](server)
        time.sleep(1)  # They poll meanwhile, and nobody is there.
        server.start()
        for member in both:
            member.ask("commit")
            until(lambda lines=times, one=member: one.lines.count("committed") == lines, both)
        assert committed(server) == [100 * times] * PARTITIONS
        produce(server, range(400 * times, 400 * (times + 1)))
        until(lambda count=400 * (times + 1): read_in_all(both) >= count, both)
    time.sleep(1)  # What is read twice may come late.
    assert [member.rebalances for member in both] == before
    seen = [read for member in both for read in member.reads]
    wanted = {f"read {n % PARTITIONS} {n // PARTITIONS} {n}" for n in range(1200)}
    assert len(seen) == 1200
    assert set(seen) == wanted
    for member in both:
        member.ask("close")
        member.wait()


def test_a_java_member_of_the_new_protocol_is_told_that_there_is_none(
    server: BrokerProcess, members: Members
) -> None:
    """KIP-848's groups are not offered: the consumer ends with a word that says so."""
    with KafkaClient(server.kafka) as client:
        client.create_topic("events", PARTITIONS)
    (one,) = members(server, "consumer", 1)
    one.wait()
    (line,) = one.lines
    assert "UnsupportedVersionException" in line
