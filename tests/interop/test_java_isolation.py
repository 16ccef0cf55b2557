"""Goal: Java's consumers of Kafka and of Pulsar wait behind a transaction of a producer of either
while it is open, and go on as it ends.

Both clients come from Maven Central; `JavaIsolation.java` uses them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from versus.peers import maven
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ARTIFACTS = {
    "kafka-clients": ["org.apache.kafka:kafka-clients:4.3.0", "org.slf4j:slf4j-simple:1.7.36"],
    "pulsar-client-4.0.4": ["org.apache.pulsar:pulsar-client:4.0.4"],
}
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
PROGRAM = Path(__file__).parents[1] / "support" / "JavaIsolation.java"
RUN_SECONDS = 300
SEEN = "{{1 before=[a, a, a, 1, 1, false], 2 open=[, , , 1, 1, false], 3 ended=[{0}, 6, 6, false]}}"
"""What Kafka's consumer, Pulsar's and Pulsar's reader got, and then the position of the first, the
end that it is told, and whether the reader is told of more.
"""


def test_java_reads_on_behind_a_transaction_once_it_ends(server: BrokerProcess) -> None:
    try:
        found = [maven.fetch(LIBRARIES, name, what) for name, what in ARTIFACTS.items()]
    except NotAvailableError as reason:
        pytest.skip(f"the Java clients are not at hand: {reason}")
    libraries = ":".join(map(maven.class_path, found))
    ended = subprocess.run(
        ["java", "-cp", libraries, str(PROGRAM), server.kafka, server.pulsar],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = (line.partition(" = ") for line in ended.stdout.splitlines())
    assert {name: answer for name, _, answer in lines} == {
        f"{writer}-{end}": SEEN.format(", ".join([values] * 3))
        for writer in ("kafka", "pulsar")
        for end, values in (("commits", "xyzb"), ("aborts", "b"))
    }, ended.stderr[-4000:]
