"""Goal: a command's streams may be closed, full or read by nobody; it says so and harms no file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from broker_process import environment
from patience import PATIENCE_SECONDS, wait_until
from penstock.server.listeners import PROTOCOLS

PORTS = " ".join(f"--{each}-port 0" for each in PROTOCOLS)
COMMAND = f"exec {sys.executable} -m penstock"


def run_shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=PATIENCE_SECONDS,
    )


@pytest.mark.parametrize("arguments", ["version", "--version", "topic --help", "version -f json"])
def test_output_that_can_not_be_written_is_told_in_one_line(arguments: str) -> None:
    ran = run_shell(f"{COMMAND} {arguments} >/dev/full")
    assert ran.returncode == 1
    assert ran.stderr.startswith("penstock: standard output can't be written: No space left")
    assert ran.stderr.count("\n") == 1


@contextmanager
def broker(
    data: Path, streams: str, output: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A broker that clients can connect to, which is started by a shell with such streams."""
    line = f"{COMMAND} serve {PORTS} --data-folder {data} {streams}"
    process = subprocess.Popen(["bash", "-c", line], stdout=output, env=environment())
    try:
        wait_until(lambda: listening(process.pid) == len(PROTOCOLS))
        yield process
    finally:
        process.kill()
        process.wait()


def listening(process_id: int) -> int:
    connections = psutil.Process(process_id).net_connections()
    return len([each for each in connections if each.status == psutil.CONN_LISTEN])


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_broker_serves_without_its_streams_and_stops_in_order(
    tmp_path: Path, closed: str
) -> None:
    data = tmp_path / "data"
    with broker(data, closed) as process:
        streams = [Path(f"/proc/{process.pid}/fd/{number}").readlink() for number in range(3)]
        assert not [each for each in streams if each.is_relative_to(data) or "socket" in str(each)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


def test_a_broker_whose_first_words_nobody_reads_serves_on(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing), broker(tmp_path / "data", "", writing) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
