"""Spark's own servers as an operator starts them: a standalone cluster, and Spark Connect's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SECONDS = 120
LOOPBACK = "127.0.0.1"
WORKERS = 2


@contextmanager
def standalone_cluster(python: Path, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Start a master and two workers of one core each; yield the master's URL."""
    address = f"spark://{LOOPBACK}:{free_port()}"
    here = ["--host", LOOPBACK, "--webui-port", "0"]
    started: list[Server] = []
    try:
        master = [*here, "--port", address.rpartition(":")[2]]
        started.append(Server(python, "master.Master", master, folder / "master", environment))
        started[0].wait_for("New state: ALIVE")
        for number in range(WORKERS):
            own = folder / f"worker-{number}"
            work = [*here, "-d", str(own), "--cores", "1", "--memory", "1g", address]
            started.append(Server(python, "worker.Worker", work, own, environment))
        for worker in started[1:]:
            worker.wait_for("Successfully registered with master")
        yield address
    finally:
        for each in reversed(started):
            each.end()


@contextmanager
def connect_server(python: Path, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Start a server for Spark Connect over a local Spark; yield its URL."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": LOOPBACK,
        "spark.ui.enabled": "false",
    }
    arguments = ["--master", "local[2]"]
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    arguments += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    server = Server(python, "SparkSubmit", [*arguments, "spark-internal"], folder, environment)
    try:
        server.wait_for("Spark Connect server started at")
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        server.end()


class Server:
    """One of Spark's Java processes, and those that it starts: a process group of their own."""

    def __init__(
        self,
        python: Path,
        name: str,
        arguments: list[str],
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        folder.mkdir()
        home = home_of(python)
        inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        self._log = folder / "log.txt"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments],
                cwd=folder,
                env={
                    **inherited,
                    "SPARK_HOME": str(home),
                    "SPARK_LOCAL_IP": LOOPBACK,
                    "PYSPARK_PYTHON": str(python),
                    **environment,
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_for(self, text: str) -> None:
        """Return when `text` is in the log."""
        deadline = time.monotonic() + SECONDS
        while text not in self._log.read_text():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.1)

    def end(self) -> None:
        """End it, and then whatever it has left: executors, and their Pythons."""
        self._process.terminate()
        try:
            self._process.wait(SECONDS)
        finally:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                self._process.wait()


def home_of(python: Path) -> Path:
    """Return the folder of the Spark that this Python has."""
    (home,) = (python.parents[1] / "lib").glob("python3.*/site-packages/pyspark")
    return home


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as server:
        return int(server.getsockname()[1])
