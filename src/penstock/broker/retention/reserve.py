"""A little of the disk that is kept for when it is full: to give something up takes some, too."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

from penstock.limits import RESERVE_BYTES

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

RESERVE_FILE: Final = "reserve"


class Reserve:
    """A file of the data folder with nothing in it. Both methods block."""

    def __init__(self, data_folder: Path) -> None:
        self._file = data_folder / RESERVE_FILE
        self.is_there = False

    def take(self) -> None:
        """Have it, unless there is no room for it now."""
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
            finally:
                os.close(descriptor)
        except OSError as error:
            logger.warning("nothing of the disk is kept for when it is full: %s", error)
            self._file.unlink(missing_ok=True)
        else:
            self.is_there = True

    def give(self) -> bool:
        """Give it back to the disk; return whether there was any."""
        was_there, self.is_there = self.is_there, False
        self._file.unlink(missing_ok=True)
        return was_there
