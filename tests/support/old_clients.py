"""Kafka clients of before 2018, each fetched from where it was published and run by its own words.

Each is a program that is called as `produce ADDRESS TOPIC COUNT CODEC ACKS`, which writes so many
values and one more with a key, or as `consume ADDRESS TOPIC COUNT GROUP BYTES`, which prints a line
of JSON for each message: offset, key and value. What is not at hand is a reason to skip.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from versus.peers import maven
from versus.peers.peer import NotAvailableError

PROGRAMS: Final = Path(__file__).parent / "old_clients"
CACHE: Final = Path(__file__).parents[2] / "build" / "old-clients"
FETCH_SECONDS: Final = 600
RUN_SECONDS: Final = 120
JAVA: Final = ["org.apache.kafka:kafka_2.10:0.8.2.2"]


class OldClient(NamedTuple):
    """A client that can be run: what stands before and behind the words that it is given."""

    command: list[str]
    environment: dict[str, str]
    last_words: tuple[str, ...] = ()

    def produce(self, address: str, topic: str, count: int, codec: str, acks: int) -> None:
        self._run("produce", address, topic, str(count), codec, str(acks))

    def consume(
        self, address: str, topic: str, count: int, group: str, max_bytes: int
    ) -> list[tuple[int, str | None, str]]:
        """Return offset, key and value of so many messages from the beginning."""
        output = self._run("consume", address, topic, str(count), group, str(max_bytes))
        lines = [json.loads(line) for line in output.splitlines()]
        return [(line[0], line[1], line[2]) for line in lines if isinstance(line, list)]

    def _run(self, *words: str) -> str:
        ended = subprocess.run(
            [*self.command, *words, *self.last_words],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-2000:]
        return ended.stdout


def kafka_python(release: str, python: str, *as_broker: str) -> OldClient:
    """Return a release of kafka-python in a Python of its time; from 1.4 on it is told as what
    release of Kafka it shall see the broker. Raises NotAvailableError.
    """
    interpreter = _interpreter(python)
    folder = CACHE / f"kafka-python-{release}"
    install = [interpreter, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    _once(folder, [*install, "six", f"kafka-python=={release}"])
    program = PROGRAMS / f"kafka_python_{release.replace('.', '_')}.txt"
    return OldClient([interpreter, str(program)], {"PYTHONPATH": str(folder)}, as_broker)


def of_node(package: str, release: str) -> OldClient:
    """Return a client from npm. Raises NotAvailableError."""
    node, npm = _program("node"), _program("npm")
    folder = CACHE / package
    # Their optional parts are native, and don't compile any more.
    flags = ["--no-audit", "--no-fund", "--omit=optional", "--ignore-scripts"]
    _once(folder, [npm, "install", *flags, "--prefix", str(folder), f"{package}@{release}"])
    program = PROGRAMS / f"{package.replace('-', '_')}.js"
    return OldClient([node, str(program)], {"NODE_PATH": str(folder / "node_modules")})


def of_java() -> OldClient:
    """Return the clients of Kafka 0.8.2 itself. Raises NotAvailableError."""
    libraries = maven.class_path(maven.fetch(CACHE, "kafka-0.8.2", JAVA))
    return OldClient(["java", "-cp", libraries, str(PROGRAMS / "OldJava.java")], {})


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotAvailableError(f"{name} is not installed")
    return found


def _interpreter(version: str) -> str:
    """Return a Python of this version, which pyenv may have."""
    found = shutil.which(f"python{version}")
    if found is not None and "/shims/" not in found:
        return found
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    if not kept:
        raise NotAvailableError(f"there is no Python {version}")
    return str(kept[-1])


def _once(folder: Path, command: list[str]) -> None:
    """Have a command fill a folder, unless it did before."""
    complete = folder.with_suffix(".complete")
    if complete.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
    )
    if ended.returncode != 0:
        raise NotAvailableError(f"{folder.name} can't be had: {ended.stderr.strip()[-200:]}")
    complete.touch()
