"""What a broker takes: processor time, memory and disk, as the operating system counts it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

SAMPLE_SECONDS: Final = 0.25
MIB: Final = 1 << 20
_BLOCK_BYTES: Final = 512  # the unit of st_blocks, whatever the file system's own is


@dataclass(frozen=True)
class Look:
    """One look at a process and its children."""

    cpu_seconds: float
    """All that was ever spent, also by children that have ended."""
    thread_seconds: dict[int, float]


def look(pid: int) -> Look:
    cpu = 0.0
    threads: dict[int, float] = {}
    for process in family(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            # Children that have ended, at any depth, are counted by who waited for them.
            cpu += times.user + times.system + times.children_user + times.children_system
            for thread in process.threads():
                threads[thread.id] = thread.user_time + thread.system_time
    return Look(cpu, threads)


def family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def resident_mib(pid: int) -> float:
    total = 0
    for process in family(pid):
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / MIB


def disk_bytes(folder: Path) -> int:
    """Bytes that are allocated on disk, also of what a file reserves and does not yet fill."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(Path(place) / name).st_blocks * _BLOCK_BYTES
    return total


def machine_cpu_seconds() -> float:
    """What all programs and the system itself have spent since the machine was started."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


class Watch:
    """A broker's use between `begin` and `end`, with the most memory it held meanwhile."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid = pid
        self._folder = folder
        self._ended = threading.Event()
        self._resident = 0.0
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def begin(self) -> None:
        self._disk = disk_bytes(self._folder)
        self._thread.start()
        self._machine = machine_cpu_seconds()
        self._before = look(self._pid)

    def end(self) -> dict[str, float]:
        after = look(self._pid)
        machine = machine_cpu_seconds() - self._machine
        self._ended.set()
        self._thread.join()
        before = self._before.thread_seconds
        threads = after.thread_seconds.items()
        return {
            "machine_cpu_seconds": machine,
            "broker_cpu_seconds": after.cpu_seconds - self._before.cpu_seconds,
            "broker_busiest_thread_seconds": max(
                spent - before.get(thread, 0.0) for thread, spent in threads
            ),
            "broker_resident_mib": max(self._resident, resident_mib(self._pid)),
            "disk_bytes": disk_bytes(self._folder) - self._disk,
        }

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            with suppress(psutil.NoSuchProcess):
                self._resident = max(self._resident, resident_mib(self._pid))
