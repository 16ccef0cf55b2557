"""A local Spark session with the settings that suit the source, or one on the cluster named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.pipeline.tables.staged_files import TableFilesSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

JAVA_OLDEST: Final = 17
"""The oldest Java that Spark 4 runs on."""

LOCAL: Final = "local[*]"

_CHECKPOINTS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


class JavaError(Exception):
    """There is no Java that Spark can run on; the message says what to install."""


def open_session(name: str, master: str = LOCAL, log: Path | None = None) -> SparkSession:
    """Return a session that knows the source, with a quiet log; raises JavaError.

    What Java and the workers say goes to the file `log`, or to standard error. A session that
    exists already is used as it is: Spark has one a process.
    """
    check_java()
    from pyspark.sql import SparkSession  # noqa: PLC0415  # after the check of what it needs

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in (_settings() | (_local_settings() if _is_local(master) else {})).items():
        builder = builder.config(key, value)
    with _errors_to(log) if log else nullcontext():
        spark = builder.getOrCreate()
    # The source itself is found by Spark, through the package pyspark_penstock.
    spark.dataSource.register(TableFilesSource)
    return spark


def close_session() -> None:
    """End this process's session, and return when its Java is gone."""
    from pyspark import SparkContext  # noqa: PLC0415  # see open_session
    from pyspark.sql import SparkSession  # noqa: PLC0415

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    gateway = SparkContext._gateway  # PySpark itself only ends Java with Python
    if gateway is not None:
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def check_java() -> None:
    """Raise JavaError unless there is a Java of the version that Spark needs."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = f"Spark needs Java {JAVA_OLDEST} or newer: install it, or point JAVA_HOME to it"
    if java is None or not Path(java).exists():
        raise JavaError(f"no Java found{f' in JAVA_HOME {home}' if home else ''}. {advice}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = re.search(r'version "(\d+)', answer.stderr)
    if version is None or int(version[1]) < JAVA_OLDEST:
        raise JavaError(f"{java} is {answer.stderr.splitlines()[:1] or 'not Java'}. {advice}")


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Let processes that are started in here inherit a file as their standard error."""
    kept = os.dup(2)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _settings() -> dict[str, str]:
    return {
        # Rows go to Java over a socket; without TCP that is 20 to 40 % faster.
        "spark.python.unix.domain.socket.enabled": "true",
        # Half the time of a small batch was spent in the default manager's checkpoint files.
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }


def _local_settings() -> dict[str, str]:
    log = (Path(__file__).parent / "log4j2.properties").as_uri()
    return {
        # Nothing of a local job is reachable from another machine.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        # Java carries no payload here, and without its second compiler a start needs half the CPU.
        "spark.driver.extraJavaOptions": (
            f"-XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={log}"
        ),
    }


def _is_local(master: str) -> bool:
    return master.startswith("local")
