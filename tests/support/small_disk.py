"""A small file system that a test can really fill; it needs the right to mount one."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Leave nothing free, for good."""
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        assert os.statvfs(self.folder).f_bavail == 0

    @contextlib.contextmanager
    def with_room(self, size: int) -> Iterator[None]:
        """Leave so many bytes free meanwhile, or fewer."""
        found = os.statvfs(self.folder)
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            for _ in range(0, found.f_bavail * found.f_frsize - size, 4096):
                file.write(bytes(4096))
        try:
            yield
        finally:
            self._ballast.unlink()


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[SmallDisk]:
    """Mount one of so many bytes, and remove it with all that is on it.

    Skips the test where that can't be had.
    """
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        pytest.skip(f"no file system can be mounted: {reason}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
