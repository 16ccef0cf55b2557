"""States that are too large to be written with each checkpoint: each in a file of its own.

The file is named by what is in it, so what did not change is written once, and a checkpoint refers
to the very state that it was written with: a crash leaves the old one or the new one, with its own.
"""

from __future__ import annotations

from contextlib import closing, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from penstock.log.files import write_all
from penstock.log.pieces import chunks_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from penstock.log.files import FileSystem
    from penstock.log.pieces import State
    from penstock.session import Buffer

DIGEST_BYTES: Final = 16
_PREFIX: Final = "state-"
_TEMPORARY: Final = "state.new"


def digest_of(state: State) -> bytes:
    """Return what a state's file is named by."""
    made = blake2b(digest_size=DIGEST_BYTES)
    for chunk in chunks_of(state):
        made.update(chunk)
    return made.digest()


def write_states(files: FileSystem, directory: Path, states: dict[bytes, State]) -> None:
    """Write those states, by their digests, that have no file yet, durably. Raises OSError."""
    there = files.entries(directory)
    is_new = False
    for digest, state in states.items():
        if there.get(_name(digest)) != len(state):
            replace_file(files, directory / _TEMPORARY, directory / _name(digest), chunks_of(state))
            is_new = True
    if is_new:
        files.sync_directory(directory)


def read_state(files: FileSystem, directory: Path, digest: bytes, size: int) -> bytes | None:
    """Return a state, or None where its file is gone or damaged. Raises OSError."""
    try:
        file = files.open(directory / _name(digest))
    except FileNotFoundError:
        return None
    with closing(file):
        state = file.pread(size, 0)
    return state if digest_of(state) == digest else None


def remove_others(
    files: FileSystem, directory: Path, there: Iterable[str], digests: Iterable[bytes]
) -> None:
    """Remove, of the files that are there, those of other states. Raises OSError."""
    kept = set(map(_name, digests))
    for name in there:
        if name.startswith(_PREFIX) and name not in kept:
            files.unlink(directory / name)


def replace_file(files: FileSystem, temporary: Path, path: Path, parts: Iterable[Buffer]) -> None:
    """Have a file hold these bytes and no others, written part by part; its name is not durable
    yet. Raises OSError.
    """
    with suppress(FileNotFoundError):
        files.unlink(temporary)
    with closing(files.open(temporary, write=True, create=True)) as file:
        position = 0
        for part in parts:
            write_all(file, [part], position)
            position += len(part)
        file.fdatasync()
    files.rename(temporary, path)


def _name(digest: bytes) -> str:
    return _PREFIX + digest.hex()
