"""A local Spark session with the settings that suit the source, or one on the cluster named."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from zipimport import zipimporter

from penstock.pipeline.tables.staged_files import TableFilesSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

JAVA_OLDEST: Final = 17
"""The oldest Java that Spark 4 runs on."""

LOCAL: Final = "local[*]"

_WORKER_PYTHON: Final = Path(__file__).with_name("worker_python.sh")

READS: Final = {
    # Rows go to Java over a socket. Over TCP each task waits 40 ms for an acknowledgement, too.
    "spark.python.unix.domain.socket.enabled": "true",
    # A live table is a union. Spark 4.3 can compile it with what is made of its rows.
    "spark.sql.codegen.wholeStage.union.enabled": "true",
}
"""By which reads are quicker in any session (docs/spark.md)."""

ARROW_OPTIONS: Final = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
"""Of Java: not to check for each cell of a row that it lies in its column, and is not null, which
Spark has asked by then.
"""

_CHECKPOINTS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


CONNECT: Final = "sc://"
"""How addresses of Spark Connect begin."""


class SessionError(Exception):
    """No session can be opened; the message says what would be right."""


class JavaError(SessionError):
    """There is no Java that Spark can run on; the message says what to install."""


def open_session(name: str, master: str = LOCAL, log: Path | None = None) -> SparkSession:
    """Return a session that knows the source, with a quiet log; raises SessionError.

    What Java and the workers say goes to the file `log`, or to standard error. A session that
    exists already is used as it is: Spark has one a process. The caller's handlers of signals stay.
    """
    check_master(master)
    check_java()
    from pyspark.sql import SparkSession  # noqa: PLC0415  # after the check of what it needs

    os.environ.setdefault("PYSPARK_PYTHON", _worker_python(master))
    settings = _settings() | (_local_settings() if _is_local(master) else {})
    _start_java(settings, log)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _interrupts_handled_as_before(), _failing_in_words(master):
        spark = builder.getOrCreate()
    # The source itself is found by Spark, through the package pyspark_penstock.
    spark.dataSource.register(TableFilesSource)
    return spark


def is_open() -> bool:
    """Whether Spark runs in this process."""
    from pyspark import SparkContext  # noqa: PLC0415  # see open_session

    return SparkContext._active_spark_context is not None


def close_session() -> None:
    """End this process's session, and return when its Java is gone."""
    from pyspark import SparkContext  # noqa: PLC0415  # see open_session
    from pyspark.sql import SparkSession  # noqa: PLC0415

    gateway = SparkContext._gateway  # PySpark itself only ends Java with Python
    has_died = gateway is not None and gateway.proc.poll() is not None
    session = None if has_died else SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    if gateway is not None:
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def check_master(master: str) -> None:
    """Raise SessionError where Spark's driver would run elsewhere: jobs commit what they wrote."""
    why = (
        "a job needs a driver of its own, which commits what tasks wrote, and Spark Connect's is "
        "another process"
    )
    if master.startswith(CONNECT):
        raise SessionError(
            f"{why}: name the cluster's own master in place of {master}, such as spark://HOST:7077"
        )
    # With any of these PySpark opens no session but one of Spark Connect.
    given = [name for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED") if name in os.environ]
    if os.environ.get("SPARK_API_MODE", "").lower() == "connect":
        given.append("SPARK_API_MODE")
    if given:
        raise SessionError(f"{why}: unset {given[0]}, which is {os.environ[given[0]]!r}")


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


def _worker_python(master: str) -> str:
    """Return the command by which Spark starts Python: past archives of what is installed."""
    loaders = (getattr(find_spec(name), "loader", None) for name in ("py4j", "pyspark"))
    is_installed = not any(isinstance(loader, zipimporter) for loader in loaders)
    if not _is_local(master) or not is_installed or not os.access(_WORKER_PYTHON, os.X_OK):
        return sys.executable
    os.environ["PYSPARK_PENSTOCK_PYTHON"] = sys.executable
    return str(_WORKER_PYTHON)


def _start_java(settings: Mapping[str, str], log: Path | None) -> None:
    """Start the Java of this process's session, unless there is one."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  # see open_session
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None:
        return
    _keep_traces_back()
    how: dict[str, Any] = {}
    if os.isatty(0):
        # Ctrl-C interrupts a whole process group, and would end workers within their tasks.
        how["process_group"] = 0
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with _appended(log) as errors:
        gateway = launch_gateway(conf, {**how, "stderr": errors})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


def _keep_traces_back() -> None:
    """Have PySpark not print the trace of each error that it raises, as lines of JSON."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415  # see open_session

    printing = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    for each in map(PySparkLogger.getLogger, printing):
        each.setLevel(logging.CRITICAL)


@contextmanager
def _appended(log: Path | None) -> Iterator[IO[bytes] | None]:
    if log is None:
        yield None
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        yield file


@contextmanager
def _interrupts_handled_as_before() -> Iterator[None]:
    """Keep the handler of SIGINT: PySpark's own cancels all jobs in the middle."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _failing_in_words(master: str) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  # see open_session

    try:
        yield
    except Py4JJavaError as error:
        why = str(error.java_exception.getMessage()).partition("\n")[0].removesuffix(".")
        raise SessionError(
            f"Spark does not start with the master {master}: {why}. A master is local[*], or the "
            "URL of a cluster that answers, such as spark://HOST:7077"
        ) from error


def _settings() -> dict[str, str]:
    return {
        **READS,
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
            f"-XX:TieredStopAtLevel=1 {ARROW_OPTIONS} -Dlog4j2.configurationFile={log}"
        ),
    }


def _is_local(master: str) -> bool:
    return master.startswith("local")
