"""Apache Pulsar standalone: broker, bookie and metadata store in one Java process."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from versus.peers import maven
from versus.peers.peer import Durability, Launch, Peer
from versus.processes import free_port

VERSION: Final = "4.0.0"
ARTIFACTS: Final = [f"org.apache.pulsar:pulsar-broker:{VERSION}"]
OPENED: Final = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util.zip",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.base/sun.net",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
]
JAVA: Final = [
    "java",
    "-Xms2g",
    "-Xmx2g",
    "-XX:MaxDirectMemorySize=4g",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dorg.apache.pulsar.shade.io.netty.tryReflectionSetAccessible=true",
    "-Dpulsar.allocator.exit_on_oom=true",
    "-Dio.netty.recycler.maxCapacityPerThread=4096",
    *(f"--add-opens={module}=ALL-UNNAMED" for module in OPENED),
]
"""What Pulsar's own start script passes."""

LOGGING: Final = """\
status = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %-5level %c: %m%n
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
"""


class Pulsar(Peer):
    name: ClassVar = "pulsar"

    def obtain(self, cache: Path) -> None:
        self._class_path = maven.class_path(maven.fetch(cache, "pulsar", ARTIFACTS))
        self.version = VERSION

    def setting(self, durability: Durability) -> str:
        return f"journalSyncData={_switch(durability)}"

    def prepare(self, folder: Path, durability: Durability) -> Launch:
        ports = {name: free_port() for name in ("pulsar", "http", "bookie")}
        settings = configuration(ports, durability)
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (folder / "standalone.conf").write_text(text)
        (folder / "log4j2.properties").write_text(LOGGING)
        data = folder / "data"
        command = [*JAVA, "-Dlog4j.configurationFile=log4j2.properties", "-cp", self._class_path]
        command += ["org.apache.pulsar.PulsarStandaloneStarter", "--config", "standalone.conf"]
        command += ["--no-functions-worker", "--no-stream-storage"]
        command += ["--metadata-dir", str(data / "metadata")]
        command += ["--bookkeeper-dir", str(data / "bookkeeper")]
        command += ["--bookkeeper-port", str(ports["bookie"])]
        return Launch(command, data, ports)


def configuration(ports: dict[str, int], durability: Durability) -> dict[str, object]:
    """What standalone needs to be told; the rest has the defaults of Pulsar's programs."""
    return {
        "clusterName": "standalone",
        "bindAddress": "127.0.0.1",
        "advertisedAddress": "127.0.0.1",
        "brokerServicePort": ports["pulsar"],
        "webServicePort": ports["http"],
        "managedLedgerDefaultEnsembleSize": 1,
        "managedLedgerDefaultWriteQuorum": 1,
        "managedLedgerDefaultAckQuorum": 1,
        "journalSyncData": _switch(durability),
        # What Pulsar's distribution sets for standalone and its programs do not by themselves.
        "loadBalancerEnabled": "false",
        "allowLoopback": "true",
        "maxMessageSize": 5 << 20,
        "diskUsageThreshold": 0.99,
        "diskUsageWarnThreshold": 0.99,
    }


def _switch(durability: Durability) -> str:
    return "true" if durability is Durability.FLUSHED else "false"
