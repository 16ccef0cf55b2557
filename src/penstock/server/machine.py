"""How much memory there is, and which part of it is for what clients make a broker hold."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.limits import MEMORY_BYTES_LEAST

_GROUPS: Final = Path("/sys/fs/cgroup")
_SHARE: Final = 4


def default_budget() -> int:
    """Return a quarter of the machine in bytes, or the least that does."""
    return max(MEMORY_BYTES_LEAST, memory_of_machine() // _SHARE)


def resident_bytes(told: Path = Path("/proc/self/statm")) -> Callable[[], int] | None:
    """Return what tells how much memory this process has, in a few microseconds.

    None where /proc is not mounted: nothing else tells how much it is now. Raises OSError, as where
    too many files are open.
    """
    try:
        file, page = os.open(told, os.O_RDONLY | os.O_CLOEXEC), mmap.PAGESIZE
    except FileNotFoundError:
        return None

    def read() -> int:
        return int(os.pread(file, 100, 0).split()[1]) * page

    return read


def memory_of_machine(groups: Path = _GROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return the machine's memory in bytes, or what a control group leaves of it.

    Both versions of Linux' control groups count, each group in its parents' limits.
    """
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _limit_files(groups, own):
        with suppress(OSError, ValueError):  # No such group, or one that says `max`.
            found.append(int(path.read_text(encoding="ascii")))
    return min(found)


def _limit_files(groups: Path, own: Path) -> list[Path]:
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, file = groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, file = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = root / name.lstrip("/")
        # In a container the group's own name is that of the host, and its root is the group.
        files += [each / file for each in (folder, *folder.parents) if each.is_relative_to(root)]
    return files
