"""The data folder belongs to one broker at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

LOCK_NAME: Final = "penstock.lock"


class DataFolderError(Exception):
    """The data folder can't be used. The message tells the operator what to do."""


class DataFolderLock:
    """Holds the data folder, which it creates, for this process.

    The kernel gives the lock back when the process ends, however it ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise DataFolderError(
                f"the data folder {self.folder} can't be used: {error.strerror}; "
                "choose another with --data-folder"
            ) from error
        self._lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 64).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise DataFolderError(
                f"the data folder {self.folder} is in use by the broker with process id {holder}; "
                "stop that one, or choose another folder with --data-folder"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
