"""How files are kept: what is written there is whole and durable when it can be seen as written."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime


class Found(NamedTuple):
    """One file that is there, by its path below the folder that was looked at."""

    name: str
    modified: datetime


@dataclass(frozen=True)
class Folder:
    """A folder of a local disk or an object store; pickled to the executors."""

    filesystem: fs.FileSystem
    path: str

    def below(self, name: str) -> Folder:
        return replace(self, path=f"{self.path}/{name}")

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """Open a new file; what was written survives a power cut when this is left.

        Its name does once `flush` was called. In an object store it is there from then on.
        """
        path = f"{self.path}/{name}"
        if not self._is_local():
            with self.filesystem.open_output_stream(path) as sink:
                yield sink
            return
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def replace(self, name: str, content: bytes) -> None:
        """Write a small file that readers see as it was or as it is now."""
        if not self._is_local():
            with self.writing(name) as sink:
                sink.write(content)
            return
        draft = Path(self.path, f"{name}.new")
        draft.write_bytes(content)
        draft.replace(Path(self.path, name))

    def reading(self, name: str) -> Any:
        """Open a file for random access."""
        return self.filesystem.open_input_file(f"{self.path}/{name}")

    def found(self) -> list[Found]:
        """Return all files below; none where there is no folder."""
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=True)
        prefix = len(self.path) + 1
        return [
            Found(each.path[prefix:], each.mtime)
            for each in self.filesystem.get_file_info(selector)
            if each.is_file
        ]

    def has(self, name: str) -> bool:
        """Whether there is a folder of that name."""
        (found,) = self.filesystem.get_file_info([f"{self.path}/{name}"])
        return bool(found.type is fs.FileType.Directory)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are gone already are none to it."""
        for name in names:
            try:
                self.filesystem.delete_file(f"{self.path}/{name}")
            except FileNotFoundError:
                continue

    def flush(self, names: Iterable[str]) -> None:
        """Have the names of files survive a power cut."""
        if not self._is_local():
            return
        for folder in {Path(self.path, name).parent for name in names}:
            flush_folder(folder)
            flush_folder(folder.parent)

    def _is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)


def local_folder(path: Path) -> Folder:
    return Folder(fs.LocalFileSystem(), str(path.absolute()))


def flush_folder(folder: Path) -> None:
    """Have the names in a local folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
