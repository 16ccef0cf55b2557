"""What is started is ended, with all that it started itself."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from patience import PATIENCE_SECONDS
from versus.accounting import disk_bytes, look
from versus.processes import free_port, on_cpus, running, wait_for_port

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


def ends(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_children_end_with_the_block_also_on_ctrl_c(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-c", PARENT]
    pids: list[int] = []

    def interrupted() -> None:
        with running(
            command, folder=tmp_path, log=tmp_path / "log", cpus=cpus, talks=True
        ) as process:
            assert process.stdout is not None
            pids.extend([process.pid, int(process.stdout.readline())])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(pids) == 2
    assert all(ends(pid) for pid in pids)


def test_what_ignores_a_signal_ends_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("versus.processes.STOP_SECONDS", 0.1)
    cpus = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-c", STUBBORN]
    with running(command, folder=tmp_path, log=tmp_path / "log", cpus=cpus, talks=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
    assert ends(process.pid)


def test_a_port_of_a_process_that_ended_is_not_waited_for(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    log = tmp_path / "log"
    command = [sys.executable, "-c", "import sys; sys.exit('no memory')"]
    with running(command, folder=tmp_path, log=log, cpus=cpus) as process:
        process.wait()
        with pytest.raises(RuntimeError, match="no memory"):
            wait_for_port(free_port(), process, 60, log)


def test_processors_are_given_back() -> None:
    before = os.sched_getaffinity(0)
    with on_cpus(sorted(before)[:1]):
        assert os.sched_getaffinity(0) == set(sorted(before)[:1])
    assert os.sched_getaffinity(0) == before


def test_time_that_was_spent_is_counted() -> None:
    before = look(os.getpid())
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = look(os.getpid())
    assert after.cpu_seconds - before.cpu_seconds >= 0.05
    assert set(before.thread_seconds) <= set(after.thread_seconds)


def test_disk_is_what_is_allocated(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with (tmp_path / "folder" / "full").open("wb") as file:
        file.write(b"x" * 100_000)
        os.fsync(file.fileno())
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    assert 100_000 <= disk_bytes(tmp_path) < 200_000
