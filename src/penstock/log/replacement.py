"""Putting one new segment in the place of several that follow one another, whatever a crash leaves.

The new one is written beside them, under a name that says which offsets it has. Once it is flushed
it is renamed to what counts as complete: that is the step at which the log has changed. The old
files are removed then, and the new ones get the names of the first of them. After a crash the next
start finds either an unfinished segment, which it removes, or a complete one, and goes on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.log.files import FileSystem

_NAME: Final = re.compile(r"(\d{20})-(\d{20})\.(log|index|timeindex|swap)")
_OLD_NAME: Final = re.compile(r"(\d{20})\.(log|index|timeindex)")


class Replacement(NamedTuple):
    """The files of a new segment, from the offset `start` up to `end`, beside those it replaces."""

    directory: Path
    start: int
    end: int

    @property
    def stem(self) -> Path:
        """The path of its files, without their suffixes, as long as it is not in its place."""
        return self.directory / f"{self.start:020d}-{self.end:020d}"

    @property
    def place(self) -> Path:
        """The path that its files get, without their suffixes."""
        return self.directory / f"{self.start:020d}"

    @property
    def completed(self) -> Path:
        """The name of its batches between the step that counts and the last one."""
        return self.stem.with_suffix(".swap")

    def complete(self, files: FileSystem) -> None:
        """Take the step that counts; all that it is written in was flushed. Raises OSError."""
        files.rename(self.stem.with_suffix(".log"), self.completed)

    def finish(self, files: FileSystem) -> None:
        """Put it in the place of the old files, while nobody reads them. Raises OSError.

        What was done already is not done again.
        """
        files.sync_directory(self.directory)
        names = files.entries(self.directory)
        if self.completed.name not in names:
            return
        for name in sorted(names, reverse=True):
            if self._replaces(name):
                files.unlink(self.directory / name)
        # No old name may be durable beside the new one, but for the first.
        files.sync_directory(self.directory)
        for suffix in (".index", ".timeindex"):
            if self.stem.with_suffix(suffix).name in names:
                files.rename(self.stem.with_suffix(suffix), self.place.with_suffix(suffix))
        files.rename(self.completed, self.place.with_suffix(".log"))
        files.sync_directory(self.directory)

    def discard(self, files: FileSystem) -> None:
        """Remove what was written of it before the step that counts. Raises OSError."""
        for name in files.entries(self.directory):
            if Path(name).stem == self.stem.name:
                files.unlink(self.directory / name)

    def _replaces(self, name: str) -> bool:
        """Whether a file has to go: all but those of the first segment, which are renamed over."""
        found = _OLD_NAME.fullmatch(name)
        return found is not None and self.start < int(found[1]) < self.end


def finish_replacements(files: FileSystem, directory: Path, sizes: dict[str, int]) -> bool:
    """Go on where a crash ended a replacement, or remove what it left; whether there was any.

    `sizes` are the files in the directory. Raises OSError.
    """
    left = list(_replacements(directory, sizes))
    for replacement in left:
        if replacement.completed.name in sizes:
            replacement.finish(files)
        else:
            replacement.discard(files)
    return bool(left)


def _replacements(directory: Path, names: Iterable[str]) -> Iterator[Replacement]:
    found = {each.group(1, 2) for name in names if (each := _NAME.fullmatch(name))}
    for start, end in sorted(found):
        yield Replacement(directory, int(start), int(end))
