"""The data folder belongs to one broker at a time."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from penstock.broker.errors import DataFolderError
from penstock.limits import FOLDER_CHECK_SECONDS
from penstock.log.layout import CLUSTER_ID_FILE, DATABASE_FILE, IDENTITY_FILE, topics_directory

LOCK_NAME: Final = "penstock.lock"
_OF_A_BROKER: Final = (LOCK_NAME, DATABASE_FILE, CLUSTER_ID_FILE, IDENTITY_FILE)


def is_data_folder(folder: Path) -> bool:
    """Whether a broker has left anything there, whatever of it is missing now."""
    return topics_directory(folder).is_dir() or any(
        (folder / name).exists() for name in _OF_A_BROKER
    )


class DataFolderLock:
    """Holds the data folder, which it creates, for this process.

    What is locked is the folder itself: its file, which anybody may remove, only says by whom. The
    kernel gives the lock back when the process ends, however it ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            self._lock()
        except OSError as error:
            # `mkdir` says of a file, and of a link to nothing, that it exists.
            is_folder = not isinstance(error, FileExistsError)
            reason = error.strerror if is_folder else os.strerror(errno.ENOTDIR)
            raise DataFolderError(
                f"the data folder {self.folder} can't be used: {reason}; "
                "choose another with --data-folder"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def is_in_place(self) -> bool:
        """Whether the folder is still where it was, and not removed or replaced by another."""
        held = os.fstat(self._descriptor)
        try:
            found = self.folder.stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)

    async def lost(self) -> None:
        """Return when the folder is not in place any more."""
        while True:
            if not await asyncio.to_thread(self.is_in_place):
                return
            await asyncio.sleep(FOLDER_CHECK_SECONDS)

    def _lock(self) -> None:
        file = self.folder / LOCK_NAME
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            holder = file.read_text().strip() if file.exists() else "that `fuser` shows"
            raise DataFolderError(
                f"the data folder {self.folder} is in use by the broker with process id {holder}; "
                "stop that one, or choose another folder with --data-folder"
            ) from None
        try:
            file.write_text(f"{os.getpid()}\n")
        except OSError:
            os.close(self._descriptor)
            raise
