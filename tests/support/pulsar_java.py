"""Java's client of Pulsar, from Maven Central through the ordinary Maven client; tests are skipped
where it is away.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from versus.peers import maven
from versus.peers.peer import NotAvailableError

ARTIFACTS = ["org.apache.pulsar:pulsar-client:4.0.4", "org.slf4j:slf4j-simple:2.0.13"]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"


def class_path() -> str:
    """Return where its classes are."""
    try:
        return maven.class_path(maven.fetch(LIBRARIES, "pulsar-client", ARTIFACTS))
    except NotAvailableError as reason:
        pytest.skip(f"Pulsar's Java client is not at hand: {reason}")


def check_said(program: Path, address: str, expected: list[str], errors: Path) -> None:
    """Run a program that uses it, and check the lines that it prints."""
    command = ["java", "-cp", class_path(), str(program), address]
    with errors.open("wb") as written:
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=written, text=True, check=False
        )
    assert ended.stdout.splitlines() == expected, errors.read_text()[-3000:]
