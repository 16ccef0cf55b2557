"""Apache Kafka: one node that is broker and controller, with the heap that its scripts give it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import ClassVar, Final

from versus.peers import maven
from versus.peers.peer import Durability, Launch, NotAvailableError, Peer
from versus.processes import free_port

VERSION: Final = "4.3.0"
ARTIFACTS: Final = [f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36"]
CLUSTER_ID: Final = "dmVyc3VzLXZlcnN1cy0xMg"
JAVA: Final = [
    "java",
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]
"""What Kafka's own start script passes."""


class Kafka(Peer):
    name: ClassVar = "kafka"

    def obtain(self, cache: Path) -> None:
        self._class_path = maven.class_path(maven.fetch(cache, "kafka", ARTIFACTS))
        self.version = VERSION

    def setting(self, durability: Durability) -> str:
        if durability is Durability.FLUSHED:
            return "log.flush.interval.messages=1"
        return "log.flush.interval.messages unset (its default)"

    def prepare(self, folder: Path, durability: Durability) -> Launch:
        ports = {"kafka": free_port(), "controller": free_port()}
        settings = properties(folder / "data", ports, durability)
        file = folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = [*JAVA[:3], "-cp", self._class_path, "kafka.tools.StorageTool", "format"]
        ended = subprocess.run(
            [*command, "--config", str(file), "--cluster-id", CLUSTER_ID],
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != 0:
            raise NotAvailableError(f"its storage can't be formatted: {ended.stderr[-500:]}")
        start = [*JAVA, "-cp", self._class_path, "kafka.Kafka", str(file)]
        return Launch(start, folder / "data", ports)


def properties(data: Path, ports: dict[str, int], durability: Durability) -> dict[str, object]:
    """The node's configuration. What is not named has Kafka's default."""
    client, controller = ports["kafka"], ports["controller"]
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{client}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": data,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    if durability is Durability.FLUSHED:
        settings["log.flush.interval.messages"] = 1
    return settings
