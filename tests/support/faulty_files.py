"""A file system in memory that fails, tears and forgets on demand.

It knows for each file and each directory what a power cut would leave. A test sees every operation
before it happens, may make it fail, and may take a copy of the disk as a crash at that moment
leaves it.
"""

from __future__ import annotations

import errno
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

CrashT = TypeVar("CrashT", bound=tuple[Any, ...])
Buffer = bytes | bytearray | memoryview
Hook = Callable[[str, Path], None]


class Survival(Enum):
    """What a crash leaves of that which was not synced."""

    ALL = "the process was killed: the page cache is written out later"
    NONE = "the power was cut: only what was synced is left"
    SOME = "the power was cut while the cache was being written out, in any order"


class Content:
    """One file's bytes, as programs see them and as the disk holds them."""

    def __init__(self, data: bytes = b"") -> None:
        self.live = bytearray(data)
        self.durable = data
        self.is_lost = False
        self.unsynced: list[tuple[int, bytes | None]] = []
        """Writes since the last sync, by position; None cuts the file off there."""

    def write(self, position: int, data: bytes | None) -> None:
        _apply(self.live, position, data)
        self.unsynced.append((position, data))

    def sync(self) -> None:
        self.durable = bytes(self.live)
        self.unsynced = []

    def lose(self) -> None:
        """A sync failed: the cache holds on to what the disk may never see, and calls it clean."""
        self.is_lost = True

    def forget(self) -> None:
        """Show what the disk holds where a sync has failed; what only waits for one stays."""
        if self.is_lost:
            self.live, self.unsynced, self.is_lost = bytearray(self.durable), [], False

    def digest(self) -> bytes:
        return hashlib.sha256(self.live).digest()

    def after_crash(self, survival: Survival, chance: random.Random) -> bytes:
        if survival is Survival.ALL:
            return bytes(self.live)
        left = bytearray(self.durable)
        if survival is Survival.SOME:
            for position, data in self.unsynced:
                for piece in _some_pieces(position, data, chance):
                    _apply(left, *piece)
        return bytes(left)


class Names:
    """One directory: what its names lead to, live and on disk."""

    def __init__(self) -> None:
        self.live: dict[str, Content | Names] = {}
        self.states: list[dict[str, Content | Names]] = [{}]
        """What the disk may hold: the synced state, then each state since, in order."""

    def changed(self) -> None:
        self.states.append(dict(self.live))

    def sync(self) -> None:
        self.states = [dict(self.live)]

    def digest(self) -> bytes:
        found = sorted((name, node.digest()) for name, node in self.live.items())
        return hashlib.sha256(repr(found).encode()).digest()

    def after_crash(self, survival: Survival, chance: random.Random) -> Names:
        state = {Survival.ALL: self.live, Survival.NONE: self.states[0]}.get(survival)
        left = Names()
        for name, node in (chance.choice(self.states) if state is None else state).items():
            crashed = node.after_crash(survival, chance)
            left.live[name] = Content(crashed) if isinstance(crashed, bytes) else crashed
        left.sync()
        return left


class FaultyFile:
    """An open file of a FaultyFileSystem."""

    def __init__(self, system: FaultyFileSystem, path: Path, content: Content) -> None:
        self._system = system
        self._path = path
        self._content = content
        self._is_open = True
        system.open_files += 1

    def pread(self, size: int, position: int) -> bytes:
        assert self._is_open, f"{self._path} is closed"
        self._system.before("pread", self._path)
        if position < 0:
            raise OSError(errno.EINVAL, "a negative position", str(self._path))
        return bytes(self._content.live[position : position + size])

    def pread_now(self, size: int, position: int) -> bytes:
        if self._system.is_slow:
            raise BlockingIOError(errno.EAGAIN, "not in memory", str(self._path))
        return self.pread(size, position)

    @property
    def descriptor(self) -> None:
        return None

    @property
    def is_in_memory(self) -> bool:
        return self._system.is_in_memory

    def duplicate(self) -> FaultyFile:
        return FaultyFile(self._system, self._path, self._content)

    def pwritev(self, parts: Sequence[Buffer], position: int) -> int:
        assert self._is_open, f"{self._path} is closed"
        data = b"".join(parts)
        self._system.before("pwritev", self._path)
        taken = data[: self._system.write_limit]
        self._content.write(position, taken)
        return len(taken)

    def fdatasync(self) -> None:
        assert self._is_open, f"{self._path} is closed"
        try:
            self._system.before("fdatasync", self._path)
        except OSError:
            self._content.lose()
            raise
        self._content.sync()

    def begin_writing(self, position: int, size: int) -> None:
        assert self._is_open, f"{self._path} is closed"
        self._system.before("begin_writing", self._path)
        assert position + size <= len(self._content.live)

    def truncate(self, size: int) -> None:
        self._system.before("truncate", self._path)
        self._content.write(size, None)

    def close(self) -> None:
        assert self._is_open, f"{self._path} is closed twice"
        self._is_open = False
        self._system.open_files -= 1


