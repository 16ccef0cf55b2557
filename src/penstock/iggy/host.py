"""What Linux tells about this process and its machine; 0 where it tells nothing."""

from __future__ import annotations

import os
import platform
import shutil
import time
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """Sizes are bytes; `cpu_seconds` is since the process began."""

    id: int
    cpu_seconds: float
    memory: int
    read_bytes: int
    written_bytes: int
    threads: int

    def cpu_percent(self) -> float:
        """The share of one core since the process began."""
        alive = time.monotonic() - _began
        return 100 * self.cpu_seconds / alive if alive > 0 else 0.0


class Machine(NamedTuple):
    """Sizes are bytes."""

    hostname: str
    os_name: str
    os_version: str
    kernel_version: str
    cpu_percent: float
    total_memory: int
    available_memory: int
    free_disk: int
    total_disk: int


_began = time.monotonic()


def process() -> Process:
    """Describe this process."""
    status = _fields("self/status")
    counters = _fields("self/io")
    return Process(
        id=os.getpid(),
        cpu_seconds=time.process_time(),
        memory=status.get("VmRSS", 0) * 1024,
        read_bytes=counters.get("read_bytes", 0),
        written_bytes=counters.get("write_bytes", 0),
        threads=status.get("Threads", 1),
    )


def machine(folder: Path) -> Machine:
    """Describe the machine, and the disk that `folder` is on."""
    memory = _fields("meminfo")
    disk = shutil.disk_usage(folder)
    load, _, _ = os.getloadavg()
    return Machine(
        hostname=platform.node(),
        os_name=platform.system(),
        os_version=platform.version(),
        kernel_version=platform.release(),
        cpu_percent=min(100.0, 100 * load / (os.cpu_count() or 1)),
        total_memory=memory.get("MemTotal", 0) * 1024,
        available_memory=memory.get("MemAvailable", 0) * 1024,
        free_disk=disk.free,
        total_disk=disk.total,
    )


def _fields(file: str) -> dict[str, int]:
    """Read lines of `name: number unit`."""
    try:
        lines = (_PROC / file).read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    words = {name: value.split() for name, value in pairs}
    return {name: int(value[0]) for name, value in words.items() if value and value[0].isdigit()}
