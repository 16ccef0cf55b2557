"""Goal: consumers of Java's client that share keys have each key's messages once, in their order:
as they join and leave, with ranges that they choose, transactions, chunks and delays.

The client comes from Maven Central, through the ordinary Maven client; `PulsarKeys.java` uses it.
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
PROBE = Path(__file__).parents[1] / "support" / "PulsarKeys.java"
RESULTS = [
    "singles 40 in order at 5",
    "batches 40 in order at 5",
    "chosen 40 in order at 2 apart true refused an overlap",
    "readers 40 in order at 2 apart true",
    "transactions 40 in order aborted 80 then nothing",
    "chunks 40 in order at 3 apart true",
    "delays 40 in order apart true early false",
]


def test_each_key_comes_in_order(server: BrokerProcess, tmp_path: Path) -> None:
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
