"""The processes of the demo: the broker and the clients. None outlives the block that made it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from penstock.demo.worker import Client, Job

READY_SECONDS: Final = 30
STOP_SECONDS: Final = 20
_TAIL_LINES: Final = 15


class DemoError(Exception):
    """A part of the demo failed; the message holds the last lines of its log."""


@contextmanager
def running_broker(folder: Path) -> Iterator[dict[str, str]]:
    """Run a broker on free ports with its data in `folder`; yield its addresses by protocol."""
    log = folder / "broker.log"
    flags = ["--data-folder", str(folder / "data"), "--log-level", "warning", "--format", "json"]
    ports = ["--kafka-port", "0", "--pulsar-port", "0", "--iggy-port", "0"]
    command = [sys.executable, "-m", "penstock", "serve", *flags, *ports]
    # Settings that are meant for another broker must not reach this one.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    with log.open("wb") as errors:
        broker = subprocess.Popen(  # noqa: S603  # our own command
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env=environment,
            # Ctrl-C is for the demo, which then ends the broker itself.
            start_new_session=True,
        )
    assert broker.stdout is not None
    try:
        reported = _first_line(broker)
        if not reported:
            raise DemoError(f"the broker did not start:\n{_tail(log)}")
        yield json.loads(reported)["listeners"]
        if broker.poll() is not None:
            raise DemoError(f"the broker ended by itself with {broker.returncode}:\n{_tail(log)}")
    finally:
        _end(broker)
    if broker.returncode != 0:
        raise DemoError(f"the broker ended with {broker.returncode}:\n{_tail(log)}")


def run_workers(
    jobs: Sequence[Job], folder: Path, report: Callable[[Client, int], None]
) -> dict[Client, dict[str, Any]]:
    """Run all jobs at the same time; return what each reported last. Raises DemoError."""
    with ThreadPoolExecutor(len(jobs)) as threads, ExitStack() as processes:
        followed = {}
        for job in jobs:
            log = folder / f"{job.client}.log"
            process = processes.enter_context(_running(job, log))
            followed[threads.submit(_follow, job, process, log, report)] = job.client
        ended, _ = wait(followed, return_when=FIRST_EXCEPTION)
        return {followed[future]: future.result() for future in ended}


@contextmanager
def _running(job: Job, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  # our own command
            job.command(), stdout=subprocess.PIPE, stderr=errors
        )
    try:
        yield process
    finally:
        _end(process)


def _follow(
    job: Job, process: subprocess.Popen[bytes], log: Path, report: Callable[[Client, int], None]
) -> dict[str, Any]:
    assert process.stdout is not None
    reported: dict[str, Any] = {}
    for line in process.stdout:
        reported = json.loads(line)
        report(job.client, reported["count"])
    if process.wait() != 0 or "done" not in reported:
        raise DemoError(f"the {job.client} client ended with {process.returncode}:\n{_tail(log)}")
    return reported


def _first_line(broker: subprocess.Popen[bytes]) -> bytes:
    """Return what the broker says when it is ready; nothing where it ends before."""
    assert broker.stdout is not None
    timer = threading.Timer(READY_SECONDS, broker.kill)
    timer.start()
    try:
        return broker.stdout.readline()
    finally:
        timer.cancel()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
