"""Goal: the machine is as large as the smallest of what limits it."""

from __future__ import annotations

import mmap
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from broker_process import BrokerProcess, environment
from penstock.limits import MEMORY_BYTES_LEAST
from penstock.server.machine import default_budget, memory_of_machine, resident_bytes
from stand import Stand

MIB = 1 << 20
APART = ["unshare", "--map-root-user", "--mount"]
HIDE_PROC = 'mount -t tmpfs none /proc && exec "$@"'


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_control_group_is_the_machine(tmp_path: Path) -> None:
    own = put(tmp_path / "own", "0::/pod/box\n")
    put(tmp_path / "pod/box/memory.max", "max\n")
    assert memory_of_machine(tmp_path, own) > 64 * MIB, "no limit is none"
    put(tmp_path / "pod/memory.max", f"{64 * MIB}\n")
    assert memory_of_machine(tmp_path, own) == 64 * MIB
    put(tmp_path / "memory.max", f"{32 * MIB}\n")
    assert memory_of_machine(tmp_path, own) == 32 * MIB


def test_control_groups_of_the_first_version_count_too(tmp_path: Path) -> None:
    own = put(tmp_path / "own", "9:cpu,cpuacct:/box\n4:memory:/box\n0::/\n")
    put(tmp_path / "memory/box/memory.limit_in_bytes", f"{16 * MIB}\n")
    assert memory_of_machine(tmp_path, own) == 16 * MIB


def test_without_control_groups_the_machine_is_what_it_is(tmp_path: Path) -> None:
    assert memory_of_machine(tmp_path, tmp_path / "missing") > 0
    assert default_budget() >= MEMORY_BYTES_LEAST


def test_what_the_process_has_follows_what_it_takes() -> None:
    resident = resident_bytes()
    assert resident is not None
    page = b"x" * mmap.PAGESIZE
    before = resident()
    # A mapping of its own: what malloc has kept may hold as much already.
    with mmap.mmap(-1, 64 * MIB) as taken:
        for _ in range(64 * MIB // len(page)):
            taken.write(page)
        assert 60 * MIB < resident() - before < 100 * MIB


def test_where_no_proc_is_mounted_nothing_is_measured(tmp_path: Path) -> None:
    assert resident_bytes(tmp_path / "statm") is None


class WithoutProc(BrokerProcess):
    """A broker on a system that has no /proc."""

    def _launch(self, log: IO[str]) -> subprocess.Popen[str]:
        command = [*APART, "sh", "-c", HIDE_PROC, "sh", sys.executable, "-m", "penstock"]
        return subprocess.Popen(
            [*command, *self._arguments()],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(),
        )


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*APART, "true"], check=False).returncode,
    reason="this user may have no mounts of its own",
)
def test_a_broker_works_where_no_proc_is_mounted(stand: Stand) -> None:
    stand.allow("/proc is not mounted")
    broker = stand.add(WithoutProc(stand.fresh_folder()))
    assert "memory_bytes" in broker.log
