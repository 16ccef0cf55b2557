"""Goal: transactions of Java's client of Pulsar are whole or absent, also over a crash.

The client comes from Maven Central; `PulsarTransactions.java` uses it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from versus.peers import maven
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

VERSIONS = ["3.0.7", "4.0.4"]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
PROGRAM = Path(__file__).parents[1] / "support" / "PulsarTransactions.java"
RESULTS = [
    "unseen true",
    "committed [0, 1, 2, 3, 4] [0, 1, 2, 3, 4] COMMITTED",
    "aborted [3] []",
    "transformed [7, 7] [8] [] []",
    "conflict TransactionConflictException TransactionConflictException",
    "late [2] InvalidTxnStatusException",
    "shared [0, 3] [] [1, 2]",
    "cumulative TransactionConflictException [0, 1, 2, 3, 4, 5] [4, 5]",
    "batch TransactionConflictException [0, 1, 2, 4]",
    "moved once true",
]


def class_path(version: str) -> str:
    artifacts = [f"org.apache.pulsar:pulsar-client:{version}", "org.slf4j:slf4j-simple:2.0.13"]
    try:
        return maven.class_path(maven.fetch(LIBRARIES, f"pulsar-client-{version}", artifacts))
    except NotAvailableError as reason:
        pytest.skip(f"Pulsar's Java client is not at hand: {reason}")


@pytest.mark.parametrize("version", VERSIONS)
def test_transactions_of_the_java_client(
    server: BrokerProcess, version: str, tmp_path: Path
) -> None:
    command = ["java", "-cp", class_path(version), str(PROGRAM), server.pulsar]
    errors = tmp_path / "errors.txt"
    said = []
    with (
        errors.open("wb") as written,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written, text=True
        ) as program,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        for line in map(str.strip, program.stdout):
            if line == "kill":
                server.kill9()
                server.start()
                program.stdin.write("done\n")
                program.stdin.flush()
            else:
                said.append(line)
    assert said == RESULTS, errors.read_text()[-3000:]
