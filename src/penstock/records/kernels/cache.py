"""Where compiled functions are kept, and whether all of them are there."""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]


@cache
def cache_directory() -> Path:
    """Return the first folder that can be written to.

    That is NUMBA_CACHE_DIR where it is set, then beside the source, then the user's cache, and
    where none of them can be written, one for all processes of the user among the temporary files.
    If even that is not there for us alone, this process compiles into a folder of its own, which
    it removes when it ends.

    numba's own cache notices a change of the file that a function is in and not of the functions
    that it calls, so the folder is named after a digest of every source file of `records`.
    """
    name = f"penstock-kernels-{_source_digest()}"
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    configured = os.environ.get("NUMBA_CACHE_DIR")
    parents = [_PACKAGE / "__pycache__", Path(user_cache)]
    for parent in [Path(configured), *parents] if configured else parents:
        if _writable(parent / name):
            return parent / name
    return _temporary(f"{name}-{os.getuid()}") or _of_this_process(name)


def is_complete() -> bool:
    """Whether an earlier process has compiled everything for this machine and this source."""
    return _mark().exists()


def mark_complete() -> None:
    """Let later processes know that nothing is left to compile."""
    _mark().touch()


@contextmanager
def compiling_alone() -> Iterator[None]:
    """Keep other processes from compiling into the same folder meanwhile; blocks while one does."""
    with (cache_directory() / "compiling.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _mark() -> Path:
    from importlib.metadata import version  # noqa: PLC0415 (takes long to load)

    return cache_directory() / f"{sys.implementation.cache_tag}-numba-{version('numba')}"


def _temporary(name: str) -> Path | None:
    """Return a folder that the next process finds again, if nobody else can write to it.

    What is in it is run: a folder that somebody else made under this name is left alone.
    """
    folder = Path(tempfile.gettempdir()) / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
    return folder if is_ours and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _of_this_process(name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=name))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True