class FaultyFileSystem:
    """`hook` is called with each operation's name and path before it happens, and may raise."""

    def __init__(self, root: Names | None = None) -> None:
        self._root = root or Names()
        self.hook: Hook | None = None
        self.write_limit: int | None = None
        """At most so many bytes go in at one write."""
        self.is_slow = False
        """Whether nothing that is read is in memory."""
        self.is_in_memory = False
        """Whether it says that there is no device to wait for."""
        self.open_files = 0
        self.now_ms = 0
        """When every file was changed last."""

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> FaultyFile:
        directory = self._directory(path.parent)
        if path.name not in directory.live:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            self.before("create", path)
            directory.live[path.name] = Content()
            directory.changed()
        elif write:
            self.before("open", path)
        return FaultyFile(self, path, self.content(path))

    def entries(self, directory: Path) -> dict[str, int]:
        found = self._directory(directory).live.items()
        return {name: len(node.live) for name, node in found if isinstance(node, Content)}

    def make_directory(self, directory: Path) -> None:
        names = self._root
        for part in directory.parts[1:]:
            if part not in names.live:
                names.live[part] = Names()
                names.changed()
                if part != directory.name:
                    names.sync()
            inner = names.live[part]
            assert isinstance(inner, Names)
            names = inner

    def forget_cache(self, path: Path) -> None:
        self.content(path).forget()

    def sync_directory(self, directory: Path) -> None:
        self.before("sync_directory", directory)
        self._directory(directory).sync()

    def modified_ms(self, path: Path) -> int:
        assert self.content(path) is not None
        return self.now_ms

    def rename(self, source: Path, target: Path) -> None:
        assert source.parent == target.parent
        self.before("rename", target)
        directory = self._directory(source.parent)
        directory.live[target.name] = directory.live.pop(source.name)
        directory.changed()

    def unlink(self, path: Path) -> None:
        directory = self._directory(path.parent)
        if path.name not in directory.live:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        self.before("unlink", path)
        del directory.live[path.name]
        directory.changed()

    def after_crash(self, survival: Survival, seed: int = 0) -> FaultyFileSystem:
        """Return the disk as a crash at this moment leaves it; this one goes on untouched."""
        return FaultyFileSystem(self._root.after_crash(survival, random.Random(seed)))

    def digest(self) -> bytes:
        """The same for disks on which whoever opens their files finds the same."""
        return self._root.digest()

    def content(self, path: Path) -> Content:
        """The file's bytes, for tests to look at and to damage."""
        node = self._directory(path.parent).live[path.name]
        assert isinstance(node, Content)
        return node

    def before(self, operation: str, path: Path) -> None:
        if self.hook is not None:
            self.hook(operation, path)

    def _directory(self, path: Path) -> Names:
        names = self._root
        for part in path.parts[1:]:
            inner = names.live.get(part)
            if not isinstance(inner, Names):
                raise FileNotFoundError(errno.ENOENT, "no such directory", str(path))
            names = inner
        return names


def each_once(crashes: Iterable[CrashT]) -> Iterator[CrashT]:
    """Yield crashes: tuples of a moment, the disk that was left, and what is promised of it.

    Of those that left the same and promise the same, which are up to half, only the first.
    """
    seen: set[tuple[bytes, str]] = set()
    for crash in crashes:
        _, disk, *promised = crash
        left = disk.digest(), repr(promised)
        if left not in seen:
            seen.add(left)
            yield crash


def failing(number: int, *operations: str, error: int = errno.EIO) -> Hook:
    """Make the `number`th of these operations fail, counted from 1, and none after it."""
    left = number

    def hook(operation: str, path: Path) -> None:
        nonlocal left
        if operation in operations:
            left -= 1
            if left == 0:
                raise OSError(error, f"made to fail: {operation}", str(path))

    return hook


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
        return
    content.extend(bytes(max(0, position - len(content))))
    content[position : position + len(data)] = data


def _some_pieces(
    position: int, data: bytes | None, chance: random.Random
) -> Iterator[tuple[int, bytes | None]]:
    """Yield what of one write reached the disk: all, nothing, its beginning or its end."""
    fate = chance.randrange(4)
    if data is None or fate == 0:
        yield position, data
        return
    cut = chance.randint(0, len(data))
    if fate == 1:
        yield position, data[:cut]
    if fate == 2:
        yield position + cut, data[cut:]
