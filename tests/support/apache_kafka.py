"""Real brokers of Apache Kafka, from Maven Central, for tests that are skipped where it is away."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import pytest

from penstock.clients.kafka.client import KafkaClient, KafkaError
from versus.peers import maven
from versus.peers.kafka import ARTIFACTS, CLUSTER_ID, JAVA, properties
from versus.peers.peer import Durability, NotAvailableError
from versus.processes import free_port

LIBRARIES = Path.home() / ".cache" / "penstock" / "interop"
START_SECONDS = 120
HEAP = ["-Xms256m", "-Xmx512m"]


class ApacheKafka:
    """Some brokers, of which the first is the controller too."""

    FORMATTING: ClassVar[Sequence[str]] = ()
    """What the tool is told that makes a broker's folder."""

    def __init__(self, folder: Path, brokers: int = 1, **settings: object) -> None:
        try:
            libraries = maven.fetch(LIBRARIES, "kafka", ARTIFACTS)
        except NotAvailableError as error:
            pytest.skip(str(error))
        self._class_path = maven.class_path(libraries)
        self._folder = folder
        self._ports = {"controller": free_port()}
        self._settings = settings
        self._brokers = [{**self._ports, "kafka": free_port()} for _ in range(brokers)]
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def kafka(self) -> str:
        """The address of the first one."""
        return self.addresses[0]

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{each['kafka']}" for each in self._brokers]

    def __enter__(self) -> Self:
        try:
            self._start_all()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _start_all(self) -> None:
        for number in range(len(self._brokers)):
            self._start(number)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_up():
            assert time.monotonic() < deadline, self._folder
            assert all(each.poll() is None for each in self._processes), self._folder
            time.sleep(0.2)

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def settings(self, number: int, folder: Path) -> dict[str, object]:
        """Return what the properties of a broker are that has this folder."""
        settings = properties(folder / "data", self._brokers[number], Durability.WRITTEN)
        settings["node.id"] = number + 1
        settings |= self._settings
        if number:
            listener = f"PLAINTEXT://{self.addresses[number]}"
            settings |= {"process.roles": "broker", "listeners": listener}
        return settings

    def _start(self, number: int) -> None:
        folder = self._folder / f"broker-{number}"
        folder.mkdir()
        settings = self.settings(number, folder)
        file = folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = [JAVA[0], *HEAP, *JAVA[3:], "-cp", self._class_path]
        tool = [*java, "kafka.tools.StorageTool", "format"]
        subprocess.run(
            [*tool, "--config", str(file), "--cluster-id", CLUSTER_ID, *self.FORMATTING],
            check=True,
            capture_output=True,
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*java, "kafka.Kafka", str(file)], stdout=log, stderr=log, env=dict(os.environ)
            )
        self._processes.append(process)

    def _is_up(self) -> bool:
        try:
            with KafkaClient(self.kafka, timeout_s=5) as client:
                return len(client.cluster().brokers) == len(self._brokers)
        except (OSError, KafkaError):
            return False
