"""Goal: Kafka's own Java client of today, and Kafka Streams with exactly_once_v2, commit and abort.

They use both parts of KIP-890: `transaction.version` says that they may. `JavaTransactions.java`
asks.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from versus.peers import maven
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

ARTIFACTS = ["org.apache.kafka:kafka-streams:4.3.0", "org.slf4j:slf4j-simple:1.7.36"]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
PROGRAM = Path(__file__).parents[1] / "support" / "JavaTransactions.java"
RUN_SECONDS = 600

ANSWERS = {
    "a producer commits and aborts": "done",
    "its successor fences it": "InvalidProducerEpochException",
    "what is read committed": "150",
    "what is read uncommitted": "200",
    "a loop copies": "150",
    "what it wrote": "150",
    "streams count": "{a=40, b=40, c=40}",
}


def test_java_reads_processes_and_writes_exactly_once(
    server: BrokerProcess, tmp_path: Path
) -> None:
    try:
        libraries = maven.class_path(maven.fetch(LIBRARIES, "kafka-streams", ARTIFACTS))
    except NotAvailableError as reason:
        pytest.skip(f"Kafka Streams is not at hand: {reason}")
    state = f"-Dstate={tmp_path / 'state'}"
    ended = subprocess.run(
        ["java", state, "-cp", libraries, str(PROGRAM), server.kafka],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = (line.partition(" = ") for line in ended.stdout.splitlines())
    assert {name: answer for name, _, answer in lines} == ANSWERS, ended.stderr[-4000:]
