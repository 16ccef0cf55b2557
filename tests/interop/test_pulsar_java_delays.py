"""Goal: with Java's client messages come at their time, are put off and come back
(`reconsumeLater`), and end as dead letters.

The client comes from Maven Central, through the ordinary Maven client; `PulsarDelays.java` uses it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from versus.peers import maven
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ARTIFACTS = ["org.apache.pulsar:pulsar-client:4.0.4", "org.slf4j:slf4j-simple:2.0.13"]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
PROBE = Path(__file__).parents[1] / "support" / "PulsarDelays.java"
RESULTS = [
    "delays [0, 700, 1200]",
    "chunks 10000 true",
    "retries [retries null, retries-s-RETRY 1, retries-s-RETRY 2] dead bad",
    "backoff [0, 1, 2] dead bad",
]


def test_messages_come_later(server: BrokerProcess, tmp_path: Path) -> None:
    try:
        class_path = maven.class_path(maven.fetch(LIBRARIES, "pulsar-client", ARTIFACTS))
    except NotAvailableError as reason:
        pytest.skip(f"Pulsar's Java client is not at hand: {reason}")
    command = ["java", "-cp", class_path, str(PROBE), server.pulsar]
    errors = tmp_path / "errors.txt"
    with errors.open("wb") as written:
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=written, text=True, check=False
        )
    assert ended.stdout.splitlines() == RESULTS, errors.read_text()[-3000:]
