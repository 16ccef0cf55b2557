"""Reading without holding the event loop up: at once what is in memory, in a thread what is not.

A look-up is a function that reads through files which it is lent. It is tried on the loop with
files that neither wait nor work for long; where that does not do, all of it is done again in a
thread. So a look-up changes nothing that a second run would change differently.
"""

from __future__ import annotations

import errno
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from penstock.limits import LOOKED_UP_AT_ONCE_BATCHES, LOOKED_UP_AT_ONCE_BYTES, READ_FILES
from penstock.log.threads import News, Threads
from penstock.session import FileRange

if TYPE_CHECKING:
    from penstock.log.files import File, FileSystem
    from penstock.session import Buffer

FoundT = TypeVar("FoundT")

_THREADS: Final = 16


class Readable(Protocol):
    """A file that a look-up was lent."""

    def pread(self, size: int, position: int) -> Buffer:
        """Return up to `size` bytes; fewer only at the end of the file. Raises OSError."""

    def judged(self, batches: int) -> None:
        """So many batches were looked at. Raises BlockingIOError when they are too many."""


Lend: TypeAlias = Callable[[Path], Readable]
"""Lends the file of a path for one look-up. Raises OSError."""


class SharedFile:
    """A file that is closed when its last holder releases it. Begins with one holder."""

    __slots__ = ("_file", "_holders", "descriptor", "pread", "pread_now")

    def __init__(self, file: File) -> None:
        self._file = file
        self._holders = 1
        self.descriptor = -1 if file.descriptor is None else file.descriptor
        """-1 where the operating system knows nothing of this file."""
        self.pread = file.pread
        self.pread_now = file.pread_now

    def judged(self, batches: int) -> None:
        """Whoever may wait for this file may work for as long as it takes."""

    def hold(self) -> None:
        """Keep it open until `release`. Only who knows that it is open may hold it."""
        with _holding:
            assert self._holders > 0, "it is open"
            self._holders += 1

    def release(self) -> None:
        """It is not needed any more."""
        with _holding:
            self._holders -= 1
            is_over = self._holders == 0
        if is_over:
            self._file.close()


_holding: Final = threading.Lock()


class Haste:
    """Lends open files to one look-up on the loop, and ends it when it has done enough."""

    __slots__ = ("_batches_left", "_bytes_left", "_open")

    def __init__(self, open_files: Mapping[Path, SharedFile]) -> None:
        self._open = open_files
        self._bytes_left = int(LOOKED_UP_AT_ONCE_BYTES)
        self._batches_left = int(LOOKED_UP_AT_ONCE_BATCHES)

    def lend(self, path: Path) -> HastyFile:
        file = self._open.get(path)
        if file is None:
            raise _takes_long()
        return HastyFile(file.pread_now, self)

    def spend(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise _takes_long()

    def judged(self, batches: int) -> None:
        self._batches_left -= batches
        if self._batches_left < 0:
            raise _takes_long()


class HastyFile:
    """A file as it is lent on the loop: it neither waits nor works for long."""

    __slots__ = ("_pread", "_spend", "judged")

    def __init__(self, pread: Callable[[int, int], Buffer], haste: Haste) -> None:
        self._pread = pread
        self._spend = haste.spend
        self.judged = haste.judged

    def pread(self, size: int, position: int) -> Buffer:
        self._spend(size)
        return self._pread(size, position)


class OpenFiles:
    """Files of one file system that are open for reading; any thread may ask for one."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._open: OrderedDict[Path, SharedFile] = OrderedDict()
        self._superfluous: list[SharedFile] = []
        self._lock = threading.Lock()

    @contextmanager
    def lending(self) -> Iterator[Lend]:
        """Lend files, opened if need be, to one look-up. Blocks where it opens or reads one."""
        lent: dict[Path, SharedFile] = {}

        def lend(path: Path) -> SharedFile:
            file = lent.get(path)
            if file is None:
                file = lent[path] = self._held(path) or self._keep(path, self._files.open(path))
            return file

        try:
            yield lend
        finally:
            for file in lent.values():
                file.release()

    def lending_now(self) -> Lend:
        """Return what lends the files that are open to one look-up on the loop.

        None of them is closed meanwhile: what threads have no use for is closed here.
        """
        if self._superfluous:
            with self._lock:
                closing, self._superfluous = self._superfluous, []
            for file in closing:
                file.release()
        return Haste(self._open).lend

    def range_of(self, path: Path, position: int, size: int) -> FileRange | None:
        """Return part of a file, if that is open and one of the operating system's."""
        file = self._held(path)
        if file is None:
            return None
        try:
            return FileRange(file, position, size) if file.descriptor >= 0 else None
        finally:
            file.release()

    def adopt(self, path: Path, file: File) -> None:
        """Read from a file that is open already. Raises OSError."""
        if path not in self._open:
            self._keep(path, file.duplicate()).release()

    def close(self) -> None:
        """Close all files, once nobody reads them any more."""
        self.forget(*self._open)

    def forget(self, *paths: Path) -> None:
        """Close these files, once nobody reads them any more."""
        with self._lock:
            closing = [self._open.pop(path) for path in paths if path in self._open]
            closing += self._superfluous
            self._superfluous = []
        for file in closing:
            file.release()

    def _held(self, path: Path) -> SharedFile | None:
        with self._lock:
            file = self._open.get(path)
            if file is not None:
                self._open.move_to_end(path)
                file.hold()
            return file

    def _keep(self, path: Path, opened: File) -> SharedFile:
        """Keep a file open, and hold it."""
        with self._lock:
            file = self._open.get(path)
            if file is None:
                file = self._open[path] = SharedFile(opened)
                if len(self._open) > READ_FILES:
                    self._superfluous.append(self._open.popitem(last=False)[1])
            else:
                self._superfluous.append(SharedFile(opened))  # Another thread was as quick.
            file.hold()
        return file


class Readers:
    """The threads of one node that read for all its logs, and the files that are open for it.

    `news` are those of the running event loop.
    """

    def __init__(self, news: Callable[[], News]) -> None:
        self._news = news
        self._threads = Threads(_THREADS, "read")
        self._open_files: dict[FileSystem, OpenFiles] = {}

    def open_files(self, files: FileSystem) -> OpenFiles:
        return self._open_files.setdefault(files, OpenFiles(files))

    async def look_up(self, files: OpenFiles, look_up: Callable[[Lend], FoundT]) -> FoundT:
        """Return what `look_up` finds. Raises what it raises."""
        try:
            return look_up(files.lending_now())
        except BlockingIOError:
            return await self.look_up_in_thread(files, look_up)

    async def look_up_in_thread(
        self, files: OpenFiles, look_up: Callable[[Lend], FoundT]
    ) -> FoundT:
        """Return what `look_up` finds. Raises what it raises."""
        work = partial(_run, files, look_up)
        return await self._threads.done(self._news(), work, if_awaited=True)

    def close(self) -> None:
        """Return when all look-ups are done."""
        self._threads.close()


@contextmanager
def lending(files: FileSystem) -> Iterator[Lend]:
    """Lend files that are opened for one look-up. Blocks where it opens or reads one."""
    opened = OpenFiles(files)
    try:
        with opened.lending() as lend:
            yield lend
    finally:
        opened.close()


def _run(files: OpenFiles, look_up: Callable[[Lend], FoundT]) -> FoundT:
    with files.lending() as lend:
        return look_up(lend)


def _takes_long() -> BlockingIOError:
    return BlockingIOError(errno.EAGAIN, "this is for a thread")
