"""One number of the suite, run against a broker of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from broker_process import BrokerProcess

KAFKA_RELEASE: Final = "3.1.0"
"""What the tests are told that they talk to: the newest that this release of them knows."""
FLAGS: Final = ("--default-partitions", "4")
"""As the brokers are set that the suite is made for."""
SCENARIOS: Final = {"default": (), "noautocreate": ("--auto-create-topics", "false")}
"""How the suite wants its brokers set, by its own names, and what that is here."""
RUN_SECONDS: Final = 300
PASSED: Final = "PASSED"

_ROW: Final = re.compile(r"^\| *(\w+) *\| *([A-Z_]+) *\| *[\d.]+s *\|(.*)$", re.MULTILINE)
_FAILURE: Final = re.compile(r'^### Test "(\w+)[^"]*" failed at .*\n(.*)$', re.MULTILINE)
_SUCCESS: Final = re.compile(r"=+ Test (\w+) PASSED =+$", re.MULTILINE)
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")


class Result(NamedTuple):
    """What became of one test."""

    name: str
    state: str
    reason: str


def run(tests: Path, number: str, scenario: str, names: list[str], logs: Path) -> list[Result]:
    """Run a number's tests of a scenario; what they and the broker wrote stays in `logs`."""
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="librdkafka-") as made:
        folder = Path(made)
        broker = BrokerProcess(folder, *FLAGS, *SCENARIOS[scenario])
        try:
            broker.start()
            output = _output(tests, number, scenario, folder, broker.kafka)
        finally:
            broker.end()
            (logs / f"{number}-{scenario}-broker.txt").write_text(broker.log)
    (logs / f"{number}-{scenario}.txt").write_text(output)
    results = read(output)
    ended = Result("", "ENDED", "it crashed, or took too long")
    return [results.get(name, ended._replace(name=name)) for name in names]


def read(output: str) -> dict[str, Result]:
    """Return what the suite says of each test; where one failed, it may end without a summary."""
    plain = _COLOUR.sub("", output)
    passed = [Result(name, PASSED, "") for name in _SUCCESS.findall(plain)]
    failed = [Result(name, "FAILED", reason) for name, reason in _FAILURE.findall(plain)]
    summary = [Result(name, state, reason.strip()) for name, state, reason in _ROW.findall(plain)]
    return {result.name: result for result in (*passed, *failed, *summary)}


def _output(tests: Path, number: str, scenario: str, folder: Path, address: str) -> str:
    config = folder / "test.conf"
    config.write_text(
        f"bootstrap.servers={address}\ntest.topic.random=true\ntest.timeout.multiplier=2\n"
    )
    environment = os.environ | {
        "BROKERS": address,
        "KAFKA_PATH": str(_kafka_tools(folder)),
        "LD_LIBRARY_PATH": f"{tests.parent / 'src'}:{tests.parent / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(config),
        "TESTS": number,
        "TEST_KAFKA_VERSION": KAFKA_RELEASE,
    }
    process = subprocess.Popen(
        [tests / "test-runner", "-p2", "-L", "-s", scenario],
        cwd=_working_folder(tests, folder),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        output, _ = process.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    return output.decode(errors="replace")


def _working_folder(tests: Path, folder: Path) -> Path:
    """Tests leave files where they run, and one reads the source beside that."""
    (folder / "src").symlink_to(tests.parent / "src")
    working = folder / "tests"
    working.mkdir()
    return working


def _kafka_tools(folder: Path) -> Path:
    """Some tests call Kafka's own script to make and change topics; this one stands in for it."""
    script = folder / "kafka" / "bin" / "kafka-topics.sh"
    script.parent.mkdir(parents=True)
    stand_in = Path(__file__).with_name("kafka_topics.py")
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{stand_in}" "$@"\n')
    script.chmod(0o755)
    return script.parents[1]
