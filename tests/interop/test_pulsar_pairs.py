"""Goal: what Java's client of Pulsar writes with schemas of keys and values, and of Protobuf, has
columns.

The client comes from Maven Central, through the ordinary Maven client; `PulsarPairs.java` uses it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from typed_rows import read
from versus.peers import maven
from versus.peers.peer import NotAvailableError

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ARTIFACTS = [
    "org.apache.pulsar:pulsar-client:4.0.4",
    "org.slf4j:slf4j-simple:2.0.13",
    "com.google.protobuf:protobuf-java:3.25.5",
]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
PROGRAM = Path(__file__).parents[1] / "support" / "PulsarPairs.java"


def test_keys_and_values_of_java_have_columns(server: BrokerProcess) -> None:
    try:
        class_path = maven.class_path(maven.fetch(LIBRARIES, "pulsar-pairs", ARTIFACTS))
    except NotAvailableError as reason:
        pytest.skip(f"Pulsar's Java client is not at hand: {reason}")
    command = ["java", "-cp", class_path, str(PROGRAM), server.pulsar]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    for encoding in ("inline", "separated"):
        rows = read(server, f"pairs-{encoding}", keySchema=server.pulsar)
        assert [(row["key"], row["value"]) for row in rows] == [
            ({"id": 0}, {"text": "ü", "count": 0}),
            ({"id": 1}, {"text": "ü", "count": 1}),
            ({"id": 2}, None),
        ]
    (row,) = read(server, "options")
    assert row["value"]["name"] == "first"
    assert row["value"]["value"]["type_url"] == "type.googleapis.com/google.protobuf.StringValue"
