"""Goal: Java's client of Pulsar is at home: it reads offsets as indexes, hears of topics,
partitions and ends, is refused what there is not, and writes each message once over a crash.

The client comes from Maven Central, through the ordinary Maven client; `PulsarProbe.java` uses it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from pulsar_java import class_path

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PROBE = Path(__file__).parents[1] / "support" / "PulsarProbe.java"
RESULTS = [
    "index [0, 1, 2, 3, 4]",
    "string ü",
    "number 7",
    "json ü",
    "avro ü",
    "longer 8",
    'pair (key = "a", value = "1")',
    "other IncompatibleSchemaException",
    "reader IncompatibleSchemaException",
    "any [7, 8]",
    "raw raw",
    "pattern seen",
    "partitions [0, 1, 2]",
    "failover active",
    "non-persistent passing",
    "fenced ProducerFencedException",
    "ended true",
    "send TopicTerminatedException",
    "once true",
]


def add_partition(server: BrokerProcess) -> None:
    with KafkaClient(server.kafka) as client:
        client.add_partitions("growing", 3)


def terminate(server: BrokerProcess) -> None:
    with KafkaClient(server.kafka) as client:
        client.alter_topic_config("ended", {"penstock.terminated": "true"})


def crash(server: BrokerProcess) -> None:
    server.kill9()
    server.start()


STEPS: dict[str, Callable[[BrokerProcess], None]] = {
    "grow": add_partition,
    "end": terminate,
    "kill": crash,
}


def test_the_java_client_is_at_home(server: BrokerProcess, tmp_path: Path) -> None:
    with KafkaClient(server.kafka) as client:
        client.create_topic("growing", 2)
    command = ["java", "-cp", class_path(), str(PROBE), server.pulsar]
    errors = tmp_path / "errors.txt"
    said = []
    with (
        errors.open("wb") as written,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written, text=True
        ) as probe,
    ):
        assert probe.stdin is not None
        assert probe.stdout is not None
        for line in map(str.strip, probe.stdout):
            if line in STEPS:
                STEPS[line](server)
                probe.stdin.write("done\n")
                probe.stdin.flush()
            else:
                said.append(line)
    assert said == RESULTS, errors.read_text()[-3000:]
