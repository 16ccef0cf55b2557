"""One run at a time on a table in a local folder."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.pipeline.tables.interface import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def locked(file: Path, table: str) -> Iterator[None]:
    """Hold a lock that ends with this process, however that ends.

    Raises TableError where another run holds it, with the number of its process, and where there
    can be no such folder.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = file.open("a+")
    except OSError as error:
        raise TableError(f"{table} can't be written to: {error.strerror}") from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            process = lock.read().strip()
            raise TableError(
                f"another run writes to {table}"
                f"{f' (process {process})' if process else ''}: wait for its end, or stop it"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextmanager
def taking_turns(file: Path) -> Iterator[None]:
    """Wait for a lock that others hold for the time of a commit, and hold it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
