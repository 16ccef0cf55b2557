"""Java's client of apache-iggy 0.8.0 from Maven Central, the newest that Java users have.

`make interop-iggy` fetches it; without that the test is skipped.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from iggy_suites import java_libraries

PROGRAM = Path(__file__).parents[1] / "support" / "IggyJava.java"


def test_client_of_java_does_all_that_it_can(server: BrokerProcess) -> None:
    libraries = java_libraries()
    if libraries is None:
        pytest.skip("make interop-iggy fetches it")
    host, _, port = server.iggy.rpartition(":")
    done = subprocess.run(
        ["java", "-cp", libraries, PROGRAM, host, port],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "stream: java",
        "twice: IggyConflictException",
        "topic: orders 2 Gzip",
        "partitions: 3",
        "too many: IggyServerException",
        "missing: false",
        "topics: 1",
        "poll: 0=a/green 1=b",
        "poll: 2=c 3=d",
        "poll: 1=b 2=c",
        "poll: 3=d",
        "poll: ",
        "offset: 1",
        "no offset: false",
        "group: a b c d e",
        "members: 1",
        "left: IggyResourceNotFoundException",
        "groups: 0",
        "stats: true",
        "me: true",
        "renamed: bills",
        "gone: false",
    ]
