"""One flush of a log: what it writes, makes durable and vouches for, in a thread."""

from __future__ import annotations

import errno
from contextlib import closing
from typing import TYPE_CHECKING, Final

from penstock.log.checkpoint import Checkpoint, write_checkpoint
from penstock.log.errors import LogWriteError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.log.files import FileSystem
    from penstock.log.segment import Segment
    from penstock.log.writer import LogWriter, Unsynced

_NOTHING_LOST: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of opening a directory: no flush was tried, so that the next one may make up for it."""


class Round:
    """It is put together on the loop and run once, in a thread."""

    def __init__(
        self,
        files: FileSystem,
        directory: Path,
        writer: LogWriter,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.checkpoint = checkpoint
        self.checkpoint_error: OSError | None = None
        """Why the checkpoint was not written, where there was one to write."""
        self.unsynced: Unsynced | None = None
        """What was made durable, once it has run; None where nothing was tried."""
        self.on_written: Callable[[], None] | None = None
        """Called in the thread when all is written, where somebody waits for that alone."""
        self._files = files
        self._directory = directory
        self._writer = writer

    @property
    def full(self) -> list[Segment]:
        """The segments that are written no more, and whose files this round was the last to use."""
        return [] if self.unsynced is None else self.unsynced.full

    def run(self) -> None:
        """Write what stands in line, flush, and write the checkpoint after what it speaks for.

        Raises LogWriteError where nothing is lost, and OSError where a flush failed. Neither an
        index nor a checkpoint that can't be saved is a reason: they save time at the next start.
        """
        try:
            self.unsynced = self._writer.write_and_take()
        except OSError as error:
            raise LogWriteError.of(error) from error
        if self.on_written is not None:
            self.on_written()
        for file in self.unsynced.files:
            file.fdatasync()
        self._sync_names(self.unsynced.directories)
        if self.checkpoint is not None:
            try:
                self._save(self.checkpoint)
            except OSError as error:
                self.checkpoint_error = error

    def _sync_names(self, directories: set[Path]) -> None:
        for directory in directories:
            try:
                self._files.sync_directory(directory)
            except OSError as error:
                if error.errno not in _NOTHING_LOST:
                    raise
                self.checkpoint_error = error
                self._writer.name_again(directories)
                raise LogWriteError.of(error) from error

    def _save(self, checkpoint: Checkpoint) -> None:
        """Save the indexes of what nobody will look at again at the next start, then the rest."""
        full: list[Segment] = self._writer.save_indexes()
        for path in (path for segment in full for path in segment.index.paths):
            with closing(self._files.open(path, write=True)) as index:
                index.fdatasync()
        write_checkpoint(self._files, self._directory, checkpoint)
        self._writer.forget_saved(full)
