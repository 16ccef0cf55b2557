"""Where the data of a broker for tests lies: in memory where there is room, and never for long."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from penstock.log.layout import DATABASE_FILE
from penstock.metadata.store import MetadataStore

_PREFIX: Final = "penstock-testing-"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # made with `mkdtemp`, as below the usual folder
_ROOM_BYTES: Final = 1 << 30
"""The least free memory for it: a container has 64 MiB there, which tests may fill."""
_YOUNG_SECONDS: Final = 60.0
"""Somebody may still be about to lock a folder that is not older."""


def make_folder() -> Path:
    """Return a new folder with an empty database in it, which is quicker than to make its tables.

    Folders that processes left which were killed are removed first, once.
    """
    base = _base()
    _remove_abandoned(base)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    (folder / DATABASE_FILE).write_bytes(_empty_database(base))
    return folder


def remove_folder(folder: Path) -> None:
    """Remove it with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)


def _base() -> Path:
    with suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES:
            return _MEMORY
    return Path(tempfile.gettempdir())


@lru_cache(maxsize=1)
def _empty_database(base: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base) as folder:
        file = Path(folder) / DATABASE_FILE
        MetadataStore.open(file).close_now()
        return file.read_bytes()


@lru_cache(maxsize=1)
def _remove_abandoned(base: Path) -> None:
    """Remove what no process has locked any more, as a broker does with its data folder."""
    for folder in base.glob(f"{_PREFIX}*"):
        # Another user's can't be opened, and another process may be removing it too.
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _YOUNG_SECONDS and not _is_locked(folder):
                remove_folder(folder)


def _is_locked(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
