"""Processes that are started here are ended here, by id, whatever happens in between."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

STOP_SECONDS: Final = 30
_TAIL_BYTES: Final = 2000


@contextmanager
def on_cpus(cpus: Sequence[int]) -> Iterator[None]:
    """What is started within the block runs on these processors only.

    A process takes over the set of its parent. Set after the start it would be too late: a Java
    machine counts its processors once, when it begins.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def running(
    command: Sequence[str],
    *,
    folder: Path,
    log: Path,
    cpus: Sequence[int],
    environment: Mapping[str, str] | None = None,
    talks: bool = False,
) -> Iterator[subprocess.Popen[str]]:
    """Run a process in a group of its own until the block ends.

    Where it `talks`, its standard input and output are pipes; otherwise all output is in the log.
    """
    with log.open("ab") as errors, on_cpus(cpus):
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talks else errors,
            stderr=errors,
            env=None if environment is None else dict(environment),
            text=True,
            # Ctrl-C is for the run as a whole, which then ends this group itself.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[str]) -> None:
    """End a process and all of its group: in order first, then by force."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for_port(
    port: int, process: subprocess.Popen[str], seconds: float, log: Path | None = None
) -> None:
    """Return when something listens on the port. Raises RuntimeError with the log's end if not."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"nothing listens on port {port}: {tail(log) if log else ''}")
        time.sleep(0.005)


def tail(log: Path) -> str:
    """The last lines of a log, to be shown with a failure."""
    if not log.exists():
        return ""
    return log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
