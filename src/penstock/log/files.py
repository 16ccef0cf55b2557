"""The file system as the log uses it, and the seam at which tests make it fail, tear and forget."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from penstock.unfilled import unfilled

if TYPE_CHECKING:
    from penstock.session import Buffer

_MAX_PARTS: Final = 1024
"""Linux takes at most so many parts in one vectored write (IOV_MAX)."""


class File(Protocol):
    """One open file. Reads and writes name their position; there is no cursor."""

    def pread(self, size: int, position: int) -> bytes:
        """Return up to `size` bytes; fewer only at the end of the file. Raises OSError."""

    def pread_now(self, size: int, position: int) -> Buffer:
        """Return `size` bytes that are in memory. Raises BlockingIOError where some are not."""

    @property
    def descriptor(self) -> int | None:
        """The operating system's number of the open file, if it is one of its files."""

    @property
    def is_in_memory(self) -> bool:
        """Whether its file system is one of memory, so that no device is ever waited for."""

    def duplicate(self) -> File:
        """Return the same open file under a descriptor of its own. Raises OSError."""

    def pwritev(self, parts: Sequence[Buffer], position: int) -> int:
        """Write the parts one after the other and return how many bytes went in: maybe not all."""

    def fdatasync(self) -> None:
        """Return when the content, and the size, are on stable storage. Raises OSError."""

    def begin_writing(self, position: int, size: int) -> None:
        """Have some of the content written by and by, which is on stable storage only once
        `fdatasync` has returned. Raises OSError.
        """

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class FileSystem(Protocol):
    """What the log asks of directories and names."""

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> File:
        """Open for reading, or for both; `create` makes the file where there is none."""

    def entries(self, directory: Path) -> dict[str, int]:
        """Return name and size in bytes of each file in `directory`."""

    def make_directory(self, directory: Path) -> None:
        """Make it unless it is there, and its parents, whose names are durable on return."""

    def forget_cache(self, path: Path) -> None:
        """Have what is read of this file from now on come from the disk, as far as it is there."""

    def sync_directory(self, directory: Path) -> None:
        """Return when the names in `directory` are on stable storage."""

    def modified_ms(self, path: Path) -> int:
        """Return when the file's content was changed last, in ms since 1970."""

    def rename(self, source: Path, target: Path) -> None: ...

    def unlink(self, path: Path) -> None: ...


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_is_in_memory", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._is_in_memory: bool | None = None
        """None until somebody asks."""

    @property
    def is_in_memory(self) -> bool:
        if self._is_in_memory is None:
            self._is_in_memory = _is_memory(os.fstat(self.descriptor).st_dev)
        return self._is_in_memory

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self.descriptor, size, position)

    def pread_now(self, size: int, position: int) -> Buffer:
        if self._is_in_memory:
            return os.pread(self.descriptor, size, position)
        data = unfilled(size)
        try:
            count = os.preadv(self.descriptor, (data,), position, os.RWF_NOWAIT)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return self._pread_unless_a_disk(size, position)
        if count < size:
            raise BlockingIOError(errno.EAGAIN, "some of it is not in memory")
        return data

    def duplicate(self) -> File:
        return RealFile(os.dup(self.descriptor))

    def pwritev(self, parts: Sequence[Buffer], position: int) -> int:
        return os.pwritev(self.descriptor, parts[:_MAX_PARTS], position)

    def fdatasync(self) -> None:
        os.fdatasync(self.descriptor)

    def begin_writing(self, position: int, size: int) -> None:
        # Linux writes what of it is not written yet, without waiting for it.
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self.descriptor, position, size, os.POSIX_FADV_DONTNEED)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.descriptor, size)

    def close(self) -> None:
        os.close(self.descriptor)

    def _pread_unless_a_disk(self, size: int, position: int) -> Buffer:
        """Read from a file system that has no RWF_NOWAIT, which needs none if it is memory."""
        if not self.is_in_memory:
            raise BlockingIOError(errno.EAGAIN, "the file system may have to be waited for")
        return os.pread(self.descriptor, size, position)


class RealFileSystem:
    """The operating system's files."""

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> File:
        flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return RealFile(os.open(path, flags, 0o644))

    def entries(self, directory: Path) -> dict[str, int]:
        with os.scandir(directory) as found:
            sizes: dict[str, int] = {}
            for entry in found:
                # What is renamed meanwhile is not there under this name.
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file():
                        sizes[entry.name] = entry.stat().st_size
            return sizes

    def make_directory(self, directory: Path) -> None:
        try:
            directory.mkdir(exist_ok=True)
        except FileNotFoundError:
            self.make_directory(directory.parent)
            self.sync_directory(directory.parent.parent)
            directory.mkdir(exist_ok=True)

    def forget_cache(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)

    def sync_directory(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def modified_ms(self, path: Path) -> int:
        return path.stat().st_mtime_ns // 1_000_000

    def rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    def unlink(self, path: Path) -> None:
        path.unlink()


def write_all(file: File, parts: Sequence[Buffer], position: int) -> None:
    """Write every byte of `parts` at `position`, over as many calls as it takes.

    Raises OSError; some of the bytes may be in the file then.
    """
    while parts:
        written = file.pwritev(parts, position)
        assert written <= sum(map(len, parts)), "no more is written than was given"
        if written <= 0:
            raise OSError(errno.EIO, "the file took no bytes")
        position += written
        parts = _after(parts, written)


@lru_cache(maxsize=16)
def _is_memory(device: int) -> bool:
    """Whether the file system of this device is one of memory, as the kernel lists them."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return False
    mounts = (line.split(" - ") for line in lines if line.split()[2] == number)
    return any(kind[-1].split()[0] in {"tmpfs", "ramfs"} for kind in mounts)


def _after(parts: Sequence[Buffer], written: int) -> Sequence[Buffer]:
    for index, part in enumerate(parts):
        if written < len(part):
            return [memoryview(part)[written:], *parts[index + 1 :]]
        written -= len(part)
    return []
